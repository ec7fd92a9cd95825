//! The log of Sereno behind one small trait. Sereno implements no consensus: an existing engine keeps the
//! entries, and its conditional append decides what is in the log.
//!
//! # Obligations
//!
//! An engine promises all of these; the `conformance` module (feature `conformance`) tests every one of them.
//!
//! 1. **Conditional.** `append(expected, entry)` lands exactly after `expected` or not at all. The compare is on
//!    the head's *value* (log id, position, epoch, hash): never only on the absence of a slot, which trimming
//!    makes absent again.
//! 2. **Durable.** When `append` answers `Committed`, the entry survives any crash of this process or machine.
//! 3. **Atomic.** Head and slot change together; no reader sees one without the other.
//! 4. **Honest.** `NotAppended` is said only when the entry certainly is not in the log and never will be by this
//!    call. Whatever is not certain is `Unknown`. It speaks of this call alone: of an append that was unknown
//!    before, the earlier copy stays unknown, until a conflict or a commit tells.
//! 5. **Resolvable.** `Conflict` carries, read in the same transaction as the failed compare, the head and what
//!    stands in the slot at the entry's position. So sending an unknown append again tells what became of it.
//! 6. **Ordered reads.** `read(from)` gives entries from exactly `from` on, without gaps, or says up to where
//!    the log was trimmed. Bytes that do not have the hash they were appended with are never returned.
//! 7. **Wake.** `wait_past(position)` returns soon after the head passes `position`. It may return early: a hint.
//! 8. **Snapshots.** `save_snapshot` is atomic: `latest_snapshot` gives a whole one, before and after a crash. At
//!    least the two newest are kept. A snapshot older than the latest is refused.
//! 9. **Trim.** `trim(up_to)` removes entries at and before `up_to`, never one after the position of the *older*
//!    of the two kept snapshots, and never the head's compare value: an append with an old head still conflicts.
//! 10. **Loud.** Damage is an error that names the place. An engine never mends by forgetting an entry.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod etcd;
mod fit;
pub mod memory;
pub mod presence;
mod record;
pub mod sqlite;

use async_trait::async_trait;
use bytes::Bytes;
use sereno_core::{
    entry::{EntryHash, Head, SealedEntry},
    ids::Position,
};
use std::fmt;

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// The entry is durable, right after the expected head.
    Committed,
    /// The head is another one.
    Conflict(Conflict),
    /// Certainly not in the log.
    NotAppended(String),
    /// It may be in the log or still arrive there.
    Unknown(String),
}

/// What a failed compare saw, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The head as it is.
    pub head: Head,
    /// What stands at the position of the entry that was to be appended.
    pub slot: Slot,
}

/// What stands at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// An entry with this hash.
    Entry(EntryHash),
    /// It lies beyond the head.
    Empty,
    /// It was trimmed away: nobody can know what it was.
    Trimmed,
}

/// Some entries in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// From exactly the position asked for; empty if that lies beyond the head.
    Entries(Vec<SealedEntry>),
    /// The position asked for was trimmed; the first that can be read.
    Trimmed {
        /// First readable position.
        first: Position,
    },
}

/// A verified state at a head, as opaque bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The head whose state this is.
    pub head: Head,
    /// The core's encoding.
    pub bytes: Bytes,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({:?}, {} bytes)", self.head, self.bytes.len())
    }
}

/// What an operator wants to know of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes stored.
    pub bytes: u64,
    /// First position that can still be read.
    pub first: Position,
    /// Position of the newest snapshot, if any.
    pub snapshot: Option<Position>,
}

/// Why an engine cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The engine cannot be reached now; try again.
    #[error("the log cannot be reached: {0}")]
    Unreachable(String),
    /// What is stored is not what was written. Never served from.
    #[error("the log is damaged: {0}")]
    Damaged(String),
    /// The request makes no sense here (a snapshot older than the latest, another log's head).
    #[error("the log refuses: {0}")]
    Refused(String),
    /// Another process has this log.
    #[error("the log is in use: {0}")]
    InUse(String),
    /// The disk failed; an engine does not retry a failed write.
    #[error("the log's storage failed: {0}")]
    Storage(String),
}

/// The log. See the obligations at the top of this crate; all methods may be called concurrently, and
/// dropping a returned future never takes back what it has begun.
#[async_trait]
pub trait Log: Send + Sync + 'static {
    /// The head; [`Head::EMPTY`] for a log without entries.
    async fn head(&self) -> Result<Head, LogError>;

    /// Obligations 1 to 5.
    async fn append(&self, expected: Head, entry: SealedEntry) -> Append;

    /// Obligation 6. At least one entry where there is one, then as many as fit into `bytes_max`.
    async fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError>;

    /// Obligation 7.
    async fn wait_past(&self, position: Position);

    /// Obligation 8.
    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<(), LogError>;

    /// Obligation 8. `None`: there is none yet, and the log reads from position 1.
    async fn latest_snapshot(&self) -> Result<Option<Snapshot>, LogError>;

    /// Obligation 8. The newest snapshot of `position` or before, of those that are kept.
    async fn snapshot_before(&self, position: Position) -> Result<Option<Snapshot>, LogError>;

    /// Obligation 9. Returns the first position that can still be read.
    async fn trim(&self, up_to: Position) -> Result<Position, LogError>;

    /// Makes everything that supports the log's own checks durable (a periodic call, at heartbeats).
    async fn flush(&self) -> Result<(), LogError>;

    /// For operators.
    async fn usage(&self) -> Result<Usage, LogError>;
}
