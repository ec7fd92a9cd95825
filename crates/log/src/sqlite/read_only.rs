//! Reading a log without serving it: for `sereno backup` beside a running server, and for `sereno doctor`.

use super::{
    database, entries,
    examine::Open,
    failure::Doing,
    folder::{self, FolderLock},
    side, snapshots,
    state::LogState,
};
use crate::{LogError, Read, Snapshot};
use rusqlite::Connection;
use sereno_core::{entry::Head, ids::Position};
use std::path::Path;

/// A log as it was at one moment. While it lives the server's WAL grows instead of beginning anew, so drop it when
/// done. All its methods block.
pub struct ReadOnlyLog {
    /// In a reading transaction that began when it was opened.
    connection: Connection,
    state: LogState,
    /// Of an examination. Goes when the connection is closed.
    lock: Option<FolderLock>,
}

/// Opens the log in `dir` as it is now, whether or not a process serves it, and takes no lock: a service can start
/// meanwhile.
///
/// Refuses one that ends before what `HEAD` tells of; each entry and snapshot is verified as it is read, and
/// [`super::inspect`] looks at everything.
pub fn open_read_only(dir: &Path) -> Result<ReadOnlyLog, LogError> {
    open(dir, database::open_reader, None)
}

/// The same without changing any file, SQLite's own index included, and also on a read-only file system. As long as
/// it lives it holds the lock of a folder that nobody serves; one that is served is read like the service reads it.
pub fn open_for_examination(dir: &Path) -> Result<ReadOnlyLog, LogError> {
    match FolderLock::try_take_existing(dir)? {
        Some(lock) => open(dir, database::open_examiner, Some(lock)),
        None => open(dir, database::open_reader, None),
    }
}

fn open(dir: &Path, connect: Open, lock: Option<FolderLock>) -> Result<ReadOnlyLog, LogError> {
    if !folder::exists(dir, database::FILE) {
        return Err(LogError::Refused(format!("there is no log in {}", dir.display())));
    }
    folder::refuse_half_restored(dir)?;
    // Before log.db: a log that is being written is never behind it.
    let slots = side::read(dir)?;
    let newest = slots.as_ref().and_then(side::newest).map(|(_, mark)| mark);
    let connection = connect(dir)?;
    connection.execute_batch("BEGIN").doing("beginning to read")?;
    let state = LogState::load(&connection)?;
    match newest {
        None if state.changes > 0 => Err(LogError::Damaged(
            "HEAD: it is missing or no slot is sound, though the log has been used".into(),
        )),
        Some(mark) if mark.changes > state.changes => Err(LogError::Damaged(format!(
            "log.db: its end is missing: it stops at position {}, and HEAD tells of {}",
            state.head.position, mark.position
        ))),
        _ => Ok(ReadOnlyLog { connection, state, lock }),
    }
}

impl ReadOnlyLog {
    /// It was opened for an examination and nobody serves the folder: what else lies in it does not change either.
    pub fn is_alone(&self) -> bool {
        self.lock.is_some()
    }

    /// The head.
    pub fn head(&self) -> Head {
        self.state.head
    }

    /// First position that can be read.
    pub fn first(&self) -> Position {
        self.state.first
    }

    /// As [`crate::Log::read`] says.
    pub fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        entries::read(&self.connection, self.state.head.position, from, bytes_max)
    }

    /// Heads of the snapshots kept, oldest first.
    pub fn snapshots(&self) -> Result<Vec<Head>, LogError> {
        Ok(snapshots::list(&self.connection, &self.state)?
            .iter()
            .map(|stored| stored.head)
            .collect())
    }

    /// The snapshot of exactly this head.
    pub fn snapshot(&self, head: Head) -> Result<Option<Snapshot>, LogError> {
        let stored = snapshots::list(&self.connection, &self.state)?;
        let stored = stored.into_iter().find(|stored| stored.head == head);
        stored.map(|stored| stored.load(&self.connection)).transpose()
    }

    /// The newest snapshot.
    pub fn latest_snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        let newest = snapshots::list(&self.connection, &self.state)?.pop();
        newest.map(|stored| stored.load(&self.connection)).transpose()
    }
}
