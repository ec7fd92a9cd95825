//! The loop: one task that owns the node.

use super::{
    Clock, Observer, Shared,
    background::{FromBackground, Task, flush_now_and_then},
    link::Link,
    seldom::Seldom,
};
use crate::{
    events::{EventHub, Sink},
    handle::{Message, ReadFn, Reply, Role, Status, granted_claim},
    node::{CallId, Committed, Input, Node, NodeCall, Output, ReadId},
};
use sereno_core::ids::{ObjectId, Position};
use sereno_log::{Append, Log, LogError, presence::Presence};
use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::Instant,
};

/// Messages taken before the next append is considered.
const MESSAGES_PER_TURN: usize = 1_024;
/// The status is published at most this often while nothing but figures change.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

type AppendFuture = Pin<Box<dyn Future<Output = Append> + Send>>;

pub(super) struct Driver {
    pub(super) node: Node,
    pub(super) clock: Clock,
    pub(super) log: Arc<dyn Log>,
    pub(super) sinks: Vec<Arc<dyn Sink>>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) events: Arc<EventHub>,
    pub(super) inbox: mpsc::UnboundedReceiver<Message>,
    pub(super) background: mpsc::UnboundedSender<FromBackground>,
    pub(super) from_background: mpsc::UnboundedReceiver<FromBackground>,
    pub(super) status: watch::Sender<Status>,
    pub(super) status_at: Instant,
    /// Has the flusher look at once.
    pub(super) check_storage: Arc<Notify>,
    pub(super) trimmer: Option<Task<()>>,
    pub(super) shared: Option<Shared>,
    /// Of appends, and of reads of the log.
    pub(super) doubts: Seldom,
    pub(super) fetch_failures: Seldom,
    pub(super) link: Option<Link>,
    pub(super) fetcher: Option<Task<()>>,
    pub(super) publisher: Option<Task<()>>,
    pub(super) append: Option<AppendFuture>,
    pub(super) replies: BTreeMap<CallId, oneshot::Sender<Reply>>,
    pub(super) reads: BTreeMap<ReadId, ReadFn>,
    pub(super) next_read: u64,
    pub(super) stopped: bool,
    /// Why it cannot go on.
    pub(super) failure: watch::Sender<Option<String>>,
}

impl Driver {
    pub(super) async fn run(mut self) {
        let flushes = flush_now_and_then(self.log.clone(), self.check_storage.clone());
        let mut flusher = Task::spawn(flushes);
        let (mut messages, mut outputs) = (Vec::new(), Vec::new());
        let mut has_handles = true;
        while !self.stopped && self.failure.borrow().is_none() {
            let wake_at = self.wake_at();
            tokio::select! {
                biased;
                failed = &mut flusher.0 => match failed {
                    Ok(error) => self.fail(error.to_string()),
                    Err(error) if error.is_panic() => {
                        self.fail("the flusher panicked: see the message above".into());
                    }
                    // The runtime is being dropped, and this loop is about to be.
                    Err(_) => return,
                },
                result = pending_or(&mut self.append) => {
                    self.append = None;
                    self.appended(result, &mut outputs);
                }
                count = self.inbox.recv_many(&mut messages, MESSAGES_PER_TURN), if has_handles => {
                    if count == 0 {
                        // Nobody can ask for anything any more, nor for a stop.
                        has_handles = false;
                        self.handle(Input::Stop, &mut outputs);
                    }
                }
                Some(come) = self.from_background.recv() => {
                    self.come_from_background(come, &mut outputs);
                }
                () = sleep_until(wake_at) => {}
            }
            // Under load the branches above it are always ready.
            while let Ok(come) = self.from_background.try_recv() {
                self.come_from_background(come, &mut outputs);
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
        if self.stopped {
            self.end(flusher).await;
        }
    }

    /// Ends this node: whoever waits for an answer learns that nobody knows.
    fn fail(&self, message: String) {
        tracing::error!(reason = %message, "this node cannot go on");
        self.failure.send_replace(Some(message));
    }

    /// Whoever waits for the end finds the log free: it goes before the inbox is closed.
    async fn end(self, flusher: Task<LogError>) {
        let Self { log, append, sinks, trimmer, mut inbox, failure, .. } = self;
        let Self { shared, link, fetcher, publisher, node, .. } = self;
        drop(link);
        flusher.end().await;
        for task in [trimmer, fetcher, publisher].into_iter().flatten() {
            task.end().await;
        }
        if let Some(shared) = shared {
            withdraw(&*shared.presence, &node.settings.writer.node_id).await;
        }
        if let Err(error) = log.flush().await {
            failure.send_replace(Some(format!("the log's last flush failed: {error}")));
        }
        drop((log, append, sinks));
        inbox.close();
        while let Ok(message) = inbox.try_recv() {
            message.refuse();
        }
    }

    /// When there is something to do even if nothing arrives.
    fn wake_at(&self) -> Option<Instant> {
        let node_at = self.node.wake_at().map(|at| self.clock.instant_of(at));
        let is_stale = self.status.borrow().position != self.node.state().head().position;
        let status_at = is_stale.then(|| self.status_at + STATUS_INTERVAL);
        node_at.into_iter().chain(status_at).min()
    }

    fn come_from_background(&mut self, come: FromBackground, outputs: &mut Vec<Output>) {
        match come {
            Ok(input) => self.handle(input, outputs),
            Err(message) => self.fail(message),
        }
    }

    fn handle(&mut self, input: Input, outputs: &mut Vec<Output>) {
        self.node.handle(self.clock.now(), input, outputs);
        self.carry_out(outputs);
    }

    fn appended(&mut self, result: Append, outputs: &mut Vec<Output>) {
        if let Append::NotAppended(reason) | Append::Unknown(reason) = &result {
            if self.doubts.is_due() {
                tracing::warn!(%reason, "an append was not confirmed");
            }
            self.observer.append_failed(&result);
            // An engine whose disk has failed tells the flusher: then nothing it holds back can be trusted.
            self.check_storage.notify_one();
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
                    is_passed: call.is_passed,
                })
            }
            Message::Cancelled(id) => {
                self.replies.remove(&id);
                Input::Cancelled(id)
            }
            Message::Unheard(claim) => Input::Unheard(claim),
            Message::Read { consistency, deadline, is_passed, read } => {
                let id = ReadId(self.next_read);
                self.next_read += 1;
                self.reads.insert(id, read);
                let deadline = self.clock.mono_of(deadline);
                Input::Read { id, consistency, deadline, is_passed }
            }
            Message::Reached => Input::Reached,
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
                Output::Fetch(from) => self.fetch(from),
                Output::Jumped => self.jumped(),
                Output::Link(leader) => self.link_to(leader),
                Output::Send(request) => {
                    if let Some(link) = &self.link {
                        link.send(request);
                    }
                }
                Output::Publish(record) => self.publish(&record),
                Output::Reload(head) => self.reload(head),
                Output::Leads { took_ns } => {
                    let head = self.node.state().head();
                    if head.position == Position(1) {
                        tracing::warn!(log = %head.log_id, "there was no log here: a new one begins");
                    }
                    tracing::info!(epoch = head.epoch.0, "this node leads");
                    self.observer.leads(Duration::from_nanos(took_ns));
                }
                Output::Halt(message) => self.fail(message),
                Output::Stopped => self.stopped = true,
            }
        }
        for claim in unheard {
            let now = self.clock.now();
            self.node.handle(now, Input::Unheard(claim), outputs);
        }
    }

    /// Answers a call. Gives the claim of a grant that reached nobody.
    fn reply(&mut self, id: CallId, reply: Reply) -> Option<ObjectId> {
        let unheard = match self.replies.remove(&id) {
            Some(sender) => sender.send(reply).err(),
            None => Some(reply),
        };
        unheard.as_ref().and_then(granted_claim)
    }

    fn read(&mut self, id: ReadId) {
        let read = self.reads.remove(&id).expect("a read is answered once");
        let at = self.node.read_at(self.clock.mono());
        read(Ok((self.node.state(), at)));
    }

    fn committed(&mut self, committed: &Committed) {
        let (commands, bytes) = (committed.commands, committed.bytes);
        match committed.took_ns {
            Some(ns) => self.observer.committed(Duration::from_nanos(ns), commands, bytes),
            None => self.observer.followed(commands, bytes),
        }
        self.events.push(self.node.state().log_id(), &committed.batch);
        self.sinks.iter().for_each(|sink| sink.applied(&committed.batch));
    }

    fn publish_status(&mut self) {
        let now = Instant::now();
        let (mono, node) = (self.clock.mono_of(now), &self.node);
        let due = now.duration_since(self.status_at) >= STATUS_INTERVAL;
        let published = self.status.send_if_modified(|status| {
            let changed = self.stopped || node.condition_differs(status);
            if due || changed {
                let now = node.status(mono);
                tell_change(status, &now);
                *status = now;
            }
            due || changed
        });
        if published {
            self.status_at = now;
        }
    }
}

/// So that the log lines of each node tell who led when, and since when and why it did not serve.
fn tell_change(before: &Status, now: &Status) {
    if matches!(before.role, Role::Leader { .. }) && now.role == Role::Follower {
        tracing::info!("this node does not lead any more");
    }
    let leader = |status: &Status| status.leader.as_ref().map(|it| (it.node_id.clone(), it.epoch));
    if let (Some((node_id, epoch)), Role::Follower) = (leader(now), &now.role)
        && (leader(before) != leader(now) || before.role != now.role)
    {
        tracing::info!(leader = %node_id, epoch = epoch.0, "this node follows");
    }
    match (&before.not_ready, &now.not_ready) {
        _ if now.role == Role::Stopped => {}
        (None, Some(reason)) => tracing::warn!(%reason, "this node does not serve"),
        (Some(_), None) => tracing::info!("this node serves"),
        _ => {}
    }
}

/// Nobody waits longer for a goodbye: the record goes by itself.
async fn withdraw(presence: &dyn Presence, id: &str) {
    const PATIENCE: Duration = Duration::from_secs(1);
    if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, presence.withdraw(id)).await {
        tracing::warn!(%error, "the presence record could not be withdrawn");
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
