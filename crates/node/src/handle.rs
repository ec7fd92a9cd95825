//! The node as its doors see it: calls in, replies out, reads, events, status. Knows no protocol.

use crate::{events::EventHub, node::CallId};
use borsh::{BorshDeserialize, BorshSerialize};
use sereno_core::{
    State,
    command::Operation,
    ids::{ClusterTime, LogId, ObjectId, Position, Revision},
    names::{Caller, Invalid, NamespaceName, RegionName},
    outcome::Outcome,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

/// One request of a client, translated by a door.
#[derive(Clone, Debug)]
pub struct Call {
    /// As authenticated by the door; empty is anonymous.
    pub caller: Caller,
    /// What to do.
    pub operation: Operation,
    /// The client's `bornAt`, if it sent one. `None`: the cluster time that this node has applied on arrival.
    pub born_at: Option<ClusterTime>,
    /// When the caller stops listening: a call still queued then is dropped, one in flight is unknown.
    pub deadline: Instant,
    /// How long an answer `Waiting` is held back in the hope of a grant.
    pub hold: Duration,
    /// Another node has passed it on to this one: it is not passed on again.
    pub is_passed: bool,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
pub enum Reply {
    /// The log decided.
    Decided(Outcome),
    /// The log did not, or nobody knows.
    Undecided(Undecided),
}

/// Why there is no outcome. Each says whether the command can have been applied.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Undecided {
    /// Certainly not applied: the intake is full.
    Overloaded {
        /// When another try makes sense.
        retry_after_ms: u64,
    },
    /// Certainly not applied: the namespace's request rate is used up.
    RateLimited {
        /// The namespace.
        namespace: NamespaceName,
        /// Its limit.
        requests_per_second: u64,
        /// When another try makes sense.
        retry_after_ms: u64,
    },
    /// Certainly not applied: no leader, stopping, or the caller's deadline passed while it was queued.
    Unavailable {
        /// In words, for the caller.
        reason: String,
        /// When another try makes sense.
        retry_after_ms: u64,
    },
    /// It may have been applied: the caller's deadline passed, or leadership was lost, with the append under way.
    Unknown,
    /// A call held open for a wait was ended by a stop or a lost leader. The wait itself goes on in the log.
    HeldCallEnded,
    /// Certainly not applied: a field makes no sense here.
    Invalid(Invalid),
    /// One encoded command is above 128 KiB.
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// Certainly not applied: the slot lies too far ahead of the leader's wall clock.
    TooEarly {
        /// So far.
        ahead_ms: u64,
    },
}

/// How fresh a read has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// Rests on an append that was sent after the read arrived.
    Consistent,
    /// The local state as it is.
    Stale,
}

/// What a read rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAt {
    /// The log.
    pub log_id: LogId,
    /// The state's revision.
    pub revision: Revision,
    /// The state's cluster time.
    pub time: ClusterTime,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// What a node is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Following the log.
    Follower,
    /// Leading in the epoch of this position.
    Leader {
        /// Position of its announce.
        epoch: Position,
    },
    /// Its state and a rehearsal differed; it answers nothing.
    Suspect,
    /// Stopping, or stopped.
    Stopped,
}

/// A node's condition; updated with every entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// This node's id.
    pub node_id: String,
    /// What it does.
    pub role: Role,
    /// `None`: ready. Else why it does not serve.
    pub not_ready: Option<String>,
    /// The log.
    pub log_id: LogId,
    /// Last applied position.
    pub position: Position,
    /// Its revision.
    pub revision: Revision,
    /// Its cluster time.
    pub time: ClusterTime,
    /// The level in force.
    pub level: u32,
    /// The highest level that this node understands.
    pub level_max: u32,
    /// Where the service runs, as the log says.
    pub region: Option<RegionName>,
    /// Active leases of all namespaces.
    pub leases: u64,
    /// Waiting requests of all namespaces.
    pub waiters: u64,
    /// Remembered requests of all namespaces.
    pub reply_records: u64,
    /// Objects due and not swept.
    pub sweep_due: u64,
    /// Age of the oldest of them.
    pub sweep_oldest_ms: u64,
    /// Position of the newest snapshot.
    pub snapshot: Option<Position>,
    /// How long ago this process saved it; `None`: it did not.
    pub snapshot_age_ms: Option<u64>,
    /// Bytes of log since then.
    pub log_bytes_since_snapshot: u64,
    /// Granting is paused (after a restore) for so long.
    pub paused_ms: u64,
    /// Trimming is held: a rehearsal differed twice.
    pub trim_held: bool,
    /// Calls queued before the next append, or passed to the leader.
    pub intake: u64,
    /// Whom the log names as leader.
    pub leader: Option<LeaderView>,
    /// Since a node that follows heard of the leader over its link; `None`: there is no link.
    pub leader_heard_ms: Option<u64>,
    /// How far a node that follows is behind what the leader last told, in cluster time.
    pub behind_ms: u64,
    /// Since the log moved, as far as seen here.
    pub silent_ms: u64,
    /// Where another process with this node's id is, while there is one.
    pub twin: Option<String>,
    /// The other nodes that share the log, and those that did within the last day, as far as this process has seen.
    pub peers: Vec<Peer>,
}

/// A leader as the log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderView {
    /// Its id.
    pub node_id: String,
    /// Where it can be reached.
    pub address: String,
    /// Position of its announce.
    pub epoch: Position,
}

/// Another node, as its presence record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id.
    pub node_id: String,
    /// Where it can be reached.
    pub address: String,
    /// Of its program.
    pub version: String,
    /// The highest level that it understands.
    pub level_max: u32,
    /// Up to where it has applied the log.
    pub position: Position,
    /// Since it heard of the leader over its link.
    pub leader_heard_ms: Option<u64>,
    /// Since its record changed.
    pub silent_ms: u64,
    /// Its record is not there any more: it was stopped, or has been silent for over ten seconds.
    pub gone: bool,
    /// Where another process with its id is, as one of the two has told.
    pub twin: Option<String>,
}

/// Gets the state, or why it cannot.
pub(crate) type ReadFn = Box<dyn FnOnce(Result<(&State, ReadAt), Undecided>) + Send>;

/// What reaches the driver.
pub(crate) enum Message {
    Call {
        id: CallId,
        call: Box<Call>,
        reply: oneshot::Sender<Reply>,
    },
    Cancelled(CallId),
    /// A grant was answered, and its caller had gone.
    Unheard(ObjectId),
    Read {
        consistency: Consistency,
        deadline: Instant,
        is_passed: bool,
        read: ReadFn,
    },
    Reached,
    Stop,
}

/// A cheap handle on a running node.
#[derive(Clone)]
pub struct NodeHandle {
    pub(crate) next_call: Arc<AtomicU64>,
    pub(crate) messages: mpsc::UnboundedSender<Message>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) events: Arc<EventHub>,
    pub(crate) failed: watch::Receiver<Option<String>>,
    pub(crate) replayed_after: Position,
}

impl NodeHandle {
    /// Position of the snapshot that the start began with: its sinks were given what came after it.
    pub fn replayed_after(&self) -> Position {
        self.replayed_after
    }

    /// Carries out one call. Dropping the future tells the node that nobody listens any more.
    pub async fn call(&self, call: Call) -> Reply {
        let (reply, answer) = oneshot::channel();
        let id = CallId(self.next_call.fetch_add(1, Ordering::Relaxed));
        if self.messages.send(Message::Call { id, call: Box::new(call), reply }).is_err() {
            return Reply::Undecided(stopped());
        }
        let mut listening = Listening { id: Some(id), answer, messages: &self.messages };
        // The driver answers every call, unless it fails.
        let reply = (&mut listening.answer).await;
        listening.id = None;
        reply.unwrap_or(Reply::Undecided(Undecided::Unknown))
    }

    /// Runs `read` on the state, on the node's own task: it must be short.
    ///
    /// # Errors
    /// [`Undecided::Unavailable`] when no append could confirm it before `deadline`.
    pub async fn read<T: Send + 'static>(
        &self,
        consistency: Consistency,
        deadline: Instant,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<(T, ReadAt), Undecided> {
        self.read_for(false, consistency, deadline, read).await
    }

    /// For another node: how far the log goes, by an append sent after this call arrived.
    pub(crate) async fn barrier(&self, deadline: Instant) -> Result<Position, Undecided> {
        let read = |state: &State| state.head().position;
        let read = self.read_for(true, Consistency::Consistent, deadline, read).await;
        read.map(|(position, _)| position)
    }

    async fn read_for<T: Send + 'static>(
        &self,
        is_passed: bool,
        consistency: Consistency,
        deadline: Instant,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<(T, ReadAt), Undecided> {
        let (send, answer) = oneshot::channel();
        let read: ReadFn = Box::new(move |state| {
            let result = state.map(|(state, at)| (read(state), at));
            // Nobody listens any more: fine.
            let _ = send.send(result);
        });
        if self.messages.send(Message::Read { consistency, deadline, is_passed, read }).is_err() {
            return Err(stopped());
        }
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// A grant of this node reached nobody.
    pub(crate) fn unheard(&self, claim: ObjectId) {
        // A node that has stopped needs no telling.
        let _ = self.messages.send(Message::Unheard(claim));
    }

    /// Another node has reached this one over its link.
    pub(crate) fn reached(&self) {
        let _ = self.messages.send(Message::Reached);
    }

    /// The node's condition now, and a way to wait for changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// What happened, as far back as this node remembers, and what happens next.
    pub fn events(&self) -> &Arc<EventHub> {
        &self.events
    }

    /// Returns, with a message, when the node has failed: its storage did, or the log is not what it was. Does not
    /// return if the node stops as asked.
    pub async fn failed(&self) -> String {
        let mut failed = self.failed.clone();
        if let Ok(failure) = failed.wait_for(Option::is_some).await
            && let Some(message) = &*failure
        {
            return message.clone();
        }
        std::future::pending().await
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    /// Stops: answers what is in flight, ends held calls with a retryable answer, resigns. Returns when done.
    pub async fn stop(&self) {
        // A driver that is gone has stopped.
        let _ = self.messages.send(Message::Stop);
        self.messages.closed().await;
    }
}

/// Tells the node, when dropped before the answer, that nobody listens any more.
struct Listening<'a> {
    id: Option<CallId>,
    answer: oneshot::Receiver<Reply>,
    messages: &'a mpsc::UnboundedSender<Message>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        // From here on the driver itself finds that nobody listens.
        self.answer.close();
        let message = match self.answer.try_recv() {
            Ok(reply) => match granted_claim(&reply) {
                Some(claim) => Message::Unheard(claim),
                None => return,
            },
            Err(_) => Message::Cancelled(id),
        };
        // A node that has stopped needs no telling.
        let _ = self.messages.send(message);
    }
}

/// The claim that a reply grants.
pub(crate) fn granted_claim(reply: &Reply) -> Option<ObjectId> {
    match reply {
        Reply::Decided(Outcome { result: Ok(done), .. }) => done.held_by(),
        _ => None,
    }
}

impl Message {
    /// Answers it for a node that has stopped.
    pub(crate) fn refuse(self) {
        match self {
            Self::Call { reply, .. } => {
                // Its caller may have gone meanwhile.
                let _ = reply.send(Reply::Undecided(stopped()));
            }
            Self::Read { read, .. } => read(Err(stopped())),
            Self::Cancelled(_) | Self::Unheard(_) | Self::Reached | Self::Stop => {}
        }
    }
}

fn stopped() -> Undecided {
    Undecided::Unavailable { reason: "this node has stopped".into(), retry_after_ms: 1_000 }
}
