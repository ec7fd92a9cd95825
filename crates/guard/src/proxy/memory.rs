//! The proxy's memory: the highest token of each key, and the writes in flight. One process's alone, and durable.
//!
//! SQLite, written by one thread: everything that is asked while it commits goes into the next commit together.

use crate::{Fence, Refused};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use sereno_client::Moment;
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{oneshot, watch};

const LOCK_FILE: &str = "sereno-guard.lock";
const DATABASE: &str = "fence.db";
const SCHEMA_VERSION: i64 = 1;
/// Of a memory of this kind: "SrGd" in ASCII.
const APPLICATION_ID: i64 = 0x5372_4764;
/// Questions that one commit answers.
const BATCH_MAX: usize = 512;
const SCHEMA: &str = "
    CREATE TABLE fences (key TEXT PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE in_flight (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL, token INTEGER NOT NULL, begun_unix_ms INTEGER NOT NULL,
        orphaned_boot TEXT, orphaned_ms INTEGER
    );";

/// Why there is no memory.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Another process has it.
    #[error("another process uses the folder {0}: one proxy at a time")]
    InUse(String),
    /// It is not what was written, or of another version.
    #[error("{0}")]
    Refused(String),
    /// The system's answer.
    #[error("{doing}: {error}")]
    Io {
        /// What was being done.
        doing: String,
        /// The answer.
        #[source]
        error: io::Error,
    },
    /// SQLite's answer.
    #[error("the memory: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// The memory does not answer any more: nothing may be forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryLost;

/// A write that an earlier process has begun, and whose answer it did not live to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) id: u64,
    pub(super) fence: Fence,
    /// When it was first found without its process: it was sent before. The moment at which it was begun would not do,
    /// for the process may have been stopped for any time between writing that down and sending.
    pub(super) orphaned: Moment,
}

enum Ask {
    Begin { id: u64, fence: Fence, answer: oneshot::Sender<Result<(), Refused>> },
    End { id: u64 },
}

/// The open memory.
pub(super) struct Memory {
    asks: Sender<Ask>,
    failure: watch::Receiver<Option<String>>,
}

impl Memory {
    /// Opens the folder, which is made where it is missing, and reads what an earlier process has left in flight.
    pub(super) fn open(folder: &Path) -> Result<(Self, Vec<Leftover>), MemoryError> {
        let lock = take_lock(folder)?;
        let connection = open_database(&folder.join(DATABASE))?;
        let leftovers = leftovers(&connection, &boot_id(), Moment::now())?;
        let (asks, asked) = channel();
        let (failed, failure) = watch::channel(None);
        let run = move || {
            let mut writer = Writer { connection, _lock: lock };
            if let Err(error) = writer.serve(&asked) {
                failed.send_replace(Some(error.to_string()));
            }
        };
        let thread = thread::Builder::new().name("sereno-fence-memory".into());
        let started = thread.spawn(run);
        started.map_err(|error| MemoryError::Io { doing: "starting a thread".into(), error })?;
        Ok((Self { asks, failure }, leftovers))
    }

    /// Makes it durable that this write is in flight and its token the highest; or says that a higher one is.
    pub(super) async fn begin(
        &self,
        id: u64,
        fence: &Fence,
    ) -> Result<Result<(), Refused>, MemoryLost> {
        let (answer, answered) = oneshot::channel();
        let ask = Ask::Begin { id, fence: fence.clone(), answer };
        self.asks.send(ask).map_err(|_| MemoryLost)?;
        answered.await.map_err(|_| MemoryLost)
    }

    /// This write has finished. Nobody waits for this to be durable: after a crash it would count a little longer.
    pub(super) fn end(&self, id: u64) {
        // A memory that is lost is told of elsewhere.
        let _ = self.asks.send(Ask::End { id });
    }

    /// Why it does not answer any more, as soon as that is so.
    pub(super) fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.clone()
    }
}

/// The thread's side.
struct Writer {
    connection: Connection,
    _lock: File,
}

impl Writer {
    /// Until nobody asks any more, or the first failure: what is not certainly written must not be relied on.
    fn serve(&mut self, asked: &Receiver<Ask>) -> Result<(), rusqlite::Error> {
        while let Ok(first) = asked.recv() {
            let mut batch = vec![first];
            batch.extend(asked.try_iter().take(BATCH_MAX - 1));
            let mut answers = Vec::new();
            let transaction = self.connection.transaction()?;
            for ask in batch {
                match ask {
                    Ask::End { id } => {
                        let mut delete =
                            transaction.prepare_cached("DELETE FROM in_flight WHERE id = ?1")?;
                        delete.execute([id.cast_signed()])?;
                    }
                    Ask::Begin { id, fence, answer } => {
                        let begun = begin(&transaction, id, &fence)?;
                        answers.push((answer, begun));
                    }
                }
            }
            transaction.commit()?;
            for (answer, begun) in answers {
                // Whoever asked may have gone; its `end` follows.
                let _ = answer.send(begun);
            }
        }
        Ok(())
    }
}

fn begin(
    transaction: &Transaction<'_>,
    id: u64,
    fence: &Fence,
) -> Result<Result<(), Refused>, rusqlite::Error> {
    let mut highest = transaction.prepare_cached("SELECT token FROM fences WHERE key = ?1")?;
    let highest: Option<i64> = highest.query_row([fence.key()], |row| row.get(0)).optional()?;
    let highest = highest.map_or(0, i64::cast_unsigned);
    if highest > fence.token() {
        return Ok(Err(fence.refused(highest)));
    }
    let (key, token) = (fence.key(), fence.token().cast_signed());
    if highest < fence.token() {
        let mut raise = transaction
            .prepare_cached("INSERT OR REPLACE INTO fences (key, token) VALUES (?1, ?2)")?;
        raise.execute(params![key, token])?;
    }
    // The time is for people; nothing is reckoned from it.
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut insert =
        transaction.prepare_cached("INSERT INTO in_flight VALUES (?1, ?2, ?3, ?4, NULL, NULL)")?;
    insert.execute(params![id.cast_signed(), key, token, millis(begun)])?;
    Ok(Ok(()))
}

/// What is in flight without its process. From its first such moment on it is known that nothing more is sent, so
/// that one is kept, however often the process is started again.
fn leftovers(
    connection: &Connection,
    boot: &str,
    now: Moment,
) -> Result<Vec<Leftover>, MemoryError> {
    // Moments of another start of the machine cannot be compared with those of this one.
    connection.execute(
        "UPDATE in_flight SET orphaned_boot = ?1, orphaned_ms = ?2
         WHERE orphaned_boot IS NULL OR orphaned_boot <> ?1 OR orphaned_ms > ?2",
        params![boot, millis(now.since_boot())],
    )?;
    let mut all =
        connection.prepare("SELECT id, key, token, orphaned_ms FROM in_flight ORDER BY id")?;
    let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let mut found = Vec::new();
    for row in rows {
        let (id, key, token, orphaned): (i64, String, i64, i64) = row?;
        let fence = Fence::new(key, token.cast_unsigned())
            .map_err(|error| MemoryError::Refused(format!("the memory is damaged: {error}")))?;
        let orphaned = Moment::from_boot(Duration::from_millis(orphaned.cast_unsigned()));
        found.push(Leftover { id: id.cast_unsigned(), fence, orphaned });
    }
    Ok(found)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Which start of the machine this is. Where it cannot be told each process counts as another.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| format!("unknown, process {}", std::process::id()), |id| id.trim().into())
}

fn take_lock(folder: &Path) -> Result<File, MemoryError> {
    let io = |doing: &str| {
        let doing = format!("{doing} {}", folder.display());
        move |error| MemoryError::Io { doing, error }
    };
    if !folder.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(io("making the folder"))?;
        if let Some(parent) = folder.canonicalize().ok().as_deref().and_then(Path::parent) {
            File::open(parent).and_then(|it| it.sync_all()).map_err(io("syncing the folder of"))?;
        }
    }
    let path = folder.join(LOCK_FILE);
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = opened.map_err(io("opening the lock of"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(MemoryError::InUse(folder.display().to_string())),
        Err(TryLockError::Error(error)) => Err(io("locking")(error)),
    }
}

fn open_database(path: &Path) -> Result<Connection, MemoryError> {
    let mut connection = Connection::open(path)?;
    // Each commit is on disk before it is answered.
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(MemoryError::Refused(format!(
            "SQLite cannot use its WAL in {}",
            path.display()
        )));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    match (number("application_id")?, number("user_version")?) {
        (0, 0) => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            transaction.commit()?;
        }
        (APPLICATION_ID, SCHEMA_VERSION) => {}
        (id, version) => {
            let what =
                format!("{} is no memory of this version ({id:#x}, {version})", path.display());
            return Err(MemoryError::Refused(what));
        }
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(key: &str, token: u64) -> Fence {
        Fence::new(key, token).unwrap()
    }

    async fn begin(memory: &Memory, id: u64, fence: &Fence) -> Result<(), u64> {
        memory.begin(id, fence).await.unwrap().map_err(|refused| refused.highest)
    }

    /// Waits until its thread has let the folder go.
    fn reopen(folder: &Path) -> (Memory, Vec<Leftover>) {
        loop {
            match Memory::open(folder) {
                Err(MemoryError::InUse(_)) => thread::yield_now(),
                other => return other.unwrap(),
            }
        }
    }

    #[tokio::test]
    async fn it_remembers_tokens_and_what_is_in_flight() {
        let folder = tempfile::tempdir().unwrap();
        let (memory, leftovers) = Memory::open(folder.path()).unwrap();
        assert_eq!(leftovers, []);
        assert_eq!(begin(&memory, 1, &fence("a", 5)).await, Ok(()));
        assert_eq!(begin(&memory, 2, &fence("a", 7)).await, Ok(()));
        assert_eq!(begin(&memory, 3, &fence("a", 7)).await, Ok(()), "an equal one");
        assert_eq!(begin(&memory, 4, &fence("a", 6)).await, Err(7));
        assert_eq!(begin(&memory, 5, &fence("b", 1)).await, Ok(()), "another key");
        memory.end(1);
        memory.end(3);
        assert_eq!(begin(&memory, 6, &fence("b", 1)).await, Ok(()), "the ends are written by now");
        drop(memory);

        let (memory, leftovers) = reopen(folder.path());
        let ids: Vec<_> = leftovers.iter().map(|it| (it.id, it.fence.token())).collect();
        assert_eq!(ids, [(2, 7), (5, 1), (6, 1)]);
        assert!(leftovers.iter().all(|it| it.orphaned <= Moment::now()));
        assert_eq!(begin(&memory, 7, &fence("a", 6)).await, Err(7));
    }

    #[tokio::test]
    async fn an_orphan_counts_from_when_it_was_first_found() {
        let folder = tempfile::tempdir().unwrap();
        let (memory, _) = Memory::open(folder.path()).unwrap();
        begin(&memory, 1, &fence("a", 5)).await.unwrap();
        drop(memory);
        let (memory, first) = reopen(folder.path());
        drop(memory);
        let (memory, second) = reopen(folder.path());
        assert_eq!(first, second, "a second start does not make it younger");
        drop(memory);
        let connection = Connection::open(folder.path().join(DATABASE)).unwrap();
        connection
            .execute("UPDATE in_flight SET orphaned_boot = 'earlier', orphaned_ms = 1", [])
            .unwrap();
        let (_memory, third) = reopen(folder.path());
        assert!(
            third[0].orphaned >= first[0].orphaned,
            "another start of the machine says nothing"
        );
    }

    #[test]
    fn one_process_has_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let _memory = Memory::open(folder.path()).unwrap();
        let error = Memory::open(folder.path()).err().unwrap();
        assert!(matches!(error, MemoryError::InUse(_)), "{error}");
    }

    #[test]
    fn something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let other = Connection::open(folder.path().join(DATABASE)).unwrap();
        other.pragma_update(None, "user_version", 7).unwrap();
        drop(other);
        let error = Memory::open(folder.path()).err().unwrap();
        assert!(matches!(error, MemoryError::Refused(_)), "{error}");
        fs::write(folder.path().join(DATABASE), "no database at all, but long enough to be one")
            .unwrap();
        assert!(matches!(Memory::open(folder.path()).err().unwrap(), MemoryError::Sqlite(_)));
    }
}
