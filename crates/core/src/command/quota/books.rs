//! Commands that set the books of quotas right, and lend capacity to other regions.

use super::NodeRef;
use crate::{
    ids::{ClusterTime, ReservationId, Revision},
    names::{NamespaceName, Owner, Reason, RegionName, RequestId},
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One count of real use, against what one read of the node said.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReportUsage {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which node, with all below it.
    pub node: NodeRef,
    /// Who counts.
    pub reporter: Owner,
    /// Which count of theirs: rises by one.
    pub epoch: u64,
    /// What is there in reality.
    pub observed: u64,
    /// The revision of the read.
    pub as_of: Revision,
    /// What the read said was committed.
    pub committed_then: u64,
    /// The cluster time of the read.
    pub read_at: ClusterTime,
    /// As in [`super::PutLimit`].
    pub request_id: RequestId,
}

/// Compensates the drift of a report, once.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reconcile {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which node.
    pub node: NodeRef,
    /// Whose report.
    pub reporter: Owner,
    /// Which of their reports: the last one.
    pub epoch: u64,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Do not wait for a second report that says the same.
    pub at_once: bool,
    /// As in [`super::PutLimit`].
    pub request_id: RequestId,
}

/// Which way committed use is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Adjustment {
    /// So much more is used.
    Add(u64),
    /// So much less is used: at most what the owner has committed there.
    Subtract(u64),
}

/// By an operator; audited. It says what is real, so no limit is asked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Adjust {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which node.
    pub node: NodeRef,
    /// Whose use.
    pub owner: Owner,
    /// What changes.
    pub change: Adjustment,
    /// Why.
    pub reason: Reason,
    /// As in [`super::PutLimit`].
    pub request_id: RequestId,
}

/// Capacity that another region may use by itself until it gives it back: here it counts as reserved, for as long as
/// that takes. Time alone never ends it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ShareGrant {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Of which node.
    pub node: NodeRef,
    /// To whom.
    pub region: RegionName,
    /// How much.
    pub amount: u64,
    /// So much of it may be lent again by a reclaim, while the region may still use it: the worst overshoot.
    pub overdraft_cap: u64,
    /// The share's name. Drawn by the node that took the request.
    pub share: ReservationId,
    /// As in [`super::PutLimit`].
    pub request_id: RequestId,
}

/// After the region has lowered its own limit by both.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ShareReturn {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which share.
    pub share: ReservationId,
    /// So much of it is free again. It first makes up for what a reclaim has lent.
    pub returned: u64,
    /// So much of it the region uses for good: it is committed here in the region's name, whatever the limit.
    pub spent: u64,
    /// As in [`super::PutLimit`].
    pub request_id: RequestId,
}

/// Lends at most the share's overdraft cap again, once; audited.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ShareReclaim {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which share.
    pub share: ReservationId,
    /// Why.
    pub reason: Reason,
    /// As in [`super::PutLimit`].
    pub request_id: RequestId,
}
