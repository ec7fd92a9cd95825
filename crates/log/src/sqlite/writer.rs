//! The thread that owns the writing connection. Appends go first; saving a snapshot, trimming and sweeping are
//! cut into steps, and one step at most stands between two appends.
//!
//! After any failure of the storage nothing is written any more: a failed fsync may have dropped pages that a
//! second one would report as safe. What a later call is told is in [`Writer::append`].

use super::{
    checkpoint::{Checkpoints, Due},
    entries,
    failure::Doing,
    files::Files,
    side::{Mark, SideFile},
    state::LogState,
    tasks::Task,
};
use crate::{Append, Conflict, LogError, Snapshot, fit};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
};
use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, TryRecvError},
    },
};
use tokio::sync::{oneshot, watch};

/// What the async side asks for. Nobody may be waiting for the answer any more; it is carried out all the same.
pub(super) enum Job {
    Append { expected: Head, entry: SealedEntry, reply: oneshot::Sender<Append> },
    Save { snapshot: Snapshot, reply: Reply<()> },
    Trim { up_to: Position, reply: Reply<Position> },
    Flush { reply: Reply<()> },
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, LogError>>;

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
pub(super) enum Failed {
    /// Before the commit: nothing of it is in the log.
    Before(LogError),
    /// In the commit, or before `HEAD` told of it: it may be in the log.
    Uncertain(LogError),
}

impl Failed {
    pub(super) fn into_error(self) -> LogError {
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
    /// The oldest first.
    tasks: VecDeque<Task>,
    checkpoints: Checkpoints,
    files: Files,
}

impl Writer {
    /// `state` is what log.db holds. Writes it once more, as one change, so that a folder that cannot be written
    /// is found at start, and brings `HEAD` up to date.
    pub(super) fn start(
        connection: Connection,
        side: SideFile,
        state: LogState,
        checkpoints: Checkpoints,
        head: watch::Sender<Head>,
        stop: Stop,
        dir: &Path,
    ) -> Result<Self, LogError> {
        let mut writer = Self {
            connection,
            side,
            state,
            head,
            stop,
            uncertain: false,
            tasks: VecDeque::from([Task::Sweep]), // What a crash may have left.
            checkpoints,
            files: Files::note(dir),
        };
        writer.change(0, |_, state| Ok((Some(state), ()))).map_err(Failed::into_error)?;
        writer.side.sync()?;
        writer.files = Files::note(dir); // The WAL may have been created just now.
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
            if let Some(task) = self.tasks.pop_front()
                && let Some(rest) = self.step(task)
            {
                self.tasks.push_front(rest);
            }
            // A failure has stopped the engine: whoever calls next is told.
            let _ = self.working(Self::checkpoint);
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
                let _ = reply.send(self.working(Self::flush));
            }
            Job::Save { snapshot, reply } => {
                self.tasks.push_back(Task::save(snapshot, reply));
            }
            Job::Trim { up_to, reply } => self.tasks.push_back(Task::Trim { up_to, reply }),
        }
    }

    /// Does `work` unless the engine has stopped, and stops it if that fails.
    pub(super) fn working<T>(
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
        let result = self.change(entry.bytes.len(), |transaction, state| {
            if state.head != *expected {
                let slot = entries::slot(transaction, &state, entry.head.position)?;
                return Ok((None, Append::Conflict(Conflict { head: state.head, slot })));
            }
            entries::insert(transaction, entry)?;
            Ok((Some(LogState { head: entry.head, ..state }), Append::Committed))
        });
        match result {
            Ok(append) => append,
            Err(Failed::Before(error)) => Append::NotAppended(error.to_string()),
            Err(Failed::Uncertain(error)) => Append::Unknown(error.to_string()),
        }
    }

    /// One transaction. `work` gives the state that it makes, if it changes anything. `HEAD` tells of the commit
    /// before anybody else does. It writes about so many bytes.
    pub(super) fn change<T>(
        &mut self,
        bytes: usize,
        work: impl FnOnce(&Connection, LogState) -> Result<(Option<LogState>, T), LogError>,
    ) -> Result<T, Failed> {
        let result = self.try_change(bytes, work);
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
        bytes: usize,
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
        self.checkpoints.count(bytes);
        self.state = next;
        self.head.send_if_modified(|head| std::mem::replace(head, next.head) != next.head);
        Ok(value)
    }

    /// A transaction that changes nothing of what the log says yet. It writes about so many bytes.
    pub(super) fn prepare(
        &mut self,
        bytes: usize,
        work: impl FnOnce(&Connection) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let doing = "beginning a transaction";
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).doing(doing)?;
        work(&transaction)?;
        transaction.commit().doing("committing")?;
        self.checkpoints.count(bytes);
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), LogError> {
        match self.checkpoints.due()? {
            Due::Nothing => Ok(()),
            Due::Begin => {
                self.side.sync()?;
                self.checkpoints.begin();
                Ok(())
            }
            Due::Finish => self.checkpoints.finish(&self.connection),
        }
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.files.check()?;
        self.side.sync()
    }

    pub(super) fn sync_side(&self) -> Result<(), LogError> {
        self.side.sync()
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn state(&self) -> &LogState {
        &self.state
    }
}
