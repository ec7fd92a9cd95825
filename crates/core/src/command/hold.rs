//! Commands about holds (DESIGN.md section 10): addressed by the owner, never waiting. Level 3.

use super::ForceRelease;
use crate::{
    ids::{LeaseId, Token},
    names::{Labels, NamespaceName, Owner, RequestId, ResourceName},
    policy::HoldPolicy,
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[allow(clippy::large_enum_variant)] // Hold is the common one.
pub enum HoldCommand {
    /// Hold one or several resources, all or none.
    Hold(Hold),
    /// Move a hold's deadline forward.
    Renew(RenewHold),
    /// Payment has started.
    Begin(BeginHold),
    /// End a hold by its owner.
    Release(ReleaseHold),
    /// End a hold by an operator.
    ForceRelease(ForceRelease),
    /// Change what the namespace allows its holds.
    PutPolicy(PutHoldPolicy),
}

/// Names a hold of the owner; with the fence only that very one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HoldRef {
    /// What is held.
    pub resource: ResourceName,
    /// The token of its grant, where the caller has it.
    pub fence: Option<Token>,
}

/// All or none; one deadline for all. Who has them already gets the hold they have.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Hold {
    /// Where the resources live.
    pub namespace: NamespaceName,
    /// 1 to 64, no duplicates.
    pub resources: Vec<ResourceName>,
    /// For whom.
    pub owner: Owner,
    /// Drawn at random by the caller; the same over all its retries.
    pub request_id: RequestId,
    /// Drawn by the node that took the request; used only if this request turns out to be new. Nobody is told it.
    pub lease_id: LeaseId,
    /// How long it lasts without a renewal.
    pub ttl_ms: u64,
    /// Bound of the whole hold over all renewals. `None`: the namespace's.
    pub max_hold_ms: Option<u64>,
    /// Holds of the same owner that end in the same moment. Those that are gone already are not missed.
    pub replaces: Vec<HoldRef>,
    /// Notes for people.
    pub labels: Labels,
}

/// Never resurrects, never brings a deadline nearer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RenewHold {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// Which hold.
    pub hold: HoldRef,
    /// For whom.
    pub owner: Owner,
    /// `None`: the TTL last granted.
    pub ttl_ms: Option<u64>,
    /// As in [`Hold`].
    pub request_id: RequestId,
}

/// The hold gets a deadline of its own, which cannot be renewed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BeginHold {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// Which hold.
    pub hold: HoldRef,
    /// For whom.
    pub owner: Owner,
    /// How long the payment may take.
    pub ttl_ms: u64,
    /// As in [`Hold`].
    pub request_id: RequestId,
}

/// Repeatable: a late copy never touches the next hold.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReleaseHold {
    /// Where the resource lives.
    pub namespace: NamespaceName,
    /// Which hold.
    pub hold: HoldRef,
    /// For whom.
    pub owner: Owner,
    /// As in [`Hold`].
    pub request_id: RequestId,
}

/// Replaces what the namespace allows its holds; the namespace's version counts up.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PutHoldPolicy {
    /// The namespace, and the whole of its other rules.
    pub put: super::PutNamespace,
    /// The rules for holds.
    pub holds: HoldPolicy,
}

impl HoldCommand {
    /// The id of its request, if it is answered from memory when it is repeated.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Hold(op) => Some(&op.request_id),
            Self::Renew(op) => Some(&op.request_id),
            Self::Begin(op) => Some(&op.request_id),
            Self::Release(op) => Some(&op.request_id),
            Self::ForceRelease(_) | Self::PutPolicy(_) => None,
        }
    }

    /// It takes nothing, and can be done away from home.
    pub(crate) fn gives_back(&self) -> bool {
        matches!(self, Self::Release(_) | Self::ForceRelease(_) | Self::PutPolicy(_))
    }

    /// The namespace it acts in.
    pub fn namespace(&self) -> &NamespaceName {
        match self {
            Self::Hold(op) => &op.namespace,
            Self::Renew(op) => &op.namespace,
            Self::Begin(op) => &op.namespace,
            Self::Release(op) => &op.namespace,
            Self::ForceRelease(op) => &op.namespace,
            Self::PutPolicy(op) => &op.put.namespace,
        }
    }
}
