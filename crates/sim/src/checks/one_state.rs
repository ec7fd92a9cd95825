//! S1: every node that has applied a position has come to the same state there, and one leader acts in an epoch.

use sereno_core::{
    State,
    entry::{Body, Entry, EntryHash, Head, Writer},
    ids::{Epoch, Position},
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct OneState {
    /// Entry and outcome chain of each position.
    chains: BTreeMap<Position, (EntryHash, EntryHash)>,
    epochs: BTreeMap<Epoch, Writer>,
    led: BTreeMap<Epoch, usize>,
}

impl OneState {
    /// The log goes on from this state.
    pub(crate) fn from(state: &State) -> Self {
        let mut one_state = Self::default();
        one_state.learn(state);
        one_state
    }

    fn learn(&mut self, state: &State) {
        let head = state.head();
        self.chains.insert(head.position, (head.hash, state.outcome_chain()));
    }

    /// The entry was applied, and led to this state.
    pub(crate) fn entry(&mut self, entry: &Entry, state: &State) {
        if matches!(entry.body, Body::Announce(_)) {
            self.epochs.insert(entry.epoch, entry.writer.clone());
        }
        assert!(
            self.epochs.get(&entry.epoch) == Some(&entry.writer),
            "S1: one leader acts in an epoch: entry {} is of {:?}",
            entry.position,
            entry.writer
        );
        self.learn(state);
    }

    /// A node has applied the log so far.
    pub(crate) fn applied(&self, node: usize, head: Head, chain: EntryHash) {
        if head == Head::EMPTY {
            return;
        }
        let Some(&(hash, due)) = self.chains.get(&head.position) else {
            panic!("S1: n{node} has applied {}, which is not in the log", head.position)
        };
        assert!(hash == head.hash, "S1: n{node} has applied another entry {}", head.position);
        assert!(chain == due, "S1: n{node} has come to another state at {}", head.position);
    }

    /// A node says that it leads.
    pub(crate) fn leads(&mut self, node: usize, head: Head) {
        let before = self.led.insert(head.epoch, node);
        assert!(before.is_none(), "S1: one leader acts in an epoch: n{node} and n{before:?}");
        let writer = self.epochs.get(&head.epoch);
        let is_its = writer.is_some_and(|writer| writer.node_id == format!("n{node}"));
        assert!(is_its, "S1: a leader has applied its own announce: n{node} in {}", head.epoch);
    }
}
