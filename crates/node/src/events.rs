//! What happened, for watchers: the last events of the log, and a wake for those who follow.

use sereno_core::{
    entry::EntryHash,
    event::Event,
    ids::{ClusterTime, LogId, Position, Revision},
};
use std::sync::Arc;

/// The events of one applied entry. Entries without events make none of these.
#[derive(Clone, Debug, PartialEq)]
pub struct EventBatch {
    /// The entry's position.
    pub position: Position,
    /// Its hash.
    pub hash: EntryHash,
    /// Its cluster time.
    pub time: ClusterTime,
    /// Its token clock: about the wall clock, in microseconds since 1970.
    pub token_clock_us: u64,
    /// In the order of revisions; events of one revision stand together.
    pub events: Vec<Event>,
}

/// A place in the total order of one log, for resuming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The log; another one means that a backup was restored.
    pub log_id: LogId,
    /// The last revision seen.
    pub revision: Revision,
}

/// The cursor lies before what this node remembers, ahead of it, or belongs to another log. The watcher has to
/// read the present state and follow from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resync {
    /// Where to go on from after reading.
    pub now: Cursor,
}

/// The last events of the log, bounded by count.
pub struct EventHub {}

impl EventHub {
    /// The place right after everything applied so far.
    pub fn now(&self) -> Cursor {
        todo!()
    }

    /// Batches with events after `cursor` (a batch may also hold earlier ones: filter by revision), at most 256
    /// of them. Waits until there is one.
    ///
    /// # Errors
    /// [`Resync`] when events between `cursor` and the first one remembered are gone.
    pub async fn after(&self, cursor: Cursor) -> Result<Vec<Arc<EventBatch>>, Resync> {
        let _ = cursor;
        todo!()
    }
}

/// Something that follows every applied entry on this node (the audit trail, metrics).
#[async_trait::async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Called for every entry with events, in order, from the last snapshot's position on at each start: those
    /// seen before come again and have to be recognised by position. Must not block.
    fn applied(&self, batch: &Arc<EventBatch>);

    /// Returns when everything up to `position` is durable. A snapshot, and so a trim, waits for this.
    ///
    /// # Errors
    /// In words; the snapshot is given up and tried again later.
    async fn durable(&self, position: Position) -> Result<(), String>;
}
