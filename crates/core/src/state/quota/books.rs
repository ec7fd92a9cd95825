//! Committed use that is given back, or set right by an operator.

use super::{State, commit::excess, deviations};
use crate::{
    command::{Adjust, Adjustment, NodeRef, ReturnUse},
    event::{LedgerLine, QuotaChange, QuotaEvent},
    limits,
    names::{Caller, Invalid, Owner, Reason},
    outcome::{Excess, QuotaDone, Refusal},
    policy::within,
    quota::{Place, Posting, signed},
    state::request::No,
};

impl State {
    /// The real thing is gone. Never more than the commit has left there.
    pub(super) fn return_use(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &ReturnUse,
    ) -> Result<QuotaDone, No> {
        let range = 1..=limits::QUOTA_AMOUNT_MAX;
        within("amount", op.amount, range).map_err(Refusal::from)?;
        let place = self.place(namespace, &op.node)?;
        let account = self.space(namespace).node(place).accounts.get(&op.owner);
        let has = account.map_or(0, |account| account.left(op.commit));
        if op.amount > has {
            let (node, owner) = (op.node.clone(), op.owner.clone());
            return Err(excess(Excess { node, owner, has, asked: op.amount }).into());
        }
        let accounts = &mut self.space_mut(namespace).node_mut(place).accounts;
        let account = accounts.get_mut(&op.owner).expect("what has something left is there");
        account.take(op.commit, op.amount);
        let amount = op.amount + deviations::taken_again(account, op);
        let left = account.left(op.commit);
        let lines = self.take_committed(namespace, place, &op.owner, amount);
        let change = QuotaChange::Returned { commit: op.commit };
        self.books_event(caller, namespace, &op.node, &op.owner, change, lines, None);
        Ok(QuotaDone::Returned { commit: op.commit, amount: op.amount, left })
    }

    /// Takes what was taken from an account out of the sums, too.
    pub(super) fn take_committed(
        &mut self,
        namespace: u32,
        place: Place,
        owner: &Owner,
        amount: u64,
    ) -> Vec<LedgerLine> {
        self.close_account(namespace, place, owner);
        let posting = Posting { committed: -signed(amount), reserved: 0 };
        self.post(namespace, owner, &[(place, posting)])
    }

    /// An operator knows better. No limit is asked: what is used is used, and shows as debt.
    pub(super) fn adjust(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Adjust,
    ) -> Result<QuotaDone, No> {
        let (Adjustment::Add(amount) | Adjustment::Subtract(amount)) = op.change;
        within("amount", amount, 1..=limits::QUOTA_AMOUNT_MAX).map_err(Refusal::from)?;
        let place = self.place(namespace, &op.node)?;
        let (lines, commit) = match op.change {
            Adjustment::Add(amount) => {
                let (lines, commit) = self.add_use(namespace, place, &op.owner, amount)?;
                (lines, Some(commit))
            }
            Adjustment::Subtract(amount) => {
                let account = self.space(namespace).node(place).accounts.get(&op.owner);
                let has = account.map_or(0, |account| account.total());
                if amount > has {
                    let (node, owner) = (op.node.clone(), op.owner.clone());
                    return Err(excess(Excess { node, owner, has, asked: amount }).into());
                }
                (self.subtract_use(namespace, place, &op.owner, amount), None)
            }
        };
        let reason = Some(&op.reason);
        self.books_event(
            caller,
            namespace,
            &op.node,
            &op.owner,
            QuotaChange::Adjusted,
            lines,
            reason,
        );
        let account = self.space(namespace).node(place).accounts.get(&op.owner);
        let committed = account.map_or(0, |account| account.total());
        Ok(QuotaDone::Adjusted { committed, commit })
    }

    /// More is used: a commit of its own.
    pub(super) fn add_use(
        &mut self,
        namespace: u32,
        place: Place,
        owner: &Owner,
        amount: u64,
    ) -> Result<(Vec<LedgerLine>, crate::ids::ObjectId), Refusal> {
        let space = self.space(namespace);
        let root = space.tree(place).chain(place.1)[0];
        let root = space.tree(place).node(root);
        if root.committed + root.reserved + amount > limits::QUOTA_AMOUNT_MAX {
            let max = limits::QUOTA_AMOUNT_MAX;
            let rule = format!("would bring the use of the whole quota above {max}");
            return Err(Invalid::new("amount", rule).into());
        }
        if space.accounts + space.open_items >= limits::QUOTA_ACCOUNTS_MAX {
            return Err(self.limit_reached("accounts of quotas", limits::QUOTA_ACCOUNTS_MAX));
        }
        let commit = self.next_object();
        self.add_lot(namespace, place, owner, commit, amount);
        let posting = Posting { committed: signed(amount), reserved: 0 };
        Ok((self.post(namespace, owner, &[(place, posting)]), commit))
    }

    /// Less is used: the owner's oldest commits lose it, so that nothing is returned twice.
    pub(super) fn subtract_use(
        &mut self,
        namespace: u32,
        place: Place,
        owner: &Owner,
        amount: u64,
    ) -> Vec<LedgerLine> {
        let accounts = &mut self.space_mut(namespace).node_mut(place).accounts;
        let account = accounts.get_mut(owner).expect("the owner has that much");
        assert!(account.take_oldest(amount) == amount, "the owner has that much");
        self.take_committed(namespace, place, owner, amount)
    }

    #[allow(clippy::too_many_arguments)] // What an event says.
    pub(super) fn books_event(
        &mut self,
        caller: &Caller,
        namespace: u32,
        node: &NodeRef,
        owner: &Owner,
        change: QuotaChange,
        lines: Vec<LedgerLine>,
        reason: Option<&Reason>,
    ) {
        let event = QuotaEvent { reservation: None, change, lines, reason: reason.cloned() };
        let resource = super::lifecycle::resource_of_node(node);
        self.ledger_event(caller, namespace, resource, Some(owner.clone()), event);
    }
}
