//! Replays a log that is only read, entry by entry.

use sereno_core::{
    State,
    entry::{Head, SealedEntry},
    ids::Position,
};
use sereno_log::{LogError, Read, Snapshot, sqlite::ReadOnlyLog};
use sereno_node::events::EventBatch;
use std::collections::VecDeque;

/// Bytes of log read at once.
pub(super) const PAGE_BYTES: usize = 4 * 1_024 * 1_024;

/// A log that is only read, as it was at one moment.
pub(super) trait Source {
    /// Its head.
    fn head(&self) -> Head;
    /// First position that can be read.
    fn first(&self) -> Position;
    /// As [`sereno_log::Log::read`] says.
    fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError>;
    /// Heads of the snapshots kept, oldest first.
    fn snapshots(&self) -> Result<Vec<Head>, LogError>;
    /// The snapshot of exactly this head.
    fn snapshot(&self, head: Head) -> Result<Option<Snapshot>, LogError>;
}

impl Source for ReadOnlyLog {
    fn head(&self) -> Head {
        self.head()
    }

    fn first(&self) -> Position {
        self.first()
    }

    fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        self.read(from, bytes_max)
    }

    fn snapshots(&self) -> Result<Vec<Head>, LogError> {
        self.snapshots()
    }

    fn snapshot(&self, head: Head) -> Result<Option<Snapshot>, LogError> {
        self.snapshot(head)
    }
}

/// A state on its way along the log. Iterating gives what each entry did; it ends at the target, or at an error.
pub(super) struct Replay<'a> {
    log: &'a dyn Source,
    state: State,
    read: VecDeque<SealedEntry>,
    target: Position,
    error: Option<String>,
}

/// The state in a snapshot, which has to be of the head that the log gives it.
pub(super) fn state_of(snapshot: &Snapshot) -> Result<State, String> {
    let position = snapshot.head.position;
    let state = State::from_snapshot(&snapshot.bytes)
        .map_err(|error| format!("snapshot at position {position}: {error}"))?;
    match state.head() == snapshot.head {
        true => Ok(state),
        false => {
            Err(format!("snapshot at position {position}: it holds the state of another head"))
        }
    }
}

/// The state from which all entries that there are can be replayed.
pub(super) fn beginning(log: &dyn Source) -> Result<State, String> {
    if log.first() <= Position(1) {
        return Ok(State::new());
    }
    for head in log.snapshots().map_err(|error| error.to_string())? {
        if head.position.next() >= log.first() {
            return state_of(&load(log, head)?);
        }
    }
    Err(format!("the log begins at {}, and no snapshot leads there", log.first()))
}

/// The snapshot of this head, which the log has just named.
pub(super) fn load(log: &dyn Source, head: Head) -> Result<Snapshot, String> {
    let snapshot = log.snapshot(head).map_err(|error| error.to_string())?;
    snapshot.ok_or_else(|| format!("the snapshot at position {} has gone", head.position))
}

impl<'a> Replay<'a> {
    /// From `state` on.
    pub(super) fn from(log: &'a dyn Source, state: State) -> Self {
        let target = log.head().position;
        Self { log, state, read: VecDeque::new(), target, error: None }
    }

    /// Goes on to exactly this head.
    pub(super) fn to(&mut self, head: Head) -> Result<&State, String> {
        self.target = head.position;
        while self.next().is_some() {}
        match &self.error {
            Some(error) => Err(error.clone()),
            None if self.state.head() == head => Ok(&self.state),
            None => {
                Err(format!("replay leads to {:?}, where the log has {head:?}", self.state.head()))
            }
        }
    }

    /// Where it is, for good.
    pub(super) fn into_state(self) -> State {
        self.state
    }

    /// Why it ended early.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn step(&mut self) -> Result<Option<EventBatch>, String> {
        let due = self.state.head().position.next();
        if due > self.target {
            return Ok(None);
        }
        if self.read.is_empty() {
            match self.log.read(due, PAGE_BYTES).map_err(|error| error.to_string())? {
                Read::Entries(entries) => self.read.extend(entries),
                Read::Trimmed { first } => {
                    return Err(format!(
                        "entries from {due} on are needed, and the log begins at {first}"
                    ));
                }
            }
        }
        let sealed = self.read.pop_front().ok_or_else(|| format!("entry {due} is missing"))?;
        let applied = EventBatch::applied(&mut self.state, &sealed);
        applied.map(|(_, batch)| Some(batch)).map_err(|unfit| unfit.to_string())
    }
}

impl Iterator for Replay<'_> {
    type Item = EventBatch;

    fn next(&mut self) -> Option<EventBatch> {
        if self.error.is_some() {
            return None;
        }
        self.step().unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}
