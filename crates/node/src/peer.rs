//! What nodes say to each other over a link: a standby passes on what its doors have taken, and the leader answers.
//! Borsh, like entries: both ends are nodes of this service, and a message that is not understood ends the link. Nodes of
//! two versions talk during an upgrade: what is there stays as it is, a new message goes to the end of its enum, and is
//! sent only once the log's level says that all understand it.

use crate::{
    handle::{Reply, Undecided},
    node::CallId,
};
use borsh::{BorshDeserialize, BorshSerialize};
use sereno_core::{
    command::Operation,
    ids::{ClusterTime, ObjectId, Position},
    names::Caller,
};

/// From a standby to the leader.
#[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
#[allow(clippy::large_enum_variant)] // Call is the common one: a box would cost it an allocation.
pub enum Request {
    /// Carry out a call. Answered by [`Response::Reply`].
    Call(PeerCall),
    /// Nobody listens to that call any more.
    Cancelled(CallId),
    /// A grant reached nobody.
    Unheard(ObjectId),
    /// Confirm, by an append sent after this arrives, how far the log goes. Answered by [`Response::Barrier`].
    Barrier {
        /// Its number, rising.
        number: u64,
        /// How long its callers wait at most.
        timeout_ms: u64,
    },
    /// Are you there? Answered by [`Response::Pong`].
    Ping,
}

/// One call on its way to the leader.
#[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
pub struct PeerCall {
    /// The standby's number for it.
    pub id: CallId,
    /// As authenticated by the standby's door.
    pub caller: Caller,
    /// What for.
    pub operation: Operation,
    /// The client's `bornAt`, or what the standby had applied when the call arrived.
    pub born_at: ClusterTime,
    /// How long the caller goes on listening.
    pub timeout_ms: u64,
    /// How long an answer `Waiting` is held back.
    pub hold_ms: u64,
}

/// From the leader to a standby.
#[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
pub enum Response {
    /// What became of a call.
    Reply(CallId, Reply),
    /// Everything up to this position was in the log when the barrier came.
    Barrier {
        /// Of the request.
        number: u64,
        /// How far to apply before reading, or why nobody knows.
        up_to: Result<Position, Undecided>,
    },
    /// The leader's cluster time.
    Pong(ClusterTime),
}
