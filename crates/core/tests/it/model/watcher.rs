//! The promises of section 1, checked from the outside: from commands, outcomes and events alone, by somebody who
//! knows no rule but the promise.

use super::{
    slots::Slots,
    told::{Told, content},
};
use sereno_core::{
    Applied,
    command::{Command, ElectionCommand, Family, HoldCommand, HoldRef, JobCommand, Operation},
    entry::{Body, Entry},
    event::{Event, EventKind},
    ids::{LeaseId, ObjectId, Revision, Token},
    names::{Caller, NamespaceName, Owner, RequestId, ResourceName},
    outcome::{Code, Done, End, Outcome, Renewed},
};
use std::collections::{BTreeMap, BTreeSet};

/// The shortest memory that a policy may set.
pub(super) const MEMORY_MS: u64 = 90_000;

type Name = (Family, NamespaceName, ResourceName);
pub(super) type Scope = (NamespaceName, Caller, Family, RequestId);

#[derive(Default)]
pub(super) struct Watcher {
    pub(super) now: u64,
    /// Who holds, by what was told (S1).
    holders: BTreeMap<Name, Token>,
    /// All tokens ever granted, rising (S2).
    granted: Vec<Token>,
    /// Until when each token's holder was promised to hold (S8).
    pub(super) promised: BTreeMap<Token, u64>,
    /// Leases by what they held.
    pub(super) leases: BTreeMap<Token, LeaseId>,
    /// Which requests were answered with each token.
    pub(super) owners: BTreeMap<Token, Vec<Scope>>,
    /// What each request was told last (S6, S7).
    pub(super) told: BTreeMap<Scope, Told>,
    pub(super) waiting: BTreeMap<ObjectId, Scope>,
    /// When each abandon was.
    pub(super) abandons: BTreeMap<Revision, u64>,
    /// Holds whose payment has begun.
    begun: BTreeSet<LeaseId>,
    slots: Slots,
}

impl Watcher {
    pub(super) fn watch(&mut self, entry: &Entry, applied: &Applied) {
        self.now = entry.time.0;
        let commands: &[Command] = match &entry.body {
            Body::Batch(commands) => commands,
            _ => &[],
        };
        self.check_revisions(applied);
        let mut settled = applied.settled.iter().peekable();
        let mut events = applied.events.iter().peekable();
        for (command, outcome) in commands.iter().zip(&applied.outcomes) {
            let revision = outcome.revision;
            // What was swept or touched before the command, what the command did, and what that led to.
            while let Some(one) = settled.next_if(|one| one.outcome.revision <= revision) {
                self.settled(one);
            }
            while let Some(event) = events.next_if(|event| event.revision < revision) {
                self.event(event, None);
            }
            self.command(command, outcome, applied);
            while let Some(event) = events.next_if(|event| event.revision == revision) {
                self.event(event, Some(command));
            }
        }
        settled.for_each(|one| self.settled(one));
        events.for_each(|event| self.event(event, None));
    }

    pub(super) fn an_old_token(&self, but: Option<Token>) -> Option<Token> {
        self.granted.iter().rev().find(|&&token| Some(token) != but).copied()
    }

    /// Revisions order all answers of the log, and answers of one entry carry its time.
    fn check_revisions(&self, applied: &Applied) {
        assert!(applied.outcomes.is_sorted_by(|a, b| a.revision < b.revision), "a total order");
        assert!(applied.events.is_sorted_by_key(|event| event.revision), "in order");
        let all = applied.outcomes.iter().chain(applied.settled.iter().map(|s| &s.outcome));
        for outcome in all {
            assert_eq!(outcome.time.0, self.now);
            assert!(outcome.replayed.is_none_or(|first| first < outcome.revision));
        }
    }

    fn command(&mut self, command: &Command, outcome: &Outcome, applied: &Applied) {
        if self.now > command.born_at.0.saturating_add(30_000) {
            let code = outcome.result.as_ref().err().map(|refusal| refusal.code);
            assert_eq!(code, Some(Code::Unavailable), "S7: over 30 s after its birth");
            let named = applied.events.iter().any(|event| event.revision == outcome.revision);
            assert!(!named, "S7: it does nothing");
            return;
        }
        if let Operation::Abandon(_) = command.operation {
            self.abandons.insert(outcome.revision, self.now);
        }
        if let Some((family, namespace, request_id, content)) = content(&command.operation) {
            let scope = (namespace, command.caller.clone(), family, request_id);
            if let Ok(Done::Waiting(waiting)) = &outcome.result {
                self.waiting.insert(waiting.claim, scope.clone());
            }
            self.tell(scope, Some(content), outcome, true);
        }
        match (&command.operation, &outcome.result) {
            (
                Operation::Renew(op)
                | Operation::Election(ElectionCommand::Renew(op))
                | Operation::Job(JobCommand::RenewRun(op)),
                Ok(Done::Renewed(renewed)),
            ) => {
                self.renewed(op.lease.lease_id, op.lease_ttl_ms, renewed);
            }
            (Operation::RenewMany(op), Ok(Done::RenewedMany(results))) => {
                for (lease, result) in op.leases.iter().zip(results) {
                    if let Ok(renewed) = result {
                        self.renewed(lease.lease_id, op.lease_ttl_ms, renewed);
                    }
                }
            }
            (Operation::Hold(op), Ok(Done::HoldExtended(extended)))
                if outcome.replayed.is_none() =>
            {
                self.extended(op, &extended.renewed);
            }
            (Operation::Job(JobCommand::Put(op)), Ok(_)) => {
                self.slots.put((op.namespace.clone(), op.job.clone()), &op.definition);
            }
            _ => {}
        }
    }

    fn renewed(&mut self, lease_id: LeaseId, ttl_ms: Option<u64>, renewed: &Renewed) {
        assert_eq!(self.leases.get(&renewed.token), Some(&lease_id), "S4: by who can name it");
        if let (Some(ttl_ms), false) = (ttl_ms, renewed.clipped) {
            assert!(renewed.expires_in_ms >= ttl_ms, "S8: the TTL asked for is granted");
        }
        let until = self.now + renewed.expires_in_ms;
        // A lease of several has one deadline.
        let tokens: Vec<_> =
            self.leases.iter().filter(|(_, id)| **id == lease_id).map(|(t, _)| *t).collect();
        for token in tokens {
            let promised = self.promised.insert(token, until).unwrap_or(0);
            assert!(promised <= until, "S8: a renewal takes nothing back");
        }
    }

    /// A hold goes on by who names its fence, or its owner alone.
    fn extended(&mut self, op: &HoldCommand, renewed: &Renewed) {
        let (hold, ttl_ms) = match op {
            HoldCommand::Renew(op) => (&op.hold, op.ttl_ms),
            HoldCommand::Begin(op) => (&op.hold, None),
            other => panic!("{other:?} extends nothing"),
        };
        assert!(hold.fence.is_none_or(|fence| fence == renewed.token), "S4: by its fence");
        self.renewed(self.leases[&renewed.token], ttl_ms, renewed);
    }

    fn event(&mut self, event: &Event, cause: Option<&Command>) {
        let name = || {
            let namespace = event.namespace.clone().expect("leases are in a namespace");
            (event.family, namespace, event.resource.clone().expect("leases have a name"))
        };
        self.slots.event(event);
        match &event.kind {
            EventKind::Granted { token, .. } => {
                assert!(self.granted.last().is_none_or(|last| last < token), "S2: tokens rise");
                self.granted.push(*token);
                let before = self.holders.insert(name(), *token);
                assert_eq!(before, None, "S1: nobody else holds it");
            }
            EventKind::Ended { token, end, .. } => {
                assert_eq!(
                    self.holders.remove(&name()),
                    Some(*token),
                    "S4: only the holder's ends"
                );
                self.check_cause(event, *token, *end, cause);
                self.lost(*token, *end);
                self.slots.ended(*token);
            }
            EventKind::Begun { token } => {
                self.begun.insert(self.leases[token]);
            }
            _ => {}
        }
    }

    /// S4 and S8: an ownership ends by its owner, by an operator who names its token, or when its time is over.
    fn check_cause(&self, event: &Event, token: Token, end: End, cause: Option<&Command>) {
        let until = self.promised.get(&token).copied();
        match (end, cause.map(|cause| &cause.operation)) {
            (
                End::Released,
                Some(Operation::Release(op) | Operation::Election(ElectionCommand::Resign(op))),
            ) => {
                assert_eq!(Some(op.lease.lease_id.public_hash()), event.lease_hash);
                assert_eq!(Some(&op.lease.resource), event.resource.as_ref());
            }
            (End::Released, Some(Operation::Hold(HoldCommand::Release(op)))) => {
                self.check_hold(event, token, std::slice::from_ref(&op.hold), &op.owner);
            }
            (End::Replaced, Some(Operation::Hold(HoldCommand::Hold(op)))) => {
                self.check_hold(event, token, &op.replaces, &op.owner);
            }
            (End::HandedOff, Some(Operation::Election(ElectionCommand::Handoff(op)))) => {
                assert_eq!(Some(op.lease.lease_id.public_hash()), event.lease_hash);
            }
            (End::Finished, Some(Operation::Job(JobCommand::FinishRun(op)))) => {
                assert_eq!(Some(op.lease.lease_id.public_hash()), event.lease_hash);
            }
            (
                End::Forced,
                Some(
                    Operation::ForceRelease(op)
                    | Operation::Election(ElectionCommand::ForceRelease(op))
                    | Operation::Hold(HoldCommand::ForceRelease(op))
                    | Operation::Job(JobCommand::ForceRelease(op)),
                ),
            ) => assert_eq!(op.token, token),
            (End::Abandoned, Some(Operation::Abandon(_) | Operation::EndDeserted(_))) => {}
            (End::Expired | End::MaxHold, None) => {
                assert!(until.is_none_or(|until| until <= self.now), "S8: not before its time");
            }
            (end, cause) => panic!("S4: {end:?} by {cause:?}"),
        }
    }

    /// A hold ends by its owner, who names its fence or none; a begun one by its fence alone.
    fn check_hold(&self, event: &Event, token: Token, named: &[HoldRef], owner: &Owner) {
        assert_eq!(Some(owner), event.owner.as_ref(), "S4: by its owner");
        let is_begun = self.begun.contains(&self.leases[&token]);
        let is_it = |one: &HoldRef| {
            Some(&one.resource) == event.resource.as_ref()
                && one.fence.map_or(!is_begun, |fence| fence == token)
        };
        assert!(named.iter().any(is_it), "S4: {token:?} is not named by {named:?}");
    }
}
