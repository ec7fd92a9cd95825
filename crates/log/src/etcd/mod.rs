//! The distributed engine: etcd, for nodes in several zones.
//!
//! One transaction for each entry: it compares the head's *value* and puts head and slot, and where the compare
//! fails it brings back what it saw. etcd makes it durable on a majority of its members before it answers. What is
//! where: the module `keys`. What an error means: the module `failure`.
//!
//! Written for etcd 3.4 to 3.6, tested with Debian's 3.4. An append is never sent twice by itself: a request whose
//! outcome is unknown is told as unknown, and the next goes to another member.
//!
//! The store may be set back (restored from a backup, wiped): revisions of the store are then used again, so none
//! is ever compared to decide about an entry. Whoever appends with a head from before meets a conflict.

mod append;
mod cluster;
mod compaction;
mod create;
mod entries;
mod failure;
mod inspect;
mod keys;
mod options;
mod pointer;
mod presence;
mod snapshots;
mod status;
mod survey;
mod trim;
mod url;
mod watcher;

pub use create::create_from_snapshot;
pub use inspect::{EtcdReport, KeptSnapshot};
pub use options::{EtcdOptions, EtcdTls, EtcdUser};
pub use presence::EtcdPresence;
pub use status::{EtcdStatus, MemberHealth, MemberStatus};
pub use url::{EtcdUrl, UrlError};

use crate::{Append, Log, LogError, Read, Snapshot, Usage};
use async_trait::async_trait;
use cluster::Cluster;
use keys::Keys;
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicI64, AtomicUsize},
};
use tokio::{
    sync::{Mutex, watch},
    task::AbortHandle,
};

/// A log in etcd. Many may be open at the same time, in this process and in others.
pub struct EtcdLog {
    shared: Arc<Shared>,
    /// They end with the log.
    tasks: Vec<AbortHandle>,
}

struct Shared {
    cluster: Cluster,
    keys: Keys,
    snapshot_bytes_per_second: u64,
    /// Where the head was seen last.
    hint: watch::Sender<Position>,
    /// The store's revision at the last own append; 0 before the first.
    revision: AtomicI64,
    /// How large entries were lately, to ask for as many as fit.
    entry_bytes: AtomicUsize,
    saving: Mutex<()>,
    compaction_error: std::sync::Mutex<Option<String>>,
    /// The first damage that an append met: it has no way of its own to tell.
    damage: OnceLock<LogError>,
}

/// Opens the log, which need not have entries yet. Says no where no member can be reached, or etcd does not let
/// this user in. Needs a tokio runtime with I/O and time.
pub async fn open(url: &EtcdUrl, options: EtcdOptions) -> Result<EtcdLog, LogError> {
    let shared = Arc::new(Shared::new(url, &options));
    shared.head().await?;
    let mut tasks = vec![tokio::spawn(Arc::clone(&shared).watch_head()).abort_handle()];
    if options.compact {
        let compacting = Arc::clone(&shared).compact_now_and_then(options.history);
        tasks.push(tokio::spawn(compacting).abort_handle());
    }
    Ok(EtcdLog { shared, tasks })
}

impl Shared {
    fn new(url: &EtcdUrl, options: &EtcdOptions) -> Self {
        /// A guess, until some entries have been seen.
        const ENTRY_BYTES: usize = 64 << 10;
        Self {
            cluster: Cluster::new(url, options),
            keys: Keys::new(url.prefix()),
            snapshot_bytes_per_second: options.snapshot_bytes_per_second,
            hint: watch::channel(Position(0)).0,
            revision: AtomicI64::new(0),
            entry_bytes: AtomicUsize::new(ENTRY_BYTES),
            saving: Mutex::default(),
            compaction_error: std::sync::Mutex::default(),
            damage: OnceLock::new(),
        }
    }

    /// The next `flush` tells.
    fn note_damage(&self, damage: &LogError) {
        let _ = self.damage.set(damage.clone());
    }
}

impl Drop for EtcdLog {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

#[async_trait]
impl Log for EtcdLog {
    async fn head(&self) -> Result<Head, LogError> {
        self.shared.head().await
    }

    async fn append(&self, expected: Head, entry: SealedEntry) -> Append {
        self.shared.append(expected, entry).await
    }

    async fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        self.shared.read(from, bytes_max).await
    }

    /// Ends after half a second at the latest.
    async fn wait_past(&self, position: Position) {
        self.shared.wait_past(position).await;
    }

    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<(), LogError> {
        self.shared.save_snapshot(snapshot).await
    }

    async fn latest_snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        self.shared.snapshot_before(Position(u64::MAX)).await
    }

    async fn snapshot_before(&self, position: Position) -> Result<Option<Snapshot>, LogError> {
        self.shared.snapshot_before(position).await
    }

    async fn trim(&self, up_to: Position) -> Result<Position, LogError> {
        self.shared.trim(up_to).await
    }

    /// What is committed is durable: there is nothing to do but to tell of damage that an append has met.
    async fn flush(&self) -> Result<(), LogError> {
        self.shared.damage.get().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// Bytes: what is in use in etcd's database, other prefixes and history included; see [`EtcdLog::status`].
    async fn usage(&self) -> Result<Usage, LogError> {
        let log = self.shared.survey().await?;
        Ok(Usage {
            bytes: self.shared.db_used_bytes().await?,
            first: log.first,
            snapshot: log.pointer.map(|pointer| pointer.newest.head.position),
        })
    }
}
