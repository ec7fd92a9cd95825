//! The trees of limits: `POST /v1/quotas/{put-limit, remove-node}`.

use crate::{Millis, default_namespace};
use serde::{Deserialize, Serialize};

/// `POST /v1/quotas/put-limit`: creates a node, or replaces all its rules. The node above it has to be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutLimitRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What is counted (`gpu`): 1 to 64 bytes of `A-Z a-z 0-9 . _ : @ + -`.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = "^[A-Za-z0-9._:@+-]{1,64}$", example = "gpu")
    )]
    pub quota: String,
    /// Where in its tree: 0 to 8 segments, at most 190 bytes. Absent or empty: the root.
    #[serde(default)]
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 190,
            pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$",
            example = "acme/vision"
        )
    )]
    pub path: String,
    /// How much the node and all below it may use, committed and reserved.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub limit: u64,
    /// So much may be used on top. Default: 0.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub burst: u64,
    /// Kept for this node whatever its siblings use; at most `limit`, 0 at a root. Default: 0.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub guaranteed: u64,
    /// Its share of what all want, against its siblings'. Default: 1.
    #[serde(default = "one")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000000))]
    pub weight: u64,
    /// What one owner may have reserved at once, here and below. Default: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub owner_reserved_max: Option<u64>,
    /// Of a root: after so long a waiting reservation goes before all that are not under their guarantee. At most 10m. Default: 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Millis>,
    /// Of a root or a node right below it: the region that decides about it. Default: wherever this service runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub home: Option<String>,
    /// The version that the caller has read; 0: it must not exist yet.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub expected_version: u64,
    /// Refuse a limit below what is claimed, rather than show a debt. Default: false.
    #[serde(default)]
    pub refuse_debt: bool,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to put-limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitPut {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// The version in force now: 1 for a new one.
    pub version: u64,
    /// What the node claims above its limit and burst: until that has gone, nothing is added.
    pub debt: u64,
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

/// `POST /v1/quotas/remove-node`: only a node without children, use and waiting reservations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemoveNodeRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What is counted (`gpu`): 1 to 64 bytes of `A-Z a-z 0-9 . _ : @ + -`.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = "^[A-Za-z0-9._:@+-]{1,64}$", example = "gpu")
    )]
    pub quota: String,
    /// Where in its tree: 0 to 8 segments, at most 190 bytes. Absent or empty: the root.
    #[serde(default)]
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 190,
            pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$",
            example = "acme/vision"
        )
    )]
    pub path: String,
    /// The version that the caller has read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub expected_version: u64,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to remove-node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeRemoved {
    /// Always true.
    pub removed: bool,
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

fn one() -> u64 {
    1
}
