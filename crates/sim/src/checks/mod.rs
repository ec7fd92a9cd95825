//! The promises, each checked by a naive model of its own from entries, events, outcomes and what clients were told;
//! one file each. None of them asks the state machine what it thinks.

mod all_or_none;
mod answers;
mod current_lease;
mod dead_waits;
mod deadlines;
mod elections;
mod fence;
mod flow;
mod holds;
pub(crate) mod kept;
mod ledger;
pub(crate) mod levels;
mod marks;
mod one_holder;
mod one_state;
mod order;
mod policies;
pub(crate) mod quorum;
mod quotas;
mod requests;
mod slots;
mod tokens;
mod told;

use crate::{clock::Real, event::Write, place::Place};
use answers::Answers;
pub(crate) use answers::{check_barrier, lease_id_of};
use dead_waits::DeadWaits;
use deadlines::Deadlines;
use fence::Fence;
pub(crate) use flow::Flow;
use holds::Holds;
pub(crate) use ledger::{Ledger, request_key};
use levels::Levels;
use marks::Marks;
use one_holder::OneHolder;
pub(crate) use one_state::OneState;
use policies::Policies;
use quotas::Moment;
pub(crate) use quotas::Quotas;
use requests::Requests;
use sereno_core::{
    Applied, State,
    command::{Command, ElectionCommand, Family, HoldCommand, JobCommand, LeaseRef, Operation},
    entry::{Body, Entry},
    event::{Event, EventKind},
    ids::{ClusterTime, LeaseId, Revision, Token},
    limits::SWEEP_OBJECTS_MAX,
    names::{NamespaceName, Owner},
    outcome::{AbandonedWas, Done, End, Grant, Outcome, QuotaDone, Renewed},
};
pub(crate) use slots::Slots;
use tokens::Tokens;
pub(crate) use told::{Belief, Told};

/// A change of who holds or waits.
pub(crate) struct Change<'a> {
    pub(crate) place: &'a Place,
    /// Public hash of the lease id.
    pub(crate) lease: u64,
    pub(crate) owner: Option<&'a Owner>,
    pub(crate) kind: &'a EventKind,
    /// The entry's.
    pub(crate) time: ClusterTime,
    pub(crate) now: Real,
}

/// The family and namespace of what asks for a lease.
fn asked_for(operation: &Operation) -> Option<(Family, &NamespaceName)> {
    match operation {
        Operation::Acquire(op) => Some((Family::Lock, &op.namespace)),
        Operation::AcquireAll(op) => Some((Family::Lock, &op.namespace)),
        Operation::Election(ElectionCommand::Campaign(op)) => {
            Some((Family::Election, &op.namespace))
        }
        Operation::Hold(HoldCommand::Hold(op)) => Some((Family::Hold, &op.namespace)),
        Operation::Job(JobCommand::ClaimRun(op)) => Some((Family::Job, &op.namespace)),
        _ => None,
    }
}

/// What ends with a log, and what a backup of it has.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfLog {
    pub(crate) ledger: Ledger,
    deadlines: Deadlines,
    dead_waits: DeadWaits,
    requests: Requests,
    policies: Policies,
    levels: Levels,
    holds: Holds,
    pub(crate) slots: Slots,
    pub(crate) quotas: Quotas,
}

impl OfLog {
    /// As a restore makes it: nobody waits any more.
    pub(crate) fn restored(mut self) -> Self {
        self.ledger.queues.clear();
        self.quotas.restored();
        self
    }
}

#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) of_log: OfLog,
    pub(crate) told: Told,
    pub(crate) answers: Answers,
    one_holder: OneHolder,
    tokens: Tokens,
    fence: Fence,
    /// Grants seen, for the report.
    pub(crate) grants: u64,
    pub(crate) marks: Marks,
}

impl Checks {
    /// An entry was applied.
    pub(crate) fn entry(&mut self, entry: &Entry, applied: &Applied, now: Real) {
        let commands: &[Command] = match &entry.body {
            Body::Batch(commands) => commands,
            Body::Announce(_) => {
                self.of_log.ledger.announced_at = entry.time;
                &[]
            }
            Body::Resign => &[],
        };
        for command in commands {
            self.of_log.ledger.carries(command);
            self.of_log.quotas.carries(command);
            self.answers.lands(command);
        }
        // Events and outcomes in the order of revisions, as they came about.
        let mut events = applied.events.iter().peekable();
        for (command, outcome) in commands.iter().zip(&applied.outcomes) {
            while let Some(event) = events.next_if(|event| event.revision <= outcome.revision) {
                let cause = Some(command).filter(|_| event.revision == outcome.revision);
                self.event(event, cause, entry.time, now);
            }
            self.outcome(command, outcome, &applied.events);
        }
        for event in events {
            self.event(event, None, entry.time, now);
        }
        for settled in &applied.settled {
            if let Some(grant) = settled.outcome.result.as_ref().ok().and_then(Done::grant) {
                self.of_log.deadlines.granted(entry.time, grant);
                let lease = grant.lease_id.public_hash();
                self.of_log.policies.answered(lease, entry.time.plus(grant.expires_in_ms));
            }
            if let Ok(Done::Quota(QuotaDone::Reserved(reserved))) = &settled.outcome.result {
                self.of_log.quotas.told(entry.time, reserved);
            }
        }
        let is_expiry = |event: &&Event| {
            matches!(event.kind, EventKind::Ended { end: End::Expired | End::MaxHold, .. })
        };
        if applied.events.iter().filter(is_expiry).count() > SWEEP_OBJECTS_MAX {
            self.marks.mark("a command finds its resource due and unswept");
        }
    }

    /// `cause`: the command in whose revision it came about.
    fn event(&mut self, event: &Event, cause: Option<&Command>, time: ClusterTime, now: Real) {
        self.grants += u64::from(matches!(event.kind, EventKind::Granted { .. }));
        self.marks.event(event.family, &event.kind);
        self.tokens.event(&event.kind);
        self.of_log.slots.event(event);
        if event.family == Family::Quota {
            let announced_at = self.of_log.ledger.announced_at;
            let moment = Moment { cause, time, announced_at, now };
            return self.of_log.quotas.event(event, &moment, &self.told, &mut self.marks);
        }
        let (Some(namespace), Some(resource), Some(lease)) =
            (&event.namespace, &event.resource, event.lease_hash)
        else {
            return;
        };
        let place = Place::new(event.family, namespace, resource);
        let (owner, kind) = (event.owner.as_ref(), &event.kind);
        let change = Change { place: &place, lease, owner, kind, time, now };
        let OfLog { ledger, deadlines, dead_waits, policies, holds, .. } = &mut self.of_log;
        self.one_holder.event(ledger, &self.told, &change);
        order::event(ledger, &change);
        elections::event(ledger, &change);
        current_lease::event(ledger, &self.told, &change);
        dead_waits.event(ledger, &change);
        deadlines.event(ledger, &self.told, &change);
        policies.event(deadlines, &change);
        holds.event(deadlines, &change);
        if place.family == Family::Hold
            && let EventKind::Ended { token, end: End::Released | End::Replaced, .. } = event.kind
        {
            self.told.given_up.insert(token);
        }
        ledger.enter(&change);
    }

    fn outcome(&mut self, command: &Command, outcome: &Outcome, events: &[Event]) {
        let requests = &self.of_log.requests;
        let is_forgotten = || requests.is_forgotten(command, outcome.time);
        self.marks.outcome(command, outcome, is_forgotten);
        if dead_waits::is_too_old(command, outcome.time, outcome) {
            return;
        }
        let Self { of_log, .. } = self;
        of_log.requests.outcome(command, outcome);
        of_log.levels.outcome(&command.operation, outcome);
        of_log.policies.outcome(&of_log.ledger, &command.operation, outcome);
        of_log.slots.outcome(&command.operation, outcome);
        let own = || events.iter().filter(move |event| event.revision == outcome.revision);
        elections::outcome(&command.operation, outcome, own());
        of_log.quotas.outcome(command, outcome, own().next().is_none());
        of_log.holds.outcome(&command.operation, outcome, own());
        let asked = asked_for(&command.operation);
        if let (Some((family, namespace)), Ok(done)) = (asked, &outcome.result)
            && let Some(grant) = done.grant()
        {
            self.granted(family, namespace, outcome.time, grant);
        }
        match (&command.operation, &outcome.result) {
            (Operation::Acquire(op), Ok(Done::Waiting(_))) => {
                let place = Place::new(Family::Lock, &op.namespace, &op.resource);
                let request = request_key(Family::Lock, &op.namespace, &op.request_id);
                self.of_log.ledger.asks_again(&place, &request, outcome.time);
            }
            (Operation::Election(ElectionCommand::Campaign(op)), Ok(Done::Waiting(_))) => {
                let place = Place::new(Family::Election, &op.namespace, &op.election);
                let request = request_key(Family::Election, &op.namespace, &op.request_id);
                self.of_log.ledger.asks_again(&place, &request, outcome.time);
            }
            (Operation::AcquireAll(op), _) => all_or_none::outcome(op, outcome, own()),
            (Operation::Renew(op), Ok(Done::Renewed(renewed))) => {
                self.renewed(Family::Lock, &op.namespace, outcome.time, &op.lease, renewed);
            }
            (Operation::Election(ElectionCommand::Renew(op)), Ok(Done::Renewed(renewed))) => {
                self.renewed(Family::Election, &op.namespace, outcome.time, &op.lease, renewed);
            }
            (Operation::Job(JobCommand::RenewRun(op)), Ok(Done::Renewed(renewed))) => {
                self.renewed(Family::Job, &op.namespace, outcome.time, &op.lease, renewed);
            }
            (Operation::Hold(_), Ok(Done::HoldExtended(extended))) => {
                self.extended(outcome, &extended.renewed);
            }
            (Operation::RenewMany(op), Ok(Done::RenewedMany(results))) => {
                assert!(results.len() == op.leases.len(), "one result for each lease");
                for (lease, result) in op.leases.iter().zip(results) {
                    if let Ok(renewed) = result {
                        self.renewed(Family::Lock, &op.namespace, outcome.time, lease, renewed);
                    }
                }
            }
            (Operation::Abandon(op), Ok(Done::Abandoned { was })) => {
                let request = request_key(op.family, &op.namespace, &op.request_id);
                // What was written stays, and so does the hold of another request.
                if *was != AbandonedWas::Done {
                    self.of_log.dead_waits.dies(&request, outcome.time);
                }
            }
            _ => {}
        }
    }

    /// A hold goes on: renewed, or begun.
    fn extended(&mut self, outcome: &Outcome, renewed: &Renewed) {
        let OfLog { ledger, deadlines, policies, .. } = &mut self.of_log;
        let by_token = |holder: &&ledger::Holder| holder.token == renewed.token;
        let holder = ledger.holders.values().find(by_token);
        assert!(
            holder.is_some() || outcome.replayed.is_some(),
            "S4: only the current hold goes on: {}",
            renewed.token
        );
        if let (Some(holder), None) = (holder, outcome.replayed) {
            let deadline = outcome.time.plus(renewed.expires_in_ms);
            deadlines.renewed(holder.lease, deadline, renewed);
            policies.extended(holder.lease, deadline, outcome);
        }
    }

    fn granted(
        &mut self,
        family: Family,
        namespace: &NamespaceName,
        time: ClusterTime,
        grant: &Grant,
    ) {
        let OfLog { ledger, deadlines, policies, .. } = &mut self.of_log;
        current_lease::granted(ledger, family, namespace, grant);
        deadlines.granted(time, grant);
        policies.answered(grant.lease_id.public_hash(), time.plus(grant.expires_in_ms));
    }

    fn renewed(
        &mut self,
        family: Family,
        namespace: &NamespaceName,
        time: ClusterTime,
        lease: &LeaseRef,
        renewed: &Renewed,
    ) {
        let OfLog { ledger, deadlines, policies, .. } = &mut self.of_log;
        current_lease::renewed(ledger, family, namespace, lease, renewed);
        let (lease, deadline) = (lease.lease_id.public_hash(), time.plus(renewed.expires_in_ms));
        deadlines.renewed(lease, deadline, renewed);
        policies.answered(lease, deadline);
    }

    /// A client is told that it holds.
    pub(crate) fn relies(&mut self, place: &Place, token: Token, belief: Belief) {
        deadlines::relies(&self.of_log.ledger, &self.told, place, token);
        self.told.relies(token, belief);
    }

    /// A caller is told that its call is certainly not applied.
    pub(crate) fn refused(&mut self, lease_id: LeaseId) {
        self.answers.refused(lease_id);
    }

    /// A node answers.
    pub(crate) fn answered(&self, outcome: &Outcome) {
        self.answers.answered(outcome);
    }

    /// What an entry has decided is there to be told.
    pub(crate) fn decided(&mut self, applied: Applied, newest: Revision) {
        self.answers.decided(applied, newest);
    }

    /// What the state says of quotas after an entry.
    pub(crate) fn compare(&mut self, state: &State) {
        self.of_log.quotas.compare(state);
    }

    /// A write has reached its resource.
    pub(crate) fn wrote(&mut self, write: &Write, is_taken: bool, now: Real) {
        let ledger = &self.of_log.ledger;
        let is_zombie = ledger.holders.get(&write.place).is_none_or(|it| it.token != write.token);
        if is_taken {
            self.fence.taken(write);
        } else {
            self.fence.refused(ledger, &self.told, write, now);
        }
        match (is_zombie, is_taken) {
            (true, true) => self.marks.mark("a zombie writes before its successor does"),
            (true, false) => {
                self.marks.mark("without the fence a zombie's write would have landed")
            }
            (false, _) => {}
        }
    }

    /// The log is another one; what has been granted and written stays so.
    pub(crate) fn begins_anew(&mut self, of_log: OfLog) {
        self.of_log = of_log;
        self.answers.begins_anew();
    }

    /// A log was put back by hand, and lacks what was granted since: S2 and S3 hold again once an operator has raised
    /// the floor of tokens.
    pub(crate) fn forgets_grants(&mut self) {
        self.one_holder = OneHolder::default();
        (self.tokens, self.fence) = (Tokens::default(), Fence::default());
    }
}
