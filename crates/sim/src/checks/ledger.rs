//! The book that the promises are read from: who holds and who waits, as commands and events tell it. It checks
//! nothing itself, and each event is entered after the checks have seen it.

use super::Change;
use crate::place::Place;
use sereno_core::{
    command::{
        Acquire, AcquireAll, Command, ElectionCommand, Family, HoldCommand, JobCommand, Operation,
    },
    event::EventKind,
    ids::{ClusterTime, Token},
    names::{NamespaceName, Owner, RequestId},
    outcome::End,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Who holds a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) token: Token,
    /// Public hash of its lease id.
    pub(crate) lease: u64,
}

/// Who waits for one.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) lease: u64,
    pub(crate) owner: Option<Owner>,
    pub(crate) deadline: ClusterTime,
    /// When a call for it came last.
    pub(crate) asked_at: ClusterTime,
}

/// What an acquire asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) wait_ms: u64,
    pub(crate) request: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) holders: BTreeMap<Place, Holder>,
    pub(crate) queues: BTreeMap<Place, VecDeque<Waiter>>,
    /// By the public hash of the lease id that the call drew.
    pub(crate) asked: BTreeMap<u64, Asked>,
    pub(crate) ended: BTreeSet<Token>,
    /// Elections whose leader has just handed over.
    pub(super) handing_off: BTreeSet<Place>,
    /// Cluster time of the last announce.
    pub(crate) announced_at: ClusterTime,
}

/// A request id in its scope. All callers are anonymous here.
pub(crate) fn request_key(
    family: Family,
    namespace: &NamespaceName,
    request_id: &RequestId,
) -> String {
    format!("{}:{namespace}:{request_id}", family.as_str())
}

impl Ledger {
    /// An entry carries this command.
    pub(super) fn carries(&mut self, command: &Command) {
        let (family, namespace, request_id, lease_id, wait_ms) = match &command.operation {
            Operation::Acquire(Acquire {
                namespace,
                request_id,
                lease_id,
                wait_timeout_ms,
                ..
            }) => (Family::Lock, namespace, request_id, lease_id, *wait_timeout_ms),
            Operation::AcquireAll(AcquireAll { namespace, request_id, lease_id, .. }) => {
                (Family::Lock, namespace, request_id, lease_id, 0)
            }
            Operation::Election(ElectionCommand::Campaign(op)) => {
                let wait_ms = op.wait_timeout_ms;
                (Family::Election, &op.namespace, &op.request_id, &op.lease_id, wait_ms)
            }
            Operation::Hold(HoldCommand::Hold(op)) => {
                (Family::Hold, &op.namespace, &op.request_id, &op.lease_id, 0)
            }
            Operation::Job(JobCommand::ClaimRun(op)) => {
                (Family::Job, &op.namespace, &op.request_id, &op.lease_id, 0)
            }
            _ => return,
        };
        let request = request_key(family, namespace, request_id);
        self.asked.entry(lease_id.public_hash()).or_insert(Asked { wait_ms, request });
    }

    pub(super) fn waiter(&self, place: &Place, lease: u64) -> Option<&Waiter> {
        self.queues.get(place)?.iter().find(|waiter| waiter.lease == lease)
    }

    pub(super) fn holder_by_lease(&self, lease: u64) -> Option<&Holder> {
        self.holders.values().find(|holder| holder.lease == lease)
    }

    pub(super) fn request_of(&self, lease: u64) -> Option<&str> {
        self.asked.get(&lease).map(|asked| asked.request.as_str())
    }

    /// A call asks for a wait that is there.
    pub(super) fn asks_again(&mut self, place: &Place, request: &str, now: ClusterTime) {
        let asked = &self.asked;
        let is_its = |waiter: &&mut Waiter| {
            asked.get(&waiter.lease).is_some_and(|asked| asked.request == request)
        };
        let queue = self.queues.get_mut(place);
        if let Some(waiter) = queue.and_then(|queue| queue.iter_mut().find(is_its)) {
            waiter.asked_at = now;
        }
    }

    pub(super) fn enter(&mut self, change: &Change) {
        let Change { place, lease, time, .. } = *change;
        match change.kind {
            EventKind::Queued => {
                let deadline = time.plus(self.asked[&lease].wait_ms);
                let owner = change.owner.cloned();
                let waiter = Waiter { lease, owner, deadline, asked_at: time };
                self.queues.entry(place.clone()).or_default().push_back(waiter);
            }
            EventKind::WaitEnded { .. } => self.leaves_queue(place, lease),
            EventKind::Granted { token, .. } => {
                self.leaves_queue(place, lease);
                self.handing_off.remove(place);
                self.holders.insert(place.clone(), Holder { token: *token, lease });
            }
            EventKind::Ended { token, end, .. } => {
                if *end == End::HandedOff {
                    self.handing_off.insert(place.clone());
                }
                self.holders.remove(place);
                self.ended.insert(*token);
            }
            _ => {}
        }
    }

    fn leaves_queue(&mut self, place: &Place, lease: u64) {
        if let Some(queue) = self.queues.get_mut(place) {
            queue.retain(|waiter| waiter.lease != lease);
        }
    }
}
