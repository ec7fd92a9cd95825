//! A short log that the core itself has written, and the calls that led to it.

use super::*;
use crate::{check::revisions, truth::Truth};
use sereno_core::{command::Operation, ids::LogId, outcome::Outcome, testing::Scribe};

pub(super) struct Written {
    pub(super) scribe: Scribe,
    pub(super) calls: Vec<Call>,
    /// When the next call begins.
    at: u64,
}

impl Written {
    pub(super) fn new() -> Self {
        let mut scribe = Scribe::new();
        scribe.keep = true;
        scribe.entries.push(Scribe::genesis());
        Self { scribe, calls: Vec::new(), at: 0 }
    }

    /// Decides the operation; its client has `heard` this of the outcome.
    pub(super) fn run(&mut self, op: Op, operation: Operation, heard: impl Fn(&Outcome) -> Heard) {
        let outcome = self.scribe.run(operation);
        self.call(op, heard(&outcome));
    }

    /// A call that changes nothing.
    pub(super) fn call(&mut self, op: Op, heard: Heard) {
        self.calls.push(call(self.at, self.at + 5, op, heard));
        self.at += 10;
    }

    pub(super) fn truth(&self) -> Truth {
        let mut truth = Truth::default();
        for entry in &self.scribe.entries {
            truth.add(&entry.seal(LogId([7; 16])).bytes).unwrap();
        }
        assert_eq!(truth.revision(), self.scribe.state.revision().0);
        truth
    }

    /// The promises that the replay of the log finds broken.
    pub(super) fn violations(&self) -> Vec<&'static str> {
        let (found, compared) = revisions::check(&self.calls, &self.truth());
        assert_eq!(compared, self.calls.len());
        found.iter().map(|it| it.promise).collect()
    }
}
