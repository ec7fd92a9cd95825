//! The promises about jobs, as seen from outside: from what was put, and from the events.

use sereno_core::{
    command::JobDefinition,
    event::{Event, EventKind},
    ids::{Slot, Token},
    names::{NamespaceName, ResourceName},
    outcome::RunState,
};
use std::collections::{BTreeMap, BTreeSet};

type Name = (NamespaceName, ResourceName);

#[derive(Default)]
pub(super) struct Slots {
    jobs: BTreeMap<Name, Job>,
}

#[derive(Default)]
struct Job {
    overlap: bool,
    /// The most that a definition has allowed.
    retries: u32,
    attempts: BTreeMap<Slot, u32>,
    /// What will not run again.
    closed: BTreeSet<Slot>,
    /// Attempts under way.
    live: BTreeSet<Token>,
}

impl Slots {
    pub(super) fn put(&mut self, name: Name, definition: &JobDefinition) {
        let job = self.jobs.entry(name).or_default();
        job.overlap = definition.overlap;
        job.retries = job.retries.max(definition.retries);
    }

    /// A lease has ended; perhaps that of an attempt.
    pub(super) fn ended(&mut self, token: Token) {
        for job in self.jobs.values_mut() {
            job.live.remove(&token);
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        let (Some(namespace), Some(resource)) = (&event.namespace, &event.resource) else { return };
        let Some(job) = self.jobs.get_mut(&(namespace.clone(), resource.clone())) else { return };
        match &event.kind {
            EventKind::RunClaimed { slot, attempt, token } => {
                assert!(!job.closed.contains(slot), "{slot:?} is over, and runs again");
                let before = job.attempts.insert(*slot, *attempt).unwrap_or(0);
                assert_eq!(*attempt, before + 1, "attempts are counted");
                assert!(*attempt <= job.retries + 1, "within the retry rule");
                assert!(job.overlap || job.live.is_empty(), "one attempt at a time");
                job.live.insert(*token);
            }
            EventKind::RunChanged { slot, attempt, state, .. } => {
                job.attempts.insert(*slot, *attempt);
                if state.is_open() {
                    assert!(*state == RunState::Retry, "others are told otherwise");
                    assert!(!job.closed.contains(slot), "{slot:?} was over, and is open again");
                } else {
                    job.closed.insert(*slot);
                }
            }
            EventKind::RunAsked { slot, .. } => {
                assert!(!job.attempts.contains_key(slot), "{slot:?} has run");
                assert!(!job.closed.contains(slot), "{slot:?} is over");
            }
            _ => {}
        }
    }
}
