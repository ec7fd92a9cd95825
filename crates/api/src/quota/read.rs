//! Reads of quotas: `GET /v1/quotas`, `/v1/quotas/{quota}/{path}`, `/v1/quota-explain`, `/v1/reservations`.

use super::{Drift, OnExpiry, QuotaItem, QuotaLayer, ReservationState, Share};
use crate::{Labels, Millis};
use serde::{Deserialize, Serialize};

/// One node of a quota's tree: its rules and its books. Sums are of the node and all below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaNode {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// How much may be used, committed and reserved.
    pub limit: u64,
    /// So much may be used on top.
    pub burst: u64,
    /// Kept for this node whatever its siblings use.
    pub guaranteed: u64,
    /// Its share of what all want, against its siblings'.
    pub weight: u64,
    /// What one owner may have reserved at once; absent: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub owner_reserved_max: Option<u64>,
    /// Of a root that says it: how long a wait goes by share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub patience: Option<Millis>,
    /// The region that decides about it, where that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub home: Option<String>,
    /// For the next put's `expectedVersion`.
    pub version: u64,
    /// Since the rules were last changed.
    pub updated_ago_ms: u64,
    /// The revision in which they were.
    pub updated_in_revision: u64,
    /// Used.
    pub committed: u64,
    /// Reserved: reservations not yet swept or ended.
    pub reserved: u64,
    /// What is committed of the node itself.
    pub direct_committed: u64,
    /// What is reserved of the node itself.
    pub direct_reserved: u64,
    /// The largest amount that passes here by the limits; less while others wait.
    pub available: u64,
    /// What it claims above its limit and burst.
    pub debt: u64,
    /// What counts of its guarantee: less after a cut above.
    pub effective_guaranteed: u64,
    /// How many wait for this very node.
    pub waiters: u64,
    /// Ended reservations are still counted; the sums fall when they are swept.
    pub sweep_pending: bool,
}

/// What one commit has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnerCommit {
    /// The commit.
    pub commit_id: u64,
    /// What it has left.
    pub left: u64,
}

/// What an owner has committed at a node itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnerUse {
    /// Whose.
    pub owner: String,
    /// All of it.
    pub committed: u64,
    /// Commits kept one by one, oldest first.
    pub commits: Vec<OwnerCommit>,
    /// What older ones have left together.
    pub folded: u64,
}

/// The last report of one who counts the use of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaReport {
    /// Who.
    pub reporter: String,
    /// Which of theirs.
    pub epoch: u64,
    /// Since the read that it rests on.
    pub age_ms: u64,
    /// What it said against the books.
    pub drift: Drift,
    /// It was compensated.
    pub compensated: bool,
}

/// 200 to `GET /v1/quotas/{quota}/{path}`.
///
/// For a report of use: `committed` is its `committedThen`, `revision` its `asOfRevision`, and `clusterTimeMs` its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaNodeRead {
    /// The node.
    pub node: QuotaNode,
    /// Who has committed use of the node itself, by name.
    pub owners: Vec<OwnerUse>,
    /// Give it as `cursor` for the next owners; absent: these were the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next_cursor: Option<String>,
    /// The last report of each who counts.
    pub reports: Vec<QuotaReport>,
    /// What other regions have been lent of it.
    pub shares: Vec<Share>,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// 200 to `GET /v1/quotas`: nodes by path, or the roots of all quotas by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaPage {
    /// The rows.
    pub nodes: Vec<QuotaNode>,
    /// Give it as `cursor` for the next page; absent: this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next_cursor: Option<String>,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// A reserve that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaRefusal {
    /// How long ago.
    pub ago_ms: u64,
    /// When, in the total order.
    pub revision: u64,
    /// Whose.
    pub owner: String,
    /// What it asked of this node.
    pub amount: u64,
    /// The layers that were exhausted then.
    pub layers: Vec<QuotaLayer>,
}

/// 200 to `GET /v1/quota-explain`: why a node does not give more, and who has what of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaExplanation {
    /// All layers above the node and itself, root first.
    pub layers: Vec<QuotaNode>,
    /// The last reserve of this very node that did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub last_refusal: Option<QuotaRefusal>,
    /// The oldest reservations that have something of the node or of what is below it.
    pub holders: Vec<Reservation>,
    /// There may be more of them: see `GET /v1/reservations`.
    pub has_more: bool,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// A reservation that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reservation {
    /// Its name.
    pub reservation_id: String,
    /// What it is.
    pub state: ReservationState,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// The fencing token; absent while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fence: Option<u64>,
    /// For whom.
    pub owner: String,
    /// As authenticated; absent: anonymous.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// What it has, or waits for.
    pub items: Vec<QuotaItem>,
    /// What becomes of it at its deadline.
    pub on_expiry: OnExpiry,
    /// Among those who wait inside one tenant.
    pub priority: u8,
    /// Since it was asked for.
    pub age_ms: u64,
    /// Since its grant; 0 while it waits.
    pub held_for_ms: u64,
    /// Until its deadline; of a wait until that is over; 0 in quarantine.
    pub expires_in_ms: u64,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// 200 to `GET /v1/reservations/{reservationId}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservationRead {
    /// It.
    pub reservation: Reservation,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// 200 to `GET /v1/reservations`, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservationPage {
    /// The rows. A page may be empty and still have a `nextCursor`.
    pub reservations: Vec<Reservation>,
    /// Give it as `cursor` for the next page; absent: this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub next_cursor: Option<String>,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}
