//! Replaying the log: at the start, and as the rehearsal of every snapshot (DESIGN.md section 7).

use crate::{
    events::{EventBatch, Sink, Unfit},
    node::Rehearsal,
};
use sereno_core::{
    SnapshotError, State,
    entry::{EntryHash, Head},
    ids::{LogId, Position},
};
use sereno_log::{Log, LogError, Read, Snapshot};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Bytes of log read at once.
const PAGE_BYTES: usize = 4 * 1_024 * 1_024;

/// Why a log could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The engine says so.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The snapshot cannot be read.
    #[error("snapshot at position {position}: {error}")]
    Snapshot {
        /// Where it was made.
        position: Position,
        /// What is wrong.
        error: SnapshotError,
    },
    /// The snapshot is of another head than the engine says.
    #[error("snapshot at position {0} holds the state of another head")]
    SnapshotHead(Position),
    /// An entry cannot be read, or does not follow.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// Entries are missing.
    #[error("entries from {due} on are needed, and the log begins at {first}")]
    Gap {
        /// The first one needed.
        due: Position,
        /// The first one there.
        first: Position,
    },
    /// The log ends before its head, or goes on differently.
    #[error("the log's entries lead to {found:?}, its head is {due:?}")]
    Head {
        /// The head.
        due: Box<Head>,
        /// What the entries lead to.
        found: Box<Head>,
    },
}

/// The state of the last snapshot, or the empty one.
///
/// # Errors
/// When there is a snapshot and it cannot be read.
pub async fn last_snapshot(log: &dyn Log) -> Result<(State, Option<Position>), ReplayError> {
    match log.latest_snapshot().await? {
        Some(snapshot) => state_of(snapshot),
        None => Ok((State::new(), None)),
    }
}

/// The state to start from: that of the last snapshot, or of an earlier one, or the empty one, where a sink has not seen
/// what lies between and the log still has it.
///
/// # Errors
/// As [`last_snapshot`].
pub(crate) async fn first_state(
    log: &dyn Log,
    sinks: &[Arc<dyn Sink>],
) -> Result<(State, Option<Position>), ReplayError> {
    let log_id = log.head().await?.log_id;
    let Some(seen) = sinks.iter().filter_map(|sink| sink.seen(log_id)).min() else {
        return last_snapshot(log).await;
    };
    if let Some(snapshot) = log.snapshot_before(seen).await? {
        return state_of(snapshot);
    }
    match log.read(Position(1), 1).await? {
        Read::Entries(_) => Ok((State::new(), None)),
        Read::Trimmed { .. } => last_snapshot(log).await,
    }
}

fn state_of(snapshot: Snapshot) -> Result<(State, Option<Position>), ReplayError> {
    let Snapshot { head, bytes } = snapshot;
    let position = head.position;
    let state =
        State::from_snapshot(&bytes).map_err(|error| ReplayError::Snapshot { position, error })?;
    if state.head() != head {
        return Err(ReplayError::SnapshotHead(position));
    }
    Ok((state, Some(position)))
}

/// Applies the log's entries after `state` until its head is `head`; `each` also gets the bytes of its entry.
///
/// # Errors
/// When the entries do not lead from the one to the other.
pub async fn to(
    log: &dyn Log,
    mut state: State,
    head: Head,
    mut each: impl FnMut(LogId, Arc<EventBatch>, usize),
) -> Result<State, ReplayError> {
    while state.head().position < head.position {
        let due = state.head().position.next();
        let entries = match log.read(due, PAGE_BYTES).await? {
            Read::Entries(entries) if !entries.is_empty() => entries,
            Read::Entries(_) => break,
            Read::Trimmed { first } => return Err(ReplayError::Gap { due, first }),
        };
        for sealed in entries.iter().take_while(|entry| entry.head.position <= head.position) {
            let (_, batch) = EventBatch::applied(&mut state, sealed)?;
            each(state.log_id(), Arc::new(batch), sealed.bytes.len());
        }
    }
    if state.head() == head {
        return Ok(state);
    }
    Err(ReplayError::Head { due: Box::new(head), found: Box::new(state.head()) })
}

/// A state made afresh from the last snapshot and the log. Blocks the calling thread.
///
/// # Errors
/// As [`to`].
pub(crate) fn from_snapshot_to(
    runtime: &Handle,
    log: &dyn Log,
    head: Head,
) -> Result<State, ReplayError> {
    runtime.block_on(async {
        let (state, _) = last_snapshot(log).await?;
        to(log, state, head, |_, _, _| {}).await
    })
}

/// Replays from the last snapshot to `head`, compares the outcome chain with the live one, and saves the state
/// as the next snapshot. Blocks the calling thread.
///
/// # Errors
/// When the log no longer leads to this node's head: it is damaged, and going on would be wrong.
pub(crate) fn rehearse(
    runtime: &Handle,
    log: &dyn Log,
    sinks: &[Arc<dyn Sink>],
    head: Head,
    outcome_chain: EntryHash,
) -> Result<Rehearsal, ReplayError> {
    let state = match from_snapshot_to(runtime, log, head) {
        Ok(state) => state,
        Err(ReplayError::Log(LogError::Unreachable(reason))) => {
            return Ok(Rehearsal::Failed(reason));
        }
        Err(error @ (ReplayError::Head { .. } | ReplayError::Gap { .. })) => {
            return overtaken(runtime, log, head).ok_or(error);
        }
        Err(error) => return Err(error),
    };
    if state.outcome_chain() != outcome_chain {
        return Ok(Rehearsal::Differs(head));
    }
    let bytes = state.to_snapshot();
    drop(state);
    // The audit trail is written from the log: it must have what the log is about to lose.
    for sink in sinks {
        if let Err(reason) = runtime.block_on(sink.durable(head.position)) {
            return Ok(Rehearsal::Failed(reason));
        }
    }
    let snapshot = Snapshot { head, bytes: bytes.into() };
    Ok(match runtime.block_on(log.save_snapshot(snapshot)) {
        Ok(()) => Rehearsal::Saved(head),
        Err(error) => Rehearsal::Failed(error.to_string()),
    })
}

/// Where nodes share the log, another's snapshot beyond `head` may have come in between, and a trim after it: then the
/// entries that do not lead to `head` are no damage.
fn overtaken(runtime: &Handle, log: &dyn Log, head: Head) -> Option<Rehearsal> {
    let newest = runtime.block_on(log.latest_snapshot()).ok().flatten()?;
    let is_newer = newest.head.log_id == head.log_id && newest.head.position > head.position;
    let at = newest.head.position;
    is_newer.then(|| Rehearsal::Failed(format!("another node has saved the snapshot at {at}")))
}

/// The calling thread works only when nobody else wants to.
pub(crate) fn lower_priority() {
    // Only Linux gives a thread a priority of its own; elsewhere, or where it is forbidden, it shares the node's.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19);
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::{
        entry::{Body, SealedEntry},
        testing::Scribe,
    };
    use sereno_log::memory::Memory;
    use sereno_log::memory::MemoryLog;

    fn write(memory: &mut Memory, scribe: &mut Scribe) -> SealedEntry {
        let entry = scribe.entry(1, Body::Batch(Vec::new()));
        let sealed = entry.seal(scribe.state.log_id());
        memory.append(&memory.head(), &sealed);
        scribe.push(entry, sealed.head.hash);
        sealed
    }

    #[test]
    fn a_rehearsal_that_another_node_has_overtaken_is_no_damage() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (mut memory, mut scribe) = (Memory::default(), Scribe::new());
        let genesis = Scribe::genesis().seal(scribe.state.log_id());
        memory.append(&Head::EMPTY, &genesis);
        let head = write(&mut memory, &mut scribe).head;
        let chain = scribe.state.outcome_chain();
        for _ in 0..2 {
            write(&mut memory, &mut scribe);
            let bytes = scribe.state.to_snapshot().into();
            memory.save_snapshot(Snapshot { head: scribe.state.head(), bytes }).unwrap();
        }
        memory.trim(scribe.state.head().position);
        let log = MemoryLog::of(memory);
        let rehearsal = rehearse(runtime.handle(), &log, &[], head, chain);
        assert!(matches!(rehearsal, Ok(Rehearsal::Failed(_))), "{rehearsal:?}");
        let unknown = Head { position: Position(99), ..head };
        assert!(rehearse(runtime.handle(), &log, &[], unknown, chain).is_err(), "that is damage");
    }
}
