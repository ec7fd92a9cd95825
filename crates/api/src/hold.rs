//! Holds: `/v1/holds/…`, requests and answers. "We keep the last size 42 for you for ten minutes."

use crate::{Labels, Millis, default_namespace, object, word::words};
use serde::{Deserialize, Serialize};

/// Names one hold of the owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldRef {
    /// What is held.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// The hold's fence, where the caller has it: another fence is `NOT_HOLDER`. A begun hold needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
}

/// `POST /v1/holds/hold`: never waits. Who has it already gets the same hold, not extended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What to hold: name the thing that can be sold once (the SKU, the seat).
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// For whom: any instance may act for them. 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// How long the hold lasts without a renewal.
    pub ttl: Millis,
    /// Bound of the whole ownership over all renewals. Default: the namespace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<Millis>,
    /// Holds of the same owner that end in the same moment; where this hold is refused they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "object::each")]
    #[cfg_attr(feature = "openapi", schema(max_items = 64))]
    pub replaces: Vec<HoldRef>,
    /// Notes for people, shown in reads.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/holds/hold-all`: all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldAllRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// 1 to 64 resources without duplicates.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 64, value_type = Vec<crate::schema::Resource>))]
    pub resources: Vec<String>,
    /// For whom: any instance may act for them. 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// How long the hold lasts without a renewal.
    pub ttl: Millis,
    /// Bound of the whole ownership over all renewals. Default: the namespace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<Millis>,
    /// Holds of the same owner that end in the same moment; where this hold is refused they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "object::each")]
    #[cfg_attr(feature = "openapi", schema(max_items = 64))]
    pub replaces: Vec<HoldRef>,
    /// Notes for people, shown in reads.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

words! {
    /// Whether somebody has the hold.
    HoldState {
        /// Nobody has it.
        Free = "free",
        /// Somebody has it.
        Held = "held",
    }
}

/// 200 to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Held {
    /// `held`
    pub state: HoldState,
    /// The resource.
    pub resource: String,
    /// For whom.
    pub owner: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// The fencing token: larger than every one granted before. Send it along with the sale.
    pub fence: u64,
    /// The owner had it already: nothing was extended.
    pub yours: bool,
    /// Payment has begun.
    pub begun: bool,
    /// For people. A holder counts `expiresInMs` from when it sent the call.
    pub expires_at: String,
    /// Until the deadline.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where it is bounded.
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

/// One resource of a hold-all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeldOne {
    /// The resource.
    pub resource: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// As in [`Held`].
    pub fence: u64,
}

/// 200 to hold-all: all are held, with one deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeldAll {
    /// `held`
    pub state: HoldState,
    /// In the order asked for.
    pub holds: Vec<HeldOne>,
    /// For whom.
    pub owner: String,
    /// The owner had just these already: nothing was extended.
    pub yours: bool,
    /// Payment has begun.
    pub begun: bool,
    /// For people. A holder counts `expiresInMs` from when it sent the call.
    pub expires_at: String,
    /// Until the deadline.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where it is bounded.
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

/// `POST /v1/holds/begin`: payment has started. The hold gets a deadline of its own, which cannot be renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BeginHoldRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What to hold: name the thing that can be sold once (the SKU, the seat).
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// For whom: any instance may act for them. 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// The hold's fence, where the caller has it: another fence is `NOT_HOLDER`. A begun hold needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// How long the payment may take.
    pub ttl: Millis,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/holds/renew`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewHoldRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What to hold: name the thing that can be sold once (the SKU, the seat).
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// For whom: any instance may act for them. 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// The hold's fence, where the caller has it: another fence is `NOT_HOLDER`. A begun hold needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// Default: the TTL last granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Millis>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to begin and renew: the hold goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldExtended {
    /// The resource.
    pub resource: String,
    /// The fencing token, unchanged.
    pub fence: u64,
    /// Payment has begun.
    pub begun: bool,
    /// The wish was cut short by `maxHold`.
    pub clipped: bool,
    /// For people. A holder counts `expiresInMs` from when it sent the call.
    pub expires_at: String,
    /// Until the deadline.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where it is bounded.
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

/// `POST /v1/holds/release`. Repeatable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseHoldRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What to hold: name the thing that can be sold once (the SKU, the seat).
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// For whom: any instance may act for them. 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// The hold's fence, where the caller has it: another fence is `NOT_HOLDER`. A begun hold needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: Option<u64>,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to release: either way the owner has no such hold any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldReleased {
    /// This request ended the hold.
    pub released: bool,
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

/// `POST /v1/holds/force-release`: an operator ends the hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForceReleaseHoldRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// What to hold: name the thing that can be sold once (the SKU, the seat).
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// The fence of the hold to end, from a read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fence: u64,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// Why, for the audit trail: 1 to 512 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 512, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub reason: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// Who has a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldHolder {
    /// For whom.
    pub owner: String,
    /// As authenticated; absent: anonymous.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// The fencing token.
    pub fence: u64,
    /// Payment has begun.
    pub begun: bool,
    /// Stands for the secret lease id in lists, logs and the audit trail: 16 hexadecimal digits.
    pub lease_hash: String,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Since the grant.
    pub held_for_ms: u64,
    /// Since the last renewal, or the grant.
    pub renewed_ago_ms: u64,
    /// Until the deadline.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where it is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
}

/// 200 to `GET /v1/holds/{resource}`: a free name too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hold {
    /// Whether somebody has it.
    pub state: HoldState,
    /// The resource.
    pub resource: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub holder: Option<HoldHolder>,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// One hold of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldRow {
    /// The resource.
    pub resource: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Who has it.
    pub holder: HoldHolder,
}

/// 200 to `GET /v1/holds`: what is held, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldPage {
    /// The rows. A page may be empty and still have a `nextCursor`.
    pub holds: Vec<HoldRow>,
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
