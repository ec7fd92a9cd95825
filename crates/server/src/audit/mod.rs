//! The audit trail: who got which lock when, how each ownership ended, what operators did (DESIGN.md section 17).
//!
//! JSON lines in files of one folder. Each line carries the hash of the line before it, from file to file, so
//! that a line cannot be changed or taken out unseen. Lines are made from the log's events alone: after a crash
//! the node replays the log from its last snapshot, and what is already written is recognised by its position.
//! A snapshot waits until everything before it is on disk here, so nothing is ever missing; what is missing all
//! the same (somebody removed files) is said by a `gap` line.
//!
//! A thread of its own writes. If the disk fails, the process stops: without its trail the service does not go on.

mod books;
mod comparison;
mod files;
mod line;
mod quota;
mod reader;
mod recovery;
mod search;
mod verification;
mod walk;
mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use comparison::{Comparison, Expected, compare};
pub use verification::{Finding, Verdict, verify};

pub(crate) use search::Search;

use files::Files;
use reader::read;

use sereno_api::{AuditLine, LedgerPage};
use sereno_core::{
    entry::EntryHash,
    ids::{LogId, Position},
};
use sereno_node::events::{EventBatch, Sink};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};
use tokio::sync::oneshot;
use writer::{Message, Writer};

/// What to do when the trail cannot be written any more.
pub(crate) type OnFailure = Box<dyn FnOnce(String) + Send>;

/// Where the trail is kept, and how much of it.
#[derive(Clone, Debug)]
pub struct AuditConfig {
    /// The folder; made if it does not exist.
    pub folder: PathBuf,
    /// A file that has reached this size is closed and a new one begun.
    pub file_bytes: u64,
    /// The oldest files beyond this number are removed.
    pub files: usize,
}

/// Why the trail cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The disk says no.
    #[error("the audit trail in {folder}: {error}")]
    Storage {
        /// The folder.
        folder: String,
        /// What it said.
        error: std::io::Error,
    },
    /// What is stored is not what was written.
    #[error(
        "the audit trail is damaged: {0}. Nothing is written after a damaged line: keep the folder as evidence, \
         move it away, and start again; the new trail will say from where on it records"
    )]
    Damaged(Finding),
}

/// The trail, being written.
pub struct Audit {
    folder: PathBuf,
    messages: mpsc::Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
    queued: Arc<AtomicU64>,
    end: End,
    /// Position of the last entry that the trail was told of.
    told: AtomicU64,
}

/// Where nothing happens the trail says after so many entries up to where that is so: else a start could not tell
/// whether it has missed something.
const CHECKPOINT_ENTRIES: u64 = 256;

/// Where a trail ended when it was opened: what its node knew of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The log that it tells of; `None`: the trail is empty.
    pub(crate) log_id: Option<LogId>,
    /// Up to where.
    pub(crate) position: Position,
    /// The last entry that it names by its hash.
    pub(crate) entry: Option<(Position, EntryHash)>,
}

impl Audit {
    /// Opens the trail and finds where it ends. Events wait in memory until [`Self::begin`].
    ///
    /// # Errors
    /// When the folder cannot be used, or a line in it is damaged.
    pub(crate) fn open(
        config: AuditConfig,
        on_failure: OnFailure,
    ) -> Result<Arc<Self>, AuditError> {
        let folder = config.folder.clone();
        let storage = |error| AuditError::Storage { folder: folder.display().to_string(), error };
        let files = Files::open(config).map_err(storage)?;
        let tail = recovery::recover(&files)?;
        let end = End {
            log_id: tail.log_id,
            position: Position(tail.covered.position),
            entry: tail.entry,
        };
        let queued = Arc::new(AtomicU64::new(0));
        let writer = Writer::open(files, tail, Arc::clone(&queued)).map_err(storage)?;
        let (messages, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("sereno-audit".into())
            .spawn(move || writer.run(&inbox, on_failure))
            .map_err(storage)?;
        Ok(Arc::new(Self {
            folder,
            messages,
            thread: Mutex::new(Some(thread)),
            queued,
            end,
            told: AtomicU64::new(0),
        }))
    }

    /// Where it ended when it was opened.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Says which log the events are of, and after which position the node began to replay it.
    pub(crate) fn begin(&self, log_id: LogId, replayed_after: Position) {
        self.send(Message::Begin { log_id, replayed_after });
    }

    /// Entries that are still to be written.
    pub(crate) fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Lines from number `from` on, everything included that was applied before this call.
    pub(crate) async fn read(&self, from: u64, limit: usize) -> Result<Vec<AuditLine>, String> {
        self.look(move |folder| read(folder, from, limit)).await
    }

    /// Lines about quotas, everything included that was applied before this call.
    pub(crate) async fn search(&self, search: Search) -> Result<LedgerPage, String> {
        self.look(move |folder| search::search(folder, &search)).await
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Path) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (done, flushed) = oneshot::channel();
        self.send(Message::Flush(done));
        flushed.await.map_err(|_| "the audit trail has stopped".to_owned())?;
        let folder = self.folder.clone();
        let seen = tokio::task::spawn_blocking(move || look(&folder));
        seen.await.map_err(|error| error.to_string())?
    }

    /// Writes what is queued, makes it durable, and ends the thread. Nothing is taken afterwards.
    pub(crate) async fn stop(&self) {
        self.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let ended = tokio::task::spawn_blocking(move || thread.join());
            if !matches!(ended.await, Ok(Ok(()))) {
                tracing::error!("the audit thread ended badly");
            }
        }
    }

    /// The thread is gone only when the trail has failed or stopped; then the process is on its way out.
    fn send(&self, message: Message) {
        let _gone = self.messages.send(message).is_err();
    }
}

#[async_trait::async_trait]
impl Sink for Audit {
    fn applied(&self, batch: &Arc<EventBatch>) {
        let position = batch.position.0;
        // Heartbeats come here too, and need not wake the thread.
        let message = if batch.events.iter().any(line::is_audited) {
            self.queued.fetch_add(1, Ordering::Relaxed);
            Message::Applied(Arc::clone(batch))
        } else if position >= self.told.load(Ordering::Relaxed) + CHECKPOINT_ENTRIES {
            Message::Seen(batch.position)
        } else {
            return;
        };
        self.told.store(position, Ordering::Relaxed);
        self.send(message);
    }

    fn seen(&self, log_id: LogId) -> Option<Position> {
        (self.end.log_id == Some(log_id)).then_some(self.end.position)
    }

    fn jumped(&self, position: Position) {
        self.send(Message::Jumped(position));
    }

    async fn durable(&self, position: Position) -> Result<(), String> {
        let (done, durable) = oneshot::channel();
        self.send(Message::Durable(position, done));
        durable.await.map_err(|_| "the audit trail has stopped".to_owned())
    }
}

/// The folder of the trail inside a data folder, for tools that look at it offline.
pub fn folder_in(data: &Path) -> PathBuf {
    data.join("audit")
}
