//! The thread that owns the writing connection. Appends go first; saving a snapshot, trimming and sweeping are
//! cut into steps, and one step at most stands between two appends.
//!
//! After any failure of the storage nothing is written any more: a failed fsync may have dropped pages that a
//! second one would report as safe. What a later call is told is in [`Writer::append`].

use super::{
    entries,
    failure::Doing,
    side::{Mark, SideFile},
    snapshots::{self, Stored},
    state::LogState,
};
use crate::{Append, Conflict, LogError, Snapshot, fit};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, TryRecvError},
    },
};
use tokio::sync::{oneshot, watch};

/// Bytes of a snapshot in one row and one transaction: as much as may delay an append.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// Entries trimmed in one transaction.
const TRIM_ENTRIES: u64 = 1_000;
/// Chunks of forgotten snapshots deleted in one transaction.
const SWEEP_CHUNKS: u32 = 16;
/// What a page of the WAL carries of a large value, about.
const PAGE_BYTES: usize = 4_084;

/// What the async side asks for. Nobody may be waiting for the answer any more; it is carried out all the same.
pub(super) enum Job {
    Append { expected: Head, entry: SealedEntry, reply: oneshot::Sender<Append> },
    Save { snapshot: Snapshot, reply: Reply<()> },
    Trim { up_to: Position, reply: Reply<Position> },
    Flush { reply: Reply<()> },
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, LogError>>;

/// Work that is done in steps.
enum Task {
    Save { snapshot: Snapshot, stored: Option<Stored>, next: u64, reply: Reply<()> },
    Trim { up_to: Position, reply: Reply<Position> },
    Sweep,
}

/// Why the engine has stopped, seen by all its parts.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<OnceLock<LogError>>);

impl Stop {
    /// The first error that stopped the engine.
    pub(super) fn error(&self) -> Option<LogError> {
        self.0.get().cloned()
    }

    /// Stops the engine if the error is one after which nothing can be trusted.
    pub(super) fn note(&self, error: &LogError) {
        if matches!(error, LogError::Storage(_) | LogError::Damaged(_)) {
            // A second error adds nothing to the first.
            let _ = self.0.set(error.clone());
        }
    }
}

/// A transaction failed.
enum Failed {
    /// Before the commit: nothing of it is in the log.
    Before(LogError),
    /// In the commit, or before `HEAD` told of it: it may be in the log.
    Uncertain(LogError),
}

impl Failed {
    fn into_error(self) -> LogError {
        match self {
            Self::Before(error) | Self::Uncertain(error) => error,
        }
    }
}

impl From<LogError> for Failed {
    fn from(error: LogError) -> Self {
        Self::Before(error)
    }
}

pub(super) struct Writer {
    connection: Connection,
    side: SideFile,
    /// What the last commit stored.
    state: LogState,
    head: watch::Sender<Head>,
    stop: Stop,
    /// A commit has failed: what was asked for then may be in the log.
    uncertain: bool,
    tasks: VecDeque<Task>,
    /// Pages written to the WAL since it was last copied into log.db, about.
    wal_pages: usize,
    /// A checkpoint is tried at that many.
    checkpoint_at: usize,
    checkpoint_pages: usize,
}

impl Writer {
    /// `state` is what log.db holds. Writes it once more, as one change, so that a folder that cannot be written
    /// is found at start, and brings `HEAD` up to date.
    pub(super) fn start(
        connection: Connection,
        side: SideFile,
        state: LogState,
        checkpoint_bytes: u64,
        head: watch::Sender<Head>,
        stop: Stop,
    ) -> Result<Self, LogError> {
        let pages = usize::try_from(checkpoint_bytes).unwrap_or(usize::MAX) / PAGE_BYTES;
        let mut writer = Self {
            connection,
            side,
            state,
            head,
            stop,
            uncertain: false,
            tasks: VecDeque::from([Task::Sweep]),
            wal_pages: 0,
            checkpoint_at: pages,
            checkpoint_pages: pages,
        };
        writer.change(|_, state| Ok((Some(state), ()))).map_err(Failed::into_error)?;
        writer.side.sync()?;
        Ok(writer)
    }

    /// Until nobody can ask for anything any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let job = if self.tasks.is_empty() {
                jobs.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                jobs.try_recv()
            };
            match job {
                Ok(job) => self.take(job),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            self.step();
            self.checkpoint_if_due();
        }
        if self.stop.error().is_none() {
            // Nobody is left to tell of a failure, and an old HEAD is only less strict.
            let _ = self.side.sync();
        }
    }

    /// The answers' receivers may be gone: then nobody wants to know.
    fn take(&mut self, job: Job) {
        match job {
            Job::Append { expected, entry, reply } => {
                let _ = reply.send(self.append(&expected, &entry));
            }
            Job::Flush { reply } => {
                let _ = reply.send(self.working(|writer| writer.side.sync()));
            }
            Job::Save { snapshot, reply } => {
                self.tasks.push_back(Task::Save { snapshot, stored: None, next: 0, reply });
            }
            Job::Trim { up_to, reply } => self.tasks.push_back(Task::Trim { up_to, reply }),
        }
    }

    /// Does `work` unless the engine has stopped, and stops it if that fails.
    fn working<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if let Some(error) = self.stop.error() {
            return Err(error);
        }
        work(self).inspect_err(|error| self.stop.note(error))
    }

    /// After a failure: *not appended* if every commit so far is known to have succeeded or not begun. Otherwise
    /// *unknown*, because this may be the entry whose commit failed, sent again.
    fn append(&mut self, expected: &Head, entry: &SealedEntry) -> Append {
        if let Some(error) = self.stop.error() {
            let message = format!("the log has stopped: {error}");
            return if self.uncertain {
                Append::Unknown(message)
            } else {
                Append::NotAppended(message)
            };
        }
        if let Some(why) = fit::misfit(expected, entry) {
            return Append::NotAppended(why);
        }
        let result = self.change(|transaction, state| {
            if state.head != *expected {
                let slot = entries::slot(transaction, &state, entry.head.position)?;
                return Ok((None, Append::Conflict(Conflict { head: state.head, slot })));
            }
            entries::insert(transaction, entry)?;
            Ok((Some(LogState { head: entry.head, ..state }), Append::Committed))
        });
        match result {
            Ok(append) => {
                self.wal_pages += entry.bytes.len() / PAGE_BYTES + 3;
                append
            }
            Err(Failed::Before(error)) => Append::NotAppended(error.to_string()),
            Err(Failed::Uncertain(error)) => Append::Unknown(error.to_string()),
        }
    }

    /// One transaction. `work` gives the state that it makes, if it changes anything. `HEAD` tells of the commit
    /// before anybody else does.
    fn change<T>(
        &mut self,
        work: impl FnOnce(&Connection, LogState) -> Result<(Option<LogState>, T), LogError>,
    ) -> Result<T, Failed> {
        let result = self.try_change(work);
        if let Err(failed) = &result {
            let (Failed::Before(error) | Failed::Uncertain(error)) = failed;
            self.stop.note(error);
            if matches!(failed, Failed::Uncertain(_)) {
                self.uncertain = true;
                // Whatever the error was: an uncertain commit ends this engine.
                self.stop.note(&LogError::Storage(error.to_string()));
            }
        }
        result
    }

    fn try_change<T>(
        &mut self,
        work: impl FnOnce(&Connection, LogState) -> Result<(Option<LogState>, T), LogError>,
    ) -> Result<T, Failed> {
        let doing = "beginning a transaction";
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).doing(doing)?;
        let stored = LogState::load(&transaction)?;
        if stored != self.state {
            let message = "log.db, table state: another hand has changed it".into();
            return Err(Failed::Before(LogError::Damaged(message)));
        }
        let (next, value) = work(&transaction, stored)?;
        let Some(next) = next.map(LogState::changed) else {
            return Ok(value); // Rolls back: nothing was written.
        };
        next.store(&transaction)?;
        transaction.commit().doing("committing").map_err(Failed::Uncertain)?;
        self.side.write(&Mark::of(&next)).map_err(Failed::Uncertain)?;
        self.state = next;
        self.head.send_if_modified(|head| std::mem::replace(head, next.head) != next.head);
        Ok(value)
    }

    /// A transaction that changes nothing of what the log says yet.
    fn prepare(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let doing = "beginning a transaction";
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).doing(doing)?;
        work(&transaction)?;
        transaction.commit().doing("committing")
    }

    /// One step of the oldest task.
    fn step(&mut self) {
        match self.tasks.pop_front() {
            None => {}
            Some(Task::Save { snapshot, stored, next, reply }) => {
                match self.working(|writer| writer.save_step(&snapshot, stored, next)) {
                    Ok(Saved::Chunk(stored, next)) => {
                        let stored = Some(stored);
                        self.tasks.push_front(Task::Save { snapshot, stored, next, reply });
                    }
                    Ok(Saved::All) => {
                        let _ = reply.send(Ok(()));
                        self.tasks.push_back(Task::Sweep);
                    }
                    Err(error) => {
                        let _ = reply.send(Err(error));
                    }
                }
            }
            Some(Task::Trim { up_to, reply }) => {
                match self.working(|writer| writer.trim_step(up_to)) {
                    Ok(Trimmed::Some) => self.tasks.push_front(Task::Trim { up_to, reply }),
                    Ok(Trimmed::All(first)) => {
                        let _ = reply.send(Ok(first));
                    }
                    Err(error) => {
                        let _ = reply.send(Err(error));
                    }
                }
            }
            Some(Task::Sweep) => {
                // A failure has stopped the engine: whoever calls next is told.
                if let Ok(true) = self.working(Self::sweep_step) {
                    self.tasks.push_back(Task::Sweep);
                }
            }
        }
    }

    fn save_step(
        &mut self,
        snapshot: &Snapshot,
        stored: Option<Stored>,
        next: u64,
    ) -> Result<Saved, LogError> {
        let Some(stored) = stored else {
            self.check_snapshot(snapshot)?;
            let id = snapshots::unused_id(&self.connection)?;
            return Ok(Saved::Chunk(Stored::of(id, snapshot, CHUNK_BYTES), 0));
        };
        if next < stored.chunks {
            let start = next as usize * CHUNK_BYTES;
            let end = snapshot.bytes.len().min(start + CHUNK_BYTES);
            let chunk = &snapshot.bytes[start..end];
            self.prepare(|transaction| stored.insert_chunk(transaction, next, chunk))?;
            self.wal_pages += chunk.len() / PAGE_BYTES + 3;
            return Ok(Saved::Chunk(stored, next + 1));
        }
        self.change(|transaction, state| {
            stored.publish(transaction)?;
            Ok((Some(state), Saved::All))
        })
        .map_err(Failed::into_error)
    }

    /// Tasks run one after the other and appends only add, so what holds before the first chunk holds at the end.
    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<(), LogError> {
        let newest = snapshots::list(&self.connection)?.last().map(|stored| stored.head);
        fit::unfit_snapshot(&self.state.head, newest.as_ref(), snapshot)?;
        match entries::load(&self.connection, &self.state, snapshot.head.position)? {
            Some(entry) if entry.head != snapshot.head => Err(LogError::Refused(format!(
                "the snapshot of position {} has another head than the entry there",
                snapshot.head.position
            ))),
            _ => Ok(()),
        }
    }

    fn trim_step(&mut self, up_to: Position) -> Result<Trimmed, LogError> {
        let kept = snapshots::list(&self.connection)?;
        let first = self.state.first;
        let end = match &kept[..] {
            [older, _newer] => up_to.min(older.head.position),
            _ => return Ok(Trimmed::All(first)),
        };
        if end < first {
            return Ok(Trimmed::All(first));
        }
        // What is trimmed can never again be asked of log.db: HEAD must not fall back behind it.
        self.side.sync()?;
        let last = Position(end.0.min(first.0 + TRIM_ENTRIES - 1));
        self.change(|transaction, state| {
            let doing = "trimming";
            let mut delete = transaction
                .prepare_cached("DELETE FROM entries WHERE position <= ?1")
                .doing(doing)?;
            delete.execute([entries::key(last)]).doing(doing)?;
            Ok((Some(LogState { first: last.next(), ..state }), ()))
        })
        .map_err(Failed::into_error)?;
        self.wal_pages += TRIM_ENTRIES as usize;
        Ok(if last < end { Trimmed::Some } else { Trimmed::All(last.next()) })
    }

    fn sweep_step(&mut self) -> Result<bool, LogError> {
        let mut more = false;
        self.prepare(|transaction| {
            more = snapshots::sweep(transaction, SWEEP_CHUNKS)?;
            Ok(())
        })?;
        self.wal_pages += SWEEP_CHUNKS as usize;
        Ok(more)
    }

    /// Copies the WAL into log.db once it is large. When all of it is copied and nobody reads in it, SQLite begins
    /// it anew: its file keeps its size, and writing into existing blocks is faster than growing it. SQLite syncs
    /// the WAL before it copies and log.db before it begins anew, so there is no moment with fewer than one copy.
    fn checkpoint_if_due(&mut self) {
        if self.wal_pages < self.checkpoint_at || self.stop.error().is_some() {
            return;
        }
        // A failure has stopped the engine: whoever calls next is told.
        let _ = self.working(|writer| {
            writer.side.sync()?;
            let (in_wal, copied): (i64, i64) = writer
                .connection
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                    Ok((row.get(1)?, row.get(2)?))
                })
                .doing("checkpointing")?;
            // A reader may be in the way: the rest is tried again when it has grown by a quarter.
            writer.wal_pages = usize::try_from(in_wal - copied).unwrap_or(0);
            writer.checkpoint_at = writer.wal_pages + writer.checkpoint_pages / 4;
            writer.checkpoint_at = writer.checkpoint_at.max(writer.checkpoint_pages);
            Ok(())
        });
    }
}

enum Saved {
    /// This is how it is stored, and that chunk comes next.
    Chunk(Stored, u64),
    All,
}

enum Trimmed {
    Some,
    /// All that may go is gone; the first that can be read.
    All(Position),
}
