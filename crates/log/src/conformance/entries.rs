//! Entries to append, and a log's contents as the tests expect them.

use crate::{Append, Log, Read};
use bytes::Bytes;
use sereno_core::{
    entry::{Announce, Body, Entry, Genesis, Head, SealedEntry, Writer},
    ids::{ClusterTime, Epoch, LogId, Position},
};

/// The first entry of log `id`.
pub fn genesis(id: u8) -> SealedEntry {
    let log_id = LogId([id; 16]);
    let genesis = Genesis { log_id, min_ttl_ms: 1_000 };
    let body = Body::Announce(Announce { address: "localhost".into(), genesis: Some(genesis) });
    seal(&Head { log_id, epoch: Epoch(1), ..Head::EMPTY }, 0, 0, body)
}

/// An entry that follows `head`. Another `tag` makes another entry; `padding` makes it that much larger.
pub fn entry_after(head: &Head, tag: u64, padding: usize) -> SealedEntry {
    assert_ne!(*head, Head::EMPTY, "the first entry is a genesis");
    seal(head, tag, padding, Body::Batch(Vec::new()))
}

fn seal(head: &Head, tag: u64, padding: usize, body: Body) -> SealedEntry {
    let entry = Entry {
        position: head.position.next(),
        epoch: head.epoch,
        writer: Writer { node_id: "n".repeat(padding), start: tag },
        time: ClusterTime(head.position.0 * 10),
        token_clock_us: tag,
        previous: head.hash,
        body,
    };
    entry.seal(head.log_id)
}

/// What was appended so far, in order.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    entries: Vec<SealedEntry>,
}

impl Chain {
    /// The head that the log must have.
    pub fn head(&self) -> Head {
        self.entries.last().map_or(Head::EMPTY, |entry| entry.head)
    }

    /// The head after the entry at `position`.
    pub fn head_at(&self, position: u64) -> Head {
        position.checked_sub(1).map_or(Head::EMPTY, |index| self.entries[index as usize].head)
    }

    /// All of them.
    pub fn entries(&self) -> &[SealedEntry] {
        &self.entries
    }

    /// An entry that would come next.
    pub fn next(&self, tag: u64) -> SealedEntry {
        if self.entries.is_empty() { genesis(7) } else { entry_after(&self.head(), tag, 0) }
    }

    /// Notes that somebody has appended it.
    pub fn push(&mut self, entry: SealedEntry) {
        assert_eq!(entry.head.position, self.head().position.next());
        self.entries.push(entry);
    }

    /// Appends entries until the log has `count`.
    pub async fn grow(&mut self, log: &impl Log, count: usize) {
        while self.entries.len() < count {
            let entry = self.next(0);
            let result = log.append(self.head(), entry.clone()).await;
            assert_eq!(result, Append::Committed, "position {}", entry.head.position);
            self.push(entry);
        }
    }

    /// Appends this entry.
    pub async fn append(&mut self, log: &impl Log, entry: SealedEntry) {
        assert_eq!(log.append(self.head(), entry.clone()).await, Append::Committed);
        self.push(entry);
    }

    /// A snapshot of the state after `position`: some bytes that depend on it.
    pub fn snapshot(&self, position: u64, length: usize) -> crate::Snapshot {
        let mut bytes = vec![position as u8; length];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte ^= (index >> 8) as u8;
        }
        crate::Snapshot { head: self.head_at(position), bytes: Bytes::from(bytes) }
    }

    /// The log has exactly these entries, from position `first` on.
    pub async fn assert_is(&self, log: &impl Log, first: u64) {
        assert_eq!(log.head().await, Ok(self.head()));
        assert_eq!(log.usage().await.map(|usage| usage.first), Ok(Position(first)));
        assert_eq!(read_from(log, first).await, self.entries[first as usize - 1..]);
        if first > 1 {
            let trimmed = Ok(Read::Trimmed { first: Position(first) });
            assert_eq!(log.read(Position(1), usize::MAX).await, trimmed);
            assert_eq!(log.read(Position(first - 1), usize::MAX).await, trimmed);
        }
    }
}

/// All entries from `first` on, read in pages.
pub(super) async fn read_from(log: &impl Log, first: u64) -> Vec<SealedEntry> {
    let mut all = Vec::new();
    loop {
        let from = Position(first + all.len() as u64);
        match log.read(from, 1 << 20).await.expect("it reads") {
            Read::Entries(page) if page.is_empty() => return all,
            Read::Entries(page) => all.extend(page),
            Read::Trimmed { first } => panic!("read({from}): trimmed up to {first}"),
        }
    }
}
