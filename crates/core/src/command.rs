//! Commands: what the log carries and `State::apply` decides. A door only translates to these.
//!
//! The order of enum variants is part of the log's format: add at the end, and under a new level.

mod election;
mod hold;
mod job;
mod quota;

pub use election::{Campaign, ElectionCommand, Handoff, Proclaim};
pub use hold::{BeginHold, Hold, HoldCommand, HoldRef, PutHoldPolicy, ReleaseHold, RenewHold};
pub use job::{
    ClaimRun, FinishRun, JobCommand, JobDefinition, Missed, PauseJob, PutJob, RunResult, SlotOfJob,
};
pub use quota::{
    Adjust, Adjustment, Begin, Commit, Extend, Item, Late, NodeLimits, NodeRef, OnExpiry, PutLimit,
    QuotaCommand, Reconcile, ReleaseReservation, RemoveNode, ReportUsage, ReservationRef, Reserve,
    Resize, ReturnUse, Settle, Settlement, ShareGrant, ShareReclaim, ShareReturn,
};

use crate::{
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Token},
    names::{Caller, Labels, NamespaceName, Owner, Reason, RegionName, RequestId, ResourceName},
    policy::{Fencing, Policy},
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One operation, with who asks and since when the call has been under way.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Command {
    /// As authenticated by the door; part of a request id's scope.
    pub caller: Caller,
    /// The cluster time that the door had applied when the call arrived. The command is refused when its entry
    /// is stamped more than 30 s later, whatever queue it sat in (S7).
    pub born_at: ClusterTime,
    /// What to do.
    pub operation: Operation,
}

/// The kinds of commands. Those about elections, holds, jobs and guards came with level 3, quotas with level 4.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[allow(clippy::large_enum_variant)] // Acquire is the common one: a box would cost it an allocation.
pub enum Operation {
    /// Grant a lock, or queue for it.
    Acquire(Acquire),
    /// Grant several locks, all or none.
    AcquireAll(AcquireAll),
    /// Move a lease's deadline forward.
    Renew(Renew),
    /// Several renewals, each by itself.
    RenewMany(RenewMany),
    /// End a lease by its owner.
    Release(Release),
    /// Undo a request whose answer was lost: removes its waiter, releases its grant, or forbids it.
    Abandon(Abandon),
    /// End a lease by an operator.
    ForceRelease(ForceRelease),
    /// Create or change a namespace.
    PutNamespace(PutNamespace),
    /// By the leader: end a wait, or a hand-over, that nobody has asked for during the grace.
    EndDeserted(EndDeserted),
    /// By an operator: raise the floor of all tokens to come.
    SetTokenFloor(SetTokenFloor),
    /// By the leader: switch on the rules of a higher level.
    RaiseLevel {
        /// The level from the next command on.
        level: u32,
    },
    /// By the leader: a rehearsal differed twice; no node trims until an operator has looked.
    HoldTrim,
    /// About an election.
    Election(ElectionCommand),
    /// About a hold.
    Hold(HoldCommand),
    /// About a scheduled job.
    Job(JobCommand),
    /// By a fence guard: it checks tokens, or it refused a write.
    ReportGuard(ReportGuard),
    /// About a quota.
    Quota(QuotaCommand),
    /// By the leader: where this service runs.
    SetRegion {
        /// `None`: it is not said, and everything is at home.
        region: Option<RegionName>,
    },
    /// By an operator: which region decides about a namespace.
    PutHome(PutHome),
}

/// A family of names. Families do not see each other's names or request ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Family {
    /// Locks.
    Lock,
    /// Operators' writes.
    Admin,
    /// Elections.
    Election,
    /// Scheduled jobs.
    Job,
    /// Holds.
    Hold,
    /// Quotas and their reservations.
    Quota,
}

impl Family {
    /// As it stands in a fence key and in the HTTP interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Admin => "admin",
            Self::Election => "election",
            Self::Job => "job",
            Self::Hold => "hold",
            Self::Quota => "quota",
        }
    }
}

/// See DESIGN.md section 8.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Acquire {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// What to lock.
    pub resource: ResourceName,
    /// Drawn at random by the caller; the same over all its retries.
    pub request_id: RequestId,
    /// Who asks, for people.
    pub owner: Owner,
    /// Drawn by the node that took the request; used only if this request turns out to be new.
    pub lease_id: LeaseId,
    /// `None`: the namespace's default.
    pub lease_ttl_ms: Option<u64>,
    /// 0: answer now. Not part of the request's content; the first one holds.
    pub wait_timeout_ms: u64,
    /// Bound of the whole ownership over all renewals. `None`: the namespace's.
    pub max_hold_ms: Option<u64>,
    /// `None`: the namespace says.
    pub fencing: Option<Fencing>,
    /// Notes for people.
    pub labels: Labels,
}

/// All or none, without waiting: one lease id, one token per resource in the order given.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AcquireAll {
    /// Where the resources live.
    pub namespace: NamespaceName,
    /// 1 to 64, no duplicates.
    pub resources: Vec<ResourceName>,
    /// As in [`Acquire`].
    pub request_id: RequestId,
    /// As in [`Acquire`].
    pub owner: Owner,
    /// As in [`Acquire`].
    pub lease_id: LeaseId,
    /// As in [`Acquire`].
    pub lease_ttl_ms: Option<u64>,
    /// As in [`Acquire`].
    pub max_hold_ms: Option<u64>,
    /// As in [`Acquire`].
    pub fencing: Option<Fencing>,
    /// As in [`Acquire`].
    pub labels: Labels,
}

/// Names one holding: the resource, and the secret that proves its ownership.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LeaseRef {
    /// The locked resource.
    pub resource: ResourceName,
    /// The secret.
    pub lease_id: LeaseId,
}

/// Never resurrects, never brings a deadline nearer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Renew {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// Which lease.
    pub lease: LeaseRef,
    /// `None`: the TTL last granted.
    pub lease_ttl_ms: Option<u64>,
}

/// At most 1,000 renewals, each decided by itself.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RenewMany {
    /// Where the resources live.
    pub namespace: NamespaceName,
    /// Which leases.
    pub leases: Vec<LeaseRef>,
    /// `None`: for each the TTL last granted.
    pub lease_ttl_ms: Option<u64>,
}

/// Repeatable: a late copy never touches the next holder.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Release {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// Which lease. Of an AcquireAll this ends the one resource named.
    pub lease: LeaseRef,
}

/// Repeatable. Of a request not seen yet it is remembered as a refusal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Abandon {
    /// The request's namespace.
    pub namespace: NamespaceName,
    /// The request's family.
    pub family: Family,
    /// The request.
    pub request_id: RequestId,
}

/// Ends the lease with this token and no other.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ForceRelease {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// The locked resource.
    pub resource: ResourceName,
    /// The token of the lease to end.
    pub token: Token,
    /// As in [`Acquire`], in the family of operators' writes.
    pub request_id: RequestId,
    /// Why; goes into the audit trail.
    pub reason: Reason,
}

/// Creates the namespace (`expected_version` 0) or replaces its policy.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PutNamespace {
    /// The namespace.
    pub namespace: NamespaceName,
    /// The version that the caller has read; 0: it must not exist.
    pub expected_version: u64,
    /// The new policy.
    pub policy: Policy,
}

/// The claim is ended as `abandoned` if it still is what the leader saw.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EndDeserted {
    /// The waiting or holding request.
    pub claim: ObjectId,
    /// The last revision at which the leader knew it to be asked for: a later ask makes this command void.
    pub asked_at: Revision,
}

/// Every token to come is at least this. It can only rise.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SetTokenFloor {
    /// As in [`Acquire`], in the family of operators' writes; remembered in the namespace `default`.
    pub request_id: RequestId,
    /// The lowest token that may be granted next.
    pub floor: Token,
}

/// What a guard tells. For the audit trail and metrics; nothing is decided by it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReportGuard {
    /// The namespace of the fence key.
    pub namespace: NamespaceName,
    /// Its family.
    pub family: Family,
    /// Its name.
    pub resource: ResourceName,
    /// Which guard, for people.
    pub guard: Owner,
    /// The token of the refused write. `None`: nothing was refused, the guard says that it checks.
    pub token: Option<Token>,
    /// The highest token that it has accepted, where it says so.
    pub highest: Option<Token>,
    /// As in [`Acquire`], in the family of operators' writes.
    pub request_id: RequestId,
}

/// Elsewhere everything in the namespace but releases is refused as `WRONG_REGION`. The namespace's version counts up.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PutHome {
    /// The namespace.
    pub namespace: NamespaceName,
    /// Its home; `None`: wherever it is asked for.
    pub home: Option<RegionName>,
    /// The version that the caller has read; 0: it must not exist, and is created.
    pub expected_version: u64,
}

impl Operation {
    /// The level that it belongs to: below it no leader appends it, for older nodes could not read it.
    pub fn level(&self) -> u32 {
        match self {
            Self::Quota(_) | Self::SetRegion { .. } | Self::PutHome(_) => 4,
            Self::Abandon(Abandon { family: Family::Quota, .. }) => 4,
            Self::ReportGuard(ReportGuard { family: Family::Quota, .. }) => 4,
            Self::Abandon(op) if !matches!(op.family, Family::Lock | Family::Admin) => 3,
            Self::Election(_) | Self::Hold(_) | Self::Job(_) | Self::ReportGuard(_) => 3,
            _ => 1,
        }
    }

    /// The namespace it acts in, if in one.
    pub fn namespace(&self) -> Option<&NamespaceName> {
        match self {
            Self::Acquire(op) => Some(&op.namespace),
            Self::AcquireAll(op) => Some(&op.namespace),
            Self::Renew(op) => Some(&op.namespace),
            Self::RenewMany(op) => Some(&op.namespace),
            Self::Release(op) => Some(&op.namespace),
            Self::Abandon(op) => Some(&op.namespace),
            Self::ForceRelease(op) => Some(&op.namespace),
            Self::PutNamespace(op) => Some(&op.namespace),
            Self::Election(op) => Some(op.namespace()),
            Self::Hold(op) => Some(op.namespace()),
            Self::Job(op) => Some(op.namespace()),
            Self::ReportGuard(op) => Some(&op.namespace),
            Self::Quota(op) => Some(op.namespace()),
            Self::PutHome(op) => Some(&op.namespace),
            Self::EndDeserted(_)
            | Self::SetTokenFloor(_)
            | Self::RaiseLevel { .. }
            | Self::SetRegion { .. }
            | Self::HoldTrim => None,
        }
    }
}
