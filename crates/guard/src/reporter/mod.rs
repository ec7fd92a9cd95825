//! Reports to the service: *I check*, and *I refused this*. They never block or fail what is guarded.

mod queue;

use crate::Refused;
use queue::{Next, Queue, Report};
use sereno_client::Client;
use std::{
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Builder,
    sync::{Notify, watch},
};

/// Between two reports, whatever their keys: a storm of refusals is a trickle at the service.
const BETWEEN: Duration = Duration::from_millis(50);
/// After a report that did not arrive.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long the last handle's end leaves for what is still to be told.
const LINGER: Duration = Duration::from_secs(5);
/// As the service takes it.
const NAME_BYTES_MAX: usize = 128;

/// Sends reports in the background. Cheap to clone; one per guard is right.
///
/// Of each fence key it sends at most one report a second, with the latest refusal; that a guard checks is told once
/// for each namespace and family, and again with the next occasion if the service did not take it. A refusal that it
/// does not take is counted and forgotten.
#[derive(Clone)]
pub struct Reporter {
    shared: Arc<Shared>,
    _alive: Arc<Alive>,
}

/// What became of the reports so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReporterCounts {
    /// Taken by the service.
    pub sent: u64,
    /// Not taken, or nobody answered.
    pub failed: u64,
    /// Not sent, for too many keys were waiting.
    pub dropped: u64,
}

struct Shared {
    queue: Mutex<Queue>,
    more: Notify,
    /// Whether nothing is waiting or on its way.
    idle: watch::Sender<bool>,
    sent: AtomicU64,
    failed: AtomicU64,
}

/// The last one of these ends the thread.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.queue().close(Instant::now() + LINGER);
        self.0.more.notify_one();
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic elsewhere does not make it wrong.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter {
    /// Reports to the service of `client` as the guard called `name`: 1 to 128 bytes, for people.
    ///
    /// # Errors
    /// A name that the service would not take, or no thread to be had.
    pub fn new(client: Client, name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            let rule = "a guard's name must have 1 to 128 bytes and no control characters";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, rule));
        }
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::default()),
            more: Notify::new(),
            idle: watch::Sender::new(true),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let (sending, name) = (shared.clone(), name.to_string());
        let thread = thread::Builder::new().name("sereno-reporter".into());
        thread.spawn(move || runtime.block_on(send_all(&sending, &client, &name)))?;
        let alive = Arc::new(Alive(shared.clone()));
        Ok(Self { shared, _alive: alive })
    }

    /// This guard checks the tokens of this key.
    pub fn checks(&self, fence_key: &str) {
        self.push(|queue| queue.checks(fence_key));
    }

    /// This was refused.
    pub fn refused(&self, refused: &Refused) {
        self.push(|queue| queue.refused(refused));
    }

    /// What became of the reports so far.
    pub fn counts(&self) -> ReporterCounts {
        ReporterCounts {
            sent: self.shared.sent.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
            dropped: self.shared.queue().dropped(),
        }
    }

    /// Returns when nothing is waiting or on its way. Give it a time-out: the service may be away.
    pub async fn settled(&self) {
        let _ = self.shared.idle.subscribe().wait_for(|&idle| idle).await;
    }

    fn push(&self, push: impl FnOnce(&mut Queue) -> bool) {
        let mut queue = self.shared.queue();
        if push(&mut queue) {
            // Under the queue's lock, as its counterpart: so it is never called idle with something in it.
            self.shared.idle.send_replace(false);
            self.shared.more.notify_one();
        }
    }
}

async fn send_all(shared: &Shared, client: &Client, name: &str) {
    loop {
        let next = {
            let mut queue = shared.queue();
            let next = queue.next(Instant::now());
            if matches!(next, Next::Nothing | Next::End) {
                shared.idle.send_replace(true);
            }
            next
        };
        match next {
            Next::Send(report) => {
                let taken = send(client, name, &report).await;
                if !taken {
                    shared.queue().not_taken(&report);
                }
                let count = if taken { &shared.sent } else { &shared.failed };
                count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(if taken { BETWEEN } else { AFTER_FAILURE }).await;
            }
            Next::At(then) => {
                let _ = tokio::time::timeout_at(then.into(), shared.more.notified()).await;
            }
            Next::Nothing => shared.more.notified().await,
            Next::End => return,
        }
    }
}

async fn send(client: &Client, name: &str, report: &Report) -> bool {
    let Report { key, refusal } = report;
    let token = refusal.map(|(token, _)| token);
    let highest = refusal.map(|(_, highest)| highest);
    client.report_guard(key, name, token, highest).await.is_ok()
}
