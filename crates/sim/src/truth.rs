//! What the log says: every entry that lands is replayed here, once, and what it decided is kept. All that nodes
//! and clients claim is compared with it.

use crate::{checks::Checks, clock::Real};
use sereno_core::{
    State,
    entry::{Body, Entry, EntryHash, Head, SealedEntry, Writer},
    ids::{Epoch, Position, Revision},
    outcome::{Done, Outcome},
};
use std::collections::BTreeMap;

/// What one entry may add to cluster time at most.
const MAX_STEP_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) state: State,
    /// By revision: what commands were answered, and claims that were settled.
    outcomes: BTreeMap<Revision, Vec<Outcome>>,
    /// Entry and outcome chain of each position.
    chains: BTreeMap<Position, (EntryHash, EntryHash)>,
    /// When each entry was sent for the first time: its stamp is of that moment.
    sent_at: BTreeMap<[u8; 32], Real>,
    epochs: BTreeMap<Epoch, Writer>,
    led: BTreeMap<Epoch, usize>,
    /// When the newest entry was stamped.
    stamped_at: Real,
    /// Real and cluster time since the present leader's announce.
    reign_ns: u64,
    reign_passed_ms: u64,
    pub(crate) checks: Checks,
}

impl Truth {
    pub(crate) fn sent(&mut self, hash: EntryHash, now: Real) {
        self.sent_at.entry(hash.0).or_insert(now);
    }

    /// An entry has landed.
    pub(crate) fn learn(&mut self, sealed: &SealedEntry, now: Real, is_out: bool) {
        assert!(!is_out, "S11: nothing lands without a quorum");
        let entry = Entry::decode(&sealed.bytes).expect("nodes send entries");
        let sent_at = self.sent_at[&sealed.head.hash.0];
        self.check_time(&entry, sent_at);
        let applied = match self.state.apply(&entry, sealed.head.hash) {
            Ok(applied) => applied,
            Err(misfit) => panic!("S1: what lands in the log follows on it: {misfit}"),
        };
        if matches!(entry.body, Body::Resign) {
            self.checks.mark("a leader resigns");
        }
        if matches!(entry.body, Body::Announce(_)) {
            self.epochs.insert(entry.epoch, entry.writer.clone());
        }
        assert!(
            self.epochs.get(&entry.epoch) == Some(&entry.writer),
            "one leader acts in an epoch: entry {} is of {:?}",
            entry.position,
            entry.writer
        );
        self.chains.insert(entry.position, (sealed.head.hash, self.state.outcome_chain()));
        self.checks.entry(&entry, &applied, now);
        self.state.check_invariants();
        let settled = applied.settled.into_iter().map(|settled| settled.outcome);
        for outcome in applied.outcomes.into_iter().chain(settled) {
            self.outcomes.entry(outcome.revision).or_default().push(outcome);
        }
    }

    /// Cluster time runs as real time does, within what clocks may be off, and loses only what the clamp cuts off.
    fn check_time(&mut self, entry: &Entry, sent_at: Real) {
        let is_announce = matches!(entry.body, Body::Announce(_));
        let passed_ms = self.state.time().until(entry.time);
        assert!(
            passed_ms == 0 || !is_announce,
            "S8: an announce adds nothing to cluster time: {passed_ms} ms at {}",
            entry.position
        );
        let gap_ns = sent_at.saturating_sub(self.stamped_at);
        self.stamped_at = sent_at;
        if is_announce {
            (self.reign_ns, self.reign_passed_ms) = (0, 0);
            return;
        }
        self.reign_ns += gap_ns.min(MAX_STEP_NS);
        self.reign_passed_ms += passed_ms;
        let (passed_ns, real_ns) = (self.reign_passed_ms * 1_000_000, self.reign_ns);
        assert!(
            passed_ns <= real_ns + real_ns / 100,
            "S8: cluster time runs no faster than real time: {passed_ns} ns in {real_ns} ns at {}",
            entry.position
        );
        assert!(
            passed_ns + real_ns / 100 + 2_000_000 >= real_ns,
            "L1: cluster time flows: {passed_ns} ns in {real_ns} ns at {}",
            entry.position
        );
    }

    /// One log, one state (S1).
    pub(crate) fn check_node(&self, node: usize, head: Head, chain: EntryHash) {
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
        assert!(before.is_none(), "one leader acts in an epoch: n{node} and n{before:?}");
        let writer = self.epochs.get(&head.epoch);
        let is_its = writer.is_some_and(|writer| writer.node_id == format!("n{node}"));
        assert!(is_its, "a leader has applied its own announce: n{node} in {}", head.epoch);
    }

    /// A barrier rests on an entry that was sent after it came.
    pub(crate) fn check_barrier(&self, node: usize, head: Head, came_at: Real) {
        let sent_at = self.sent_at.get(&head.hash.0).copied();
        assert!(
            sent_at.is_some_and(|sent_at| sent_at >= came_at),
            "S5: a consistent read of n{node} rests on an append sent after it arrived"
        );
    }

    /// The log holds what an answer rests on (S5).
    pub(crate) fn check_answer(&self, outcome: &Outcome) {
        let there = self.outcomes.get(&outcome.revision);
        let is_of_log = there.is_some_and(|there| there.contains(outcome));
        let is_place = matches!(outcome.result, Ok(Done::Waiting(_)))
            && outcome.revision <= self.state.revision();
        assert!(is_of_log || is_place, "S5: the log leads to this answer: {outcome:?}");
    }

    /// The log begins anew; what has been granted stays granted.
    pub(crate) fn wiped(&mut self) {
        let mut checks = std::mem::take(&mut self.checks);
        checks.wiped();
        *self = Self { checks, sent_at: std::mem::take(&mut self.sent_at), ..Self::default() };
    }
}
