//! What the writer does between appends, in steps that are as short as an append: saving snapshots, trimming,
//! sweeping away what is not needed any more. One task after the other.

use super::{
    entries,
    failure::Doing,
    snapshots::{self, Stored},
    state::LogState,
    writer::{Failed, Reply, Writer},
};
use crate::{LogError, Snapshot, fit};
use sereno_core::ids::Position;

/// Bytes of a snapshot in one row and one transaction: as much as may delay an append.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// Entries trimmed in one transaction.
const TRIM_ENTRIES: u64 = 1_000;
/// Chunks of forgotten snapshots deleted in one transaction.
const SWEEP_CHUNKS: u32 = 16;

/// Work that is done in steps. Nobody may be waiting for the reply any more; it is done all the same.
pub(super) enum Task {
    Save(Box<Saving>),
    Trim { up_to: Position, reply: Reply<Position> },
    Sweep,
}

pub(super) struct Saving {
    snapshot: Snapshot,
    /// Known from the first step on.
    stored: Option<Stored>,
    next_chunk: u64,
    reply: Reply<()>,
}

impl Task {
    pub(super) fn save(snapshot: Snapshot, reply: Reply<()>) -> Self {
        Self::Save(Box::new(Saving { snapshot, stored: None, next_chunk: 0, reply }))
    }
}

impl Writer {
    /// One step of a task. Returns what is left of it, or what follows from it.
    pub(super) fn step(&mut self, task: Task) -> Option<Task> {
        match task {
            Task::Save(mut saving) => {
                match self.working(|writer| writer.save_step(&mut saving)) {
                    Ok(false) => return Some(Task::Save(saving)),
                    Ok(true) => {
                        let _ = saving.reply.send(Ok(()));
                    }
                    Err(error) => {
                        let _ = saving.reply.send(Err(error));
                    }
                }
                Some(Task::Sweep) // The one it replaced, or its own chunks if it failed.
            }
            Task::Trim { up_to, reply } => {
                match self.working(|writer| writer.trim_step(up_to)) {
                    Ok(None) => return Some(Task::Trim { up_to, reply }),
                    Ok(Some(first)) => {
                        let _ = reply.send(Ok(first));
                    }
                    Err(error) => {
                        let _ = reply.send(Err(error));
                    }
                }
                None
            }
            // A failure has stopped the engine: whoever calls next is told.
            Task::Sweep => match self.working(Self::sweep_step) {
                Ok(true) => Some(Task::Sweep),
                Ok(false) | Err(_) => None,
            },
        }
    }

    /// First a look, then chunk after chunk, then the row that makes them a snapshot: `true`.
    fn save_step(&mut self, saving: &mut Saving) -> Result<bool, LogError> {
        let snapshot = &saving.snapshot;
        let Some(stored) = saving.stored else {
            self.check_snapshot(snapshot)?;
            let id = snapshots::unused_id(self.connection())?;
            saving.stored = Some(Stored::of(id, snapshot, CHUNK_BYTES));
            return Ok(false);
        };
        let number = saving.next_chunk;
        if number < stored.chunks {
            let start = number as usize * CHUNK_BYTES;
            let end = snapshot.bytes.len().min(start + CHUNK_BYTES);
            let chunk = &snapshot.bytes[start..end];
            self.prepare(chunk.len(), |transaction| {
                stored.insert_chunk(transaction, number, chunk)
            })?;
            saving.next_chunk += 1;
            return Ok(false);
        }
        self.change(0, |transaction, state| Ok((Some(stored.publish(transaction, state)?), true)))
            .map_err(Failed::into_error)
    }

    /// Tasks run one after the other and appends only add, so what holds before the first chunk holds at the end.
    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<(), LogError> {
        let newest =
            snapshots::list(self.connection(), self.state())?.last().map(|stored| stored.head);
        fit::unfit_snapshot(&self.state().head, newest.as_ref(), snapshot)?;
        match entries::load(self.connection(), self.state(), snapshot.head.position)? {
            Some(entry) if entry.head != snapshot.head => Err(LogError::Refused(format!(
                "the snapshot of position {} has another head than the entry there",
                snapshot.head.position
            ))),
            _ => Ok(()),
        }
    }

    /// The first position that can be read when all that may go is gone.
    fn trim_step(&mut self, up_to: Position) -> Result<Option<Position>, LogError> {
        let first = self.state().first;
        let end = match &snapshots::list(self.connection(), self.state())?[..] {
            [older, _newer] => up_to.min(older.head.position),
            _ => return Ok(Some(first)),
        };
        if end < first {
            return Ok(Some(first));
        }
        // What is trimmed can never again be asked of log.db: HEAD must not fall back behind it.
        self.sync_side()?;
        let last = Position(end.0.min(first.0 + TRIM_ENTRIES - 1));
        self.change(TRIM_ENTRIES as usize * 1_000, |transaction, state| {
            let doing = "trimming";
            let mut delete = transaction
                .prepare_cached("DELETE FROM entries WHERE position <= ?1")
                .doing(doing)?;
            delete.execute([entries::key(last)]).doing(doing)?;
            Ok((Some(LogState { first: last.next(), ..state }), ()))
        })
        .map_err(Failed::into_error)?;
        Ok((last == end).then_some(last.next()))
    }

    /// `true` if there may be more.
    fn sweep_step(&mut self) -> Result<bool, LogError> {
        let mut more = false;
        self.prepare(SWEEP_CHUNKS as usize * 4_000, |transaction| {
            more = snapshots::sweep(transaction, SWEEP_CHUNKS)?;
            Ok(())
        })?;
        Ok(more)
    }
}
