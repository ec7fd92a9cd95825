//! Lines of the audit trail, as in its files and in `GET /v1/audit`.

use crate::{ErrorCode, LedgerEntry, Reason, RunState, word::words};
use serde::{Deserialize, Serialize};

words! {
    /// What a line records.
    AuditKind {
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
        /// The lines from here on are of this log, from after this position.
        Log = "log",
        /// Everything up to this position is recorded above.
        Checkpoint = "checkpoint",
        /// What happened from `gapFrom` to this position is not recorded here.
        Gap = "gap",
    }
}

/// One line. Labels, values and lease ids are never in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// The line's number, counted over all files.
    pub seq: u64,
    /// What happened.
    pub kind: AuditKind,
    /// About the wall clock (RFC 3339), from the log's token clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub time: Option<String>,
    /// The entry's position in the log.
    pub position: u64,
    /// Which of the entry's events: 1, 2, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub event: Option<u64>,
    /// When, in the total order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub revision: Option<u64>,
    /// The hash of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub entry_hash: Option<String>,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub namespace: Option<String>,
    /// What: `namespace/family/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fence_key: Option<String>,
    /// The lease's public hash: 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lease_hash: Option<String>,
    /// `granted`, `ended`: the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fencing_token: Option<u64>,
    /// Whose, in their own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub owner: Option<String>,
    /// Who asked, as authenticated; absent: anonymous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub caller: Option<String>,
    /// `ended`: how.
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
    /// `granted` out of the queue: how long it had waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub waited_ms: Option<u64>,
    /// `ended`: for how long it had been held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub held_ms: Option<u64>,
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
    /// `quotaChanged`: what has changed in the books.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub quota: Option<Box<LedgerEntry>>,
    /// `regionSet`: where the service runs; `homePut`: the namespace's home. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub region: Option<String>,
    /// `log`: the log's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub log_id: Option<String>,
    /// `gap`: the first position that is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub gap_from: Option<u64>,
    /// The hash of the line before: BLAKE3 of its bytes up to and without its `","check":`; 64 zeros at the very
    /// first.
    pub previous: String,
    /// The first 16 digits of this line's own hash.
    pub check: String,
}

/// 200 to `GET /v1/audit`: lines in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The lines from the first kept one at or after `from`.
    pub lines: Vec<AuditLine>,
    /// Give it as `from` for what follows.
    pub next_from: u64,
}
