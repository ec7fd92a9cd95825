//! What clients did and saw, as JSON lines: one when a call is sent, one when its answer is there. A call without the
//! second line is pending for ever: its client was killed, and nobody knows what became of it.

mod family;
mod heard;
mod quota;
mod read;
mod write;

pub use family::Family;
pub use heard::Heard;
pub use quota::{NodeRules, QuotaHeard, QuotaOp, ReservationOf};
pub use read::{Call, Held, History, read_folder};
pub use write::Recorder;

use crate::clock::Micros;
use serde::{Deserialize, Serialize};

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line {
    /// A call is about to be sent.
    Start {
        /// Its number in this process.
        call: u64,
        /// Who calls.
        worker: String,
        /// Which node is asked: 0, 1, 2.
        node: usize,
        /// When.
        at: Micros,
        /// What is asked.
        op: Op,
    },
    /// A call has come to its end.
    End {
        /// Its number.
        call: u64,
        /// When.
        at: Micros,
        /// What was heard.
        answer: Answer,
    },
    /// A guard of the SDK said that it holds, at least from when it was handed out.
    Guard {
        /// What, with its family: `lock/hot/1`.
        place: String,
        /// Its token.
        token: u64,
        /// When the SDK handed it out.
        since: Micros,
        /// Before its last look at the guard that said yes.
        until: Micros,
    },
}

/// What is asked. Whoever is named in a grant (owner of a lock, claimer of a run, nearly always the candidate of an election)
/// is named by the request id, so that whoever reads a holder knows the request. Holds have owners of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Op {
    /// Grant a lock, or queue for it.
    Acquire {
        /// What to lock.
        resource: String,
        /// The same over all attempts.
        request: String,
        /// 0: answer now.
        wait_ms: u64,
        /// The lease.
        ttl_ms: u64,
    },
    /// Lead, or queue for it.
    Campaign {
        /// Which election.
        resource: String,
        /// Who campaigns: the request, or that of an earlier wait whose place this one takes.
        candidate: String,
        /// What followers are told.
        value: String,
        /// The same over all attempts.
        request: String,
        /// 0: answer now.
        wait_ms: u64,
        /// The lease.
        ttl_ms: u64,
    },
    /// The leader changes its value.
    Proclaim {
        /// Which term.
        lease: LeaseOf,
        /// The new value.
        value: String,
        /// The proclaim's own request id.
        request: String,
    },
    /// The leader lets go in favour of a candidate who waits.
    Handoff {
        /// Which term.
        lease: LeaseOf,
        /// Who leads next.
        to: String,
        /// The hand-off's own request id.
        request: String,
    },
    /// Hold one or several resources for an owner, all or none.
    Hold {
        /// What.
        resources: Vec<String>,
        /// For whom.
        owner: String,
        /// What ends in the same moment: resource and fence.
        replaces: Vec<(String, u64)>,
        /// The same over all attempts.
        request: String,
        /// How long.
        ttl_ms: u64,
    },
    /// Move a hold's deadline forward.
    RenewHold(HoldOf),
    /// The payment of a hold has started.
    Begin {
        /// Which.
        hold: HoldOf,
        /// How long it may take.
        ttl_ms: u64,
    },
    /// End a hold by its owner.
    ReleaseHold(HoldOf),
    /// Create a job.
    PutJob {
        /// Which.
        resource: String,
        /// Every missed slot runs, or only the latest.
        all: bool,
        /// How often a run is tried again.
        retries: u32,
    },
    /// Run a slot.
    Claim {
        /// Which job.
        resource: String,
        /// The version of its definition.
        version: u64,
        /// Which slot, in milliseconds since 1970.
        slot: u64,
        /// The same over all attempts.
        request: String,
        /// The lease.
        ttl_ms: u64,
    },
    /// An attempt has ended by its own account.
    Finish {
        /// Which attempt.
        lease: LeaseOf,
        /// How.
        succeeded: bool,
        /// The finish's own request id.
        request: String,
    },
    /// Move a deadline forward: of a lock, a term, a run.
    Renew(LeaseOf),
    /// Several renewals of locks in one call.
    RenewMany {
        /// Which.
        leases: Vec<LeaseOf>,
    },
    /// End a lease: release a lock, or resign.
    Release(LeaseOf),
    /// The request shall hold nothing.
    Abandon {
        /// Of which family it is.
        family: Family,
        /// What it asked for: not sent along.
        resource: String,
        /// The request.
        request: String,
    },
    /// An operator ends the lease with this token.
    Force {
        /// Of which family it is.
        family: Family,
        /// Its name.
        resource: String,
        /// The token.
        token: u64,
        /// The operator's own request id.
        request: String,
    },
    /// A consistent read.
    Get {
        /// Of which family.
        family: Family,
        /// Its name.
        resource: String,
    },
    /// About quotas.
    Quota(QuotaOp),
}

/// A lease, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseOf {
    /// Of which family it is.
    pub family: Family,
    /// The lock, the election, the job.
    pub resource: String,
    /// The secret.
    pub lease: String,
    /// The request that was granted: not sent along.
    pub request: String,
}

/// A hold of an owner, and the write about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldOf {
    /// What is held.
    pub resource: String,
    /// For whom.
    pub owner: String,
    /// The fence, where it is known.
    pub fence: Option<u64>,
    /// The write's own request id.
    pub request: String,
}

impl Op {
    /// The family that it is about, and its request id where it has one of its own.
    pub fn request(&self) -> (Family, Option<&str>) {
        match self {
            Self::Acquire { request, .. } => (Family::Lock, Some(request)),
            Self::Campaign { request, .. }
            | Self::Proclaim { request, .. }
            | Self::Handoff { request, .. } => (Family::Election, Some(request)),
            Self::Hold { request, .. } => (Family::Hold, Some(request)),
            Self::RenewHold(hold) | Self::Begin { hold, .. } | Self::ReleaseHold(hold) => {
                (Family::Hold, Some(&hold.request))
            }
            Self::Claim { request, .. } | Self::Finish { request, .. } => {
                (Family::Job, Some(request))
            }
            Self::PutJob { .. } => (Family::Job, None),
            Self::Renew(lease) | Self::Release(lease) => (lease.family, None),
            Self::RenewMany { .. } => (Family::Lock, None),
            Self::Abandon { family, .. }
            | Self::Force { family, .. }
            | Self::Get { family, .. } => (*family, None),
            Self::Quota(op) => (Family::Quota, op.request()),
        }
    }

    /// What it is about: leased names, each with its family.
    pub fn places(&self) -> Vec<(Family, &str)> {
        let (family, _) = self.request();
        match self {
            Self::Quota(_) => Vec::new(),
            Self::Abandon { .. } if family == Family::Quota => Vec::new(),
            Self::Acquire { resource, .. }
            | Self::Campaign { resource, .. }
            | Self::PutJob { resource, .. }
            | Self::Claim { resource, .. }
            | Self::Proclaim { lease: LeaseOf { resource, .. }, .. }
            | Self::Handoff { lease: LeaseOf { resource, .. }, .. }
            | Self::Finish { lease: LeaseOf { resource, .. }, .. }
            | Self::RenewHold(HoldOf { resource, .. })
            | Self::Begin { hold: HoldOf { resource, .. }, .. }
            | Self::ReleaseHold(HoldOf { resource, .. })
            | Self::Renew(LeaseOf { resource, .. })
            | Self::Release(LeaseOf { resource, .. })
            | Self::Abandon { resource, .. }
            | Self::Force { resource, .. }
            | Self::Get { resource, .. } => vec![(family, resource)],
            Self::Hold { resources, replaces, .. } => {
                let replaced = replaces.iter().map(|(resource, _)| resource);
                resources.iter().chain(replaced).map(|name| (family, &**name)).collect()
            }
            Self::RenewMany { leases } => {
                leases.iter().map(|lease| (family, &*lease.resource)).collect()
            }
        }
    }

    /// Whether it asks for a lease, or a reservation.
    pub fn asks(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::Campaign { .. }
                | Self::Hold { .. }
                | Self::Claim { .. }
                | Self::Quota(QuotaOp::Reserve { .. })
        )
    }
}

/// What was heard of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// An HTTP answer.
    Response {
        /// The status.
        status: u16,
        /// The JSON.
        body: serde_json::Value,
    },
    /// No answer.
    Silence {
        /// Why.
        silence: String,
        /// Whether the call may have reached somebody.
        sent: bool,
    },
}
