//! The promises, each checked by a naive model of its own from entries, events and outcomes; one file each. None
//! of them asks the state machine what it thinks.

mod leases;
mod requests;
mod tokens;

use crate::clock::Real;
pub(crate) use leases::Belief;
use leases::Leases;
use requests::Requests;
use sereno_core::{
    Applied,
    command::Operation,
    entry::{Body, Entry},
};
use tokens::Tokens;

#[derive(Debug, Default)]
pub(crate) struct Checks {
    tokens: Tokens,
    pub(crate) leases: Leases,
    requests: Requests,
    /// Grants seen, for the report.
    pub(crate) grants: u64,
}

impl Checks {
    /// An entry was applied.
    pub(crate) fn entry(&mut self, entry: &Entry, applied: &Applied, now: Real) {
        let none = Vec::new();
        let commands = match &entry.body {
            Body::Batch(commands) => commands,
            Body::Announce(_) | Body::Resign => &none,
        };
        if let Body::Announce(_) = &entry.body {
            self.leases.announced_at = entry.time;
        }
        for command in commands {
            if let Operation::Acquire(acquire) = &command.operation {
                self.leases.asked(acquire.lease_id, acquire.wait_timeout_ms, &acquire.request_id);
            }
        }
        // Events and outcomes in the order of revisions, as they came about.
        let mut events = applied.events.iter().peekable();
        for (command, outcome) in commands.iter().zip(&applied.outcomes) {
            while let Some(event) = events.next_if(|event| event.revision <= outcome.revision) {
                self.event(event, entry, now);
            }
            self.requests.outcome(entry, command, outcome);
            self.leases.outcome(entry, command, outcome);
        }
        for event in events {
            self.event(event, entry, now);
        }
        for settled in &applied.settled {
            self.leases.settled(entry, &settled.outcome);
        }
    }

    fn event(&mut self, event: &sereno_core::event::Event, entry: &Entry, now: Real) {
        if let sereno_core::event::EventKind::Granted { token, .. } = event.kind {
            self.tokens.granted(token);
            self.grants += 1;
        }
        self.leases.event(event, entry, now);
    }

    pub(crate) fn wiped(&mut self) {
        self.leases = Leases::default();
        self.requests = Requests::default();
    }
}
