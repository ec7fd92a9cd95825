//! The books against reality: `POST /v1/quotas/{report-usage, reconcile, adjust}`.

use crate::{default_namespace, word::words};
use serde::{Deserialize, Serialize};

/// `POST /v1/quotas/report-usage`: one count of real use, against what one read of the node said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportUsageRequest {
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
    /// Who counts: 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub reporter: String,
    /// Which count of theirs: rises by one.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4503599627370495u64))]
    pub epoch: u64,
    /// What is there in reality, at the node and all below it.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub observed: u64,
    /// The `revision` of the read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub as_of_revision: u64,
    /// The `committed` of the read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub committed_then: u64,
    /// The `clusterTimeMs` of the read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub cluster_time_ms: u64,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// A count of real use against the books. All sums are of the node and what is below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Drift {
    /// What was counted.
    pub observed: u64,
    /// What was committed when it was read.
    pub committed_then: u64,
    /// What of the difference may be reservations in flight, commits or returns since.
    pub explained: u64,
    /// The rest: more is used than is committed, or less.
    pub drift: i64,
    /// Reports in a row, this one included, whose drift had this sign. 0 without drift.
    pub in_a_row: u64,
}

/// 200 to report-usage: the report is on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageReported {
    /// What it says against the books.
    pub drift: Drift,
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

/// `POST /v1/quotas/reconcile`: compensates the drift of a report, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileRequest {
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
    /// Whose report.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub reporter: String,
    /// Which of their reports: the last one.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4503599627370495u64))]
    pub epoch: u64,
    /// Only say what would be done. Default: false.
    #[serde(default)]
    pub dry_run: bool,
    /// Do not wait for a second report that says the same. Default: false.
    #[serde(default)]
    pub at_once: bool,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reconciled {
    /// By so much was committed use changed, or would it be.
    pub change: i64,
    /// Nothing was changed: it was a dry run.
    pub dry_run: bool,
    /// This report had been compensated before: nothing was changed again.
    pub already: bool,
    /// It takes another report that says the same.
    pub waits_for_another: bool,
    /// The commit, if use was added; in the reporter's name.
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

words! {
    /// Which way an operator changes committed use.
    Adjustment {
        /// So much more is used.
        Add = "add",
        /// So much less is used: at most what the owner has committed there.
        Subtract = "subtract",
    }
}

/// `POST /v1/quotas/adjust`: an operator says what is real. No limit is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdjustRequest {
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
    /// Whose use.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// Which way.
    pub change: Adjustment,
    /// By how much.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4503599627370495u64))]
    pub amount: u64,
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

/// 200 to adjust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Adjusted {
    /// What the owner has committed at the node now.
    pub committed: u64,
    /// The commit, if use was added.
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
