//! Commands about elections (DESIGN.md section 9): a lock with a face. Level 3.

use super::{ForceRelease, LeaseRef, Release, Renew};
use crate::{
    ids::LeaseId,
    names::{Labels, NamespaceName, Owner, RequestId, ResourceName, Value},
    policy::Fencing,
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[allow(clippy::large_enum_variant)] // Campaign is the common one.
pub enum ElectionCommand {
    /// Lead, or queue for it.
    Campaign(Campaign),
    /// Move the term's deadline forward.
    Renew(Renew),
    /// Change the leader's value.
    Proclaim(Proclaim),
    /// End the term by its leader.
    Resign(Release),
    /// End the term in favour of a candidate who waits.
    Handoff(Handoff),
    /// End the term by an operator.
    ForceRelease(ForceRelease),
}

/// As `Acquire`, with a value. A campaign by a candidate who waits already takes the place of that wait.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Campaign {
    /// Where the election lives.
    pub namespace: NamespaceName,
    /// Which election.
    pub election: ResourceName,
    /// Who campaigns.
    pub candidate: Owner,
    /// What followers are told.
    pub value: Value,
    /// Drawn at random by the caller; the same over all its retries.
    pub request_id: RequestId,
    /// Drawn by the node that took the request; used only if this request turns out to be new.
    pub lease_id: LeaseId,
    /// `None`: the namespace's default.
    pub lease_ttl_ms: Option<u64>,
    /// 0: answer now. Not part of the request's content; the first one holds.
    pub wait_timeout_ms: u64,
    /// Bound of the whole term over all renewals. `None`: the namespace's.
    pub max_hold_ms: Option<u64>,
    /// `None`: the namespace says.
    pub fencing: Option<Fencing>,
    /// Notes for people.
    pub labels: Labels,
}

/// By the leader, who proves it by the lease.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proclaim {
    /// Where the election lives.
    pub namespace: NamespaceName,
    /// Which term.
    pub lease: LeaseRef,
    /// The new value.
    pub value: Value,
    /// Only if the record has this version. `None`: whatever it has.
    pub version: Option<u64>,
    /// As in [`Campaign`].
    pub request_id: RequestId,
}

/// By the leader: the candidate of that name, who waits, leads next.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Handoff {
    /// Where the election lives.
    pub namespace: NamespaceName,
    /// Which term.
    pub lease: LeaseRef,
    /// The successor.
    pub to: Owner,
    /// As in [`Campaign`].
    pub request_id: RequestId,
}

impl ElectionCommand {
    /// The id of its request, if it is answered from memory when it is repeated.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Campaign(op) => Some(&op.request_id),
            Self::Proclaim(op) => Some(&op.request_id),
            Self::Handoff(op) => Some(&op.request_id),
            Self::Renew(_) | Self::Resign(_) | Self::ForceRelease(_) => None,
        }
    }

    /// It takes nothing, and can be done away from home.
    pub(crate) fn gives_back(&self) -> bool {
        matches!(self, Self::Resign(_) | Self::ForceRelease(_))
    }

    /// The namespace it acts in.
    pub fn namespace(&self) -> &NamespaceName {
        match self {
            Self::Campaign(op) => &op.namespace,
            Self::Renew(op) => &op.namespace,
            Self::Proclaim(op) => &op.namespace,
            Self::Resign(op) => &op.namespace,
            Self::Handoff(op) => &op.namespace,
            Self::ForceRelease(op) => &op.namespace,
        }
    }
}
