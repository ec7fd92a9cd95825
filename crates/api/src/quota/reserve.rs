//! Reservations that begin and go on: `POST /v1/quotas/{reserve, begin, extend, resize}`.

use super::QuotaItem;
use crate::{Labels, Millis, WaitingState, default_namespace, object, word::words};
use serde::{Deserialize, Serialize};

words! {
    /// What becomes of a reservation whose deadline passes.
    OnExpiry {
        /// Its capacity is free again. For an hour it may be committed late, as a new reservation.
        Release = "release",
        /// All of it counts as used.
        Commit = "commit",
        /// It keeps its capacity until an operator settles it.
        Quarantine = "quarantine",
    }
}

words! {
    /// What a reservation is.
    ReservationState {
        /// In the queue.
        Waiting = "waiting",
        /// Its capacity is taken.
        Reserved = "reserved",
        /// And its outside work is under way.
        InFlight = "inFlight",
        /// Its deadline has passed; an operator has to settle it.
        Quarantined = "quarantined",
    }
}

/// `POST /v1/quotas/reserve`: all items at all layers, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReserveRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// For whom: 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// 1 to 16, each of at least 1; amounts of one node are added up.
    #[serde(deserialize_with = "object::each")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 16))]
    pub items: Vec<QuotaItem>,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// How long the reservation lasts without an extension.
    pub ttl: Millis,
    /// Bound of its life over all extensions: at most 720h. Default: 24h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<Millis>,
    /// What becomes of it when its deadline passes. Default: release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// Higher ones go first among those who wait inside one tenant. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 255))]
    pub priority: Option<u8>,
    /// How long to queue for it. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout: Option<Millis>,
    /// Notes for people, shown in reads.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// One node of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservedItem {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// How much is reserved.
    pub amount: u64,
    /// For each layer, root first: the largest amount that would pass there now.
    pub available: Vec<u64>,
}

/// 200 to reserve, begin, extend and resize: the capacity is the owner's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reserved {
    /// `reserved`, or what has become of it since in a replayed answer.
    pub state: ReservationState,
    /// Names it in every call about it.
    pub reservation_id: String,
    /// Under what a fence guard remembers the highest token: `namespace/quota/reservationId`.
    pub fence_key: String,
    /// The fencing token: larger than every one granted before.
    pub fence: u64,
    /// What it has reserved, in the order asked for, each node once.
    pub items: Vec<ReservedItem>,
    /// An extension was cut short by `maxLifetime`.
    pub clipped: bool,
    /// For people. The owner counts `expiresInMs` from when it sent the call.
    pub expires_at: String,
    /// Until the deadline; 0 in quarantine, and in a replayed answer about one that has ended.
    pub expires_in_ms: u64,
    /// Until the end of its life over all extensions.
    pub final_deadline_in_ms: u64,
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

/// 202 to reserve: in the queue. Repeat the same call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservationWaiting {
    /// `waiting`
    pub state: WaitingState,
    /// 1: next, by the order as it is now.
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

/// `POST /v1/quotas/begin`: the outside work has started. The reservation gets a deadline and a fate of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BeginRequest {
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
    /// How long the work may take without an extension: at most 1h. No deadline comes nearer.
    pub in_flight_ttl: Millis,
    /// What becomes of the reservation when that time passes.
    pub on_expiry: OnExpiry,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/quotas/extend`: never resurrects, never brings a deadline nearer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExtendRequest {
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
    /// From now on. Default: the time last granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Millis>,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/quotas/resize`: names the new amounts, never a difference. To shrink always passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResizeRequest {
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
    /// 1 to 16 nodes of the reservation, each once; those not named stay as they are, 0 gives one back.
    #[serde(deserialize_with = "object::each")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 16))]
    pub items: Vec<QuotaItem>,
    /// As in acquire: drawn at random by the caller, the same over all repeats.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}
