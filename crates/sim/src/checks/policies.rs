//! Namespaces: a policy counts from the command that puts it, for what is decided after it: who may be granted what, for
//! how long at most, and when again after an expiry.

use super::{Change, Deadlines, Ledger};
use crate::place::Place;
use sereno_core::{
    command::{
        Acquire, AcquireAll, Campaign, ElectionCommand, Family, HoldCommand, JobCommand, Operation,
        PutNamespace,
    },
    event::EventKind,
    ids::{ClusterTime, LeaseId},
    names::{NamespaceName, ResourceName},
    outcome::{Code, Done, End, Outcome, Refusal},
    policy::{Fencing, Policy},
};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct Policies {
    /// Version and policy.
    of: BTreeMap<NamespaceName, (u64, Policy)>,
    /// Leases held in each namespace.
    leases: BTreeMap<NamespaceName, u64>,
    /// By lease: how long it may be held over all renewals, and since when it is.
    longest_ms: BTreeMap<u64, u64>,
    since: BTreeMap<u64, ClusterTime>,
    /// Of each job's definition.
    max_run_ms: BTreeMap<(NamespaceName, ResourceName), u64>,
    /// When a resource in its lock delay may be granted again.
    free_at: BTreeMap<Place, ClusterTime>,
}

impl Default for Policies {
    fn default() -> Self {
        let default = NamespaceName::new(NamespaceName::DEFAULT).expect("a valid name");
        Self {
            of: BTreeMap::from([(default, (1, Policy::default()))]),
            leases: BTreeMap::new(),
            longest_ms: BTreeMap::new(),
            since: BTreeMap::new(),
            max_run_ms: BTreeMap::new(),
            free_at: BTreeMap::new(),
        }
    }
}

impl Policies {
    fn policy(&self, namespace: &NamespaceName) -> Option<&Policy> {
        self.of.get(namespace).map(|(_, policy)| policy)
    }

    pub(super) fn event(&mut self, deadlines: &Deadlines, change: &Change) {
        let Change { place, lease, time, .. } = *change;
        match change.kind {
            EventKind::Granted { token, .. } => {
                let free_at = self.free_at.remove(place).unwrap_or_default();
                assert!(
                    time >= free_at,
                    "lockDelay: {place}: {token} is granted at {time}, free at {free_at}"
                );
                self.since.entry(lease).or_insert(time);
                *self.leases.entry(place.namespace.clone()).or_default() += 1;
            }
            EventKind::Ended { end, .. } => {
                *self.leases.entry(place.namespace.clone()).or_default() -= 1;
                self.ended(deadlines, place, lease, *end, time);
            }
            _ => {}
        }
    }

    fn ended(
        &mut self,
        deadlines: &Deadlines,
        place: &Place,
        lease: u64,
        end: End,
        time: ClusterTime,
    ) {
        let deadline = deadlines.of(lease).unwrap_or(time);
        let ended_at = match end {
            End::Expired | End::MaxHold => deadline.min(time),
            End::Forced => time,
            End::Released | End::Abandoned | End::HandedOff | End::Finished | End::Replaced => {
                return;
            }
            End::Committed => panic!("{place}: only a reservation of a quota is committed"),
        };
        if end == End::MaxHold {
            let bound = self.final_deadline(lease);
            assert!(bound == Some(deadline), "maxHold: {place} ended at {deadline}, not {bound:?}");
        }
        if place.family == Family::Hold {
            return; // Holds have no lock delay.
        }
        let delay_ms = self.policy(&place.namespace).map_or(0, |policy| policy.lock_delay_ms);
        self.free_at.insert(place.clone(), ended_at.plus(delay_ms));
    }

    fn final_deadline(&self, lease: u64) -> Option<ClusterTime> {
        Some(self.since.get(&lease)?.plus(*self.longest_ms.get(&lease)?))
    }

    /// An answer has named this deadline.
    pub(super) fn answered(&self, lease: u64, deadline: ClusterTime) {
        let bound = self.final_deadline(lease);
        assert!(
            bound.is_none_or(|bound| deadline <= bound),
            "maxHold: an ownership ends at {bound:?}, and not at {deadline}"
        );
    }

    /// The same of a hold. The payment that begins has a bound of its own.
    pub(super) fn extended(&mut self, lease: u64, deadline: ClusterTime, outcome: &Outcome) {
        if let Ok(Done::HoldExtended(extended)) = &outcome.result
            && extended.begun
        {
            self.longest_ms.remove(&lease);
        }
        self.answered(lease, deadline);
    }

    pub(super) fn outcome(&mut self, ledger: &Ledger, operation: &Operation, outcome: &Outcome) {
        let is_fresh = outcome.replayed.is_none();
        match (operation, &outcome.result) {
            (Operation::PutNamespace(put), result) => self.put(put, result),
            (Operation::Hold(HoldCommand::PutPolicy(op)), result) => self.put(&op.put, result),
            (
                Operation::Election(ElectionCommand::Campaign(op)),
                Ok(Done::Elected(_) | Done::Waiting(_)),
            ) if is_fresh => {
                let Campaign { namespace, lease_id, lease_ttl_ms, max_hold_ms, fencing, .. } = op;
                self.terms(namespace, *lease_id, *lease_ttl_ms, *max_hold_ms, *fencing);
            }
            (Operation::Hold(HoldCommand::Hold(op)), Ok(Done::Held(held)))
                if is_fresh && !held.yours =>
            {
                self.terms(&op.namespace, op.lease_id, Some(op.ttl_ms), op.max_hold_ms, None);
            }
            (Operation::Job(JobCommand::ClaimRun(op)), Ok(Done::RunClaimed(_))) if is_fresh => {
                // How long it may take stands in the job's definition.
                let longest_ms = self.max_run_ms.get(&(op.namespace.clone(), op.job.clone()));
                let longest_ms = longest_ms.copied();
                self.terms(&op.namespace, op.lease_id, op.lease_ttl_ms, longest_ms, None);
            }
            (Operation::Job(JobCommand::Put(op)), Ok(_)) => {
                let job = (op.namespace.clone(), op.job.clone());
                self.max_run_ms.insert(job, op.definition.max_run_ms);
            }
            (Operation::Acquire(op), Ok(Done::Granted(_) | Done::Waiting(_))) if is_fresh => {
                let Acquire { namespace, lease_id, lease_ttl_ms, max_hold_ms, fencing, .. } = op;
                self.terms(namespace, *lease_id, *lease_ttl_ms, *max_hold_ms, *fencing);
            }
            (Operation::AcquireAll(op), Ok(Done::Granted(_))) if outcome.replayed.is_none() => {
                let AcquireAll { namespace, lease_id, lease_ttl_ms, max_hold_ms, fencing, .. } = op;
                self.terms(namespace, *lease_id, *lease_ttl_ms, *max_hold_ms, *fencing);
            }
            _ => {}
        }
        let is_grant = match &outcome.result {
            Ok(Done::Held(held)) => !held.yours,
            Ok(done) => done.grant().is_some(),
            Err(_) => false,
        };
        if is_fresh
            && is_grant
            && let Some(namespace) = operation.namespace()
        {
            self.check_count(ledger, namespace);
        }
    }

    fn put(&mut self, put: &PutNamespace, result: &Result<Done, Refusal>) {
        let current = self.of.get(&put.namespace).map_or(0, |(version, _)| *version);
        let is_expected = put.expected_version == current;
        match result {
            Ok(Done::NamespacePut { version }) => {
                assert!(is_expected, "a policy replaces the one that was read: {put:?}, {current}");
                assert!(*version == current + 1, "versions count: {version} after {current}");
                self.of.insert(put.namespace.clone(), (*version, put.policy.clone()));
            }
            Ok(other) => panic!("a policy is not answered with {other:?}"),
            Err(refusal) => assert!(
                refusal.code != Code::VersionConflict || !is_expected,
                "a policy is put on the version that was read: {put:?}, {current}"
            ),
        }
    }

    /// What is granted, or queued, anew is as the policy wants it.
    fn terms(
        &mut self,
        namespace: &NamespaceName,
        lease_id: LeaseId,
        ttl_ms: Option<u64>,
        max_hold_ms: Option<u64>,
        fencing: Option<Fencing>,
    ) {
        let policy = self.policy(namespace);
        let policy =
            policy.unwrap_or_else(|| panic!("nothing is granted in {namespace}, which is not"));
        assert!(
            ttl_ms.is_none_or(|ttl_ms| ttl_ms <= policy.max_ttl_ms),
            "maxTtl: {ttl_ms:?} in {namespace}: {policy:?}"
        );
        assert!(
            !policy.fencing_required || fencing != Some(Fencing::BestEffort),
            "fencingRequired: {namespace}"
        );
        if let Some(longest_ms) = max_hold_ms.or(policy.max_hold_ms) {
            self.longest_ms.insert(lease_id.public_hash(), longest_ms);
        }
    }

    /// Nobody is granted at once beyond the namespace's limit. (A hand-over takes the place of what has ended.)
    fn check_count(&self, ledger: &Ledger, namespace: &NamespaceName) {
        let Some(policy) = self.policy(namespace) else { return };
        let leases = self.leases.get(namespace).copied().unwrap_or(0);
        assert!(
            leases <= policy.max_leases,
            "maxLeases: {leases} in {namespace}, {} in all: {policy:?}",
            ledger.holders.len()
        );
    }
}
