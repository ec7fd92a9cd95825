//! Granting locks: `POST /v1/locks/acquire` and `acquire-all`, requests and answers.

use crate::{Fencing, Labels, Millis, default_namespace};
use serde::{Deserialize, Serialize};

/// `POST /v1/locks/acquire`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AcquireRequest {
    /// Where the resource lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What to lock: 1 to 256 bytes of `A-Z a-z 0-9 . _ : / @ + -`, no empty segment, none that is `.` or `..`.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 256,
            pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$",
            example = "orders/42"
        )
    )]
    pub resource: String,
    /// Drawn at random by the caller, the same over all repeats: 8 to 64 bytes of the resource's alphabet.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// Who asks, for people: 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 128,
            pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$",
            example = "worker-7"
        )
    )]
    pub owner: String,
    /// How long the lease lasts without a renewal. Default: the namespace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl: Option<Millis>,
    /// How long to queue for it. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout: Option<Millis>,
    /// Bound of the whole ownership over all renewals. Default: the namespace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<Millis>,
    /// Whether the protected resource checks the token. Default: the namespace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fencing: Option<Fencing>,
    /// Notes for people, shown in reads.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The `clusterTimeMs` of a recent answer: when this call began. Over 30 s of cluster time later it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/locks/acquire-all`: all or none, without waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AcquireAllRequest {
    /// As in acquire.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// 1 to 64 resources without duplicates.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 64, value_type = Vec<crate::schema::Resource>))]
    pub resources: Vec<String>,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl: Option<Millis>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<Millis>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fencing: Option<Fencing>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// The only state of a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum GrantedState {
    /// The lock is held.
    #[default]
    Granted,
}

/// The only state of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WaitingState {
    /// In the queue.
    #[default]
    Waiting,
}

/// 200 to acquire: the lock is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Granted {
    /// `granted`
    pub state: GrantedState,
    /// The locked resource.
    pub resource: String,
    /// Under what a fence guard remembers the highest token: `namespace/lock/resource`.
    pub fence_key: String,
    /// Proves the ownership. A secret.
    pub lease_id: String,
    /// Larger than every token granted before. Send it along to the protected resource.
    pub fencing_token: u64,
    /// Who checks the token.
    pub fencing: Fencing,
    /// For people. A holder counts `expiresInMs` from when it sent the call.
    pub expires_at: String,
    /// Until the lease's deadline.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where `maxHold` bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
    /// Whether this request was answered before.
    pub replayed: bool,
    /// Of a replayed answer: the first one's revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub original_revision: Option<u64>,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// 202 to acquire: in the queue. Repeat the same call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waiting {
    /// `waiting`
    pub state: WaitingState,
    /// What it waits for.
    pub resource: String,
    /// 1: next.
    pub place: u64,
    /// Until the wait times out.
    pub wait_expires_in_ms: u64,
    /// Whether this request was answered before.
    pub replayed: bool,
    /// Of a replayed answer: the first one's revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub original_revision: Option<u64>,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// One lock of an acquire-all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrantedLock {
    /// The locked resource.
    pub resource: String,
    /// As in [`Granted`].
    pub fence_key: String,
    /// As in [`Granted`].
    pub fencing_token: u64,
}

/// 200 to acquire-all: all are held, by one lease id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrantedAll {
    /// `granted`
    pub state: GrantedState,
    /// In the order asked for.
    pub locks: Vec<GrantedLock>,
    /// Proves the ownership of each. A secret.
    pub lease_id: String,
    /// Who checks the tokens.
    pub fencing: Fencing,
    /// As in [`Granted`].
    pub expires_at: String,
    /// Until the deadline of all.
    pub expires_in_ms: u64,
    /// As in [`Granted`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
    /// As in [`Granted`].
    pub replayed: bool,
    /// As in [`Granted`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub original_revision: Option<u64>,
    /// As in [`Granted`].
    pub revision: u64,
    /// As in [`Granted`].
    pub cluster_time_ms: u64,
}
