//! What the log says: every entry that lands is replayed here, once. All that nodes and clients claim is compared with
//! it, and with what the checks have made of it.

use crate::{
    checks::{Checks, Flow, OfLog, OneState, quorum},
    clock::Real,
};
use sereno_core::{
    State,
    entry::{Body, Entry, EntryHash, SealedEntry},
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) state: State,
    /// When each entry was sent for the first time: its stamp is of that moment.
    sent_at: BTreeMap<[u8; 32], Real>,
    pub(crate) one_state: OneState,
    flow: Flow,
    pub(crate) checks: Checks,
}

impl Truth {
    pub(crate) fn sent(&mut self, hash: EntryHash, now: Real) {
        self.sent_at.entry(hash.0).or_insert(now);
    }

    pub(crate) fn sent_at(&self, hash: EntryHash) -> Option<Real> {
        self.sent_at.get(&hash.0).copied()
    }

    /// An entry has landed.
    pub(crate) fn learn(&mut self, sealed: &SealedEntry, now: Real, is_out: bool) {
        quorum::lands(is_out);
        let entry = Entry::decode(&sealed.bytes).expect("nodes send entries");
        let sent_at = self.sent_at(sealed.head.hash).expect("what lands was sent");
        let head = self.state.head();
        assert!(
            entry.previous == head.hash && entry.position == head.position.next(),
            "S1: what lands in the log follows on its head: {:?} on {head:?}",
            sealed.head
        );
        self.flow.entry(&entry, sent_at, self.state.time());
        let applied = match self.state.apply(&entry, sealed.head.hash) {
            Ok(applied) => applied,
            Err(misfit) => panic!("S1: what lands in the log follows on it: {misfit}"),
        };
        if matches!(entry.body, Body::Resign) {
            self.checks.marks.mark("a leader resigns");
        }
        self.one_state.entry(&entry, &self.state);
        self.checks.entry(&entry, &applied, now);
        self.checks.compare(&self.state);
        self.state.check_invariants();
        self.checks.decided(applied, self.state.revision());
    }

    /// The log is another one, which goes on from this state; what has been granted stays granted.
    pub(crate) fn begins_anew(&mut self, state: State, of_log: OfLog) {
        self.checks.begins_anew(of_log);
        self.one_state = OneState::from(&state);
        self.flow = Flow::default();
        self.state = state;
    }
}
