//! The tokio driver: carries out what the node says. The only place of this crate that knows a runtime, a clock,
//! or a source of randomness.

mod background;
mod link;
mod run;
mod secret;
mod seldom;

pub use link::{Accepted, Dial, Stream, accept_link};
pub use secret::Secret;

use crate::{
    clock::{Mono, Now},
    events::{EventHub, Sink},
    handle::NodeHandle,
    node::{LevelTooHigh, Node, Recovered, Rehearsal, Settings},
    replay::{self, ReplayError},
};
use run::Driver;
use seldom::Seldom;
use sereno_core::{
    State,
    entry::{Head, Writer},
    ids::{LogId, Position},
    names::RegionName,
};
use sereno_log::{Append, Log, LogError, presence::Presence};
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};

/// How often the log is read at the start if others trim it meanwhile.
const READ_ATTEMPTS: u32 = 5;

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node's id.
    pub node_id: String,
    /// Where it can be reached.
    pub address: String,
    /// Shortest TTL of a new log's namespaces that set none.
    pub min_ttl_ms: u64,
    /// A rehearsal and snapshot after this time,
    pub snapshot_interval: Duration,
    /// or after so many bytes of log.
    pub snapshot_bytes: u64,
    /// The highest level that this node understands: `sereno_core::LEVEL_MAX`, or less to behave as an older version would.
    pub level_max: u32,
    /// Where the service runs. `None`: what the log says stays.
    pub region: Option<RegionName>,
    /// What it needs where other nodes share the log; `None`: it is alone on it.
    pub shared: Option<Shared>,
}

/// How a node knows and reaches the others on its log.
#[derive(Clone)]
pub struct Shared {
    /// Their presence records.
    pub presence: Arc<dyn Presence>,
    /// The way to the leader.
    pub dial: Arc<dyn Dial>,
    /// What both ends of a link have to know.
    pub secret: Secret,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

/// Follows the node's work, for metrics. All methods but `rehearsed` are called on the node's own task: they must
/// be short.
pub trait Observer: Send + Sync + 'static {
    /// An entry of this node was committed, so long after it was sent.
    fn committed(&self, _took: Duration, _commands: usize, _bytes: usize) {}
    /// An entry of another node was applied.
    fn followed(&self, _commands: usize, _bytes: usize) {}
    /// This node leads, so long after the log last moved under another, or after the node started.
    fn leads(&self, _took: Duration) {}
    /// The log did not take an entry, or did not say.
    fn append_failed(&self, _result: &Append) {}
    /// A rehearsal has ended. Called on its thread.
    fn rehearsed(&self, _took: Duration, _rehearsal: &Rehearsal) {}
}

/// Observes nothing.
impl Observer for () {}

/// Why a node could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log cannot be read, or what it holds does not fit together.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The log has gone beyond what this node understands.
    #[error(transparent)]
    Level(#[from] LevelTooHigh),
}

impl From<LogError> for StartError {
    fn from(error: LogError) -> Self {
        Self::Replay(error.into())
    }
}

/// Reads the log, starts the node on the current runtime, and returns once its state is that of the head. It may
/// not lead yet: its status tells.
///
/// # Errors
/// When the log cannot be read whole: the node does not start on a part of it.
pub async fn start(
    log: Arc<dyn Log>,
    config: Config,
    sinks: Vec<Arc<dyn Sink>>,
    observer: Arc<dyn Observer>,
) -> Result<NodeHandle, StartError> {
    let mut attempt = 1;
    let (state, recovered, events) = loop {
        match read_state(&*log, &sinks).await {
            // Where nodes share a log, another may save a snapshot and trim while this one reads.
            Err(ReplayError::Gap { .. }) if config.shared.is_some() && attempt < READ_ATTEMPTS => {
                attempt += 1;
            }
            read => break read?,
        }
    };
    LevelTooHigh::check(&state, config.level_max)?;
    let Head { position, log_id, .. } = state.head();
    tracing::info!(position = position.0, log = %log_id, "state read from the log");

    let clock = Clock { start: Instant::now() };
    let settings = Settings {
        writer: Writer { node_id: config.node_id, start: rand::random() },
        address: config.address,
        new_log_id: LogId(rand::random()),
        min_ttl_ms: config.min_ttl_ms,
        snapshot_interval_ms: config.snapshot_interval.as_millis() as u64,
        snapshot_bytes: config.snapshot_bytes,
        is_shared: config.shared.is_some(),
        seed: rand::random(),
        level_max: config.level_max,
        new_log_level: config.level_max,
        region: config.region,
    };
    let node = Node::new(settings, state, recovered, clock.now());
    let (messages, inbox) = mpsc::unbounded_channel();
    let (background, from_background) = mpsc::unbounded_channel();
    let (failure, failed) = watch::channel(None);
    let (status_sender, status) = watch::channel(node.status(clock.mono()));
    let driver = Driver {
        node,
        clock,
        log,
        sinks,
        observer,
        events: events.clone(),
        inbox,
        background,
        from_background,
        status: status_sender,
        status_at: Instant::now(),
        check_storage: Arc::new(Notify::new()),
        trimmer: None,
        shared: config.shared,
        doubts: Seldom::default(),
        fetch_failures: Seldom::default(),
        link: None,
        fetcher: None,
        publisher: None,
        append: None,
        replies: BTreeMap::new(),
        reads: BTreeMap::new(),
        next_read: 0,
        stopped: false,
        failure,
    };
    tokio::spawn(driver.run());
    Ok(NodeHandle {
        next_call: Arc::new(AtomicU64::new(1)),
        messages,
        status,
        events,
        failed,
        replayed_after: recovered.snapshot.unwrap_or(Position(0)),
    })
}

/// The state of the log's head, what it was made of, and the events on the way.
async fn read_state(
    log: &dyn Log,
    sinks: &[Arc<dyn Sink>],
) -> Result<(State, Recovered, Arc<EventHub>), ReplayError> {
    let (state, snapshot) = replay::first_state(log, sinks).await?;
    let events = Arc::new(EventHub::after_state(&state));
    let head = log.head().await?;
    let mut log_bytes = 0;
    let state = replay::to(log, state, head, |log_id, batch, bytes| {
        log_bytes += bytes as u64;
        events.push(log_id, &batch);
        sinks.iter().for_each(|sink| sink.applied(&batch));
    })
    .await?;
    Ok((state, Recovered { snapshot, log_bytes }, events))
}

/// The process's clocks.
#[derive(Clone, Copy)]
struct Clock {
    start: Instant,
}

impl Clock {
    fn mono(self) -> Mono {
        self.mono_of(Instant::now())
    }

    fn mono_of(self, at: Instant) -> Mono {
        Mono(at.saturating_duration_since(self.start).as_nanos() as u64)
    }

    fn instant_of(self, at: Mono) -> Instant {
        // A deadline in the far future is as good as a day: the node is asked again anyhow.
        self.start + Duration::from_nanos(at.0).min(self.start.elapsed() + Duration::from_hours(24))
    }

    fn now(self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: self.mono(), wall_us: wall.as_micros() as u64 }
    }
}
