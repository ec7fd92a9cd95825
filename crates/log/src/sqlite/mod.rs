//! The embedded engine: one machine, one folder, SQLite.
//!
//! ```text
//! log.db  log.db-wal  log.db-shm   SQLite: entries, snapshots, and the state (head, first position)
//! HEAD                             how far the log goes, which SQLite cannot tell: see the module `side`
//! sereno.lock                      locked by the process that serves the folder
//! ```
//!
//! A thread owns the connection that writes (module `writer`), two others read (module `reader`); the async methods of
//! [`SqliteLog`] only send to them.

mod checkpoint;
mod create;
mod database;
mod entries;
mod examine;
mod failure;
mod files;
mod folder;
mod inspect;
mod read_only;
mod reader;
mod side;
mod snapshots;
mod state;
mod tasks;
mod writer;

pub use create::create_from_snapshot;
pub use folder::FolderLock;
pub use inspect::{Finding, Report, Severity, SnapshotReport, inspect};
pub use read_only::{ReadOnlyLog, open_for_examination, open_read_only};

use crate::{Append, Log, LogError, Read, Snapshot, Usage};
use async_trait::async_trait;
use checkpoint::Checkpoints;
use reader::Reader;
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
};
use side::SideFile;
use state::LogState;
use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Sender, channel},
    thread::JoinHandle,
};
use tokio::sync::{oneshot, watch};
use writer::{Job, Stop, Writer};

/// What can be set of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The WAL is copied into the database when it has about that many bytes.
    pub checkpoint_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { checkpoint_bytes: 8 << 20 }
    }
}

/// A log in a folder. Dropping it waits until its threads have ended, and frees the folder.
pub struct SqliteLog {
    dir: PathBuf,
    head: watch::Receiver<Head>,
    stop: Stop,
    /// `None` only while it is dropped.
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    /// Entries; snapshots are large and have their own thread.
    entries: Reader,
    snapshots: Reader,
    /// Last: it goes when every connection is closed.
    _lock: FolderLock,
}

/// Opens the log in `dir`, or creates it in a missing or empty folder.
///
/// Verifies all of it first: every entry and snapshot against its hash, SQLite's own structure, and that nothing
/// is missing that `HEAD` tells of. [`LogError::Damaged`] lists what is wrong, and nothing has been changed then;
/// [`inspect`] tells more. [`LogError::InUse`]: another process serves the folder. Blocks.
pub fn open(dir: &Path, options: Options) -> Result<SqliteLog, LogError> {
    let lock = FolderLock::take(dir)?;
    folder::refuse_half_restored(dir)?;
    let state = examine::at_start(dir)?;
    let slots = side::read(dir)?.expect("a log that was found sound has its HEAD");
    let stop = Stop::default();
    let (head_sender, head) = watch::channel(state.head);
    let writer = Writer::start(
        database::open_writer(dir)?,
        SideFile::open(dir, &slots)?,
        state,
        Checkpoints::start(dir, options.checkpoint_bytes)?,
        head_sender,
        stop.clone(),
        dir,
    )?;
    let entries = Reader::start("log-entries", database::open_reader(dir)?, stop.clone())?;
    let snapshots = Reader::start("log-snapshots", database::open_reader(dir)?, stop.clone())?;
    let (jobs, asked) = channel();
    let run = move || writer.run(&asked);
    let thread = std::thread::Builder::new().name("log-writer".into()).spawn(run);
    let thread = thread.map_err(|error| failure::io("starting the log's writer", &error))?;
    Ok(SqliteLog {
        dir: dir.to_owned(),
        head,
        stop,
        jobs: Some(jobs),
        writer: Some(thread),
        entries,
        snapshots,
        _lock: lock,
    })
}

impl SqliteLog {
    /// The data folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, LogError>>) -> Job,
    ) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        let ended = || LogError::Storage("the log's writing thread has ended".into());
        self.send(job(reply)).map_err(|()| ended())?;
        answer.await.map_err(|_| ended())?
    }

    fn send(&self, job: Job) -> Result<(), ()> {
        self.jobs.as_ref().expect("a log answers until it is dropped").send(job).map_err(|_| ())
    }

    /// An error that stopped the engine, before anything is asked of it.
    fn working(&self) -> Result<(), LogError> {
        self.stop.error().map_or(Ok(()), Err)
    }
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.writer.take() {
            // A panic in there was a broken invariant and has been printed.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Log for SqliteLog {
    async fn head(&self) -> Result<Head, LogError> {
        self.working()?;
        Ok(*self.head.borrow())
    }

    async fn append(&self, expected: Head, entry: SealedEntry) -> Append {
        let (reply, answer) = oneshot::channel();
        if self.send(Job::Append { expected, entry, reply }).is_err() {
            // It may be one that was under way when the thread ended, sent again.
            return Append::Unknown("the log's writing thread has ended".into());
        }
        let lost = |_| Append::Unknown("the log's writing thread ended while it appended".into());
        answer.await.unwrap_or_else(lost)
    }

    async fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        let head = self.head.clone();
        let read = move |connection: &rusqlite::Connection| {
            let published = head.borrow().position;
            entries::read(connection, published, from, bytes_max)
        };
        self.entries.ask(read).await
    }

    async fn wait_past(&self, position: Position) {
        // An error means that the writer has ended: the next call will say so.
        let _ = self.head.clone().wait_for(|head| head.position > position).await;
    }

    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<(), LogError> {
        self.ask(|reply| Job::Save { snapshot, reply }).await
    }

    async fn latest_snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        let newest = |connection: &rusqlite::Connection| {
            let state = LogState::load(connection)?;
            let newest = snapshots::list(connection, &state)?.pop();
            newest.map(|stored| stored.load(connection)).transpose()
        };
        self.snapshots.ask(newest).await
    }

    async fn snapshot_before(&self, position: Position) -> Result<Option<Snapshot>, LogError> {
        let newest = move |connection: &rusqlite::Connection| {
            let state = LogState::load(connection)?;
            let mut stored = snapshots::list(connection, &state)?;
            stored.retain(|stored| stored.head.position <= position);
            stored.pop().map(|stored| stored.load(connection)).transpose()
        };
        self.snapshots.ask(newest).await
    }

    async fn trim(&self, up_to: Position) -> Result<Position, LogError> {
        self.ask(|reply| Job::Trim { up_to, reply }).await
    }

    async fn flush(&self) -> Result<(), LogError> {
        self.ask(|reply| Job::Flush { reply }).await
    }

    async fn usage(&self) -> Result<Usage, LogError> {
        let dir = self.dir.clone();
        let usage = move |connection: &rusqlite::Connection| {
            let size =
                |name: &str| std::fs::metadata(dir.join(name)).map_or(0, |metadata| metadata.len());
            let state = LogState::load(connection)?;
            let newest = snapshots::list(connection, &state)?.pop();
            Ok(Usage {
                bytes: size(database::FILE) + size(database::WAL_FILE),
                first: state.first,
                snapshot: newest.map(|stored| stored.head.position),
            })
        };
        self.entries.ask(usage).await
    }
}
