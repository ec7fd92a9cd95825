//! An answer as a type.

use super::{Answer, Family, Op, QuotaHeard};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sereno_api::{
    Abandoned, CampaignWaiting, Elected, Election, ElectionState, ErrorCode, ForceReleased,
    Granted, HandedOff, Held, HeldAll, Hold, HoldExtended, HoldReleased, HoldState, Job, JobPut,
    Lock, LockState, Outcome, Problem, Proclaimed, Released, Renewed, RenewedMany, RunClaimed,
    RunFinished, RunState, Waiting,
};

/// What an answer means.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// To an acquire: the lock is held.
    Granted(Granted),
    /// To an acquire: in the queue.
    Waiting(Waiting),
    /// To a campaign: it leads.
    Elected(Elected),
    /// To a campaign: in the queue.
    Campaigning(CampaignWaiting),
    /// To a proclaim.
    Proclaimed(Proclaimed),
    /// To a hand-off.
    HandedOff(HandedOff),
    /// To a hold of one resource.
    Held(Held),
    /// To a hold of several.
    HeldAll(HeldAll),
    /// To a renewal or a begin of a hold.
    HoldExtended(HoldExtended),
    /// To a release of a hold.
    HoldReleased(HoldReleased),
    /// To a put of a job.
    JobPut(JobPut),
    /// To a claim.
    Claimed(RunClaimed),
    /// To a finish.
    Finished(RunFinished),
    /// To a renewal.
    Renewed(Renewed),
    /// To several.
    RenewedMany(RenewedMany),
    /// To a release.
    Released(Released),
    /// To an abandon.
    Abandoned(Abandoned),
    /// To a forced release.
    Forced(ForceReleased),
    /// To a read of a lock.
    Read(Lock),
    /// To a read of an election.
    Leader(Election),
    /// To a read of a hold.
    Shelf(Hold),
    /// To a read of a job.
    Ledger(Box<Job>),
    /// To whatever is about quotas.
    Quota(QuotaHeard),
    /// An error.
    Problem(Box<Problem>),
    /// Nothing that tells anything.
    Nothing {
        /// Whether the call may have reached somebody.
        sent: bool,
    },
}

impl Heard {
    /// Reads an answer to `op`.
    ///
    /// # Errors
    /// When it is none that the interface knows.
    pub fn of(op: &Op, answer: &Answer) -> Result<Self, String> {
        let (status, body) = match answer {
            Answer::Silence { sent, .. } => return Ok(Self::Nothing { sent: *sent }),
            Answer::Response { status, body } => (*status, body),
        };
        if status >= 400 {
            return typed(body).map(|problem| Self::Problem(Box::new(problem)));
        }
        match op {
            Op::Acquire { .. } if status == 202 => typed(body).map(Self::Waiting),
            Op::Acquire { .. } => typed(body).map(Self::Granted),
            Op::Campaign { .. } if status == 202 => typed(body).map(Self::Campaigning),
            Op::Campaign { .. } => typed(body).map(Self::Elected),
            Op::Proclaim { .. } => typed(body).map(Self::Proclaimed),
            Op::Handoff { .. } => typed(body).map(Self::HandedOff),
            Op::Hold { resources, .. } if resources.len() == 1 => typed(body).map(Self::Held),
            Op::Hold { .. } => typed(body).map(Self::HeldAll),
            Op::RenewHold(_) | Op::Begin { .. } => typed(body).map(Self::HoldExtended),
            Op::ReleaseHold(_) => typed(body).map(Self::HoldReleased),
            Op::PutJob { .. } => typed(body).map(Self::JobPut),
            Op::Claim { .. } => typed(body).map(Self::Claimed),
            Op::Finish { .. } => typed(body).map(Self::Finished),
            Op::Renew(_) => typed(body).map(Self::Renewed),
            Op::RenewMany { .. } => typed(body).map(Self::RenewedMany),
            Op::Release(_) => typed(body).map(Self::Released),
            Op::Abandon { .. } => typed(body).map(Self::Abandoned),
            Op::Force { .. } => typed(body).map(Self::Forced),
            Op::Get { family: Family::Lock, .. } => typed(body).map(Self::Read),
            Op::Get { family: Family::Election, .. } => typed(body).map(Self::Leader),
            Op::Get { family: Family::Hold, .. } => typed(body).map(Self::Shelf),
            Op::Get { family: Family::Job, .. } => typed(body).map(Box::new).map(Self::Ledger),
            Op::Get { family: Family::Quota, .. } => Err("a quota is read by its own".into()),
            Op::Quota(op) => QuotaHeard::of(op, status, body).map(Self::Quota),
        }
    }

    /// Revision and cluster time, where the log decided.
    pub fn decided(&self) -> Option<(u64, u64)> {
        let (revision, time) = match self {
            Self::Granted(it) => (it.revision, it.cluster_time_ms),
            Self::Waiting(it) => (it.revision, it.cluster_time_ms),
            Self::Elected(it) => (it.revision, it.cluster_time_ms),
            Self::Campaigning(it) => (it.revision, it.cluster_time_ms),
            Self::Proclaimed(it) => (it.revision, it.cluster_time_ms),
            Self::HandedOff(it) => (it.revision, it.cluster_time_ms),
            Self::Held(it) => (it.revision, it.cluster_time_ms),
            Self::HeldAll(it) => (it.revision, it.cluster_time_ms),
            Self::HoldExtended(it) => (it.revision, it.cluster_time_ms),
            Self::HoldReleased(it) => (it.revision, it.cluster_time_ms),
            Self::JobPut(it) => (it.revision, it.cluster_time_ms),
            Self::Claimed(it) => (it.revision, it.cluster_time_ms),
            Self::Finished(it) => (it.revision, it.cluster_time_ms),
            Self::Renewed(it) => (it.revision, it.cluster_time_ms),
            Self::RenewedMany(it) => (it.revision, it.cluster_time_ms),
            Self::Released(it) => (it.revision, it.cluster_time_ms),
            Self::Abandoned(it) => (it.revision, it.cluster_time_ms),
            Self::Forced(it) => (it.revision, it.cluster_time_ms),
            Self::Read(it) => (it.revision, it.cluster_time_ms),
            Self::Leader(it) => (it.revision, it.cluster_time_ms),
            Self::Shelf(it) => (it.revision, it.cluster_time_ms),
            Self::Ledger(it) => (it.revision, it.cluster_time_ms),
            Self::Quota(it) => it.decided(),
            Self::Problem(it) => (it.revision?, it.cluster_time_ms?),
            Self::Nothing { .. } => return None,
        };
        Some((revision, time))
    }

    /// An answer that was given before, to the same request.
    pub fn is_replayed(&self) -> bool {
        match self {
            Self::Granted(it) => it.replayed,
            Self::Elected(it) => it.replayed,
            Self::Proclaimed(it) => it.replayed,
            Self::HandedOff(it) => it.replayed,
            Self::Held(it) => it.replayed,
            Self::HeldAll(it) => it.replayed,
            Self::HoldExtended(it) => it.replayed,
            Self::HoldReleased(it) => it.replayed,
            Self::Claimed(it) => it.replayed,
            Self::Finished(it) => it.replayed,
            Self::Forced(it) => it.replayed,
            Self::Quota(it) => it.replays().0,
            Self::Problem(it) => it.replayed == Some(true),
            _ => false,
        }
    }

    /// To somebody who asks: in the queue.
    pub fn is_wait(&self) -> bool {
        matches!(
            self,
            Self::Waiting(_) | Self::Campaigning(_) | Self::Quota(QuotaHeard::Waiting(_))
        )
    }

    /// It says what is there, and changes nothing: answers of the same moment may share a revision.
    pub fn is_look(&self) -> bool {
        match self {
            Self::Read(_) | Self::Leader(_) | Self::Shelf(_) | Self::Ledger(_) => true,
            Self::Quota(heard) => heard.is_look(),
            other => other.is_wait(),
        }
    }

    /// Tokens granted: each with the name that it is for. Empty: nothing was granted.
    pub fn tokens(&self) -> Vec<(&str, u64)> {
        match self {
            Self::Granted(it) => vec![(&it.resource, it.fencing_token)],
            Self::Elected(it) => vec![(&it.election, it.term)],
            Self::Held(it) => vec![(&it.resource, it.fence)],
            Self::HeldAll(it) => it.holds.iter().map(|it| (&*it.resource, it.fence)).collect(),
            Self::Claimed(it) => vec![(&it.job, it.fencing_token)],
            Self::Quota(QuotaHeard::Reserved(it)) => vec![(&it.reservation_id, it.fence)],
            _ => Vec::new(),
        }
    }

    /// Until when what was granted, renewed or begun lasts, in milliseconds from the answer's moment. 0: it is gone.
    pub fn expires_in_ms(&self) -> Option<u64> {
        match self {
            Self::Granted(it) => Some(it.expires_in_ms),
            Self::Elected(it) => Some(it.expires_in_ms),
            Self::Held(it) => Some(it.expires_in_ms),
            Self::HeldAll(it) => Some(it.expires_in_ms),
            Self::HoldExtended(it) => Some(it.expires_in_ms),
            Self::Claimed(it) => Some(it.expires_in_ms),
            Self::Renewed(it) => Some(it.expires_in_ms),
            Self::Quota(QuotaHeard::Reserved(it)) => Some(it.expires_in_ms),
            _ => None,
        }
    }

    /// To a hold: it is one that the owner had already, by another request.
    pub fn is_yours(&self) -> bool {
        match self {
            Self::Held(it) => it.yours,
            Self::HeldAll(it) => it.yours,
            _ => false,
        }
    }

    /// Who has `name`, and by which token, as this answer says: a read, or a refusal.
    pub fn holder(&self, name: &str) -> Option<(&str, u64)> {
        match self {
            Self::Read(it) => it.holder.as_ref().map(|it| (&*it.owner, it.fencing_token)),
            Self::Leader(it) => it.leader.as_ref().map(|it| (&*it.candidate, it.term)),
            Self::Shelf(it) => it.holder.as_ref().map(|it| (&*it.owner, it.fence)),
            Self::Ledger(job) => {
                let live = job.runs.iter().find(|run| run.state == RunState::Claimed)?;
                Some((live.owner.as_deref()?, live.fencing_token?))
            }
            Self::Problem(it) => {
                let one = it.in_the_way.iter().find(|one| one.resource == name);
                let holder = one.map_or(it.holder.as_ref(), |one| one.holder.as_ref())?;
                Some((&holder.owner, holder.fencing_token))
            }
            _ => None,
        }
    }

    /// To a read: nobody has it.
    pub fn is_free(&self) -> bool {
        match self {
            Self::Read(it) => it.state == LockState::Free,
            Self::Leader(it) => it.state == ElectionState::Vacant,
            Self::Shelf(it) => it.state == HoldState::Free,
            Self::Ledger(job) => job.runs.iter().all(|run| run.state != RunState::Claimed),
            _ => false,
        }
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            _ => None,
        }
    }

    /// The call may have had an effect that nobody told of.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Nothing { sent } => *sent,
            Self::Problem(problem) => problem.outcome == Outcome::Unknown,
            _ => false,
        }
    }

    /// The call certainly had no effect, and nothing in the log decided that.
    pub fn is_refused_outside_the_log(&self) -> bool {
        match self {
            Self::Nothing { sent } => !sent,
            Self::Problem(it) => it.revision.is_none() && it.outcome == Outcome::NotApplied,
            _ => false,
        }
    }
}

pub(super) fn typed<T: DeserializeOwned>(body: &Value) -> Result<T, String> {
    T::deserialize(body).map_err(|error| format!("{error}: {body}"))
}
