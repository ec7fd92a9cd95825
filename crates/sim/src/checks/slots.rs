//! Jobs: never two live attempts where they may not overlap, a finished slot never runs again, no more attempts than the
//! retry rule allows, and no slot that an operator has asked for is lost.

use sereno_core::{
    State,
    command::{JobCommand, Operation},
    event::{Event, EventKind},
    ids::{Slot, Token},
    names::{NamespaceName, ResourceName},
    outcome::{Done, End, Outcome, RunState},
};
use std::collections::{BTreeMap, BTreeSet};

type Name = (NamespaceName, ResourceName);

#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    jobs: BTreeMap<Name, Job>,
    /// Attempts by their lease's public hash: which slot, and whether a later one has begun.
    attempts: BTreeMap<u64, (Name, Slot, u32)>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    overlap: bool,
    /// The most that a definition has allowed.
    retries: u32,
    counts: BTreeMap<Slot, u32>,
    /// What will not run again.
    closed: BTreeSet<Slot>,
    asked: BTreeSet<Slot>,
    /// Attempts under way.
    live: BTreeSet<Token>,
    /// One was just abandoned: it was never begun.
    is_given_back: bool,
}

impl Slots {
    pub(super) fn outcome(&mut self, operation: &Operation, outcome: &Outcome) {
        let is_fresh = outcome.replayed.is_none();
        match (operation, &outcome.result) {
            (Operation::Job(JobCommand::Put(op)), Ok(_)) => {
                let job = self.jobs.entry((op.namespace.clone(), op.job.clone())).or_default();
                job.overlap = op.definition.overlap;
                job.retries = job.retries.max(op.definition.retries);
            }
            (Operation::Job(JobCommand::ClaimRun(op)), Ok(Done::RunClaimed(claimed)))
                if is_fresh =>
            {
                let name = (op.namespace.clone(), op.job.clone());
                assert!(claimed.slot == op.slot, "a claim is of the slot that it names");
                let lease = claimed.grant.lease_id.public_hash();
                self.attempts.insert(lease, (name, claimed.slot, claimed.attempt));
            }
            (Operation::Job(JobCommand::FinishRun(op)), Ok(Done::RunFinished(finished)))
                if is_fresh =>
            {
                let attempt = self.attempts.get(&op.lease.lease_id.public_hash());
                let (name, slot, attempt) = attempt.expect("S4: whoever finishes has claimed");
                assert!(
                    (*slot, *attempt) == (finished.slot, finished.attempt)
                        || finished.attempt + 1 == *attempt,
                    "S4: an attempt finishes itself: {slot} {attempt}, not {finished:?}"
                );
                let last = self.jobs[name].counts.get(slot).copied().unwrap_or(0);
                assert!(
                    last <= *attempt,
                    "S4: a late finish touches no later attempt: {attempt} of {slot}, now {last}"
                );
            }
            _ => {}
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        if let EventKind::Ended { token, end, .. } = event.kind {
            return self.ended(token, end);
        }
        let (Some(namespace), Some(resource)) = (&event.namespace, &event.resource) else { return };
        let Some(job) = self.jobs.get_mut(&(namespace.clone(), resource.clone())) else { return };
        match event.kind {
            EventKind::RunClaimed { slot, attempt, token } => {
                assert!(!job.closed.contains(&slot), "a finished slot never runs again: {slot}");
                let before = job.counts.insert(slot, attempt).unwrap_or(0);
                assert!(
                    attempt == before + 1,
                    "attempts are counted: {attempt} of {slot} after {before}"
                );
                assert!(
                    attempt <= job.retries + 1,
                    "no more attempts than the rule allows: {attempt} of {slot}"
                );
                assert!(
                    job.overlap || job.live.is_empty(),
                    "a job has one live attempt: {token}, and {:?}",
                    job.live
                );
                job.live.insert(token);
                job.asked.remove(&slot);
            }
            EventKind::RunChanged { slot, attempt, state, .. } => {
                let before = job.counts.insert(slot, attempt).unwrap_or(0);
                let given_back = u32::from(std::mem::take(&mut job.is_given_back));
                assert!(
                    attempt + given_back == before,
                    "an abandoned attempt is given back, and no other: {attempt} of {slot} after {before}"
                );
                match state {
                    RunState::Retry => {
                        let is_over = job.closed.contains(&slot);
                        assert!(!is_over, "a slot that is over is not opened again: {slot}");
                    }
                    RunState::Asked | RunState::Claimed => panic!("that is told otherwise: {slot}"),
                    _ => {
                        job.closed.insert(slot);
                        job.asked.remove(&slot);
                    }
                }
            }
            EventKind::RunAsked { slot, .. } => {
                assert!(!job.counts.contains_key(&slot), "an extra slot is one that is free");
                assert!(!job.closed.contains(&slot), "an extra slot is not over: {slot}");
                job.asked.insert(slot);
            }
            _ => {}
        }
    }

    fn ended(&mut self, token: Token, end: End) {
        for job in self.jobs.values_mut() {
            if job.live.remove(&token) {
                assert!(end != End::Released, "a run is finished, not released: {token}");
                job.is_given_back = end == End::Abandoned;
            }
        }
    }

    /// At the end: what an operator has asked for, and nobody has begun, can still be.
    pub(crate) fn check_asked(&self, state: &State) {
        for ((namespace, name), job) in &self.jobs {
            let view = state.job_view(namespace, name).flatten();
            let runs = view.map_or(Vec::new(), |view| view.runs);
            for slot in &job.asked {
                let is_it = |run: &&sereno_core::query::RunView| run.slot == *slot;
                let state = runs.iter().find(is_it).map(|run| run.state);
                assert!(
                    state == Some(RunState::Asked),
                    "no slot that was asked for is lost: {slot} of {name} is {state:?}"
                );
            }
        }
    }
}
