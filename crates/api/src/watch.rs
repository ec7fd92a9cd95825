//! Events of `GET /v1/watch`: the `data` of each server-sent event.

use crate::{ErrorCode, Family, Reason, RunState, word::words};
use serde::{Deserialize, Serialize};

words! {
    /// What happened.
    WatchKind {
        /// A request joined the queue.
        Queued = "queued",
        /// A wait ended without a grant.
        WaitEnded = "waitEnded",
        /// A lock was granted.
        Granted = "granted",
        /// An ownership ended.
        Ended = "ended",
        /// A request was refused by a rule of the operator's.
        Refused = "refused",
        /// A namespace was created or changed.
        NamespacePut = "namespacePut",
        /// The floor of tokens was raised.
        TokenFloorSet = "tokenFloorSet",
        /// The level was raised.
        LevelRaised = "levelRaised",
        /// Trimming was stopped: a rehearsal differed.
        TrimHeld = "trimHeld",
        /// A leader has changed its value.
        Proclaimed = "proclaimed",
        /// The payment of a hold has begun.
        Begun = "begun",
        /// A job was created or changed.
        JobPut = "jobPut",
        /// An operator has paused a job.
        JobPaused = "jobPaused",
        /// An operator has resumed a job.
        JobResumed = "jobResumed",
        /// An operator has asked for an extra run.
        RunAsked = "runAsked",
        /// An attempt to run a slot has begun.
        RunClaimed = "runClaimed",
        /// A slot has come to another state, other than by a claim.
        RunChanged = "runChanged",
        /// A guard says that it checks tokens.
        GuardSeen = "guardSeen",
        /// A guard has refused a write.
        FenceRefused = "fenceRefused",
        /// The books of a quota or its rules have changed.
        QuotaChanged = "quotaChanged",
        /// The service has said where it runs.
        RegionSet = "regionSet",
        /// Another region decides about a namespace.
        HomePut = "homePut",
    }
}

/// The first event of a watch (`event: start`): from where it follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WatchStart {
    /// For `from`: everything after it follows.
    pub cursor: String,
    /// The cursor's revision.
    pub revision: u64,
}

/// One change. Several may share a revision (an end and the hand-over that follows from it).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WatchEvent {
    /// What happened.
    pub kind: WatchKind,
    /// When, in the total order.
    pub revision: u64,
    /// The cluster time of its entry.
    pub cluster_time_ms: u64,
    /// About the wall clock, for people (RFC 3339).
    pub time: String,
    /// The family of the resource.
    pub family: Family,
    /// Where; absent for the service as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub namespace: Option<String>,
    /// What; absent for the namespace as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub resource: Option<String>,
    /// Whose, in their own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub owner: Option<String>,
    /// Who asked, as authenticated; absent: anonymous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub caller: Option<String>,
    /// The lease's public hash: 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lease_hash: Option<String>,
    /// `granted`, `ended`: the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fencing_token: Option<u64>,
    /// `granted` out of the queue, `waitEnded`: how long it had waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub waited_ms: Option<u64>,
    /// `ended`: for how long it had been held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub held_ms: Option<u64>,
    /// `ended`, `waitEnded`: how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub end: Option<Reason>,
    /// `ended` by an operator: why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<String>,
    /// `refused`: the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub code: Option<ErrorCode>,
    /// `namespacePut`: its version now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub version: Option<u64>,
    /// `tokenFloorSet`: the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub floor: Option<u64>,
    /// `levelRaised`: the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub level: Option<u32>,
    /// Of a run: its slot (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub slot: Option<String>,
    /// Of a run: attempts so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub attempt: Option<u32>,
    /// `runChanged`: what the slot has come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub state: Option<RunState>,
    /// `fenceRefused`: the highest token that the guard had accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub highest: Option<u64>,
}
