//! The node as a sans-I/O state machine: inputs in, outputs out, time passed in. It has at most one append in
//! flight; what arrives meanwhile makes up the next entry.
//!
//! ```text
//! Following ──announce──► Leading ──► Stopping ──resign──► Stopped
//!     ▲  another leads, or   │
//!     └── nobody reaches it ─┤
//!                            ▼ rehearsal differs
//!                         Suspect ──equal after a reload──► Following
//! ```

mod admission;
mod append;
mod commit;
mod follow;
mod foreign;
mod forward;
mod pace;
mod passed;
mod peers;
mod presence;
mod region;
mod rehearsal;
mod status;
#[cfg(test)]
mod tests;

use crate::{
    calls::Calls,
    clock::{Mono, Now},
    events::EventBatch,
    handle::{Consistency, Reply, Undecided},
    intake::{Intake, Rates},
    peer::{Request, Response},
};
use append::{InFlight, Stamps};
use borsh::{BorshDeserialize, BorshSerialize};
pub use follow::Fetched;
use follow::Progress;
use forward::Forward;
use pace::Pace;
pub use peers::LevelTooHigh;
use peers::Peers;
pub use presence::Presence;
pub(crate) use rehearsal::SnapshotPlan;
use sereno_core::{
    State,
    command::Operation,
    entry::{EntryHash, Head, SealedEntry, Writer},
    ids::{ClusterTime, LogId, ObjectId, Position},
    names::{Caller, RegionName},
};
use sereno_log::Append;
use std::sync::Arc;

/// The leader appends at least one entry in this time: cluster time flows.
pub const HEARTBEAT_MS: u64 = 500;
/// How long an append may be under way before its callers' deadlines are looked at.
const OVERDUE_SCAN_MS: u64 = 100;

/// Numbers calls as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct CallId(pub u64);

/// Numbers reads as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadId(pub u64);

/// What a node has to know of itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This node, in this start of its process.
    pub writer: Writer,
    /// Where it can be reached.
    pub address: String,
    /// The identity that a new log would get: random bits.
    pub new_log_id: LogId,
    /// Shortest TTL of a new log's namespaces that set none.
    pub min_ttl_ms: u64,
    /// A rehearsal and snapshot after this time,
    pub snapshot_interval_ms: u64,
    /// or after so many bytes of log.
    pub snapshot_bytes: u64,
    /// Whether other nodes may share the log: it waits for silence before it announces, and steps down when another
    /// leads. Alone on its log it announces at once, and another's entry is a reason to halt.
    pub is_shared: bool,
    /// Random bits, for the jitter of its patience.
    pub seed: u64,
    /// The highest level that this node understands.
    pub level_max: u32,
    /// The level of a new log.
    pub new_log_level: u32,
    /// Where the service runs, as this node was told. `None`: what the log says stays.
    pub region: Option<RegionName>,
}

/// What the state at the start was made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovered {
    /// Position of the snapshot it began with.
    pub snapshot: Option<Position>,
    /// Bytes of log since then. They count for the next snapshot: a node that is started again and again makes
    /// one all the same.
    pub log_bytes: u64,
}

/// A call as the node sees it.
#[derive(Clone, Debug)]
pub struct NodeCall {
    /// Its number.
    pub id: CallId,
    /// Who asks.
    pub caller: Caller,
    /// What for.
    pub operation: Operation,
    /// The client's `bornAt`.
    pub born_at: Option<ClusterTime>,
    /// When it stops listening.
    pub deadline: Mono,
    /// How long an answer `Waiting` is held back.
    pub hold_ms: u64,
    /// Another node has passed it on to this one: it is not passed on again.
    pub is_passed: bool,
}

/// What happens to a node.
#[derive(Debug)]
pub enum Input {
    /// A door has taken a request.
    Call(NodeCall),
    /// Nobody listens to this call any more.
    Cancelled(CallId),
    /// A grant reached nobody.
    Unheard(ObjectId),
    /// A read that must not be older than its arrival.
    Read {
        /// Its number.
        id: ReadId,
        /// How fresh.
        consistency: Consistency,
        /// When it stops listening.
        deadline: Mono,
        /// Another node asks, because it takes this one for the leader.
        is_passed: bool,
    },
    /// The result of the append in flight.
    Appended(Append),
    /// A rehearsal has come to an end.
    Rehearsed(Rehearsal),
    /// Two fresh states, made from the last snapshot and the log; `again` is the second one's outcome chain.
    Reloaded {
        /// The first.
        state: Box<State>,
        /// The second's chain.
        again: EntryHash,
    },
    /// What came of a fetch.
    Fetched(Fetched),
    /// The link to this address is there.
    Linked(String),
    /// It is not, or no more.
    LinkLost(String),
    /// The leader at this address has answered over the link.
    Responded(String, Response),
    /// Another node has reached this leader over its link.
    Reached,
    /// The presence records of all nodes.
    Present(Vec<Presence>),
    /// An operator wants it to stop.
    Stop,
}

/// How a rehearsal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// The replay came to the same; its snapshot is saved.
    Saved(Head),
    /// The replay came to something else.
    Differs(Head),
    /// It could not be done; try again later.
    Failed(String),
}

/// What the driver has to do, in this order.
#[derive(Debug)]
pub enum Output {
    /// Send the one append; its result comes back as an input.
    Append {
        /// The head it must follow.
        expected: Head,
        /// The entry.
        entry: SealedEntry,
    },
    /// Answer a call.
    Reply(CallId, Reply),
    /// Run a read on the state, as it is before the next input.
    ReadReady(ReadId),
    /// The read cannot be confirmed.
    ReadFailed(ReadId, Undecided),
    /// An entry was committed and applied.
    Committed(Committed),
    /// Replay from the last snapshot to `head` in the background and compare.
    Rehearse {
        /// Where to stop.
        head: Head,
        /// What the outcome chain must be there.
        outcome_chain: EntryHash,
    },
    /// Read the log from this position, once there is an entry or after a while; the result comes back as an input.
    Fetch(Position),
    /// The state is another one: it goes on from a snapshot, and what lies before it was not seen.
    Jumped,
    /// Keep a link to the leader at this address, and to no other.
    Link(Option<String>),
    /// Send this over the link.
    Send(Request),
    /// Rewrite this node's presence record, and tell of all.
    Publish(Presence),
    /// Trim the log; only what two snapshots cover goes.
    Trim(Position),
    /// Make two fresh states up to `head`.
    Reload(Head),
    /// This node leads from here on; the time since the log last moved under another, or since this process began to
    /// look, in nanoseconds.
    Leads {
        /// How long it took.
        took_ns: u64,
    },
    /// Stop the process with this message: going on would be wrong.
    Halt(String),
    /// The node has stopped as asked.
    Stopped,
}

/// An entry that this node wrote, or follows.
#[derive(Debug)]
pub struct Committed {
    /// From sending to knowing; `None`: another node wrote it.
    pub took_ns: Option<u64>,
    /// How many commands.
    pub commands: usize,
    /// How many bytes.
    pub bytes: usize,
    /// What it changed.
    pub batch: Arc<EventBatch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not leading; announces.
    Following,
    /// Has applied its own announce.
    Leading,
    /// Leads, and will not any more once its resign is there: no other node reaches it.
    Resigning,
    /// A rehearsal differed: answers nothing. Resigns, reloads, and compares again.
    Suspect { reloading: bool },
    /// It differed again: only an operator can say what is right.
    Distrusted { told: bool },
    /// Ends what is under way, then resigns; not later than `until`.
    Stopping { until: Mono },
    /// Has stopped.
    Stopped,
}

/// See the module.
#[derive(Debug)]
pub struct Node {
    pub(crate) settings: Settings,
    state: State,
    pub(crate) phase: Phase,
    pub(crate) not_ready: Option<String>,
    /// The stamps of the last committed entry, if this node wrote it.
    stamps: Option<Stamps>,
    in_flight: Option<InFlight>,
    pub(crate) intake: Intake,
    rates: Rates,
    calls: Calls,
    reads: Vec<(ReadId, Mono)>,
    anonymous: Caller,
    /// Nothing is appended before this moment.
    retry_at: Mono,
    pub(crate) applied_at: Mono,
    scan_at: Mono,
    pub(crate) snapshot: SnapshotPlan,
    /// Commands committed and nanoseconds spent on it, lately: for `retryAfterMs`.
    pace: Pace,
    progress: Progress,
    forward: Forward,
    peers: Peers,
    /// A raise of the level that this leader has queued by itself.
    raising: Option<u32>,
    /// In this reign the log was told where the service runs.
    region_queued: bool,
}

impl Node {
    /// A node whose state is that of the log's head as read at the start.
    pub fn new(settings: Settings, state: State, recovered: Recovered, now: Now) -> Self {
        let snapshot = SnapshotPlan {
            at: now.mono.plus_ms(settings.snapshot_interval_ms),
            bytes: recovered.log_bytes,
            rehearsed_bytes: 0,
            by_bytes: true,
            rehearsing: false,
            is_its_turn: false,
            position: recovered.snapshot,
            saved_at: None,
        };
        Self {
            state,
            phase: Phase::Following,
            not_ready: Some("starting".into()),
            stamps: None,
            in_flight: None,
            intake: Intake::default(),
            rates: Rates::default(),
            calls: Calls::default(),
            reads: Vec::new(),
            anonymous: Caller::new("").expect("anonymous is a caller"),
            retry_at: now.mono,
            applied_at: now.mono,
            scan_at: now.mono,
            snapshot,
            pace: Pace::default(),
            progress: Progress::new(now.mono, settings.seed),
            forward: Forward::default(),
            peers: Peers::new(now.mono),
            raising: None,
            region_queued: false,
            settings,
        }
    }

    /// The state after the last applied entry.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes one input. What follows from all inputs together is decided by [`Self::advance`].
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Call(call) if self.forwards() => self.pass_on(now.mono, call, out),
            Input::Call(call) => self.call(now, call, out),
            Input::Cancelled(id) => {
                self.close(now.mono, id);
                self.pass_cancelled(id, out);
            }
            Input::Unheard(claim) if self.forwards() => self.pass_unheard(claim, out),
            Input::Unheard(claim) => {
                let time = self.cluster_now(now.mono);
                self.calls.unheard(claim, time);
            }
            Input::Read { id, is_passed: true, .. } if self.forwards() => {
                out.push(Output::ReadFailed(id, forward::no_leader()));
            }
            Input::Read { id, consistency, deadline, .. } => {
                self.read(now.mono, id, consistency, deadline, out);
                self.send_barrier(now.mono, out);
            }
            Input::Appended(result) => self.appended(now, result, out),
            Input::Rehearsed(rehearsal) => self.rehearsed(now.mono, rehearsal, out),
            Input::Reloaded { state, again } => self.reloaded(*state, again),
            Input::Fetched(fetched) => self.fetched(now, fetched, out),
            Input::Linked(address) => self.linked(now.mono, &address, out),
            Input::LinkLost(address) => self.link_lost(&address, out),
            Input::Responded(address, response) => {
                if self.forward.leader() == Some(&address) {
                    self.responded(now.mono, response, out);
                }
            }
            Input::Reached => self.peers.reached(now.mono),
            Input::Present(records) => self.present(now.mono, records),
            Input::Stop => self.stop(now.mono, out),
        }
    }

    /// Does what is due: call it after inputs, and at [`Self::wake_at`].
    pub fn advance(&mut self, now: Now, out: &mut Vec<Output>) {
        let time = self.cluster_now(now.mono);
        while let Some((id, claim)) = self.calls.take_hold_over(now.mono, time) {
            let waiting = self.state.waiting_answer(claim);
            let outcome = waiting.expect("a claim whose call is held waits until it is settled");
            out.push(Output::Reply(id, Reply::Decided(outcome)));
        }
        self.end_overdue(now.mono, out);
        if matches!(self.phase, Phase::Stopping { until } if until <= now.mono) {
            self.give_up(now.mono, out);
        }
        self.resign_if_unreached(now.mono, out);
        self.hold_trim_for_others();
        self.tell_region();
        match &self.in_flight {
            Some(in_flight) if in_flight.resend_at.is_some_and(|at| at <= now.mono) => {
                self.resend(now.mono, out);
            }
            Some(_) => {}
            None if self.retry_at <= now.mono => self.next_append(now, out),
            None => {}
        }
        self.plan_snapshot(now.mono, out);
        self.fetch(now.mono, out);
        self.publish(now, out);
    }

    /// When [`Self::advance`] has something to do even if no input comes.
    pub fn wake_at(&self) -> Option<Mono> {
        let append_at = match (&self.in_flight, &self.phase) {
            (Some(in_flight), _) => in_flight.resend_at,
            (None, Phase::Leading) if self.has_work() => Some(self.retry_at),
            (None, Phase::Leading) => Some(self.next_append_at().max(self.retry_at)),
            (None, Phase::Following) => self.announce_at(),
            (None, Phase::Resigning | Phase::Stopping { .. }) => Some(self.retry_at),
            (None, Phase::Suspect { reloading: false }) => Some(self.retry_at),
            (None, Phase::Distrusted { told: false }) if self.settings.is_shared => None,
            (None, Phase::Distrusted { told: false }) => Some(self.retry_at),
            (None, _) => None,
        };
        let scans = self.in_flight.is_some() || self.has_passed();
        let scan_at = scans.then_some(self.scan_at);
        let snapshot_at = self.may_rehearse().then_some(self.snapshot.at);
        let stop_at = match self.phase {
            Phase::Stopping { until } => Some(until),
            _ => None,
        };
        let publish_at = self.settings.is_shared.then_some(self.peers.publish_at());
        let times = [
            append_at,
            scan_at,
            snapshot_at,
            stop_at,
            self.calls.next_hold_over(),
            self.fetch_at(),
            publish_at,
        ];
        times.into_iter().flatten().min()
    }
}
