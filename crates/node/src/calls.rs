//! Open calls: who still listens, which of them are held back for a wait, and which waits nobody asks for.

use crate::{clock::Mono, node::CallId};
use sereno_core::ids::{ClusterTime, ObjectId};
use std::collections::{BTreeMap, BTreeSet};

/// How long a wait, or a hand-over, goes on that nobody asks for: cluster time from the end of its last call.
pub(crate) const GRACE_MS: u64 = 10_000;

/// Where an open call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Queued,
    Sent,
    /// Its claim waits; it is answered at the latest at this moment.
    Held {
        claim: ObjectId,
        until: Mono,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenCall {
    pub(crate) deadline: Mono,
    pub(crate) hold_ms: u64,
    pub(crate) stage: Stage,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: BTreeMap<CallId, OpenCall>,
    held_until: BTreeSet<(Mono, CallId)>,
    held_by_claim: BTreeMap<ObjectId, Vec<CallId>>,
    /// Claims that no call asks for, by the end of the last one.
    unasked: BTreeSet<(ClusterTime, ObjectId)>,
    unasked_since: BTreeMap<ObjectId, ClusterTime>,
}

impl Calls {
    pub(crate) fn open(&mut self, id: CallId, deadline: Mono, hold_ms: u64) {
        let before = self.open.insert(id, OpenCall { deadline, hold_ms, stage: Stage::Queued });
        assert!(before.is_none(), "calls are numbered");
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&OpenCall> {
        self.open.get(&id)
    }

    pub(crate) fn sent(&mut self, id: CallId) {
        if let Some(call) = self.open.get_mut(&id) {
            call.stage = Stage::Sent;
        }
    }

    /// Closes a call, answered or not. If it was the last to ask for its claim, the grace begins.
    pub(crate) fn close(&mut self, id: CallId, time: ClusterTime) -> Option<OpenCall> {
        let call = self.open.remove(&id)?;
        if let Stage::Held { claim, until } = call.stage {
            self.held_until.remove(&(until, id));
            let calls = self.held_by_claim.get_mut(&claim).expect("a held call is listed");
            calls.retain(|&other| other != id);
            if calls.is_empty() {
                self.held_by_claim.remove(&claim);
                self.begin_grace(claim, time);
            }
        }
        Some(call)
    }

    /// Holds a call back until its claim is settled.
    pub(crate) fn hold(&mut self, id: CallId, claim: ObjectId, until: Mono) {
        self.end_grace(claim);
        let call = self.open.get_mut(&id).expect("only an open call is held");
        call.stage = Stage::Held { claim, until };
        self.held_until.insert((until, id));
        self.held_by_claim.entry(claim).or_default().push(id);
    }

    /// The claim is settled: all calls that were held for it.
    pub(crate) fn settle(&mut self, claim: ObjectId) -> Vec<CallId> {
        self.end_grace(claim);
        let calls = self.held_by_claim.remove(&claim).unwrap_or_default();
        for id in &calls {
            let call = self.open.remove(id).expect("a held call is open");
            let Stage::Held { until, .. } = call.stage else { unreachable!("it is held") };
            self.held_until.remove(&(until, *id));
        }
        calls
    }

    pub(crate) fn is_asked_for(&self, claim: ObjectId) -> bool {
        self.held_by_claim.contains_key(&claim)
    }

    pub(crate) fn begin_grace(&mut self, claim: ObjectId, time: ClusterTime) {
        self.end_grace(claim);
        self.unasked_since.insert(claim, time);
        self.unasked.insert((time, claim));
    }

    pub(crate) fn end_grace(&mut self, claim: ObjectId) {
        if let Some(since) = self.unasked_since.remove(&claim) {
            self.unasked.remove(&(since, claim));
        }
    }

    /// A claim that nobody has asked for during the grace.
    pub(crate) fn take_deserted(&mut self, time: ClusterTime) -> Option<ObjectId> {
        let &(since, claim) = self.unasked.first()?;
        if since.plus(GRACE_MS) > time {
            return None;
        }
        self.end_grace(claim);
        Some(claim)
    }

    /// A held call whose time is up, with its claim.
    pub(crate) fn take_hold_over(
        &mut self,
        now: Mono,
        time: ClusterTime,
    ) -> Option<(CallId, ObjectId)> {
        let &(until, id) = self.held_until.first()?;
        if until > now {
            return None;
        }
        let Some(OpenCall { stage: Stage::Held { claim, .. }, .. }) = self.close(id, time) else {
            unreachable!("a held call is open and held");
        };
        Some((id, claim))
    }

    /// When the next held call's time is up.
    pub(crate) fn next_hold_over(&self) -> Option<Mono> {
        self.held_until.first().map(|&(until, _)| until)
    }

    /// Calls past their deadline that are not held.
    pub(crate) fn overdue(&self, now: Mono) -> Vec<(CallId, Stage)> {
        let is_overdue =
            |call: &OpenCall| call.deadline <= now && !matches!(call.stage, Stage::Held { .. });
        let calls = self.open.iter().filter(|(_, call)| is_overdue(call));
        calls.map(|(&id, call)| (id, call.stage)).collect()
    }

    /// Forgets all graces, for a node that has ceased to lead.
    pub(crate) fn clear_graces(&mut self) {
        self.unasked.clear();
        self.unasked_since.clear();
    }

    /// All held calls.
    pub(crate) fn held(&self) -> Vec<CallId> {
        self.held_until.iter().map(|&(_, id)| id).collect()
    }
}
