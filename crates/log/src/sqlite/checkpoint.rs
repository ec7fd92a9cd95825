//! Copies the WAL into log.db when it has grown, without stopping the writer.
//!
//! A thread with a connection of its own copies what is there while appends go on. When it is done, the writer
//! itself copies the little that came meanwhile; then all of the WAL is in log.db, and if nobody reads in it SQLite
//! begins it anew at the next write. Its file keeps its size: writing into existing blocks is faster than growing.
//!
//! SQLite syncs the WAL before it copies, and log.db before it begins the WAL anew: there is no moment with less
//! than one durable copy. The writer syncs `HEAD` first too: what was known before a checkpoint is missed after it.

use super::{database, failure::Doing};
use crate::LogError;
use rusqlite::Connection;
use std::{
    path::Path,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread::JoinHandle,
};

/// What a page of the WAL carries of a large value, about.
const PAGE_BYTES: usize = 4_084;

pub(super) struct Checkpoints {
    /// Pages written to the WAL since all of it was in log.db, about.
    pages: usize,
    /// Copying begins at that many.
    begin_at: usize,
    pages_max: usize,
    copying: bool,
    /// `None` only while it is dropped.
    begin: Option<Sender<()>>,
    copied: Receiver<Result<(), LogError>>,
    thread: Option<JoinHandle<()>>,
}

/// What the writer has to do now.
pub(super) enum Due {
    Nothing,
    /// Sync `HEAD`, then [`Checkpoints::begin`].
    Begin,
    /// [`Checkpoints::finish`].
    Finish,
}

impl Checkpoints {
    pub(super) fn start(dir: &Path, checkpoint_bytes: u64) -> Result<Self, LogError> {
        let connection = database::open_writer(dir)?;
        let (begin, begun) = channel();
        let (done, copied) = channel();
        let run = move || {
            for () in begun {
                let result = copy(&connection).map(|_| ());
                if done.send(result).is_err() {
                    break; // The writer has gone.
                }
            }
        };
        let thread = std::thread::Builder::new().name("log-checkpoints".into()).spawn(run);
        let thread = thread
            .map_err(|error| LogError::Storage(format!("starting log-checkpoints: {error}")))?;
        let pages = usize::try_from(checkpoint_bytes).unwrap_or(usize::MAX) / PAGE_BYTES;
        Ok(Self {
            pages: 0,
            begin_at: pages,
            pages_max: pages,
            copying: false,
            begin: Some(begin),
            copied,
            thread: Some(thread),
        })
    }

    /// Counts a commit that wrote a value of so many bytes: its pages, its leaf, the state, and one more.
    pub(super) fn count(&mut self, bytes: usize) {
        self.pages += bytes / PAGE_BYTES + 3;
    }

    /// Asked after each step of the writer. An error of the copying thread comes out here.
    pub(super) fn due(&mut self) -> Result<Due, LogError> {
        if self.copying {
            return match self.copied.try_recv() {
                Ok(result) => {
                    self.copying = false;
                    result.map(|()| Due::Finish)
                }
                Err(TryRecvError::Empty) => Ok(Due::Nothing),
                Err(TryRecvError::Disconnected) => {
                    Err(LogError::Storage("the checkpoint thread of the log has ended".into()))
                }
            };
        }
        Ok(if self.pages >= self.begin_at { Due::Begin } else { Due::Nothing })
    }

    /// The thread begins to copy.
    pub(super) fn begin(&mut self) {
        let begin = self.begin.as_ref().expect("checkpoints are made until they are dropped");
        // If the thread has ended, `due` says so.
        let _ = begin.send(());
        self.copying = true;
    }

    /// Copies the rest over the writer's connection.
    pub(super) fn finish(&mut self, writer: &Connection) -> Result<(), LogError> {
        self.pages = copy(writer)?;
        // A reader may be in the way: the rest is tried again when it has grown by a quarter.
        self.begin_at = self.pages_max.max(self.pages + self.pages_max / 4);
        Ok(())
    }
}

impl Drop for Checkpoints {
    /// Waits for the thread: the connection must be closed before the folder's lock is given back.
    fn drop(&mut self) {
        self.begin = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was a broken invariant and has been printed.
            let _ = thread.join();
        }
    }
}

/// Copies what can be copied without waiting for anybody, and returns the pages that are left.
fn copy(connection: &Connection) -> Result<usize, LogError> {
    let pages = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (in_wal, copied) =
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages).doing("checkpointing")?;
    Ok(usize::try_from(in_wal - copied).unwrap_or(0))
}
