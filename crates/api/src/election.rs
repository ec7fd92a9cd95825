//! Elections: `/v1/elections/…`, requests and answers. An election is a lock with a face: its token is the *term*.

use crate::{Fencing, Labels, Millis, Waiter, default_namespace, word::words};
use serde::{Deserialize, Serialize};

/// `POST /v1/elections/campaign`: lead, or queue for it.
///
/// A campaign by a candidate who waits already takes the place of that wait, at the end of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CampaignRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which election: a name like a lock's resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub election: String,
    /// Who campaigns: 1 to 128 bytes without control characters. A hand-off names it.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub candidate: String,
    /// What followers want to know of the leader, an address for instance: at most 4096 bytes. Default: empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
    pub value: Option<String>,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
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
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

words! {
    /// The only state of a won campaign.
    LeadingState {
        /// It leads.
        Leading = "leading",
    }
}

/// 200 to campaign: the candidate leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Elected {
    /// `leading`
    pub state: LeadingState,
    /// The election.
    pub election: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Proves the ownership. A secret.
    pub lease_id: String,
    /// The fencing token: larger than that of every leader before.
    pub term: u64,
    /// The value it campaigned with.
    pub value: String,
    /// Of the record; a proclaim changes it.
    pub version: u64,
    /// Who checks the token.
    pub fencing: Fencing,
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

/// 202 to campaign: in the queue. Repeat the same call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CampaignWaiting {
    /// `waiting`
    pub state: crate::WaitingState,
    /// The election.
    pub election: String,
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

/// `POST /v1/elections/renew`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewTermRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which election: a name like a lock's resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub election: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// Default: the TTL last granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl: Option<Millis>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/elections/proclaim`: the leader changes its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProclaimRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which election: a name like a lock's resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub election: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// The new value: at most 4096 bytes.
    #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
    pub value: String,
    /// Only if the record still has this version. Default: whatever it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub version: Option<u64>,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to proclaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Proclaimed {
    /// The record's version with this value.
    pub version: u64,
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

/// `POST /v1/elections/resign`: the leader lets go, and the next of the queue leads. Repeatable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResignRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which election: a name like a lock's resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub election: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// `POST /v1/elections/handoff`: the leader lets go in favour of a candidate who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HandoffRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which election: a name like a lock's resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub election: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// The waiting candidate who leads next. Where nobody of that name waits: `NOT_FOUND`, and nothing changes.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub to: String,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HandedOff {
    /// The successor's term.
    pub term: u64,
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

/// `POST /v1/elections/force-release`: an operator ends the term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForceResignRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which election: a name like a lock's resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub election: String,
    /// The term to end, from a read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub term: u64,
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

words! {
    /// Whether somebody leads.
    ElectionState {
        /// Nobody leads.
        Vacant = "vacant",
        /// Somebody leads.
        Leading = "leading",
        /// Nobody leads, and nobody is granted until the namespace's lock delay has passed.
        Delayed = "delayed",
    }
}

/// A leader, with everything that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TermHolder {
    /// In its own words.
    pub candidate: String,
    /// As authenticated; absent: anonymous.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// Its fencing token.
    pub term: u64,
    /// What it proclaims.
    pub value: String,
    /// Of the record: rises with each new leader and each proclaim.
    pub version: u64,
    /// Stands for the secret lease id in lists, logs and the audit trail: 16 hexadecimal digits.
    pub lease_hash: String,
    /// Who checks the token.
    pub fencing: Fencing,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Since it was elected.
    pub led_for_ms: u64,
    /// Since its last renewal, or its election.
    pub renewed_ago_ms: u64,
    /// Until the term ends without a renewal.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where it is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
}

/// 200 to `GET /v1/elections/{election}`, and the data of each event of its observation. A vacant one is 200 too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Election {
    /// Whether somebody leads.
    pub state: ElectionState,
    /// The election.
    pub election: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Who leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub leader: Option<TermHolder>,
    /// Left of the lock delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lock_delay_ms: Option<u64>,
    /// All who wait, also those beyond the 1,000 shown.
    pub waiters: u64,
    /// The first of the queue, in order.
    pub queue: Vec<Waiter>,
    /// Of an observation: another leader or value came and went between the record before and this one, and was not
    /// told. Absent: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub missed: bool,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// One led election of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ElectionRow {
    /// The election.
    pub election: String,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Who leads.
    pub leader: TermHolder,
    /// How many wait.
    pub waiters: u64,
}

/// 200 to `GET /v1/elections`: elections with a leader, the oldest term first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ElectionPage {
    /// The rows. A page may be empty and still have a `nextCursor`.
    pub elections: Vec<ElectionRow>,
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
