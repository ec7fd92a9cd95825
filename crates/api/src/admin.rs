//! Operators' writes: `POST /v1/admin/…`.

use serde::{Deserialize, Serialize};

/// `POST /v1/admin/token-floor`: every token to come is at least `floor`. It can only rise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenFloorRequest {
    /// Drawn at random by the caller, the same over all repeats: 8 to 64 bytes of the resource's alphabet.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// The lowest token that may be granted next: below 2^53.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub floor: u64,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to token-floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenFloorSet {
    /// The floor in force.
    pub floor: u64,
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

/// `POST /v1/admin/raise-level`: from here on all nodes behave by this level. It can only rise, and repeating it does no
/// harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RaiseLevelRequest {
    /// The level: every node that is there has to understand it.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4294967295u64))]
    pub level: u32,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to raise-level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LevelRaised {
    /// The level in force.
    pub level: u32,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}
