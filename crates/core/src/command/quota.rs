//! Commands about quotas (DESIGN.md section 11): reserve, commit, release over trees of limits. Level 4.

mod books;

pub use books::{
    Adjust, Adjustment, Reconcile, ReportUsage, ShareGrant, ShareReclaim, ShareReturn,
};

use crate::{
    ids::{ObjectId, ReservationId, Token},
    names::{Labels, NamespaceName, Owner, QuotaName, QuotaPath, Reason, RegionName, RequestId},
};
use borsh::{BorshDeserialize, BorshSerialize};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[allow(clippy::large_enum_variant)] // Reserve is the common one.
pub enum QuotaCommand {
    /// Create a node of a tree, or change its rules.
    PutLimit(PutLimit),
    /// Remove a node that nothing uses.
    RemoveNode(RemoveNode),
    /// Take capacity, or queue for it.
    Reserve(Reserve),
    /// The outside work has started.
    Begin(Begin),
    /// Turn reserved capacity into committed use.
    Commit(Commit),
    /// Give back what is reserved.
    Release(ReleaseReservation),
    /// Move a reservation's deadline forward.
    Extend(Extend),
    /// Change what is reserved.
    Resize(Resize),
    /// Give back committed use.
    Return(ReturnUse),
    /// By an operator: end a quarantined reservation.
    Settle(Settle),
    /// What a reporter has counted in reality.
    ReportUsage(ReportUsage),
    /// Bring committed use to what was reported.
    Reconcile(Reconcile),
    /// By an operator: change committed use.
    Adjust(Adjust),
    /// By an operator: lend capacity to another region.
    ShareGrant(ShareGrant),
    /// What another region gives back of its share, or has used for good.
    ShareReturn(ShareReturn),
    /// By an operator: lend a share again that its region does not give back.
    ShareReclaim(ShareReclaim),
}

/// One node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct NodeRef {
    /// What is counted.
    pub quota: QuotaName,
    /// Where in its tree.
    pub path: QuotaPath,
}

/// An amount at a node.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Item {
    /// Where.
    pub node: NodeRef,
    /// How much, in the quota's own unit.
    pub amount: u64,
}

/// The rules of one node. Amounts in the quota's own unit.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct NodeLimits {
    /// Use of the node and all below it, committed and reserved.
    pub limit: u64,
    /// So much may be used on top.
    pub burst: u64,
    /// Kept for this node whatever its siblings use. At most `limit`.
    pub guaranteed: u64,
    /// Its share of what all want, against its siblings'. At least 1.
    pub weight: u64,
    /// What one owner may have reserved at once, here and below. `None`: unbounded.
    pub owner_reserved_max: Option<u64>,
    /// Of a root: after so long a waiting reservation goes before all that are not under their guarantee. `None`:
    /// the service's.
    pub patience_ms: Option<u64>,
    /// Of a root or a node right below it: the region that decides about it. In another one its limit is what that
    /// region has been lent, and without any `WRONG_REGION` names the home.
    pub home: Option<RegionName>,
}

impl NodeLimits {
    /// A node that may use this much, without anything else.
    pub fn of(limit: u64) -> Self {
        Self {
            limit,
            burst: 0,
            guaranteed: 0,
            weight: 1,
            owner_reserved_max: None,
            patience_ms: None,
            home: None,
        }
    }
}

/// Creates the node (`expected_version` 0) or replaces its rules. Its parent has to be there.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PutLimit {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which node.
    pub node: NodeRef,
    /// Its rules.
    pub limits: NodeLimits,
    /// The version that the caller has read; 0: it must not exist.
    pub expected_version: u64,
    /// Refuse a limit below what is claimed, rather than show a debt: so a lent share is given back.
    pub refuse_debt: bool,
    /// Drawn at random by the caller; the same over all its retries.
    pub request_id: RequestId,
}

/// Removes a node without children, use and waiting reservations.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RemoveNode {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// Which node.
    pub node: NodeRef,
    /// The version that the caller has read.
    pub expected_version: u64,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// What becomes of a reservation whose deadline passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum OnExpiry {
    /// Its capacity is free again. It may be committed late, as a new reservation, for an hour.
    Release,
    /// All of it counts as used.
    Commit,
    /// It keeps its capacity until an operator settles it.
    Quarantine,
}

/// All items at all layers, or none.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reserve {
    /// Where the quotas live.
    pub namespace: NamespaceName,
    /// For whom.
    pub owner: Owner,
    /// 1 to 16; amounts of one node are added up.
    pub items: Vec<Item>,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
    /// Drawn by the node that took the request; used only if this request turns out to be new.
    pub reservation: ReservationId,
    /// How long it lasts without an extension.
    pub ttl_ms: u64,
    /// Bound of its life over all extensions. `None`: 24 h.
    pub max_lifetime_ms: Option<u64>,
    /// What becomes of it when its deadline passes.
    pub on_expiry: OnExpiry,
    /// Higher ones go first among those who wait inside one tenant.
    pub priority: u8,
    /// 0: answer now. Not part of the request's content; the first one holds.
    pub wait_timeout_ms: u64,
    /// Notes for people.
    pub labels: Labels,
}

/// Names a reservation; with the fence only if that is its own.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReservationRef {
    /// Where its quotas live.
    pub namespace: NamespaceName,
    /// Which one.
    pub reservation: ReservationId,
    /// The token of its grant, where the caller has it.
    pub fence: Option<Token>,
}

/// The reservation gets a deadline and a fate of its own. The first begin counts.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Begin {
    /// Which reservation.
    pub of: ReservationRef,
    /// How long the work may take without an extension.
    pub in_flight_ttl_ms: u64,
    /// What becomes of the reservation when that time passes.
    pub on_expiry: OnExpiry,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// What a commit does that comes after the reservation's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Late {
    /// It is refused.
    Reject,
    /// It is admitted like a new reservation, if there is room.
    Readmit,
}

/// At most what is reserved.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Commit {
    /// Which reservation.
    pub of: ReservationRef,
    /// What is used; nodes that are not named: nothing. `None`: all that is reserved.
    pub items: Option<Vec<Item>>,
    /// The rest is given back. Else it stays reserved.
    pub is_final: bool,
    /// If the reservation has expired.
    pub late: Late,
    /// The name of the new reservation, if it comes to that. Drawn by the node that took the request.
    pub readmitted: ReservationId,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// Ends a reservation without use. Repeatable.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReleaseReservation {
    /// Which reservation.
    pub of: ReservationRef,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// Never resurrects, never brings a deadline nearer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Extend {
    /// Which reservation.
    pub of: ReservationRef,
    /// From now on. `None`: the time last granted.
    pub ttl_ms: Option<u64>,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// Names the new amounts, never a difference.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Resize {
    /// Which reservation.
    pub of: ReservationRef,
    /// Nodes of the reservation; those not named stay as they are.
    pub items: Vec<Item>,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// The real thing is gone: committed use of one commit at one node is free again.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReturnUse {
    /// Where the quota lives.
    pub namespace: NamespaceName,
    /// The commit.
    pub commit: ObjectId,
    /// One of its nodes.
    pub node: NodeRef,
    /// The owner of the reservation that was committed.
    pub owner: Owner,
    /// At most what the commit has left there.
    pub amount: u64,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

/// How an operator ends a quarantined reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Settlement {
    /// All of it is used.
    Commit,
    /// None of it is.
    Release,
}

/// By an operator; audited.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Settle {
    /// Which reservation.
    pub of: ReservationRef,
    /// How it ends.
    pub settlement: Settlement,
    /// Why.
    pub reason: Reason,
    /// As in [`PutLimit`].
    pub request_id: RequestId,
}

impl QuotaCommand {
    /// It takes nothing new, and can be done away from home.
    pub(crate) fn gives_back(&self) -> bool {
        matches!(self, Self::Release(_) | Self::Return(_) | Self::ShareReturn(_))
    }

    /// The namespace it acts in.
    pub fn namespace(&self) -> &NamespaceName {
        match self {
            Self::PutLimit(op) => &op.namespace,
            Self::RemoveNode(op) => &op.namespace,
            Self::Reserve(op) => &op.namespace,
            Self::Begin(op) => &op.of.namespace,
            Self::Commit(op) => &op.of.namespace,
            Self::Release(op) => &op.of.namespace,
            Self::Extend(op) => &op.of.namespace,
            Self::Resize(op) => &op.of.namespace,
            Self::Return(op) => &op.namespace,
            Self::Settle(op) => &op.of.namespace,
            Self::ReportUsage(op) => &op.namespace,
            Self::Reconcile(op) => &op.namespace,
            Self::Adjust(op) => &op.namespace,
            Self::ShareGrant(op) => &op.namespace,
            Self::ShareReturn(op) => &op.namespace,
            Self::ShareReclaim(op) => &op.namespace,
        }
    }

    /// The id of its request: every one has one.
    pub fn request_id(&self) -> &RequestId {
        match self {
            Self::PutLimit(op) => &op.request_id,
            Self::RemoveNode(op) => &op.request_id,
            Self::Reserve(op) => &op.request_id,
            Self::Begin(op) => &op.request_id,
            Self::Commit(op) => &op.request_id,
            Self::Release(op) => &op.request_id,
            Self::Extend(op) => &op.request_id,
            Self::Resize(op) => &op.request_id,
            Self::Return(op) => &op.request_id,
            Self::Settle(op) => &op.request_id,
            Self::ReportUsage(op) => &op.request_id,
            Self::Reconcile(op) => &op.request_id,
            Self::Adjust(op) => &op.request_id,
            Self::ShareGrant(op) => &op.request_id,
            Self::ShareReturn(op) => &op.request_id,
            Self::ShareReclaim(op) => &op.request_id,
        }
    }
}
