//! Nodes to test, and their clients.

use sereno_core::{
    command::{Acquire, Operation},
    entry::{Body, Entry, EntryHash, Head},
    ids::Position,
    names::Caller,
    outcome::{Done, Grant, Outcome},
    testing,
};
use sereno_log::{
    Log, LogError, Read,
    memory::MemoryLog,
    sqlite::{self, Options},
};
use sereno_node::{
    driver::{self, Config, Observer},
    events::Sink,
    handle::{Call, Consistency, NodeHandle, Reply, Status, Undecided},
    node::Rehearsal,
};
use std::{
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::Instant};

/// Where a log is kept over restarts.
pub(crate) enum Place {
    Memory(MemoryLog),
    Sqlite(TempDir),
}

impl Place {
    pub(crate) fn both() -> [Self; 2] {
        [Self::memory(), Self::sqlite()]
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryLog::new())
    }

    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().expect("there is room for a folder"))
    }

    pub(crate) fn open(&self) -> Arc<dyn Log> {
        match self {
            Self::Memory(log) => Arc::new(log.clone()),
            Self::Sqlite(dir) => loop {
                match sqlite::open(dir.path(), Options::default()) {
                    Ok(log) => return Arc::new(log),
                    // A rehearsal of the node before may still read.
                    Err(LogError::InUse(_)) => std::thread::sleep(Duration::from_millis(1)),
                    Err(error) => panic!("the log is sound: {error}"),
                }
            },
        }
    }

    /// A node that leads.
    pub(crate) async fn start(&self) -> NodeHandle {
        start(self.open(), config()).await
    }
}

pub(crate) fn config() -> Config {
    Config {
        node_id: "n1".into(),
        address: "here".into(),
        min_ttl_ms: 1_000,
        snapshot_interval: Duration::from_secs(300),
        snapshot_bytes: 1 << 40,
        level_max: 1,
        region: None,
        shared: None,
    }
}

/// A node that leads.
pub(crate) async fn start(log: Arc<dyn Log>, config: Config) -> NodeHandle {
    start_with(log, config, Vec::new(), Arc::new(())).await
}

pub(crate) async fn start_with(
    log: Arc<dyn Log>,
    config: Config,
    sinks: Vec<Arc<dyn Sink>>,
    observer: Arc<dyn Observer>,
) -> NodeHandle {
    let handle = driver::start(log, config, sinks, observer).await.expect("the log is sound");
    until(&handle, |status| status.not_ready.is_none()).await;
    handle
}

/// The first status that is so.
pub(crate) async fn until(handle: &NodeHandle, is_so: impl FnMut(&Status) -> bool) -> Status {
    handle.status().wait_for(is_so).await.expect("the node runs").clone()
}

pub(crate) fn call(operation: Operation) -> Call {
    Call {
        caller: Caller::new("").expect("anonymous is a caller"),
        operation,
        born_at: None,
        deadline: Instant::now() + Duration::from_secs(60),
        hold: Duration::ZERO,
        is_passed: false,
    }
}

/// For an hour: rehearsals have the lowest priority, and a busy machine may take its time.
pub(crate) fn acquire(resource: &str, n: u64) -> Call {
    let acquire = testing::acquire(resource, n);
    call(Operation::Acquire(Acquire { lease_ttl_ms: Some(3_600_000), ..acquire }))
}

/// Waits up to ten minutes, and is held for one.
pub(crate) fn queue_for(resource: &str, n: u64) -> Call {
    let acquire = testing::acquire(resource, n);
    let acquire = Acquire { lease_ttl_ms: Some(60_000), wait_timeout_ms: 600_000, ..acquire };
    let hold = Duration::from_secs(60);
    Call { hold, ..call(Operation::Acquire(acquire)) }
}

pub(crate) fn release(resource: &str, n: u64) -> Call {
    call(testing::release(resource, n))
}

pub(crate) fn renew(resource: &str, n: u64) -> Call {
    call(testing::renew(resource, n))
}

pub(crate) async fn decided(handle: &NodeHandle, call: Call) -> Outcome {
    match handle.call(call).await {
        Reply::Decided(outcome) => outcome,
        Reply::Undecided(undecided) => panic!("decided, not {undecided:?}"),
    }
}

pub(crate) async fn undecided(handle: &NodeHandle, call: Call) -> Undecided {
    match handle.call(call).await {
        Reply::Decided(outcome) => panic!("undecided, not {outcome:?}"),
        Reply::Undecided(undecided) => undecided,
    }
}

pub(crate) async fn granted(handle: &NodeHandle, call: Call) -> Grant {
    grant_in(Reply::Decided(decided(handle, call).await))
}

pub(crate) fn grant_in(reply: Reply) -> Grant {
    match reply {
        Reply::Decided(Outcome { result: Ok(Done::Granted(grant)), .. }) => grant,
        other => panic!("granted, not {other:?}"),
    }
}

/// Head and outcome chain, confirmed by the log.
pub(crate) async fn chain(handle: &NodeHandle) -> (Head, EntryHash) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let read = handle
        .read(Consistency::Consistent, deadline, |state| (state.head(), state.outcome_chain()));
    read.await.expect("the log confirms it").0
}

/// All entries that can be read.
pub(crate) async fn entries(log: &dyn Log, from: Position) -> Vec<Entry> {
    match log.read(from, usize::MAX).await.expect("the log can be read") {
        Read::Entries(entries) => {
            entries.iter().map(|entry| Entry::decode(&entry.bytes).expect("an entry")).collect()
        }
        Read::Trimmed { first } => panic!("trimmed up to {first}"),
    }
}

pub(crate) async fn last_body(log: &dyn Log) -> Body {
    entries(log, Position(1)).await.pop().expect("there are some").body
}

/// Tells of rehearsals.
pub(crate) struct Rehearsals(pub(crate) mpsc::UnboundedSender<Rehearsal>);

impl Observer for Rehearsals {
    fn rehearsed(&self, _took: Duration, rehearsal: &Rehearsal) {
        // A test that has ended does not listen.
        let _ = self.0.send(rehearsal.clone());
    }
}

pub(crate) fn rehearsals() -> (Arc<Rehearsals>, mpsc::UnboundedReceiver<Rehearsal>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Rehearsals(sender)), receiver)
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects what panics say; they end tasks whose handles nobody has.
pub(crate) fn collect_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let message = info.payload_as_str().unwrap_or("").to_owned();
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            before(info);
        }));
    });
}

/// Whether any panic since [`collect_panics`] has said this.
pub(crate) fn panicked_with(said: &str) -> bool {
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    panics.iter().any(|message| message.contains(said))
}

/// Whether the driver has failed with this in its message. Returns when it has gone.
pub(crate) async fn failed_with(handle: &NodeHandle, said: &str) -> bool {
    let mut status = handle.status();
    let gone = async { while status.changed().await.is_ok() {} };
    if tokio::time::timeout(Duration::from_secs(20), gone).await.is_err() {
        return false;
    }
    if handle.failure().is_some_and(|message| message.contains(said)) {
        return true;
    }
    panicked_with(said)
}
