//! Capacity that another region may use by itself: `POST /v1/quotas/{share-grant, share-return, share-reclaim}`.

use crate::default_namespace;
use serde::{Deserialize, Serialize};

/// `POST /v1/quotas/share-grant`: lends capacity until it is given back. Time alone never ends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareGrantRequest {
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
    /// To which region: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub region: String,
    /// How much.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4503599627370495u64))]
    pub amount: u64,
    /// So much of it may be lent again by a reclaim, while the region may still use it: the worst overshoot. At most `amount`. Default: 0.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub overdraft_cap: u64,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/quotas/share-return`: after the region has lowered its own limit by both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareReturnRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which share: 32 lower-case hexadecimal digits, from its grant.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub share_id: String,
    /// So much of it is free again. It first makes up for what a reclaim has lent. Default: 0.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub returned: u64,
    /// So much of it the region uses for good: it is committed here in the region's name, whatever the limit. Default: 0.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub spent: u64,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/quotas/share-reclaim`: an operator lends a share again, at most its `overdraftCap`, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareReclaimRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which share: 32 lower-case hexadecimal digits, from its grant.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub share_id: String,
    /// Why, for the audit trail: 1 to 512 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 512, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub reason: String,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to share-grant, share-return and share-reclaim: the share as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Shared {
    /// Its name.
    pub share_id: String,
    /// What the region may use of it, as far as is known here. 0: it has ended.
    pub amount: u64,
    /// What of that is kept for it here; the rest was lent again.
    pub kept: u64,
    /// It has been reclaimed.
    pub reclaimed: bool,
    /// The commit of what the region has used for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub commit_id: Option<u64>,
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

/// A share in a read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Share {
    /// Its name.
    pub share_id: String,
    /// Whose: `region:` and its name.
    pub owner: String,
    /// What the region may use, as far as is known here.
    pub amount: u64,
    /// What of that is kept for it here; the rest was lent again.
    pub kept: u64,
    /// So much may be lent again: its part of the worst overshoot.
    pub overdraft_cap: u64,
    /// It has been reclaimed.
    pub reclaimed: bool,
}
