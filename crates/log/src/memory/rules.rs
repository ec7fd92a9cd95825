//! The log as plain data: what an append, a read, a snapshot and a trim do to it.

use crate::{Append, Conflict, LogError, Read, Slot, Snapshot, Usage, fit};
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
    planted::{self, Planted},
};
use std::collections::VecDeque;

/// The contents of a log, without clients, threads or faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    head: Head,
    /// Without gaps; the last one made `head`.
    entries: VecDeque<SealedEntry>,
    /// Position of the first in `entries`, or of the next one to come.
    first: Position,
    /// Oldest first, at most two.
    snapshots: Vec<Snapshot>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            head: Head::EMPTY,
            entries: VecDeque::new(),
            first: Position(1),
            snapshots: Vec::new(),
        }
    }
}

impl Memory {
    /// A log that starts after `snapshot`, as a restored one does.
    pub fn from_snapshot(snapshot: Snapshot) -> Self {
        Self {
            head: snapshot.head,
            entries: VecDeque::new(),
            first: snapshot.head.position.next(),
            snapshots: vec![snapshot],
        }
    }

    /// The head.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Never [`Append::Unknown`]: here everything is certain.
    pub fn append(&mut self, expected: &Head, entry: &SealedEntry) -> Append {
        if let Some(why) = fit::misfit(expected, entry) {
            return Append::NotAppended(why);
        }
        if !self.is_head(expected) {
            let slot = self.slot(entry.head.position);
            return Append::Conflict(Conflict { head: self.head, slot });
        }
        self.head = entry.head;
        self.entries.push_back(entry.clone());
        Append::Committed
    }

    /// The compare of the append: on the head's value.
    fn is_head(&self, expected: &Head) -> bool {
        // A store counts its writes, and an entry is one of them.
        let has_same_count = expected.position == self.head.position;
        *expected == self.head
            || planted::has(Planted::HeadCompareSkipped)
            || (has_same_count && planted::has(Planted::RevisionAloneCompared))
    }

    /// What stands at `position`.
    pub fn slot(&self, position: Position) -> Slot {
        match self.entry(position) {
            Some(entry) => Slot::Entry(entry.head.hash),
            None if position < self.first => Slot::Trimmed,
            None => Slot::Empty,
        }
    }

    fn entry(&self, position: Position) -> Option<&SealedEntry> {
        let index = position.0.checked_sub(self.first.0)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Entries from exactly `from`: at least one where there is one, then as many as fit.
    pub fn read(&self, from: Position, bytes_max: usize) -> Read {
        if from < self.first {
            return Read::Trimmed { first: self.first };
        }
        let skipped = usize::try_from(from.0 - self.first.0).unwrap_or(usize::MAX);
        let mut entries = Vec::new();
        let mut bytes = 0;
        for entry in self.entries.iter().skip(skipped) {
            bytes += entry.bytes.len();
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        Read::Entries(entries)
    }

    /// Keeps it as the newest, and forgets all but the one before.
    pub fn save_snapshot(&mut self, snapshot: Snapshot) -> Result<(), LogError> {
        fit::unfit_snapshot(&self.head, self.latest_snapshot().map(|it| &it.head), &snapshot)?;
        if self.entry(snapshot.head.position).is_some_and(|entry| entry.head != snapshot.head) {
            return Err(LogError::Refused(format!(
                "the snapshot of position {} has another head than the entry there",
                snapshot.head.position
            )));
        }
        if self.snapshots.last().is_some_and(|last| last.head == snapshot.head) {
            self.snapshots.pop();
        }
        self.snapshots.push(snapshot);
        if self.snapshots.len() > 2 {
            self.snapshots.remove(0);
        }
        Ok(())
    }

    /// The newest snapshot.
    pub fn latest_snapshot(&self) -> Option<&Snapshot> {
        self.snapshots.last()
    }

    /// The newest snapshot of `position` or before.
    pub fn snapshot_before(&self, position: Position) -> Option<&Snapshot> {
        self.snapshots.iter().rev().find(|snapshot| snapshot.head.position <= position)
    }

    /// Removes entries at and before `up_to`, none after the older of two snapshots. Returns the first position
    /// that can be read.
    pub fn trim(&mut self, up_to: Position) -> Position {
        let [older, _newer] = &self.snapshots[..] else { return self.first };
        let end = up_to.min(older.head.position);
        while self.first <= end {
            self.entries.pop_front().expect("every position up to the head has its entry");
            self.first = self.first.next();
        }
        self.first
    }

    /// Bytes of entries and snapshots.
    pub fn usage(&self) -> Usage {
        let entries: usize = self.entries.iter().map(|entry| entry.bytes.len()).sum();
        let snapshots: usize = self.snapshots.iter().map(|snapshot| snapshot.bytes.len()).sum();
        Usage {
            bytes: (entries + snapshots) as u64,
            first: self.first,
            snapshot: self.latest_snapshot().map(|snapshot| snapshot.head.position),
        }
    }
}
