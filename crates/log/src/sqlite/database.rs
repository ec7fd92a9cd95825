//! `log.db`: its schema, and connections to it.
//!
//! Three things here keep SQLite from doing harm in a good cause. No connection checkpoints or deletes the WAL
//! when it closes: after a refused open of a damaged log the evidence is still there. Nothing checkpoints by
//! itself while it runs: see [`super::checkpoint`]. And nobody opens `log.db` other than through SQLite: closing any
//! other descriptor of it would drop the locks that this process holds on it.

use super::{failure::Doing, state::LogState};
use crate::LogError;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{path::Path, time::Duration};

/// The file's name in the data folder.
pub(super) const FILE: &str = "log.db";
/// Marks the file as Sereno's ("Srno").
pub(super) const APPLICATION_ID: i64 = 0x5372_6e6f;
/// Of this schema; a file with another one is refused.
pub(super) const SCHEMA_VERSION: i64 = 1;

/// `chunks.key` is the snapshot's id shifted by [`CHUNK_BITS`], plus the chunk's number: one tree, no index.
const SCHEMA: &str = "
    CREATE TABLE state (id INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT;
    CREATE TABLE entries (position INTEGER PRIMARY KEY, head BLOB NOT NULL, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE snapshots (id INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT;
    CREATE TABLE chunks (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
";

/// Room for the numbers of one snapshot's chunks.
pub(super) const CHUNK_BITS: u32 = 20;

/// The connection that writes; creates the file where `create` says so.
pub(super) fn open_writer(dir: &Path, create: bool) -> Result<Connection, LogError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = connect(dir, flags)?;
    let doing = "setting up log.db";
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).doing(doing)?;
    if mode != "wal" {
        return Err(LogError::Storage(format!("log.db cannot be put into WAL mode, only {mode}")));
    }
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")
        .doing(doing)?;
    let synchronous: i64 =
        connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).doing(doing)?;
    assert_eq!(synchronous, 2, "acknowledged means fsynced: SQLite must run with synchronous=FULL");
    Ok(connection)
}

/// A connection that cannot write.
pub(super) fn open_reader(dir: &Path) -> Result<Connection, LogError> {
    connect(dir, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn connect(dir: &Path, flags: OpenFlags) -> Result<Connection, LogError> {
    let path = dir.join(FILE);
    let doing = format!("opening {}", path.display());
    let connection = Connection::open_with_flags(&path, flags).doing(&doing)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).doing(&doing)?;
    connection.busy_timeout(Duration::from_secs(2)).doing(&doing)?;
    Ok(connection)
}

/// True if a creation was cut before the schema was there.
pub(super) fn is_blank(connection: &Connection) -> Result<bool, LogError> {
    let objects: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .doing("reading the schema of log.db")?;
    Ok(objects == 0)
}

/// Schema and first state, part of the current transaction.
pub(super) fn create_schema(connection: &Connection, state: &LogState) -> Result<(), LogError> {
    let doing = "creating the schema of log.db";
    connection.execute_batch(SCHEMA).doing(doing)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID).doing(doing)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION).doing(doing)?;
    connection
        .execute("INSERT INTO state (id, record) VALUES (0, x'')", [])
        .doing("creating the log's state")?;
    state.store(connection)
}

/// A number that a pragma gives.
pub(super) fn pragma(connection: &Connection, name: &str) -> Result<i64, LogError> {
    connection
        .pragma_query_value(None, name, |row| row.get(0))
        .doing(&format!("reading PRAGMA {name}"))
}
