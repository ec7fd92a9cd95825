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
    pub(crate) arrived_at: Mono,
    pub(crate) urgency: Urgency,
    pub(crate) stage: Stage,
}

/// How much a call is worth while the log is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It asks for something new.
    Ordinary,
    /// It keeps a lease: one of the first when the log is back.
    Renewal,
    /// A release or an abandon, which is applied even if nobody listens any more.
    Ending,
}

/// A hand-over that calls were answered with.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// How many of the answers have not turned out to be unheard.
    answers: usize,
    at: ClusterTime,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: BTreeMap<CallId, OpenCall>,
    held_until: BTreeSet<(Mono, CallId)>,
    held_by_claim: BTreeMap<ObjectId, Vec<CallId>>,
    /// Claims that no call asks for, by the end of the last one.
    unasked: BTreeSet<(ClusterTime, ObjectId)>,
    unasked_since: BTreeMap<ObjectId, ClusterTime>,
    /// Hand-overs of the last [`GRACE_MS`] that were answered: one that nobody heard has its grace.
    offers: BTreeMap<ObjectId, Offer>,
    offered: BTreeSet<(ClusterTime, ObjectId)>,
}

impl Calls {
    pub(crate) fn open(&mut self, id: CallId, call: OpenCall) {
        let before = self.open.insert(id, call);
        assert!(before.is_none(), "calls are numbered");
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&OpenCall> {
        self.open.get(&id)
    }

    /// The call is part of an append, or (`Queued`) of one that failed for certain.
    pub(crate) fn set_stage(&mut self, id: CallId, stage: Stage) {
        if let Some(call) = self.open.get_mut(&id) {
            call.stage = stage;
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

    pub(crate) fn is_in_grace(&self, claim: ObjectId) -> bool {
        self.unasked_since.contains_key(&claim)
    }

    /// So many calls are answered with this hand-over.
    pub(crate) fn offer(&mut self, claim: ObjectId, answers: usize, at: ClusterTime) {
        self.end_grace(claim);
        let before = self.offers.get(&claim).copied();
        if let Some(before) = before {
            self.offered.remove(&(before.at, claim));
        }
        let answers = answers + before.map_or(0, |before| before.answers);
        self.offers.insert(claim, Offer { answers, at });
        self.offered.insert((at, claim));
    }

    pub(crate) fn is_offered(&self, claim: ObjectId) -> bool {
        self.offers.contains_key(&claim)
    }

    /// One of the answers reached nobody. If none did, the grace begins.
    pub(crate) fn unheard(&mut self, claim: ObjectId, time: ClusterTime) {
        let Some(offer) = self.offers.get_mut(&claim) else { return };
        offer.answers -= 1;
        if offer.answers == 0 {
            let at = offer.at;
            self.offers.remove(&claim);
            self.offered.remove(&(at, claim));
            self.begin_grace(claim, time);
        }
    }

    /// Forgets answers that are old enough: nobody has said that they were not heard.
    pub(crate) fn forget_offers(&mut self, time: ClusterTime) {
        while let Some(&(at, claim)) = self.offered.first()
            && at.plus(GRACE_MS) <= time
        {
            self.offered.pop_first();
            self.offers.remove(&claim);
        }
    }

    /// When the first grace is over.
    pub(crate) fn next_deserted(&self) -> Option<ClusterTime> {
        self.unasked.first().map(|&(since, _)| since.plus(GRACE_MS))
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
    pub(crate) fn overdue(&self, now: Mono) -> Vec<(CallId, OpenCall)> {
        let is_overdue =
            |call: &OpenCall| call.deadline <= now && !matches!(call.stage, Stage::Held { .. });
        let calls = self.open.iter().filter(|(_, call)| is_overdue(call));
        calls.map(|(&id, &call)| (id, call)).collect()
    }

    /// Calls that wait for the log, and not for their turn.
    pub(crate) fn waiting_for_the_log(&self) -> Vec<(CallId, OpenCall)> {
        let is_held = |call: &OpenCall| matches!(call.stage, Stage::Held { .. });
        let calls = self.open.iter().filter(|(_, call)| !is_held(call));
        calls.map(|(&id, &call)| (id, call)).collect()
    }

    /// Forgets all graces, for a node that has ceased to lead.
    pub(crate) fn clear_graces(&mut self) {
        self.unasked.clear();
        self.unasked_since.clear();
        self.offers.clear();
        self.offered.clear();
    }

    /// All held calls.
    pub(crate) fn held(&self) -> Vec<CallId> {
        self.held_until.iter().map(|&(_, id)| id).collect()
    }

    /// Panics unless every call has been closed, and nothing of them is left.
    #[cfg(test)]
    pub(crate) fn check_closed(&self) {
        assert!(self.open.is_empty(), "open: {:?}", self.open);
        assert!(self.held_until.is_empty() && self.held_by_claim.is_empty());
        assert_eq!(self.unasked.len(), self.unasked_since.len());
        assert_eq!(self.offers.len(), self.offered.len());
    }

    /// Panics unless nothing is left at all.
    #[cfg(test)]
    pub(crate) fn check_empty(&self) {
        self.check_closed();
        assert!(self.unasked.is_empty(), "graces: {:?}", self.unasked);
        assert!(self.offers.is_empty(), "offers: {:?}", self.offers);
    }
}
