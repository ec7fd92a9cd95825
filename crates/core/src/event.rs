//! Events: what changed, for watchers, the audit trail and metrics. Made by `apply` on every node alike.

mod quota;

pub use quota::{LayerChange, LedgerLine, QuotaChange, QuotaEvent};

use crate::{
    command::Family,
    ids::{Revision, Slot, Token},
    names::{Caller, NamespaceName, Owner, Reason, RegionName, ResourceName},
    outcome::{Code, End, RunState, WaitEnd},
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One change. Several may share a revision (an end and the hand-over that follows from it).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Event {
    /// When, in the total order.
    pub revision: Revision,
    /// The family of the resource.
    pub family: Family,
    /// Where; `None` for the service as a whole.
    pub namespace: Option<NamespaceName>,
    /// What; `None` for the namespace as a whole.
    pub resource: Option<ResourceName>,
    /// Whose, in their own words.
    pub owner: Option<Owner>,
    /// Who asked, as authenticated.
    pub caller: Caller,
    /// The lease's public hash.
    pub lease_hash: Option<u64>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum EventKind {
    /// A request joined the queue.
    Queued,
    /// A wait ended without a grant.
    WaitEnded {
        /// Why; `None`: by the caller's Abandon.
        why: Option<WaitEnd>,
        /// How long it had waited.
        waited_ms: u64,
    },
    /// A lock was granted.
    Granted {
        /// The token.
        token: Token,
        /// How long it had waited; `None`: it never queued.
        waited_ms: Option<u64>,
    },
    /// An ownership ended.
    Ended {
        /// The token.
        token: Token,
        /// How.
        end: End,
        /// For how long it had been held.
        held_ms: u64,
        /// Of a forced release.
        reason: Option<Reason>,
    },
    /// A request was refused by a rule of the operator's (a limit, required fencing, maxHold).
    Refused {
        /// The code.
        code: Code,
    },
    /// A namespace was created or changed.
    NamespacePut {
        /// Its version now.
        version: u64,
    },
    /// The floor of tokens was raised.
    TokenFloorSet {
        /// The floor.
        floor: Token,
    },
    /// The level was raised.
    LevelRaised {
        /// The level.
        level: u32,
    },
    /// Trimming was stopped.
    TrimHeld,
    /// A leader has changed its value.
    Proclaimed {
        /// Its term.
        term: Token,
        /// The record's version with the new value.
        version: u64,
    },
    /// The payment of a hold has begun.
    Begun {
        /// The fence.
        token: Token,
    },
    /// A job was created or changed.
    JobPut {
        /// Its version now.
        version: u64,
    },
    /// An operator has paused a job, or resumed it.
    JobPaused {
        /// Whether it is paused now.
        paused: bool,
        /// Why.
        reason: Reason,
    },
    /// An operator has asked for an extra run.
    RunAsked {
        /// Its slot.
        slot: Slot,
        /// Why.
        reason: Reason,
    },
    /// An attempt has begun.
    RunClaimed {
        /// Its slot.
        slot: Slot,
        /// 1 for the first.
        attempt: u32,
        /// Its token.
        token: Token,
    },
    /// A slot has come to another state, other than by a claim.
    RunChanged {
        /// Which slot.
        slot: Slot,
        /// Attempts so far.
        attempt: u32,
        /// What it has come to.
        state: RunState,
        /// Of an operator's skip.
        reason: Option<Reason>,
    },
    /// A guard says that it checks tokens.
    GuardSeen,
    /// A guard has refused a write.
    FenceRefused {
        /// The token of the write.
        token: Token,
        /// The highest that it had accepted.
        highest: Option<Token>,
    },
    /// The service has said where it runs.
    RegionSet {
        /// Its region.
        region: Option<RegionName>,
    },
    /// Another region decides about a namespace.
    HomePut {
        /// Which.
        home: Option<RegionName>,
    },
    /// The books of quotas, or their rules, have changed.
    Quota(Box<QuotaEvent>),
}
