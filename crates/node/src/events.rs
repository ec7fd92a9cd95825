//! What happened, for watchers: the last events of the log, and a wake for those who follow.

use sereno_core::{
    Misfit, State,
    entry::{Entry, EntryError, EntryHash, SealedEntry},
    event::Event,
    ids::{ClusterTime, LogId, Position, Revision},
    limits,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Batches in one answer of [`EventHub::after`].
const BATCHES_MAX: usize = 256;

/// One applied entry: what it changed, often nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct EventBatch {
    /// The entry's position.
    pub position: Position,
    /// Its hash.
    pub hash: EntryHash,
    /// Its cluster time.
    pub time: ClusterTime,
    /// About the leader's wall clock, in microseconds since 1970.
    pub wall_us: u64,
    /// The revision after it.
    pub revision: Revision,
    /// In the order of revisions; events of one revision stand together.
    pub events: Vec<Event>,
}

impl EventBatch {
    /// What an entry with this hash has done to `state`, to which it was just applied.
    pub(crate) fn of(entry: &Entry, hash: EntryHash, state: &State, events: Vec<Event>) -> Self {
        Self {
            position: entry.position,
            hash,
            time: entry.time,
            wall_us: entry.token_clock_us,
            revision: state.revision(),
            events,
        }
    }

    /// Applies an entry that was read from the log. Gives the entry, too.
    ///
    /// # Errors
    /// When it cannot be read, or cannot follow: then `state` is as it was.
    pub fn applied(state: &mut State, sealed: &SealedEntry) -> Result<(Entry, Self), Unfit> {
        let position = sealed.head.position;
        let entry =
            Entry::decode(&sealed.bytes).map_err(|error| Unfit::Entry { position, error })?;
        let hash = EntryHash::of(&sealed.bytes);
        let applied = state.apply(&entry, hash)?;
        let batch = Self::of(&entry, hash, state, applied.events);
        Ok((entry, batch))
    }
}

/// Why an entry of the log cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It cannot be read.
    #[error("entry {position}: {error}")]
    Entry {
        /// Where.
        position: Position,
        /// What is wrong.
        error: EntryError,
    },
    /// It does not follow.
    #[error(transparent)]
    Misfit(#[from] Misfit),
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
pub struct EventHub {
    recent: Mutex<Recent>,
    wake: Notify,
}

struct Recent {
    log_id: LogId,
    /// Everything after this revision is remembered.
    forgotten: Revision,
    now: Revision,
    /// Only batches with events.
    batches: VecDeque<Arc<EventBatch>>,
    events: usize,
}

impl EventHub {
    /// A hub that remembers what comes after this state.
    pub(crate) fn after_state(state: &State) -> Self {
        let recent = Recent {
            log_id: state.log_id(),
            forgotten: state.revision(),
            now: state.revision(),
            batches: VecDeque::new(),
            events: 0,
        };
        Self { recent: Mutex::new(recent), wake: Notify::new() }
    }

    /// The node has gone on from a snapshot: what lies before it is not known.
    pub(crate) fn jump(&self, state: &State) {
        let fresh = Self::after_state(state);
        *self.recent() = fresh.recent.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.wake.notify_waiters();
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        // A panic elsewhere stops the process; what is kept here is whole at every moment.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, log_id: LogId, batch: &Arc<EventBatch>) {
        let mut recent = self.recent();
        recent.log_id = log_id;
        recent.now = batch.revision;
        if batch.events.is_empty() {
            return;
        }
        recent.events += batch.events.len();
        recent.batches.push_back(batch.clone());
        while recent.events > limits::EVENTS_REMEMBERED_MAX && recent.batches.len() > 1 {
            let oldest = recent.batches.pop_front().expect("there are some");
            recent.events -= oldest.events.len();
            recent.forgotten = oldest.revision;
        }
        drop(recent);
        self.wake.notify_waiters();
    }

    /// The place right after everything applied so far.
    pub fn now(&self) -> Cursor {
        let recent = self.recent();
        Cursor { log_id: recent.log_id, revision: recent.now }
    }

    /// Batches with events after `cursor` (a batch may also hold earlier ones: filter by revision), at most 256
    /// of them. Waits until there is one.
    ///
    /// # Errors
    /// [`Resync`] when events between `cursor` and the first one remembered are gone.
    pub async fn after(&self, cursor: Cursor) -> Result<Vec<Arc<EventBatch>>, Resync> {
        loop {
            let woken = self.wake.notified();
            let batches = self.remembered(cursor)?;
            if !batches.is_empty() {
                return Ok(batches);
            }
            woken.await;
        }
    }

    fn remembered(&self, cursor: Cursor) -> Result<Vec<Arc<EventBatch>>, Resync> {
        let recent = self.recent();
        let kept = recent.forgotten..=recent.now;
        if cursor.log_id != recent.log_id || !kept.contains(&cursor.revision) {
            let now = Cursor { log_id: recent.log_id, revision: recent.now };
            return Err(Resync { now });
        }
        let first = recent.batches.partition_point(|batch| batch.revision <= cursor.revision);
        Ok(recent.batches.iter().skip(first).take(BATCHES_MAX).cloned().collect())
    }
}

/// Something that follows every applied entry on this node (the audit trail, metrics).
#[async_trait::async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Called for every entry, in order, from the position of a snapshot on at each start: those seen before
    /// come again and have to be recognised by position. Must not block.
    fn applied(&self, batch: &Arc<EventBatch>);

    /// Up to where it has what was applied of this log, so that a start replays from there if it can. `None`: it begins
    /// anew, wherever the replay does.
    fn seen(&self, _log_id: LogId) -> Option<Position> {
        None
    }

    /// The node goes on from a snapshot at this position: entries before it, back to the last one applied, were not
    /// seen here.
    fn jumped(&self, _position: Position) {}

    /// Returns when everything up to `position` is durable. A snapshot, and so a trim, waits for this.
    ///
    /// # Errors
    /// In words; the snapshot is given up and tried again later.
    async fn durable(&self, position: Position) -> Result<(), String>;
}
