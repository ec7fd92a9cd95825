//! The ledger of quotas: what a line of the audit trail says of a change of the books, and `GET /v1/quota-ledger`.

use crate::{AuditLine, Drift, OnExpiry, word::words};
use serde::{Deserialize, Serialize};

words! {
    /// What has happened to a quota.
    QuotaChange {
        /// A node was created, or its rules were changed.
        LimitPut = "limitPut",
        /// A node was removed.
        NodeRemoved = "nodeRemoved",
        /// Capacity was reserved.
        Reserved = "reserved",
        /// The outside work has started.
        Begun = "begun",
        /// What is reserved was changed.
        Resized = "resized",
        /// Reserved capacity is used; what was not used is free again.
        Committed = "committed",
        /// The reservation was given back.
        Released = "released",
        /// Its deadline passed.
        Expired = "expired",
        /// Its deadline passed, and it keeps its capacity until an operator settles it.
        Quarantined = "quarantined",
        /// Committed use was given back.
        Returned = "returned",
        /// A count of real use was taken.
        Reported = "reported",
        /// The drift of a report was compensated.
        Reconciled = "reconciled",
        /// An operator has changed committed use.
        Adjusted = "adjusted",
        /// Capacity was lent to another region.
        ShareGranted = "shareGranted",
        /// A region has given back of its share, or used of it for good.
        ShareReturned = "shareReturned",
        /// A part of a share was lent again.
        ShareReclaimed = "shareReclaimed",
    }
}

/// One change of a quota, as a line of the audit trail has it. Owner, caller and fence stand in the line itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerEntry {
    /// What happened.
    pub change: QuotaChange,
    /// Of which reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reservation_id: Option<String>,
    /// `reserved` out of the queue: how long it had waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub waited_ms: Option<u64>,
    /// `begun`: what becomes of it at its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub on_expiry: Option<OnExpiry>,
    /// The commit, of `committed`, `returned`, and of a share what was used for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub commit_id: Option<u64>,
    /// `committed`: the reservation has ended with it.
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub is_final: Option<bool>,
    /// `committed`: it came late, and this is the reservation that had expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub readmits: Option<String>,
    /// `committed`: nobody asked for it, its deadline passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_expiry: bool,
    /// `limitPut`, `nodeRemoved`, `reported`: which node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub node: Option<LedgerNode>,
    /// `limitPut`: its rules now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub limits: Option<LedgerLimits>,
    /// `reported`, `reconciled`: whose report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reporter: Option<String>,
    /// `reported`, `reconciled`: which of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub epoch: Option<u64>,
    /// `reported`: what it says against the books.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub drift: Option<Drift>,
    /// Of a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub share_id: Option<String>,
    /// `shareGranted`: so much of it may be lent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub overdraft_cap: Option<u64>,
    /// `shareReclaimed`: so much of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lent: Option<u64>,
    /// What it did to the books. Absent: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LedgerLine>,
}

impl LedgerEntry {
    /// A change of which nothing else is said.
    pub fn of(change: QuotaChange) -> Self {
        Self {
            change,
            reservation_id: None,
            waited_ms: None,
            on_expiry: None,
            commit_id: None,
            is_final: None,
            readmits: None,
            by_expiry: false,
            node: None,
            limits: None,
            reporter: None,
            epoch: None,
            drift: None,
            share_id: None,
            overdraft_cap: None,
            lent: None,
            lines: Vec::new(),
        }
    }
}

/// A node of a quota's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerNode {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
}

/// The rules of a node, as they are from this change on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerLimits {
    /// How much it may use.
    pub limit: u64,
    /// So much on top.
    pub burst: u64,
    /// Kept for it.
    pub guaranteed: u64,
    /// Its share against its siblings'.
    pub weight: u64,
    /// What one owner may have reserved at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub owner_reserved_max: Option<u64>,
    /// After so long a waiting reservation goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub patience_ms: Option<u64>,
    /// The region that decides about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub home: Option<String>,
    /// Their version.
    pub version: u64,
    /// What the node claims above them.
    pub debt: u64,
}

/// What a change did at one node, and at all layers above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerLine {
    /// What is counted.
    pub quota: String,
    /// The node whose own use has changed; empty: the root.
    pub path: String,
    /// The sums of each layer, root first, the node itself last.
    pub layers: Vec<LedgerLayer>,
}

/// The sums of one layer, of it and all below it: before the change and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerLayer {
    /// Used: before and after.
    pub committed: [u64; 2],
    /// Reserved: before and after.
    pub reserved: [u64; 2],
}

/// 200 to `GET /v1/quota-ledger`: lines of the audit trail that are about quotas, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerPage {
    /// Those that were asked for. A page may be empty and not be the last.
    pub lines: Vec<AuditLine>,
    /// Give it as `from` for what follows.
    pub next_from: u64,
    /// Everything was looked at that this node had recorded, up to `until`. Else go on from `nextFrom`.
    pub complete: bool,
}
