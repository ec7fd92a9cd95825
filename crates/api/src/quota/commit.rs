//! How reservations end, and what is used: `POST /v1/quotas/{commit, release, return, settle}`. `abandon` is as that
//! of locks.

use super::{QuotaItem, yes};
use crate::{Reason, default_namespace, object, word::words};
use serde::{Deserialize, Serialize};

words! {
    /// What a commit does that comes after the reservation's end.
    LateCommit {
        /// It is refused.
        Reject = "reject",
        /// It is admitted like a new reservation, if there is room; `EXPIRED_NO_CAPACITY` if there is none.
        Readmit = "readmit",
    }
}

/// `POST /v1/quotas/commit`: reserved capacity becomes use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommitRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which reservation: 32 lower-case hexadecimal digits, from its answer.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub reservation_id: String,
    /// Its fence, where the caller has it: another fence is `NOT_HOLDER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
    /// What is used, at most 16 items: at most what is reserved; nodes that are not named: nothing. Default: all.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "object::optional_each"
    )]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 16))]
    pub items: Option<Vec<QuotaItem>>,
    /// The rest is given back; else it stays reserved. Default: true.
    #[serde(default = "yes", rename = "final")]
    pub is_final: bool,
    /// If the reservation has expired. Default: reject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateCommit>,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Committed {
    /// Names the commit, for returns.
    pub commit_id: u64,
    /// The reservation that it used; of a late one the new one.
    pub reservation_id: String,
    /// What is used.
    pub taken: Vec<QuotaItem>,
    /// What was given back.
    pub returned: Vec<QuotaItem>,
    /// What stays reserved.
    pub left: Vec<QuotaItem>,
    /// It came late: the reservation that had expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub readmits: Option<String>,
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

/// `POST /v1/quotas/release`: ends a reservation without use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseReservationRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which reservation: 32 lower-case hexadecimal digits, from its answer.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub reservation_id: String,
    /// Its fence, where the caller has it: another fence is `NOT_HOLDER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to release: either way the reservation holds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservationReleased {
    /// This request ended it.
    pub released: bool,
    /// What it gave back.
    pub items: Vec<QuotaItem>,
    /// Where this request did not end it: how it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<Reason>,
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

/// `POST /v1/quotas/return`: the real thing is gone, and its use is free again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReturnRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// The commit, from its answer.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub commit_id: u64,
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
    /// The owner of the reservation that was committed.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// How much: at most what the commit has left there.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4503599627370495u64))]
    pub amount: u64,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Returned {
    /// The commit.
    pub commit_id: u64,
    /// So much is free again.
    pub amount: u64,
    /// So much has the commit left at that node; of an old one that is folded with others, all of them together.
    pub left: u64,
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

words! {
    /// How an operator ends a quarantined reservation.
    Settlement {
        /// All of it is used.
        Commit = "commit",
        /// None of it is.
        Release = "release",
    }
}

/// `POST /v1/quotas/settle`: an operator ends a quarantined reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettleRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which reservation: 32 lower-case hexadecimal digits, from its answer.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub reservation_id: String,
    /// Its fence, where the caller has it: another fence is `NOT_HOLDER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
    /// How it ends.
    pub settlement: Settlement,
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

/// 200 to settle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Settled {
    /// How it has ended.
    pub settlement: Settlement,
    /// The commit, if one was made.
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
