//! The ledger of quotas: every change of the books, with the amounts before and after at every layer.

use crate::{
    command::{NodeLimits, NodeRef, OnExpiry},
    ids::{ObjectId, ReservationId, Token},
    names::{Owner, Reason},
    outcome::Drift,
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One change. The event's owner is whose use it is, its caller who asked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct QuotaEvent {
    /// Of which reservation, if of one, and its fence.
    pub reservation: Option<(ReservationId, Token)>,
    /// What happened.
    pub change: QuotaChange,
    /// What it did to the books.
    pub lines: Vec<LedgerLine>,
    /// Of an operator's.
    pub reason: Option<Reason>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum QuotaChange {
    /// A node was created or its rules changed.
    LimitPut {
        /// Which node.
        node: NodeRef,
        /// Its rules now.
        limits: NodeLimits,
        /// Their version.
        version: u64,
        /// What the node claims above them.
        debt: u64,
    },
    /// A node was removed.
    NodeRemoved {
        /// Which node.
        node: NodeRef,
    },
    /// Capacity was reserved.
    Reserved {
        /// How long it had waited; `None`: it never queued.
        waited_ms: Option<u64>,
    },
    /// The outside work has started.
    Begun {
        /// What becomes of it when its time passes.
        on_expiry: OnExpiry,
    },
    /// What is reserved was changed.
    Resized,
    /// Reserved capacity is used; what was not used is free again.
    Committed {
        /// The commit.
        commit: ObjectId,
        /// The reservation has ended with it.
        is_final: bool,
        /// The reservation that had expired, of a late one.
        readmits: Option<ReservationId>,
        /// Nobody asked for it: its deadline passed.
        by_expiry: bool,
    },
    /// The reservation was given back.
    Released,
    /// Its deadline passed.
    Expired,
    /// Its deadline passed, and it keeps its capacity until an operator settles it.
    Quarantined,
    /// Committed use was given back.
    Returned {
        /// The commit.
        commit: ObjectId,
    },
    /// A report was taken.
    Reported {
        /// Which node.
        node: NodeRef,
        /// Whose.
        reporter: Owner,
        /// Which of theirs.
        epoch: u64,
        /// What it says against the books.
        drift: Drift,
    },
    /// The drift of a report was compensated.
    Reconciled {
        /// Whose report.
        reporter: Owner,
        /// Which of theirs.
        epoch: u64,
    },
    /// An operator has changed committed use.
    Adjusted,
    /// Capacity was lent to another region.
    ShareGranted {
        /// The share.
        share: ReservationId,
        /// So much of it may be lent again.
        overdraft_cap: u64,
    },
    /// A region has given back of its share, or used of it for good.
    ShareReturned {
        /// The share.
        share: ReservationId,
        /// The commit of what was used.
        commit: Option<ObjectId>,
    },
    /// A part of a share was lent again.
    ShareReclaimed {
        /// The share.
        share: ReservationId,
        /// How much: the worst overshoot of it.
        lent: u64,
    },
}

/// What a change did at one node and at all layers above it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LedgerLine {
    /// The node whose direct use changed.
    pub node: NodeRef,
    /// For each layer, root first.
    pub layers: Vec<LayerChange>,
}

/// Sums of one layer, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LayerChange {
    /// Committed.
    pub committed: (u64, u64),
    /// Reserved.
    pub reserved: (u64, u64),
}
