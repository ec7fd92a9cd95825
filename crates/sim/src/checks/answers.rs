//! S5: an answer is what the log has decided, what is told as not applied is not applied, and a consistent read is not
//! older than its arrival, nor than anything that was answered before it.

use crate::clock::Real;
use sereno_core::{
    Applied,
    command::{Command, ElectionCommand, HoldCommand, JobCommand, Operation, QuotaCommand},
    entry::Head,
    ids::{LeaseId, Revision},
    outcome::{Done, Outcome},
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// By revision: what commands were answered, and claims that were settled.
    outcomes: BTreeMap<Revision, Vec<Outcome>>,
    /// The newest revision of the log.
    newest: Revision,
    /// By public hash of the lease id that a call drew: commands that landed, and those whose callers were told that
    /// they certainly have not and will not.
    landed: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// The newest revision that any client has been told.
    pub(crate) floor: Revision,
}

impl Answers {
    pub(super) fn lands(&mut self, command: &Command) {
        let Some(lease_id) = lease_id_of(&command.operation) else { return };
        let lease = lease_id.public_hash();
        self.landed.insert(lease);
        assert!(
            !self.refused.contains(&lease),
            "S5: what was told as not applied is not applied: {:?}",
            command.operation
        );
    }

    /// A caller is told that this call is certainly not applied.
    pub(super) fn refused(&mut self, lease_id: LeaseId) {
        let lease = lease_id.public_hash();
        self.refused.insert(lease);
        assert!(!self.landed.contains(&lease), "S5: what is told as not applied is not applied");
    }

    pub(super) fn decided(&mut self, applied: Applied, newest: Revision) {
        self.newest = newest;
        let settled = applied.settled.into_iter().map(|settled| settled.outcome);
        for outcome in applied.outcomes.into_iter().chain(settled) {
            self.outcomes.entry(outcome.revision).or_default().push(outcome);
        }
    }

    /// A node answers.
    pub(super) fn answered(&self, outcome: &Outcome) {
        let there = self.outcomes.get(&outcome.revision);
        let is_of_log = there.is_some_and(|there| there.contains(outcome));
        let is_place =
            matches!(outcome.result, Ok(Done::Waiting(_))) && outcome.revision <= self.newest;
        assert!(is_of_log || is_place, "S5: the log leads to this answer: {outcome:?}");
    }

    /// A client is told this revision.
    pub(crate) fn told(&mut self, revision: Revision) {
        self.floor = self.floor.max(revision);
    }

    /// A client has read, and `floor` was told to somebody before it asked.
    pub(crate) fn read(&mut self, revision: Revision, floor: Revision) {
        assert!(
            revision >= floor,
            "S5: a consistent read is not older than what was answered before it: {revision} below {floor}"
        );
        self.told(revision);
    }

    /// The log is another one.
    pub(super) fn begins_anew(&mut self) {
        (self.outcomes, self.floor) = (BTreeMap::new(), Revision(0));
    }
}

/// The lease id that the door has drawn for this call.
pub(crate) fn lease_id_of(operation: &Operation) -> Option<LeaseId> {
    match operation {
        Operation::Acquire(op) => Some(op.lease_id),
        Operation::AcquireAll(op) => Some(op.lease_id),
        Operation::Election(ElectionCommand::Campaign(op)) => Some(op.lease_id),
        Operation::Hold(HoldCommand::Hold(op)) => Some(op.lease_id),
        Operation::Job(JobCommand::ClaimRun(op)) => Some(op.lease_id),
        // A reservation's name is drawn as a lease id is.
        Operation::Quota(QuotaCommand::Reserve(op)) => Some(LeaseId(op.reservation.0)),
        _ => None,
    }
}

/// A leader confirms a read: by an entry that was sent at that moment, after the read came.
pub(crate) fn check_barrier(node: usize, head: Head, sent_at: Option<Real>, came_at: Real) {
    assert!(
        sent_at.is_some_and(|sent_at| sent_at >= came_at),
        "S5: a consistent read of n{node} rests on an append sent after it arrived: {head:?}"
    );
}
