//! What is answered about quotas (DESIGN.md section 11).

use super::End;
use crate::{
    command::{Item, NodeRef, Settlement},
    ids::{ObjectId, ReservationId, Token},
    names::Owner,
};
use borsh::{BorshDeserialize, BorshSerialize};

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum QuotaDone {
    /// The node has this version now.
    LimitPut {
        /// 1 for a new one.
        version: u64,
        /// Claims of the node above its limit and burst: until they have gone, nothing is added.
        debt: u64,
    },
    /// The node is gone.
    NodeRemoved,
    /// The capacity is reserved: just now, extended, begun or resized.
    Reserved(Reserved),
    /// Reserved capacity is used now.
    Committed(Committed),
    /// The reservation holds nothing any more.
    Released {
        /// What this command gave back.
        items: Vec<Item>,
        /// How it had ended before, if it had.
        already: Option<End>,
    },
    /// Committed use is free again.
    Returned {
        /// The commit.
        commit: ObjectId,
        /// So much of it is free again.
        amount: u64,
        /// So much has it left at that node; of one that is folded, all that are.
        left: u64,
    },
    /// The quarantined reservation has ended.
    Settled {
        /// How.
        settlement: Settlement,
        /// The commit, if one was made.
        commit: Option<ObjectId>,
    },
    /// The report is on record.
    Reported(Drift),
    /// The drift of a report was compensated, or would be.
    Reconciled(Reconciled),
    /// Committed use was changed.
    Adjusted {
        /// What the owner has committed at the node now.
        committed: u64,
        /// The commit, if use was added.
        commit: Option<ObjectId>,
    },
    /// The share as it is now.
    Shared(Shared),
}

/// Capacity that another region may use.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Shared {
    /// Its name.
    pub share: ReservationId,
    /// What the region may use of it, as far as is known here. 0: it has ended.
    pub amount: u64,
    /// What of that is kept for it here; the rest was lent again.
    pub kept: u64,
    /// It has been reclaimed.
    pub is_reclaimed: bool,
    /// The commit of what the region has used for good.
    pub commit: Option<ObjectId>,
}

/// What a reservation is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ReservationState {
    /// In the queue.
    Waiting,
    /// Its capacity is taken.
    Reserved,
    /// And its outside work is under way.
    InFlight,
    /// Its deadline has passed; an operator has to settle it.
    Quarantined,
}

/// A reservation as its owner is told of it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reserved {
    /// The object that holds, as in [`super::Waiting`].
    pub claim: ObjectId,
    /// Its name.
    pub reservation: ReservationId,
    /// The token of its grant.
    pub fence: Token,
    /// What it is now.
    pub state: ReservationState,
    /// What it has reserved, in the order asked for, each node once.
    pub items: Vec<ReservedItem>,
    /// Deadline minus the entry's time; 0 in quarantine.
    pub expires_in_ms: u64,
    /// The end of its life over all extensions.
    pub final_deadline_in_ms: u64,
    /// An extension was cut short by that end.
    pub clipped: bool,
}

/// One node of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReservedItem {
    /// Where, and how much.
    pub item: Item,
    /// For each layer, root first: the largest amount that would pass there now.
    pub available: Vec<u64>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Committed {
    /// Names it, for returns.
    pub commit: ObjectId,
    /// The reservation that it used; of a readmission the new one.
    pub reservation: ReservationId,
    /// What is used.
    pub taken: Vec<Item>,
    /// What was given back.
    pub returned: Vec<Item>,
    /// What stays reserved.
    pub left: Vec<Item>,
    /// It came late: the reservation that had expired.
    pub readmits: Option<ReservationId>,
}

/// A report against the books. All sums are of the node and what is below it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Drift {
    /// What was counted.
    pub observed: u64,
    /// What was committed when it was read.
    pub committed_then: u64,
    /// What of the difference may be reservations in flight, commits or returns since.
    pub explained: u64,
    /// The rest: more is used than is committed, or less.
    pub drift: i64,
    /// Reports in a row, this one included, whose drift had this sign. 0 without drift.
    pub in_a_row: u64,
}

/// What a reconciliation did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reconciled {
    /// By so much was committed use changed, or would it be.
    pub change: i64,
    /// Nothing was changed: it was a dry run.
    pub dry_run: bool,
    /// This report had been compensated before: nothing was changed again.
    pub already: bool,
    /// It takes another report that says the same.
    pub waits_for_another: bool,
    /// The commit, if use was added; in the reporter's name.
    pub commit: Option<ObjectId>,
}

/// Why a layer did not let an ask pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Shortage {
    /// Its limit is used up.
    Limit,
    /// Its limit and the burst on top are.
    Burst,
    /// The rest is kept for guarantees of others.
    Guarantee,
    /// The rest is kept for those who wait in front.
    Waiting,
    /// One owner may not reserve so much there.
    OwnerMax,
    /// There is no such node: its limit is 0.
    Unknown,
}

/// A layer that did not let an ask pass.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Layer {
    /// Which node.
    pub node: NodeRef,
    /// Its limit; of an owner's bound that.
    pub limit: u64,
    /// What may be used on top.
    pub burst: u64,
    /// Used, here and below; of an owner's bound 0.
    pub committed: u64,
    /// Reserved, here and below; of an owner's bound by that owner.
    pub reserved: u64,
    /// What of `asked` the layer would let pass.
    pub available: u64,
    /// All items of the ask at or below the node.
    pub asked: u64,
    /// So much has to come free. With a debt it can be more than was asked for.
    pub shortfall: u64,
    /// Of the node's rules; 0: there are none.
    pub version: u64,
    /// Why.
    pub kind: Shortage,
}

/// Figures of a refused ask.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Exhausted {
    /// Every layer that is exhausted; of each tree the root first.
    pub layers: Vec<Layer>,
    /// Ended reservations are still counted.
    pub sweep_pending: bool,
}

/// More was named than there is.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Excess {
    /// Where.
    pub node: NodeRef,
    /// Whose.
    pub owner: Owner,
    /// What there is.
    pub has: u64,
    /// What was named.
    pub asked: u64,
}
