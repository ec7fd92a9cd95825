//! Scheduled jobs: `/v1/jobs/…`, requests and answers. The service keeps the ledger of runs; replicas compute the
//! slots from the schedule and claim them.

use crate::{Labels, Millis, default_namespace, word::words};
use serde::{Deserialize, Serialize};

words! {
    /// What becomes of slots that passed while nobody could run them.
    Missed {
        /// They are left out: only a slot that is claimed within 5 minutes runs.
        Skip = "skip",
        /// The latest of them runs.
        Latest = "latest",
        /// Each runs, in order.
        All = "all",
    }
}

words! {
    /// Whether a slot may run while an earlier one still does.
    Overlap {
        /// At most one run of the job at a time.
        Forbid = "forbid",
        /// Slots run independently of each other.
        Allow = "allow",
    }
}

/// `POST /v1/jobs/put`: creates the job, or replaces its definition.
///
/// Where schedule or zone change, slots before now that nobody has claimed count as finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutJobRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
    /// When it runs: a cron expression of five fields (minute, hour, day of month, month, day of week), or six with seconds in front. At most 256 bytes.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub schedule: String,
    /// The time zone of the schedule, by its IANA name. Default: UTC.
    #[serde(default = "default_zone")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub zone: String,
    /// What becomes of missed slots. Default: latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// Whether runs may overlap. Default: forbid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// How often a run that failed or died is tried again. 0 (the default): at most once; else at least once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 100))]
    pub retries: Option<u32>,
    /// The longest that one attempt may take: 1s to 24h. Default: 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_run: Option<Millis>,
    /// The version that the caller has read; 0: it must not exist yet.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub expected_version: u64,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobPut {
    /// The job.
    pub job: String,
    /// The version in force now: 1 for a new one.
    pub version: u64,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// `POST /v1/jobs/claim-run`: run this slot, as a lease that is renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimRunRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
    /// The version of the definition that the slot was computed from.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub job_version: u64,
    /// The slot: a UTC instant as RFC 3339, with at most milliseconds.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$")
    )]
    pub slot: String,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// Who runs it, for people: 1 to 128 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub owner: String,
    /// How long the lease lasts without a renewal. Default: the namespace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl: Option<Millis>,
    /// Notes for people, shown in reads.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

words! {
    /// The only state of a granted claim.
    ClaimedState {
        /// The run is the caller's.
        Claimed = "claimed",
    }
}

/// 200 to claim-run: the attempt is the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunClaimed {
    /// `claimed`
    pub state: ClaimedState,
    /// The job.
    pub job: String,
    /// The slot.
    pub slot: String,
    /// 1 for the first; counts up when a run died or failed.
    pub attempt: u32,
    /// Under what a fence guard remembers the highest token.
    pub fence_key: String,
    /// Proves the ownership. A secret.
    pub lease_id: String,
    /// Larger than every token granted before. Send it along to the protected resource.
    pub fencing_token: u64,
    /// For people. A holder counts `expiresInMs` from when it sent the call.
    pub expires_at: String,
    /// Until the deadline.
    pub expires_in_ms: u64,
    /// Left of `maxRun`.
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

/// `POST /v1/jobs/renew-run`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewRunRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
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

words! {
    /// How an attempt ended, by its own account.
    RunResult {
        /// The slot is done and never runs again.
        Succeeded = "succeeded",
        /// It may be tried again, within the job's retries.
        Failed = "failed",
    }
}

words! {
    /// What a slot has come to.
    RunState {
        /// An operator asked for it; nobody has claimed it yet.
        Asked = "asked",
        /// An attempt is under way.
        Claimed = "claimed",
        /// The last attempt died or failed, and another may be claimed.
        Retry = "retry",
        /// Done.
        Succeeded = "succeeded",
        /// The last attempt failed by its own account, and the retries are used up.
        Failed = "failed",
        /// The last attempt died, and the retries are used up.
        Lost = "lost",
        /// An operator left it out, or a later slot took its place.
        Skipped = "skipped",
    }
}

/// `POST /v1/jobs/finish-run`: accepted after the lease's end too, while no later attempt was claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FinishRunRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// How it ended.
    pub result: RunResult,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to finish-run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunFinished {
    /// The job.
    pub job: String,
    /// The slot.
    pub slot: String,
    /// The attempt.
    pub attempt: u32,
    /// What the slot has come to.
    pub state: RunState,
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

/// `POST /v1/jobs/force-release`: an operator ends an attempt; the slot may be claimed again, within the retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForceReleaseRunRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
    /// The token of the attempt to end, from a read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fencing_token: u64,
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

/// `POST /v1/jobs/{pause, resume}`: a paused job is not claimed; runs under way go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseJobRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
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

/// `POST /v1/jobs/skip`: the slot counts as finished. Not while an attempt on it is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
    /// The slot: a UTC instant as RFC 3339, with at most milliseconds.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$")
    )]
    pub slot: String,
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

/// `POST /v1/jobs/run-now`: an extra slot at this moment, for any replica to claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunNowRequest {
    /// Where it lives: 1 to 64 bytes of `a-z 0-9 . _ -`.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// Which job: a name like a lock's resource, at most 200 bytes.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub job: String,
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

/// 200 to pause, resume, skip and run-now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobChanged {
    /// The job.
    pub job: String,
    /// Whether it is paused now.
    pub paused: bool,
    /// `skip`, `run-now`: the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub slot: Option<String>,
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

/// One slot of a job's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Run {
    /// The slot, as RFC 3339.
    pub slot: String,
    /// What it has come to.
    pub state: RunState,
    /// Attempts so far.
    pub attempt: u32,
    /// Of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fencing_token: Option<u64>,
    /// Of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub owner: Option<String>,
    /// When the last attempt was claimed, by the leader's wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub ended_at: Option<String>,
    /// How the last attempt's lease ended: `finished` by its own account, or taken from it. Absent while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub end: Option<crate::Reason>,
    /// Of an attempt under way: until its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub expires_in_ms: Option<u64>,
    /// Why an operator asked for it or left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<String>,
}

/// 200 to `GET /v1/jobs/{job}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// The job.
    pub job: String,
    /// For the next put's `expectedVersion`, and for claims.
    pub version: u64,
    /// When it runs.
    pub schedule: String,
    /// The time zone of the schedule.
    pub zone: String,
    /// What becomes of missed slots.
    pub missed: Missed,
    /// Whether runs may overlap.
    pub overlap: Overlap,
    /// How often a run is tried again.
    pub retries: u32,
    /// The longest that one attempt may take.
    pub max_run: Millis,
    /// Whether an operator has paused it.
    pub paused: bool,
    /// Slots before this instant that are not in `runs` count as finished.
    pub watermark: String,
    /// The ledger, newest slot first: every slot that may still run, and the last 100.
    pub runs: Vec<Run>,
    /// What this answer rests on.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
    /// How long ago this node applied its last entry.
    pub age_ms: u64,
}

/// One job of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobRow {
    /// The job.
    pub job: String,
    /// For the next put's `expectedVersion`, and for claims.
    pub version: u64,
    /// When it runs.
    pub schedule: String,
    /// The time zone of the schedule.
    pub zone: String,
    /// What becomes of missed slots.
    pub missed: Missed,
    /// Whether runs may overlap.
    pub overlap: Overlap,
    /// How often a run is tried again.
    pub retries: u32,
    /// The longest that one attempt may take.
    pub max_run: Millis,
    /// Whether an operator has paused it.
    pub paused: bool,
    /// Slots before this instant that are not in `runs` count as finished.
    pub watermark: String,
    /// Its newest slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub last: Option<Run>,
}

/// 200 to `GET /v1/jobs`, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobPage {
    /// The rows.
    pub jobs: Vec<JobRow>,
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

fn default_zone() -> String {
    "UTC".into()
}
