//! Namespaces: `GET, PUT /v1/namespaces/{name}` and `GET /v1/namespaces`.

use crate::{Fencing, Millis, object};
use serde::{Deserialize, Serialize};

/// How much of the past a namespace remembers, so that a repeated request gets the same answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReplyMemory {
    /// How long refusals, and grants released by their owner, are remembered. Default: 90s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<Millis>,
    /// How long other endings are remembered, from the end. Default: 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endings: Option<Millis>,
    /// Requests remembered at once. Default: 2,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2000000))]
    pub records: Option<u64>,
}

/// What a namespace allows. In a PUT a field left out takes its default; a read shows those in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Policy {
    /// Shortest lease. Default: the service's own (1s on one machine, 5s where a takeover is possible).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ttl: Option<Millis>,
    /// Lease of a request that names none. Default: 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_ttl: Option<Millis>,
    /// Longest lease. Default: 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ttl: Option<Millis>,
    /// Longest ownership over all renewals. Default: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<Millis>,
    /// After an expiry or a forced release nobody is granted for this long. Default: 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_delay: Option<Millis>,
    /// Said for requests that do not say it themselves. Default: bestEffort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fencing: Option<Fencing>,
    /// Refuse requests that say bestEffort. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fencing_required: Option<bool>,
    /// Leases that may be active at once. Default: 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000))]
    pub max_leases: Option<u64>,
    /// Requests that may wait at once. Default: 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000000))]
    pub max_waiters: Option<u64>,
    /// Requests per second. Default: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000000))]
    pub requests_per_second: Option<u64>,
    /// Resources that one owner may hold at once (holds only). Default: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000000))]
    pub holds_per_owner: Option<u64>,
    /// After the end of a hold whose payment had not begun its owner gets no new one on the same resource for this
    /// long. Default: 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_cooldown: Option<Millis>,
    /// How much of the past is remembered.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "object::optional"
    )]
    pub reply_memory: Option<ReplyMemory>,
}

/// `PUT /v1/namespaces/{name}`: creates it, or replaces its whole policy, or its home: one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutNamespaceRequest {
    /// The version that the caller has read; 0: it must not exist yet.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub expected_version: u64,
    /// The new policy. The home stays as it is.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "object::optional"
    )]
    pub policy: Option<Policy>,
    /// The new home: the region that decides about it; empty: wherever it is asked for. The policy stays as it is, of
    /// a new namespace it is the default. Every other region has to be told the same: there it is refused as
    /// `WRONG_REGION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{0,64}$", example = "eu-west"))]
    pub home: Option<String>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 (replaced) or 201 (created) to a PUT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamespacePut {
    /// Its name.
    pub namespace: String,
    /// The version in force now: 1 for a new one.
    pub version: u64,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// A namespace with its counters. In a list the last three fields stand at the page instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Namespace {
    /// Its name.
    pub namespace: String,
    /// For the next PUT's `expectedVersion`.
    pub version: u64,
    /// The policy in force; `minTtl`, `maxHold` and `requestsPerSecond` only where set.
    pub policy: Policy,
    /// The region that decides about it; absent: wherever it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub home: Option<String>,
    /// A fence guard has reported for one of its fence keys.
    pub fencing_proven: bool,
    /// Active leases.
    pub leases: u64,
    /// Waiting requests.
    pub waiters: u64,
    /// Remembered requests.
    pub reply_records: u64,
    /// What this answer rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub revision: Option<u64>,
    /// The cluster time of this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub cluster_time_ms: Option<u64>,
    /// How long ago this node applied its last entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub age_ms: Option<u64>,
}

/// 200 to `GET /v1/namespaces`, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamespacePage {
    /// The rows.
    pub namespaces: Vec<Namespace>,
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
