//! The memory engine: the obligations without a disk.
//!
//! [`Memory`] is the log itself, plain and single-threaded. [`MemoryLog`] makes it a [`Log`] that several clients
//! share, and does on demand everything that can go wrong with a real one ([`AppendFault`]). Without faults it is
//! a fast log that forgets everything when the process ends.

mod faults;
mod rules;

pub use faults::{AppendFault, Rival};
pub use rules::Memory;

use crate::{Append, Log, LogError, Read, Snapshot, Usage};
use async_trait::async_trait;
use faults::Plan;
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// A log in memory. A clone is another client of the same log.
#[derive(Clone, Default)]
pub struct MemoryLog {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Mutex<Inner>,
    head: watch::Sender<Position>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { inner: Mutex::default(), head: watch::channel(Position(0)).0 }
    }
}

#[derive(Default)]
struct Inner {
    memory: Memory,
    plan: Plan,
}

impl MemoryLog {
    /// An empty log without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A log that starts from what `memory` holds.
    pub fn of(memory: Memory) -> Self {
        let log = Self::new();
        log.shared.head.send_replace(memory.head().position);
        log.inner().memory = memory;
        log
    }

    /// A copy of what the log holds now; faults and late copies stay behind.
    pub fn contents(&self) -> Memory {
        self.inner().memory.clone()
    }

    /// Plans the outcome of an append to come: the first planned is for the next append, and so on. Appends
    /// beyond the plan go well.
    pub fn plan_append(&self, fault: AppendFault) {
        self.inner().plan.appends.push_back(fault);
    }

    /// The next call that reads (`head`, `read`, `latest_snapshot`, `snapshot_before`, `usage`)
    /// fails so.
    pub fn plan_read_error(&self, error: LogError) {
        self.inner().plan.reads.push_back(error);
    }

    /// The next call that writes other than by append (`save_snapshot`, `trim`, `flush`) fails so, and does nothing.
    pub fn plan_write_error(&self, error: LogError) {
        self.inner().plan.writes.push_back(error);
    }

    /// Every late copy that is still under way arrives now, each compared with the head as it then is. Returns
    /// how many landed.
    pub fn deliver_late(&self) -> usize {
        let mut inner = self.inner();
        let Inner { memory, plan } = &mut *inner;
        let landed = plan.deliver_all(memory);
        self.publish(&inner);
        landed
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().expect("no thread panicked while it held the memory log")
    }

    /// Wakes who waits, still under the lock, so that positions are published in order.
    fn publish(&self, inner: &Inner) {
        let position = inner.memory.head().position;
        self.shared.head.send_if_modified(|seen| std::mem::replace(seen, position) != position);
    }

    fn reading(&self) -> Result<MutexGuard<'_, Inner>, LogError> {
        let mut inner = self.inner();
        inner.plan.reads.pop_front().map_or(Ok(inner), Err)
    }

    fn writing(&self) -> Result<MutexGuard<'_, Inner>, LogError> {
        let mut inner = self.inner();
        inner.plan.writes.pop_front().map_or(Ok(inner), Err)
    }
}

#[async_trait]
impl Log for MemoryLog {
    async fn head(&self) -> Result<Head, LogError> {
        Ok(self.reading()?.memory.head())
    }

    async fn append(&self, expected: Head, entry: SealedEntry) -> Append {
        let mut inner = self.inner();
        let Inner { memory, plan } = &mut *inner;
        let result = plan.append(memory, expected, entry);
        self.publish(&inner);
        result
    }

    async fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        Ok(self.reading()?.memory.read(from, bytes_max))
    }

    async fn wait_past(&self, position: Position) {
        // The sender lives in `self`, so the wait cannot end for want of one.
        let _ = self.shared.head.subscribe().wait_for(|head| *head > position).await;
    }

    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<(), LogError> {
        self.writing()?.memory.save_snapshot(snapshot)
    }

    async fn latest_snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        Ok(self.reading()?.memory.latest_snapshot().cloned())
    }

    async fn snapshot_before(&self, position: Position) -> Result<Option<Snapshot>, LogError> {
        Ok(self.reading()?.memory.snapshot_before(position).cloned())
    }

    async fn trim(&self, up_to: Position) -> Result<Position, LogError> {
        Ok(self.writing()?.memory.trim(up_to))
    }

    async fn flush(&self) -> Result<(), LogError> {
        self.writing().map(drop)
    }

    async fn usage(&self) -> Result<Usage, LogError> {
        Ok(self.reading()?.memory.usage())
    }
}
