//! What happens in the world.

use crate::{config::Fault, place::Place};
use sereno_core::{
    State,
    command::Operation,
    entry::{EntryHash, Head, SealedEntry},
    ids::{ClusterTime, Position, Revision, Token},
};
use sereno_log::Append;
use sereno_node::{
    handle::{Reply, Undecided},
    node::{Fetched, Presence, Rehearsal},
    peer::{Request, Response},
};

/// Which start of which node's process: what was meant for an earlier one reaches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct To {
    pub(crate) node: usize,
    pub(crate) start: u64,
}

/// Which call of which life of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) client: usize,
    pub(crate) life: u64,
    pub(crate) number: u64,
}

#[derive(Debug)]
pub(crate) enum Event {
    /// Something reaches a process.
    Arrive(To, Arrival),
    /// A timer of the node.
    Wake(To),
    /// A copy of an append reaches the log.
    AppendReaches(Box<AppendCopy>),
    /// A fetch reaches the log, or looks again.
    FetchReaches(To, Position),
    /// A background thread of a node has done its work by now.
    Rehearse(To, Head, EntryHash),
    Reload(To, Head),
    Trim(To, Position),
    /// A presence record reaches the store.
    PresenceReaches(To, Presence),
    /// A graceful goodbye to it.
    Withdraw(To),
    /// Something reaches a client.
    Client(usize, u64, ToClient),
    /// A copy of a call that a network has made reaches this node.
    CopyReaches(usize, Box<Call>),
    /// A write reaches the resource that the lock protects.
    WriteReaches(Write),
    /// Over a thousand leases are taken at once: they will end at once.
    CrowdComes,
    /// One more asks for what a crowd's lock protects.
    CrowdAsks(To),
    /// A node is stopped, and comes back with a newer program.
    UpgradeDue(usize),
    /// A node is away while the others are upgraded, and comes back with its older program.
    LeftBehind(usize),
    /// The next fault begins.
    FaultDue,
    /// A fault ends.
    Heal(Healing),
}

#[derive(Debug)]
pub(crate) struct AppendCopy {
    pub(crate) to: To,
    pub(crate) expected: Head,
    pub(crate) entry: SealedEntry,
    /// How long the answer takes; `None`: nobody hears it.
    pub(crate) reply_ns: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Arrival {
    Appended(Append),
    Fetched(Fetched),
    Present(Vec<Presence>),
    /// The publisher could not write, or not read.
    NotPublished,
    Rehearsed(Rehearsal),
    Reloaded(Box<State>, EntryHash),
    Call(Box<Call>),
    Cancelled(Attempt),
    Read {
        attempt: Attempt,
        timeout_ms: u64,
        place: Place,
    },
    Stop,
    /// As a standby: dial the leader of this generation of links.
    Dial(u64),
    Dialled(u64),
    /// Time to ping over this connection.
    Ping(u64),
    Response(u64, Response),
    /// As a leader.
    Request(u64, Request),
    /// The other end of a connection has gone.
    Closed(u64),
    /// A frame of this connection that has come before.
    Twice(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) attempt: Attempt,
    pub(crate) operation: Operation,
    pub(crate) born_at: Option<ClusterTime>,
    pub(crate) timeout_ms: u64,
    pub(crate) hold_ms: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum ToClient {
    Wake,
    Reply(Attempt, Reply),
    Read(Attempt, Result<Seen, Undecided>),
    /// The connection broke.
    Broken(Attempt),
    /// It writes: that it holds, it has looked at before.
    Write(Write),
}

/// A write to a guarded resource, with the token of whoever writes.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) place: Place,
    pub(crate) token: Token,
    /// Public hash of the lease id.
    pub(crate) lease: u64,
}

/// What a consistent read of a resource gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) revision: Revision,
    pub(crate) token: Option<Token>,
    /// Of the namespace's policy; 0: there is none.
    pub(crate) version: u64,
}

/// How a fault ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Healing {
    Start(usize),
    Resume(usize),
    LogCut(usize),
    LogSlow(usize),
    Outage,
    Full,
    Link(usize, usize),
    Alone(usize),
    Client(usize),
    ClientCut(usize, usize),
    Presence(usize),
    Flaky,
    FramesTwice,
}

impl Healing {
    pub(crate) fn of(fault: Fault, node: usize, other: usize) -> Self {
        match fault {
            Fault::Crash | Fault::Stop => Self::Start(node),
            Fault::Pause => Self::Resume(node),
            Fault::LogCut => Self::LogCut(node),
            Fault::LogSlow => Self::LogSlow(node),
            Fault::LogFlaky => Self::Flaky,
            Fault::FramesTwice => Self::FramesTwice,
            Fault::Outage => Self::Outage,
            Fault::Full => Self::Full,
            Fault::LinkCut => Self::Link(node, other),
            Fault::Alone => Self::Alone(node),
            Fault::PresenceCut | Fault::WallStep | Fault::Doubt => Self::Presence(node),
            Fault::ClientPause | Fault::ClientDeath => Self::Client(other),
            Fault::ClientCut => Self::ClientCut(other, node),
        }
    }
}
