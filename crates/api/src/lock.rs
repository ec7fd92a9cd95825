//! Reads of locks: `GET /v1/locks` and `GET /v1/locks/{resource}`.

use crate::{Fencing, Labels};
use serde::{Deserialize, Serialize};

/// A holder as everybody may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holder {
    /// In its own words.
    pub owner: String,
    /// Its token.
    pub fencing_token: u64,
    /// Since the grant.
    pub held_for_ms: u64,
    /// Until its deadline.
    pub expires_in_ms: u64,
}

/// Whether somebody has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LockState {
    /// Nobody holds it.
    Free,
    /// Somebody holds it.
    Held,
    /// Nobody holds it, and nobody is granted until the namespace's lock delay has passed.
    Delayed,
}

/// A holder with everything that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockHolder {
    /// In its own words.
    pub owner: String,
    /// As authenticated; absent: anonymous.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// Its token.
    pub fencing_token: u64,
    /// Stands for the secret lease id in lists, logs and the audit trail: 16 hexadecimal digits.
    pub lease_hash: String,
    /// Who checks the token.
    pub fencing: Fencing,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Since the grant.
    pub held_for_ms: u64,
    /// Since the last renewal, or the grant.
    pub renewed_ago_ms: u64,
    /// Until its deadline.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where `maxHold` bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
}

/// One who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waiter {
    /// 1: next.
    pub place: u64,
    /// In its own words.
    pub owner: String,
    /// Since it joined.
    pub waited_ms: u64,
    /// Until its own deadline.
    pub wait_expires_in_ms: u64,
}

/// 200 to `GET /v1/locks/{resource}`: a free name too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lock {
    /// Whether somebody has it.
    pub state: LockState,
    /// The resource.
    pub resource: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub holder: Option<LockHolder>,
    /// Left of the lock delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lock_delay_ms: Option<u64>,
    /// All who wait, also those beyond the 1,000 shown.
    pub waiters: u64,
    /// The first of the queue, in order.
    pub queue: Vec<Waiter>,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// One held lock of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockRow {
    /// The resource.
    pub resource: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Who has it.
    pub holder: LockHolder,
    /// How many wait.
    pub waiters: u64,
}

/// 200 to `GET /v1/locks`: held locks, oldest grant first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockPage {
    /// The rows. A page may be empty and still have a `nextCursor`.
    pub locks: Vec<LockRow>,
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
