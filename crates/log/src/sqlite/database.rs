//! `log.db`: its schema, and connections to it.
//!
//! Three things here keep SQLite from doing harm in a good cause. No connection checkpoints or deletes the WAL
//! when it closes: after a refused open of a damaged log the evidence is still there. Nothing checkpoints by
//! itself while it runs: see [`super::checkpoint`]. And nobody opens `log.db` other than through SQLite: closing any
//! other descriptor of it would drop the locks that this process holds on it.

use super::{failure::Doing, state::LogState};
use crate::LogError;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{io::Read, os::unix::ffi::OsStrExt, path::Path, time::Duration};

/// The file's name in the data folder.
pub(super) const FILE: &str = "log.db";
/// What is not yet in it.
pub(super) const WAL_FILE: &str = "log.db-wal";
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

/// The connection that writes. The file is there, if only an empty one.
pub(super) fn open_writer(dir: &Path) -> Result<Connection, LogError> {
    let connection =
        connect(dir, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX, None)?;
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

const READER: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// A connection that cannot write to the log, beside others. It shares their index of the WAL, `log.db-shm`, and
/// makes that file, or makes it anew, where it is the first one.
pub(super) fn open_reader(dir: &Path) -> Result<Connection, LogError> {
    connect(dir, READER, None)
}

/// A connection that changes no file at all, so that evidence stays as it is, and that works on a read-only file
/// system. Only for whoever holds the folder's lock, for it takes none of SQLite's: its index of the WAL is in its
/// own memory, which SQLite does for an exclusive connection, and the file system without locks gives it that.
pub(super) fn open_examiner(dir: &Path) -> Result<Connection, LogError> {
    if !super::folder::has_content(dir, WAL_FILE) {
        // SQLite would make one. Without it all that there is lies in log.db, and nobody changes that.
        let connection = connect(dir, READER | OpenFlags::SQLITE_OPEN_URI, Some("immutable=1"))?;
        mark_immutable(&connection, dir)?;
        return Ok(connection);
    }
    let connection = connect(dir, READER | OpenFlags::SQLITE_OPEN_URI, Some("vfs=unix-none"))?;
    let mode: String = connection
        .query_row("PRAGMA locking_mode = EXCLUSIVE", [], |row| row.get(0))
        .doing("setting up log.db")?;
    assert_eq!(mode, "exclusive", "else SQLite would want to share its index of the WAL");
    Ok(connection)
}

/// Where the file's header says in which mode it is written and read.
const HEADER_MODES: std::ops::Range<usize> = 18..20;
const WAL_MODES: [u8; 2] = [2, 2];

/// An immutable file is never in WAL mode for SQLite, so what its header says is put where
/// [`journal_mode`] finds it. Reads the file beside SQLite: this process has no locks on it.
fn mark_immutable(connection: &Connection, dir: &Path) -> Result<(), LogError> {
    let mut header = [0; HEADER_MODES.end];
    let read =
        std::fs::File::open(dir.join(FILE)).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(|error| super::failure::io("reading the header of log.db", &error))?;
    let mode = if header[HEADER_MODES] == WAL_MODES { "wal" } else { "delete" };
    let mark = format!(
        "PRAGMA temp_store = MEMORY; CREATE TEMP TABLE immutable AS SELECT '{mode}' AS mode"
    );
    connection.execute_batch(&mark).doing("setting up log.db")
}

/// The mode in which the file is written.
pub(super) fn journal_mode(connection: &Connection) -> Result<String, LogError> {
    let doing = "reading the journal mode of log.db";
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).doing(doing)?;
    if mode == "wal" {
        return Ok(mode);
    }
    let marked = connection.query_row("SELECT mode FROM temp.immutable", [], |row| row.get(0));
    Ok(marked.unwrap_or(mode))
}

/// `query`: parameters of SQLite's for a file named as a URI.
fn connect(dir: &Path, flags: OpenFlags, query: Option<&str>) -> Result<Connection, LogError> {
    let path = dir.join(FILE);
    let doing = format!("opening {}", path.display());
    let connection = match query {
        None => Connection::open_with_flags(&path, flags),
        Some(query) => Connection::open_with_flags(uri(&path, query), flags),
    };
    let connection = connection.doing(&doing)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).doing(&doing)?;
    connection.busy_timeout(Duration::from_secs(2)).doing(&doing)?;
    Ok(connection)
}

/// The path as a URI: every byte that could mean something there is escaped.
fn uri(path: &Path, query: &str) -> String {
    let mut uri = String::from("file:");
    // An absolute path needs an empty host before it, lest `//…` be taken for one.
    if path.is_absolute() {
        uri.push_str("//");
    }
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    format!("{uri}?{query}")
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
