//! Commands about scheduled jobs (DESIGN.md section 9): the ledger of runs. Level 3.

use super::{ForceRelease, LeaseRef, Renew};
use crate::{
    ids::{LeaseId, Slot},
    limits,
    names::{
        Invalid, Labels, NamespaceName, Owner, Reason, RequestId, ResourceName, ScheduleText,
        ZoneName,
    },
    policy::within,
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[allow(clippy::large_enum_variant)] // ClaimRun is the common one.
pub enum JobCommand {
    /// Create a job, or replace its definition.
    Put(PutJob),
    /// Run a slot.
    ClaimRun(ClaimRun),
    /// Move a run's deadline forward.
    RenewRun(Renew),
    /// Tell how an attempt ended.
    FinishRun(FinishRun),
    /// By an operator: nothing is claimed until resumed.
    Pause(PauseJob),
    /// By an operator.
    Resume(PauseJob),
    /// By an operator: the slot counts as finished.
    Skip(SlotOfJob),
    /// By an operator: an extra slot.
    RunNow(SlotOfJob),
    /// By an operator: end an attempt.
    ForceRelease(ForceRelease),
}

/// What becomes of slots that passed while nobody could run them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Missed {
    /// They are left out.
    Skip,
    /// The latest of them runs.
    Latest,
    /// Each runs, in order.
    All,
}

/// What a job is.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct JobDefinition {
    /// When it runs; replicas compute the slots from it.
    pub schedule: ScheduleText,
    /// In which zone's time.
    pub zone: ZoneName,
    /// What becomes of missed slots.
    pub missed: Missed,
    /// Whether a slot may run while another one does.
    pub overlap: bool,
    /// How often a run that failed or died is tried again. 0: at most once; else at least once.
    pub retries: u32,
    /// The longest that one attempt may take.
    pub max_run_ms: u64,
}

impl JobDefinition {
    /// Checks every field against the service's limits.
    pub fn check(&self) -> Result<(), Invalid> {
        within("retries", u64::from(self.retries), 0..=u64::from(limits::RETRIES_MAX))?;
        within("maxRun", self.max_run_ms, limits::TTL_MS_MIN..=limits::MAX_RUN_MS_MAX)
    }
}

/// Creates the job (`expected_version` 0) or replaces its definition.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PutJob {
    /// Where the job lives.
    pub namespace: NamespaceName,
    /// Which job.
    pub job: ResourceName,
    /// The version that the caller has read; 0: it must not exist.
    pub expected_version: u64,
    /// The new definition.
    pub definition: JobDefinition,
}

/// At most one live claim for each job; for each slot where runs may overlap.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ClaimRun {
    /// Where the job lives.
    pub namespace: NamespaceName,
    /// Which job.
    pub job: ResourceName,
    /// The version of the definition that the slot was computed from.
    pub job_version: u64,
    /// Which slot.
    pub slot: Slot,
    /// Drawn at random by the caller; the same over all its retries.
    pub request_id: RequestId,
    /// Who runs it, for people.
    pub owner: Owner,
    /// Drawn by the node that took the request; used only if this request turns out to be new.
    pub lease_id: LeaseId,
    /// `None`: the namespace's default.
    pub lease_ttl_ms: Option<u64>,
    /// Notes for people.
    pub labels: Labels,
}

/// How an attempt ended, by its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum RunResult {
    /// The slot is done.
    Succeeded,
    /// It may be tried again, within the retries.
    Failed,
}

/// Accepted after the lease's end too, while no later attempt was claimed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FinishRun {
    /// Where the job lives.
    pub namespace: NamespaceName,
    /// The job, and the secret of the attempt.
    pub lease: LeaseRef,
    /// How it ended.
    pub result: RunResult,
    /// As in [`ClaimRun`].
    pub request_id: RequestId,
}

/// Pause or resume.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PauseJob {
    /// Where the job lives.
    pub namespace: NamespaceName,
    /// Which job.
    pub job: ResourceName,
    /// As in [`ClaimRun`].
    pub request_id: RequestId,
    /// Why.
    pub reason: Reason,
}

/// Skip, or run now (then the slot is the door's time, or the next free millisecond).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotOfJob {
    /// Where the job lives.
    pub namespace: NamespaceName,
    /// Which job.
    pub job: ResourceName,
    /// Which slot.
    pub slot: Slot,
    /// As in [`ClaimRun`].
    pub request_id: RequestId,
    /// Why.
    pub reason: Reason,
}

impl JobCommand {
    /// The id of its request, if it is answered from memory when it is repeated.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::ClaimRun(op) => Some(&op.request_id),
            Self::FinishRun(op) => Some(&op.request_id),
            Self::Pause(op) | Self::Resume(op) => Some(&op.request_id),
            Self::Skip(op) | Self::RunNow(op) => Some(&op.request_id),
            Self::Put(_) | Self::RenewRun(_) | Self::ForceRelease(_) => None,
        }
    }

    /// It takes nothing, and can be done away from home.
    pub(crate) fn gives_back(&self) -> bool {
        matches!(self, Self::FinishRun(_) | Self::ForceRelease(_))
    }

    /// The namespace it acts in.
    pub fn namespace(&self) -> &NamespaceName {
        match self {
            Self::Put(op) => &op.namespace,
            Self::ClaimRun(op) => &op.namespace,
            Self::RenewRun(op) => &op.namespace,
            Self::FinishRun(op) => &op.namespace,
            Self::Pause(op) | Self::Resume(op) => &op.namespace,
            Self::Skip(op) | Self::RunNow(op) => &op.namespace,
            Self::ForceRelease(op) => &op.namespace,
        }
    }
}
