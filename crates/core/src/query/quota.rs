//! Reads of quotas, and their answers.

use crate::{
    command::{Item, NodeLimits, NodeRef, OnExpiry},
    ids::{ObjectId, ReservationId, Revision, Token},
    names::{Caller, Labels, NamespaceName, Owner, QuotaName},
    outcome::{Drift, Layer, ReservationState},
};

/// One node of a quota's tree. Sums are of the node and all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Which node.
    pub node: NodeRef,
    /// Its rules.
    pub limits: NodeLimits,
    /// For the next put's `expectedVersion`.
    pub version: u64,
    /// Since the rules were last changed.
    pub updated_ago_ms: u64,
    /// The revision in which they were.
    pub updated_in: Revision,
    /// Used.
    pub committed: u64,
    /// Reserved: reservations not yet swept or ended.
    pub reserved: u64,
    /// What of both is of the node itself.
    pub direct_committed: u64,
    /// What of both is of the node itself.
    pub direct_reserved: u64,
    /// The largest amount that passes here by the limits; less while others wait.
    pub available: u64,
    /// What it claims above its limit and burst.
    pub debt: u64,
    /// What counts of its guarantee: less after a cut above.
    pub effective_guaranteed: u64,
    /// How many wait for this very node.
    pub waiters: u64,
    /// Ended reservations are still counted.
    pub sweep_pending: bool,
}

/// One quota as metrics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaFigures {
    /// Where it lives.
    pub namespace: NamespaceName,
    /// What is counted.
    pub quota: QuotaName,
    /// The root, and the nodes right below it.
    pub nodes: Vec<NodeView>,
    /// Reservations that wait for something of it.
    pub waiters: u64,
    /// What other regions may use of it.
    pub lent: u64,
    /// What of that was lent again: the worst overshoot.
    pub lent_twice: u64,
}

/// Which nodes to list, by path.
#[derive(Clone, Debug)]
pub struct ListNodes {
    /// Of which quota.
    pub quota: QuotaName,
    /// Only paths that begin so.
    pub prefix: String,
    /// Rows at most.
    pub limit: usize,
    /// Only paths after this one; `None`: from the first.
    pub after: Option<String>,
}

/// Why a node does not give more, and who has what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The node, and all layers above it, root first.
    pub layers: Vec<NodeView>,
    /// The last reserve of this very node that did not pass.
    pub last_refusal: Option<RefusalView>,
    /// The oldest reservations that have something of the node or of what is below it.
    pub holders: Vec<ReservationView>,
    /// There may be more of them.
    pub has_more: bool,
}

/// A reserve that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalView {
    /// How long ago.
    pub ago_ms: u64,
    /// When, in the total order.
    pub revision: Revision,
    /// Whose.
    pub owner: Owner,
    /// What it asked of this node.
    pub amount: u64,
    /// The layers that were exhausted then.
    pub layers: Vec<Layer>,
}

/// A reservation that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationView {
    /// Its number, in the order of requests.
    pub claim: ObjectId,
    /// Its name.
    pub reservation: ReservationId,
    /// 0 while it waits.
    pub fence: Token,
    /// What it is now.
    pub state: ReservationState,
    /// In its own words.
    pub owner: Owner,
    /// Who asked, as authenticated.
    pub caller: Caller,
    /// What it has, or waits for.
    pub items: Vec<Item>,
    /// What becomes of it at its deadline.
    pub on_expiry: OnExpiry,
    /// Among those who wait inside one tenant.
    pub priority: u8,
    /// Since it was asked for.
    pub age_ms: u64,
    /// Since its grant; 0 while it waits.
    pub held_for_ms: u64,
    /// Until its deadline; of a wait until that is over.
    pub expires_in_ms: u64,
    /// The caller's notes.
    pub labels: Labels,
}

/// Which reservations to list, oldest first.
#[derive(Clone, Debug, Default)]
pub struct ListReservations {
    /// Only of this owner.
    pub owner: Option<Owner>,
    /// Only with something of this node or below it.
    pub node: Option<NodeRef>,
    /// Only in this state.
    pub state: Option<ReservationState>,
    /// Rows at most.
    pub limit: usize,
    /// Only numbers above this: the `next` of the page before.
    pub after: ObjectId,
}

/// One page of reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationPage {
    /// Rows.
    pub reservations: Vec<ReservationView>,
    /// Where the next page begins; `None`: this was the last. A page may be empty and still have one.
    pub next: Option<ObjectId>,
}

/// What an owner has committed at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// Whose.
    pub owner: Owner,
    /// All of it.
    pub committed: u64,
    /// Commits kept one by one, oldest first, with what they have left.
    pub commits: Vec<(ObjectId, u64)>,
    /// What older ones have left together.
    pub folded: u64,
}

/// Capacity that another region may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareView {
    /// Its name.
    pub share: ReservationId,
    /// Of which node.
    pub node: NodeRef,
    /// Whose: `region:` and its name.
    pub owner: Owner,
    /// What the region may use, as far as is known here.
    pub amount: u64,
    /// What of that is kept for it here; the rest was lent again.
    pub kept: u64,
    /// So much may be lent again: its part of the worst overshoot.
    pub overdraft_cap: u64,
    /// It has been reclaimed.
    pub is_reclaimed: bool,
}

/// The last report of one who counts the use of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportView {
    /// Who.
    pub reporter: Owner,
    /// Which of theirs.
    pub epoch: u64,
    /// Since the read that it rests on.
    pub age_ms: u64,
    /// What it said against the books.
    pub drift: Drift,
    /// It was compensated.
    pub is_compensated: bool,
}
