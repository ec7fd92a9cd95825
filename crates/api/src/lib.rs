//! The JSON of Sereno's HTTP interface as types, shared by server and client (DESIGN.md sections 12 and 14).
//!
//! What holds for all of them:
//!
//! - Names are camelCase. Durations that callers choose are strings with a unit ([`Millis`]); figures that the
//!   service tells are plain numbers whose names end in `Ms`.
//! - Requests refuse unknown fields. Answers are read tolerantly: a client takes fields and words it does not
//!   know yet.
//! - An optional field that has no value is left out of an answer. In a request `null` means the same.
//! - Nothing here knows the other crates of Sereno or an HTTP library.

mod acquire;
mod admin;
mod audit;
mod code;
mod duration;
mod election;
mod guard;
mod hold;
mod job;
mod labels;
mod lease;
mod ledger;
mod lock;
mod namespace;
mod object;
mod problem;
mod quota;
#[cfg(feature = "openapi")]
mod schema;
mod status;
mod watch;
mod word;

pub use acquire::{
    AcquireAllRequest, AcquireRequest, Granted, GrantedAll, GrantedLock, GrantedState, Waiting,
    WaitingState,
};
pub use admin::{LevelRaised, RaiseLevelRequest, TokenFloorRequest, TokenFloorSet};
pub use audit::{AuditKind, AuditLine, AuditPage};
pub use code::{ErrorCode, Outcome, RetryWith};
pub use duration::{DurationError, Millis};
pub use election::{
    CampaignRequest, CampaignWaiting, Elected, Election, ElectionPage, ElectionRow, ElectionState,
    ForceResignRequest, HandedOff, HandoffRequest, LeadingState, ProclaimRequest, Proclaimed,
    RenewTermRequest, ResignRequest, TermHolder,
};
pub use guard::{GuardReportRequest, GuardReported};
pub use hold::{
    BeginHoldRequest, ForceReleaseHoldRequest, Held, HeldAll, HeldOne, Hold, HoldAllRequest,
    HoldExtended, HoldHolder, HoldPage, HoldRef, HoldReleased, HoldRequest, HoldRow, HoldState,
    ReleaseHoldRequest, RenewHoldRequest,
};
pub use job::{
    ClaimRunRequest, ClaimedState, FinishRunRequest, ForceReleaseRunRequest, Job, JobChanged,
    JobPage, JobPut, JobRow, Missed, Overlap, PauseJobRequest, PutJobRequest, RenewRunRequest, Run,
    RunClaimed, RunFinished, RunNowRequest, RunResult, RunState, SlotRequest,
};
pub use labels::Labels;
pub use lease::{
    AbandonRequest, Abandoned, ForceReleaseRequest, ForceReleased, LeaseRef, ReleaseRequest,
    Released, RenewManyRequest, RenewRequest, RenewResult, Renewed, RenewedMany,
};
pub use ledger::{
    LedgerEntry, LedgerLayer, LedgerLimits, LedgerLine, LedgerNode, LedgerPage, QuotaChange,
};
pub use lock::{Holder, Lock, LockHolder, LockPage, LockRow, LockState, Waiter};
pub use namespace::{
    Namespace, NamespacePage, NamespacePut, Policy, PutNamespaceRequest, ReplyMemory,
};
pub use object::Object;
pub use problem::{InTheWay, Problem};
pub use quota::{
    AdjustRequest, Adjusted, Adjustment, BeginRequest, CommitRequest, Committed, Drift,
    ExtendRequest, LateCommit, LimitPut, NodeRemoved, OnExpiry, OwnerCommit, OwnerUse,
    PutLimitRequest, QuotaExcess, QuotaExplanation, QuotaItem, QuotaLayer, QuotaNode,
    QuotaNodeRead, QuotaPage, QuotaRefusal, QuotaReport, QuotaStale, ReconcileRequest, Reconciled,
    ReleaseReservationRequest, RemoveNodeRequest, ReportUsageRequest, Reservation, ReservationPage,
    ReservationRead, ReservationReleased, ReservationState, ReservationWaiting, ReserveRequest,
    Reserved, ReservedItem, ResizeRequest, ReturnRequest, Returned, SettleRequest, Settled,
    Settlement, Share, ShareGrantRequest, ShareReclaimRequest, ShareReturnRequest, Shared,
    Shortage, UsageReported,
};
pub use status::{Etcd, EtcdMember, Leader, Peer, Role, Status};
pub use watch::{WatchEvent, WatchKind, WatchStart};
pub use word::{AbandonedWas, Family, Fencing, Reason};

/// The namespace of requests that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

fn default_namespace() -> String {
    DEFAULT_NAMESPACE.into()
}
