//! The tokio driver: carries out what the node says. The only place of this crate that knows a runtime, a clock,
//! or a source of randomness.

use crate::{
    clock::{Mono, Now},
    events::{EventHub, Sink},
    handle::{Message, NodeHandle, ReadFn, Reply, Status},
    node::{CallId, Committed, Input, Node, NodeCall, Output, ReadId, Rehearsal, Settings},
    replay::{self, ReplayError},
};
use sereno_core::{
    entry::Writer,
    ids::{LogId, Position},
    outcome::Done,
};
use sereno_log::{Append, Log, LogError};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

/// Messages taken before the next append is considered.
const MESSAGES_PER_TURN: usize = 1_024;
/// The status is published at most this often while nothing but figures change.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// How often the log makes its own checks durable.
const FLUSH_INTERVAL: Duration = Duration::from_millis(crate::node::HEARTBEAT_MS);

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
}

/// Follows the node's work, for metrics. All methods are called on the node's own task: they must be short.
pub trait Observer: Send + Sync + 'static {
    /// An entry was committed, so long after it was sent.
    fn committed(&self, _took: Duration, _commands: usize, _bytes: usize) {}
    /// This node leads, so long after it began to try.
    fn leads(&self, _took: Duration) {}
    /// The log did not take an entry, or did not say.
    fn append_failed(&self, _result: &Append) {}
    /// A rehearsal has ended.
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
    let (state, snapshot) = replay::last_snapshot(&*log).await?;
    let events = Arc::new(EventHub::after_state(&state));
    let head = log.head().await?;
    let state = replay::to(&*log, state, head, |log_id, batch| {
        events.push(log_id, &batch);
        sinks.iter().for_each(|sink| sink.applied(&batch));
    })
    .await?;
    tracing::info!(position = head.position.0, log = %head.log_id, "state read from the log");

    let clock = Clock { start: Instant::now() };
    let settings = Settings {
        writer: Writer { node_id: config.node_id, start: rand::random() },
        address: config.address,
        new_log_id: LogId(rand::random()),
        min_ttl_ms: config.min_ttl_ms,
        snapshot_interval_ms: config.snapshot_interval.as_millis() as u64,
        snapshot_bytes: config.snapshot_bytes,
    };
    let node = Node::new(settings, state, snapshot, clock.now());
    let (messages, inbox) = mpsc::unbounded_channel();
    let (background, from_background) = mpsc::unbounded_channel();
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
        append: None,
        replies: BTreeMap::new(),
        reads: BTreeMap::new(),
        next_read: 0,
        stopped: false,
    };
    tokio::spawn(driver.run());
    Ok(NodeHandle { next_call: Arc::new(AtomicU64::new(1)), messages, status, events })
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

type AppendFuture = Pin<Box<dyn Future<Output = Append> + Send>>;

struct Driver {
    node: Node,
    clock: Clock,
    log: Arc<dyn Log>,
    sinks: Vec<Arc<dyn Sink>>,
    observer: Arc<dyn Observer>,
    events: Arc<EventHub>,
    inbox: mpsc::UnboundedReceiver<Message>,
    background: mpsc::UnboundedSender<Input>,
    from_background: mpsc::UnboundedReceiver<Input>,
    status: watch::Sender<Status>,
    status_at: Instant,
    append: Option<AppendFuture>,
    replies: BTreeMap<CallId, oneshot::Sender<Reply>>,
    reads: BTreeMap<ReadId, ReadFn>,
    next_read: u64,
    stopped: bool,
}

impl Driver {
    async fn run(mut self) {
        let flusher = tokio::spawn(flush_now_and_then(self.log.clone()));
        let (mut messages, mut outputs) = (Vec::new(), Vec::new());
        while !self.stopped {
            assert!(!flusher.is_finished(), "the log's storage failed: see the message above");
            let wake_at = self.node.wake_at().map(|at| self.clock.instant_of(at));
            tokio::select! {
                biased;
                result = pending_or(&mut self.append) => {
                    self.append = None;
                    self.appended(result, &mut outputs).await;
                }
                _ = self.inbox.recv_many(&mut messages, MESSAGES_PER_TURN) => {}
                Some(input) = self.from_background.recv() => self.handle(input, &mut outputs),
                () = sleep_until(wake_at) => {}
            }
            // Everything that has arrived shares the next entry.
            while messages.len() < MESSAGES_PER_TURN
                && let Ok(message) = self.inbox.try_recv()
            {
                messages.push(message);
            }
            for message in messages.drain(..) {
                self.message(message, &mut outputs);
            }
            self.node.advance(self.clock.now(), &mut outputs);
            self.carry_out(&mut outputs);
            self.publish_status();
        }
        flusher.abort();
        if let Err(error) = self.log.flush().await {
            panic!("the log's last flush failed: {error}");
        }
    }

    fn handle(&mut self, input: Input, outputs: &mut Vec<Output>) {
        self.node.handle(self.clock.now(), input, outputs);
        self.carry_out(outputs);
    }

    async fn appended(&mut self, result: Append, outputs: &mut Vec<Output>) {
        if let Append::NotAppended(reason) | Append::Unknown(reason) = &result {
            tracing::warn!(%reason, "an append was not confirmed");
            self.observer.append_failed(&result);
            // An engine whose disk has failed says so here: then nothing it holds back can be trusted.
            if let Err(error @ (LogError::Storage(_) | LogError::Damaged(_))) =
                self.log.flush().await
            {
                panic!("{error}");
            }
        }
        self.handle(Input::Appended(result), outputs);
    }

    fn message(&mut self, message: Message, outputs: &mut Vec<Output>) {
        let input = match message {
            Message::Call { id, call, reply } => {
                self.replies.insert(id, reply);
                Input::Call(NodeCall {
                    id,
                    caller: call.caller,
                    operation: call.operation,
                    born_at: call.born_at,
                    deadline: self.clock.mono_of(call.deadline),
                    hold_ms: call.hold.as_millis() as u64,
                })
            }
            Message::Cancelled(id) => {
                self.replies.remove(&id);
                Input::Cancelled(id)
            }
            Message::Read { consistency, deadline, read } => {
                let id = ReadId(self.next_read);
                self.next_read += 1;
                self.reads.insert(id, read);
                Input::Read { id, consistency, deadline: self.clock.mono_of(deadline) }
            }
            Message::Stop => Input::Stop,
        };
        self.handle(input, outputs);
    }

    fn carry_out(&mut self, outputs: &mut Vec<Output>) {
        let mut unheard = Vec::new();
        for output in outputs.drain(..) {
            match output {
                Output::Append { expected, entry } => {
                    assert!(self.append.is_none(), "one append at a time");
                    let log = self.log.clone();
                    self.append = Some(Box::pin(async move { log.append(expected, entry).await }));
                }
                Output::Reply(id, reply) => unheard.extend(self.reply(id, reply)),
                Output::ReadReady(id) => self.read(id),
                Output::ReadFailed(id, undecided) => {
                    let read = self.reads.remove(&id).expect("a read is answered once");
                    read(Err(undecided));
                }
                Output::Committed(committed) => self.committed(&committed),
                Output::Rehearse { head, outcome_chain } => self.rehearse(head, outcome_chain),
                Output::Trim(position) => self.trim(position),
                Output::Reload(head) => self.reload(head),
                Output::Leads { took_ns } => {
                    tracing::info!(epoch = self.node.state().head().epoch.0, "this node leads");
                    self.observer.leads(Duration::from_nanos(took_ns));
                }
                Output::Halt(message) => panic!("{message}"),
                Output::Stopped => self.stopped = true,
            }
        }
        for claim in unheard {
            let now = self.clock.now();
            self.node.handle(now, Input::Unheard(claim), outputs);
        }
    }

    /// Answers a call. Gives the claim of a grant that reached nobody.
    fn reply(&mut self, id: CallId, reply: Reply) -> Option<sereno_core::ids::ObjectId> {
        let unheard = match self.replies.remove(&id) {
            Some(sender) => sender.send(reply).err(),
            None => Some(reply),
        };
        match unheard {
            Some(Reply::Decided(outcome)) => match outcome.result {
                Ok(Done::Granted(grant)) => Some(grant.claim),
                _ => None,
            },
            _ => None,
        }
    }

    fn read(&mut self, id: ReadId) {
        let read = self.reads.remove(&id).expect("a read is answered once");
        let at = self.node.read_at(self.clock.mono());
        read(Ok((self.node.state(), at)));
    }

    fn committed(&mut self, committed: &Committed) {
        let took = Duration::from_nanos(committed.took_ns);
        self.observer.committed(took, committed.commands, committed.bytes);
        self.events.push(self.node.state().log_id(), &committed.batch);
        self.sinks.iter().for_each(|sink| sink.applied(&committed.batch));
    }

    /// Runs `work` on a thread of its own, with low priority: the live node comes first.
    fn in_background(
        &self,
        name: &str,
        work: impl FnOnce(&dyn Log) -> Option<Input> + Send + 'static,
    ) {
        let (log, background) = (self.log.clone(), self.background.clone());
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            replay::lower_priority();
            if let Some(input) = work(&*log) {
                // A driver that is gone needs no result.
                let _ = background.send(input);
            }
        });
        thread.expect("the system can start a thread");
    }

    fn rehearse(
        &self,
        head: sereno_core::entry::Head,
        outcome_chain: sereno_core::entry::EntryHash,
    ) {
        let (runtime, sinks) = (tokio::runtime::Handle::current(), self.sinks.clone());
        let observer = self.observer.clone();
        self.in_background("rehearsal", move |log| {
            let begun = Instant::now();
            let rehearsal = replay::rehearse(&runtime, log, &sinks, head, outcome_chain);
            match &rehearsal {
                Rehearsal::Saved(head) => {
                    tracing::info!(position = head.position.0, "snapshot saved")
                }
                Rehearsal::Differs(head) => {
                    tracing::error!(
                        position = head.position.0,
                        "a rehearsal came to another state"
                    );
                }
                Rehearsal::Failed(reason) => tracing::warn!(%reason, "no snapshot could be saved"),
            }
            observer.rehearsed(begun.elapsed(), &rehearsal);
            Some(Input::Rehearsed(rehearsal))
        });
    }

    fn reload(&self, head: sereno_core::entry::Head) {
        let runtime = tokio::runtime::Handle::current();
        self.in_background("reload", move |log| {
            let once = || replay::from_snapshot_to(&runtime, log, head);
            match (once(), once()) {
                (Ok(state), Ok(again)) => {
                    Some(Input::Reloaded { state: Box::new(state), again: again.outcome_chain() })
                }
                (Err(error), _) | (_, Err(error)) => {
                    panic!("the log cannot be read again: {error}")
                }
            }
        });
    }

    fn trim(&self, position: Position) {
        let log = self.log.clone();
        tokio::spawn(async move {
            match log.trim(position).await {
                Ok(first) => tracing::info!(first = first.0, "log trimmed"),
                Err(error) => tracing::warn!(%error, "the log was not trimmed"),
            }
        });
    }

    fn publish_status(&mut self) {
        let now = Instant::now();
        let (mono, node) = (self.clock.mono_of(now), &self.node);
        let due = now.duration_since(self.status_at) >= STATUS_INTERVAL;
        let published = self.status.send_if_modified(|status| {
            let changed = self.stopped || node.condition_differs(status);
            if due || changed {
                *status = node.status(mono);
            }
            due || changed
        });
        if published {
            self.status_at = now;
        }
    }
}

async fn pending_or(append: &mut Option<AppendFuture>) -> Append {
    match append {
        Some(append) => append.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Ends, with a message, when the log's storage fails.
async fn flush_now_and_then(log: Arc<dyn Log>) {
    loop {
        tokio::time::sleep(FLUSH_INTERVAL).await;
        match log.flush().await {
            Ok(()) => {}
            Err(error @ (LogError::Storage(_) | LogError::Damaged(_))) => {
                tracing::error!(%error, "stopping");
                return;
            }
            Err(error) => tracing::warn!(%error, "the log could not be flushed"),
        }
    }
}
