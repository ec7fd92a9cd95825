//! The calls that the leader has of a node that follows.

use super::CallId;
use crate::{clock::Mono, intake::Kind};
use std::collections::BTreeMap;

/// A call that the leader has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) deadline: Mono,
    /// It may be held there for a wait.
    pub(super) is_held: bool,
    pub(super) kind: Kind,
}

/// All of them, counted by kind: each kind has its own bound, as in the leader's intake.
#[derive(Debug, Default)]
pub(super) struct PassedCalls {
    calls: BTreeMap<CallId, Passed>,
    counts: BTreeMap<Kind, usize>,
}

impl PassedCalls {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether one more of this kind is one too many.
    pub(super) fn is_full(&self, kind: Kind) -> bool {
        self.counts.get(&kind).is_some_and(|&count| count >= kind.max())
    }

    pub(super) fn insert(&mut self, id: CallId, passed: Passed) {
        let before = self.calls.insert(id, passed);
        assert!(before.is_none(), "calls are numbered");
        *self.counts.entry(passed.kind).or_default() += 1;
    }

    pub(super) fn remove(&mut self, id: CallId) -> Option<Passed> {
        let passed = self.calls.remove(&id)?;
        let count = self.counts.get_mut(&passed.kind).expect("what is there was counted");
        *count -= 1;
        Some(passed)
    }

    /// Takes those whose callers have stopped listening.
    pub(super) fn take_overdue(&mut self, now: Mono) -> Vec<CallId> {
        let overdue = self.calls.iter().filter(|(_, passed)| passed.deadline <= now);
        let overdue: Vec<_> = overdue.map(|(&id, _)| id).collect();
        for &id in &overdue {
            self.remove(id);
        }
        overdue
    }
}

impl IntoIterator for PassedCalls {
    type Item = (CallId, Passed);
    type IntoIter = std::collections::btree_map::IntoIter<CallId, Passed>;

    fn into_iter(self) -> Self::IntoIter {
        self.calls.into_iter()
    }
}
