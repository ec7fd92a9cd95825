//! New logs: empty ones, and ones that start from a snapshot.
//!
//! The order makes every cut recoverable: first log.db with schema and state, in one transaction, then `HEAD`.
//! Until `HEAD` is sound the log has never been used (its count of changes is 0), so a creation that was cut is
//! simply finished. A restore that was cut must not end up as an empty log: its mark is the first file in the
//! folder and goes last.

use super::{
    database,
    failure::{self, Doing},
    folder::{self, FolderLock, RESTORING_FILE},
    side::{Mark, SideFile},
    snapshots::Stored,
    state::LogState,
    tasks::CHUNK_BYTES,
};
use crate::{LogError, Snapshot};
use rusqlite::TransactionBehavior;
use std::path::Path;

/// Creates log.db and `HEAD` in a locked folder.
pub(super) fn create(
    dir: &Path,
    state: LogState,
    snapshot: Option<&Snapshot>,
) -> Result<(), LogError> {
    let doing = "creating log.db";
    // SQLite would make it readable for others; its -wal and -shm take their modes from it. Closed again before
    // there is a connection.
    let path = dir.join(database::FILE);
    let file = folder::private_file().create(true).truncate(false).open(path);
    drop(file.map_err(|error| failure::io(doing, &error))?);
    let mut connection = database::open_writer(dir)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).doing(doing)?;
    let mut state = state;
    database::create_schema(&transaction, &state)?;
    if let Some(snapshot) = snapshot {
        let stored = Stored::of(1, snapshot, CHUNK_BYTES);
        for (number, bytes) in snapshot.bytes.chunks(CHUNK_BYTES).enumerate() {
            stored.insert_chunk(&transaction, number as u64, bytes)?;
        }
        state = stored.publish(&transaction, state)?;
        state.store(&transaction)?;
    }
    transaction.commit().doing(doing)?;
    folder::sync(dir)?;
    SideFile::create(dir, &Mark::of(&state))
}

/// Creates a log that starts after `snapshot`, in an empty or missing folder. For `sereno restore`.
///
/// Its head is the snapshot's, and it reads from the next position on.
pub fn create_from_snapshot(dir: &Path, snapshot: &Snapshot) -> Result<(), LogError> {
    let lock = FolderLock::take(dir)?;
    folder::refuse_non_empty(dir)?;
    if snapshot.head.position.0 == 0 {
        return Err(LogError::Refused("an empty log cannot be restored: just start one".into()));
    }
    let mark = dir.join(RESTORING_FILE);
    let marked = folder::private_file().create(true).truncate(false).open(&mark);
    marked.map_err(|error| failure::io("marking the restore", &error))?;
    folder::sync(dir)?;
    let first = snapshot.head.position.next();
    let state = LogState { head: snapshot.head, first, ..LogState::NEW };
    create(dir, state, Some(snapshot))?;
    std::fs::remove_file(&mark).map_err(|error| failure::io("ending the restore", &error))?;
    folder::sync(dir)?;
    drop(lock);
    Ok(())
}
