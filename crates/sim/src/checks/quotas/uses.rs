//! What is used: commits, in time and late, returns, what operators set right, and what is lent to other regions.

use super::{
    Items, Lot, Moment, Quotas, Share,
    books::{Moves, count, layers},
    changes::{add, moved, names},
    signed, summed,
};
use sereno_core::{
    command::{Adjustment, Commit, NodeRef, QuotaCommand},
    event::Event,
    ids::{ObjectId, ReservationId, Token},
    names::Owner,
};

impl Quotas {
    pub(super) fn committed(
        &mut self,
        (name, fence): (ReservationId, Token),
        commit: ObjectId,
        ends: bool,
        by_expiry: bool,
        moment: &Moment,
    ) -> Moves {
        let had = self.of(fence).items.clone();
        let taken = match moment.quota() {
            _ if by_expiry => had.clone(),
            Some(QuotaCommand::Commit(Commit { items: Some(items), of, .. }))
                if of.reservation == name =>
            {
                summed(items)
            }
            Some(QuotaCommand::Commit(op)) if op.of.reservation == name => had.clone(),
            Some(QuotaCommand::Settle(op)) if op.of.reservation == name => had.clone(),
            other => {
                panic!("S4: a reservation is used when its owner says so: {name} by {other:?}")
            }
        };
        let mut left = had.clone();
        for (node, &amount) in &taken {
            let has = left.entry(node.clone()).or_default();
            let rest = has.checked_sub(amount);
            *has = rest.unwrap_or_else(|| {
                panic!("S9: at most what is reserved is used: {taken:?} of {had:?}")
            });
        }
        left.retain(|_, amount| *amount > 0);
        let owner = self.of(fence).owner.clone();
        let mut due = moved(&taken, 1, 0);
        if ends {
            self.ends(fence, "committed");
            add(&mut due, moved(&had, 0, -1));
        } else {
            assert!(!left.is_empty(), "S10: who has nothing left has ended: {fence}");
            self.of(fence).items = left;
            add(&mut due, moved(&taken, 0, -1));
        }
        self.uses(name, commit, &owner, &taken);
        due
    }

    pub(super) fn readmitted(
        &mut self,
        name: ReservationId,
        commit: ObjectId,
        moment: &Moment,
    ) -> Moves {
        let Some(QuotaCommand::Commit(op)) = moment.quota().filter(|op| names(op, name)) else {
            panic!("S4: a late commit is its owner's: {name}")
        };
        let late = self.late.remove(&name);
        let late = late.unwrap_or_else(|| {
            panic!("S10: {name} is admitted again once, and only after it has expired")
        });
        let taken = op.items.as_deref().map_or(late.items.clone(), summed);
        let is_part = taken.iter().all(|(node, amount)| late.items.get(node) >= Some(amount));
        assert!(
            is_part,
            "S9: at most what was reserved is admitted again: {taken:?} of {:?}",
            late.items
        );
        self.check_within(&taken);
        for node in taken.keys().flat_map(layers) {
            let is_below = |one: &&NodeRef| layers(one).contains(&node);
            let more =
                taken.iter().filter(|(one, _)| is_below(one)).map(|(_, amount)| amount).sum();
            self.check_owner(&Items::from([(node.clone(), 0)]), &late.owner, more);
        }
        self.uses(op.readmitted, commit, &late.owner, &taken);
        moved(&taken, 1, 0)
    }

    fn uses(&mut self, name: ReservationId, commit: ObjectId, owner: &Owner, taken: &Items) {
        for (node, &amount) in taken {
            let lot = Lot { name, owner: owner.clone(), committed: amount, returned: 0 };
            let before = self.lots.insert((commit, node.clone()), lot);
            assert!(before.is_none(), "S10: a commit is made once: {commit:?}");
            self.account(node, owner, signed(amount));
        }
    }

    /// What an owner has committed at a node changes.
    pub(super) fn account(&mut self, node: &NodeRef, owner: &Owner, by: i64) {
        let entry = self.accounts.entry((node.clone(), owner.clone())).or_default();
        let after = entry.checked_add_signed(by);
        *entry = after.unwrap_or_else(|| {
            panic!("S10: nothing is given back that is not used: {owner} {entry} {by:+}")
        });
        self.accounts.retain(|_, amount| *amount > 0);
    }

    pub(super) fn returned(&mut self, commit: ObjectId, moment: &Moment) -> Moves {
        let Some(QuotaCommand::Return(op)) = moment.quota() else {
            panic!("S4: use is given back by its owner: {commit:?}")
        };
        assert!(op.commit == commit, "S4: a return is of the commit that it names: {op:?}");
        if let Some(lot) = self.lots.get_mut(&(commit, op.node.clone())) {
            lot.returned += op.amount;
            assert!(
                lot.returned <= lot.committed && lot.owner == op.owner,
                "S10: nothing is returned twice: {lot:?} of {commit:?}"
            );
        }
        self.account(&op.node, &op.owner, -signed(op.amount));
        moved(&Items::from([(op.node.clone(), op.amount)]), -1, 0)
    }

    pub(super) fn reconciled(&mut self, event: &Event, moves: &Moves, moment: &Moment) {
        let Some(QuotaCommand::Reconcile(op)) = moment.quota() else {
            panic!("S4: books are set right when somebody says so")
        };
        if self.reconciled.0 != event.revision {
            self.reconciled = (event.revision, 0);
        }
        let owner = event.owner.as_ref().expect("use is somebody's");
        for (node, &(committed, reserved)) in moves {
            assert!(
                *node == op.node && reserved == 0,
                "S9: a compensation is of the node that was reported: {moves:?}"
            );
            self.reconciled.1 += committed;
            self.account(node, owner, committed);
        }
    }

    pub(super) fn adjusted(&mut self, moment: &Moment) -> Moves {
        let Some(QuotaCommand::Adjust(op)) = moment.quota() else {
            panic!("S4: use is adjusted by an operator")
        };
        let by = match op.change {
            Adjustment::Add(amount) => signed(amount),
            Adjustment::Subtract(amount) => -signed(amount),
        };
        self.account(&op.node, &op.owner, by);
        Moves::from([(op.node.clone(), (by, 0))])
    }

    pub(super) fn lent(&mut self, name: ReservationId, cap: u64, moment: &Moment) -> Moves {
        let Some(QuotaCommand::ShareGrant(op)) = moment.quota() else {
            panic!("S4: a share is lent by an operator: {name}")
        };
        let amount = op.amount;
        let share = Share { node: op.node.clone(), amount, lent: 0, cap };
        assert!(self.shares.insert(name, share).is_none(), "a share's name is its own: {name}");
        let items = Items::from([(op.node.clone(), amount)]);
        self.check_within(&items);
        moved(&items, 0, 1)
    }

    /// What comes back makes up for what was lent again, first.
    pub(super) fn share_returned(
        &mut self,
        name: ReservationId,
        owner: &Owner,
        moment: &Moment,
    ) -> Moves {
        let Some(QuotaCommand::ShareReturn(op)) = moment.quota() else {
            panic!("S4: a share is given back by its region: {name}")
        };
        let share = self.shares.get_mut(&name).expect("S10: a share that is there is given back");
        let before = share.amount - share.lent;
        let left = share.amount.checked_sub(op.returned + op.spent);
        share.amount = left.expect("S10: no more of a share comes back than there is");
        share.lent = share.lent.saturating_sub(op.returned).min(share.amount);
        let kept = signed(share.amount - share.lent) - signed(before);
        let node = share.node.clone();
        if share.amount == 0 {
            self.shares.remove(&name);
        }
        let spent = signed(op.spent);
        if spent > 0 {
            self.account(&node, owner, spent);
        }
        let mut due = Moves::new();
        count(&mut due, &node, spent, kept);
        due
    }

    pub(super) fn reclaimed(&mut self, name: ReservationId, lent: u64) -> Moves {
        let share = self.shares.get_mut(&name).expect("S10: a share that is there is reclaimed");
        assert!(
            share.lent == 0 && lent <= share.cap && lent <= share.amount,
            "S9: a share is lent again once, up to its cap: {lent} of {share:?}"
        );
        share.lent = lent;
        let mut due = Moves::new();
        count(&mut due, &share.node, 0, -signed(lent));
        due
    }
}
