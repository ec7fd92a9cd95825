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
    event::{Event, EventKind},
    outcome::{AbandonedWas, Code, Detail, Done, End, WaitEnd},
};
use std::collections::BTreeMap;
use tokens::Tokens;

#[derive(Debug, Default)]
pub(crate) struct Checks {
    tokens: Tokens,
    pub(crate) leases: Leases,
    requests: Requests,
    /// Grants seen, for the report.
    pub(crate) grants: u64,
    /// How often each rare thing has come about: what never does is not tested.
    pub(crate) marks: BTreeMap<&'static str, u64>,
}

impl Checks {
    pub(crate) fn mark(&mut self, what: &'static str) {
        *self.marks.entry(what).or_default() += 1;
    }

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
            match &outcome.result {
                Ok(Done::Abandoned { was: AbandonedWas::Unseen }) => {
                    self.mark("an abandon comes before its acquire");
                }
                Err(refusal) => match (refusal.code, &refusal.detail) {
                    (_, Detail::BornAt) => self.mark("a copy that is too old is refused"),
                    (Code::Abandoned, _) => self.mark("an acquire comes after its abandon"),
                    (Code::LeaseEnded, _) => self.mark("a spent request, or lease, is told so"),
                    _ => {}
                },
                Ok(_) => {}
            }
            if outcome.replayed.is_some() {
                self.mark("an answer is repeated");
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

    fn event(&mut self, event: &Event, entry: &Entry, now: Real) {
        match event.kind {
            EventKind::Granted { token, waited_ms } => {
                self.tokens.granted(token);
                self.grants += 1;
                if waited_ms.is_some() {
                    self.mark("a lock is handed over");
                }
            }
            EventKind::Ended { end: End::Expired, .. } => self.mark("a lease expires"),
            EventKind::Ended { end: End::Forced, .. } => self.mark("a lease is ended by force"),
            EventKind::Ended { end: End::Abandoned, .. } => self.mark("a grant is taken back"),
            EventKind::WaitEnded { why: Some(WaitEnd::TimedOut), .. } => self.mark("a wait ends"),
            EventKind::WaitEnded { why: Some(WaitEnd::Deserted), .. } => {
                self.mark("a wait is deserted");
            }
            _ => {}
        }
        self.leases.event(event, entry, now);
    }

    pub(crate) fn wiped(&mut self) {
        self.leases = Leases::default();
        self.requests = Requests::default();
    }
}
