//! The table of entries. Nothing leaves it whose bytes do not have their hash.

use super::{failure::Doing, state::LogState};
use crate::{LogError, Read, Slot, record};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use sereno_core::{
    entry::{EntryHash, SealedEntry},
    ids::Position,
};

const PURPOSE: &str = "sereno log entry";

/// A position as SQLite stores it. Positions beyond 2^63 are not reached in this universe's time.
pub(super) fn key(position: Position) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}

/// Part of the current transaction.
pub(super) fn insert(connection: &Connection, entry: &SealedEntry) -> Result<(), LogError> {
    let doing = "inserting an entry";
    let head = record::seal(PURPOSE, record::encode_head(&entry.head).to_vec());
    let mut insert = connection
        .prepare_cached("INSERT INTO entries (position, head, bytes) VALUES (?1, ?2, ?3)")
        .doing(doing)?;
    insert.execute((key(entry.head.position), head, &entry.bytes[..])).doing(doing)?;
    Ok(())
}

/// What stands at `position`, as the current transaction sees it.
pub(super) fn slot(
    connection: &Connection,
    state: &LogState,
    position: Position,
) -> Result<Slot, LogError> {
    if position > state.head.position {
        return Ok(Slot::Empty);
    }
    if position < state.first {
        return Ok(Slot::Trimmed);
    }
    let entry = load(connection, state, position)?.ok_or_else(|| missing(position))?;
    Ok(Slot::Entry(entry.head.hash))
}

/// The entry at `position`, verified.
pub(super) fn load(
    connection: &Connection,
    state: &LogState,
    position: Position,
) -> Result<Option<SealedEntry>, LogError> {
    let doing = "reading an entry";
    let mut select = connection
        .prepare_cached("SELECT position, head, bytes FROM entries WHERE position = ?1")
        .doing(doing)?;
    let row = select.query_row([key(position)], |row| Ok(from_row(row, state))).optional();
    row.doing(doing)?.transpose()
}

/// Calls `visit` with each row from `from` on, in the order of the table: its key, and the entry or what is wrong
/// with it; until there are no more or it says `false`.
pub(super) fn scan(
    connection: &Connection,
    state: &LogState,
    from: Position,
    mut visit: impl FnMut(i64, Result<SealedEntry, LogError>) -> Result<bool, LogError>,
) -> Result<(), LogError> {
    let doing = "reading entries";
    let mut select = connection
        .prepare_cached(
            "SELECT position, head, bytes FROM entries WHERE position >= ?1 ORDER BY position",
        )
        .doing(doing)?;
    let mut rows = select.query([key(from)]).doing(doing)?;
    while let Some(row) = rows.next().doing(doing)? {
        let position = row.get(0).doing(doing)?;
        if !visit(position, from_row(row, state))? {
            break;
        }
    }
    Ok(())
}

/// As [`crate::Log::read`] says, as the current transaction sees it, but nothing beyond `published`: a commit is
/// visible here a moment before `HEAD` tells of it.
pub(super) fn read(
    connection: &Connection,
    published: Position,
    from: Position,
    bytes_max: usize,
) -> Result<Read, LogError> {
    let state = LogState::load(connection)?;
    let end = state.head.position.min(published);
    if from < state.first {
        return Ok(Read::Trimmed { first: state.first });
    }
    let mut entries: Vec<SealedEntry> = Vec::new();
    let mut bytes = 0;
    let mut full = false;
    let mut expected = from;
    scan(connection, &state, from, |key, entry| {
        if expected > end {
            return Ok(false);
        }
        let entry = entry?;
        if entry.head.position != expected {
            return Err(misplaced(key));
        }
        bytes += entry.bytes.len();
        full = bytes > bytes_max && !entries.is_empty();
        if !full {
            expected = expected.next();
            entries.push(entry);
        }
        Ok(!full)
    })?;
    if !full && expected <= end {
        return Err(missing(expected));
    }
    Ok(Read::Entries(entries))
}

fn misplaced(key: i64) -> LogError {
    LogError::Damaged(format!("log.db, entry {key}: it stands after a gap"))
}

fn missing(position: Position) -> LogError {
    LogError::Damaged(format!("log.db, entry {position}: it is missing"))
}

/// The outer error is SQLite's, the inner one says that the row is not what was written.
fn from_row(row: &Row<'_>, state: &LogState) -> Result<SealedEntry, LogError> {
    let doing = "reading the columns of an entry";
    let position = row.get::<_, i64>(0).doing(doing)?;
    let damaged = |what: &str| LogError::Damaged(format!("log.db, entry {position}: {what}"));
    let head =
        row.get_ref(1).doing(doing)?.as_blob().map_err(|_| damaged("its head is no blob"))?;
    let bytes =
        row.get_ref(2).doing(doing)?.as_blob().map_err(|_| damaged("its bytes are no blob"))?;
    let head = record::unseal(PURPOSE, head)
        .and_then(|mut data| record::take_head(&mut data))
        .ok_or_else(|| damaged("the check of its head fails"))?;
    if key(head.position) != position {
        return Err(damaged(&format!("it says that it is entry {}", head.position)));
    }
    if head.log_id != state.head.log_id {
        return Err(damaged(&format!("it is of log {}", head.log_id)));
    }
    if EntryHash::of(bytes) != head.hash {
        return Err(damaged("its bytes do not have its hash"));
    }
    Ok(SealedEntry { head, bytes: Bytes::copy_from_slice(bytes) })
}
