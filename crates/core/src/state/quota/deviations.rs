//! Planted bugs of quotas that take more than a line where the rule is. Without the feature `planted` all of this is
//! nothing: see [`crate::planted`].

use super::{State, lifecycle::Change};
use crate::{
    command::ReturnUse,
    ids::ObjectId,
    planted::{self, Planted},
    quota::{Account, Asked, Kept, Posting, Trial, signed},
};

/// Whether bugs are planted that this state machine's own assertion would find before anybody else.
pub(super) fn is_unchecked() -> bool {
    planted::has(Planted::GuaranteeIgnored)
        || planted::has(Planted::LateCommitUnchecked)
        || planted::has(Planted::ShrinkKept)
}

/// What a return takes besides what it is to take.
pub(super) fn taken_again(account: &mut Account, op: &ReturnUse) -> u64 {
    if !planted::has(Planted::ReturnCountsTwice) || account.left(op.commit) < op.amount {
        return 0;
    }
    account.take(op.commit, op.amount);
    op.amount
}

/// What a resize gives back.
pub(super) fn given_back(shrunk: Vec<Change>) -> Vec<Change> {
    match planted::has(Planted::ShrinkKept) {
        true => Vec::new(),
        false => shrunk,
    }
}

impl State {
    /// What an expired reservation has freed is counted at the root again.
    pub(super) fn forget_layer(&mut self, namespace: u32, changes: &[Change]) {
        if !planted::has(Planted::ExpiryForgetsLayer) {
            return;
        }
        for &((tree, id), by) in changes {
            let tree = &mut self.space_mut(namespace).trees[tree as usize];
            let root = tree.chain(id)[0];
            tree.node_mut(root).reserved += by.reserved.unsigned_abs();
        }
    }

    /// Whether a wait that is over ends in a grant all the same.
    pub(super) fn is_granted_too_late(&self, id: ObjectId) -> bool {
        if !planted::has(Planted::TimedOutReserveGranted) || self.paused_until > self.time {
            return false;
        }
        let of = self.reservation(id);
        let trees = &self.space(of.namespace).trees;
        Trial::of(trees, &of.items).passes(trees, &Kept::default())
    }

    /// A reservation in quarantine has its items, and nothing is counted for them.
    pub(super) fn free_quarantined(&mut self, id: ObjectId) {
        if !planted::has(Planted::QuarantineFrees) {
            return;
        }
        let of = self.reservation(id).clone();
        let free =
            |item: &Asked| (item.place, Posting { committed: 0, reserved: -signed(item.amount) });
        let changes: Vec<_> = of.items.iter().map(free).collect();
        self.post(of.namespace, &of.owner, &changes);
    }
}
