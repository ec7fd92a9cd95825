//! Escrow between regions: capacity that is lent to another region, which uses it by itself. Time alone never takes it
//! back, for the other region's time may stand still.
//!
//! In the books a share is reserved, in the region's name. A reclaim lends at most its overdraft cap again, although
//! the region may go on using it: so the worst overshoot is the sum of the caps of reclaimed shares.

use super::{Space, State, reserve::Demand};
use crate::{
    command::{Item, NodeRef, ShareGrant, ShareReclaim, ShareReturn},
    event::{LedgerLine, QuotaChange, QuotaEvent},
    ids::{ObjectId, ReservationId},
    limits,
    names::{Caller, Invalid, NamespaceName, Owner, Reason, RegionName},
    outcome::{Code, Detail, Excess, Missing, QuotaDone, Refusal, Shared},
    policy::within,
    query::ShareView,
    quota::{Place, Posting, Trial, difference, signed},
    state::{region::wrong_region, request::No},
};
use borsh::{BorshDeserialize, BorshSerialize};

/// A share that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Share {
    pub(super) place: Place,
    pub(super) owner: Owner,
    /// What the region may use.
    pub(super) amount: u64,
    /// What of that was lent again.
    lent: u64,
    overdraft_cap: u64,
    is_reclaimed: bool,
}

impl Share {
    /// What is reserved for it in the books.
    pub(super) fn kept(&self) -> u64 {
        self.amount - self.lent
    }
}

/// Whose use of a share is, as an owner.
fn owner_of(region: &RegionName) -> Owner {
    Owner::new(&format!("region:{region}")).expect("a region's name is short")
}

impl State {
    pub(super) fn grant_share(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &ShareGrant,
    ) -> Result<QuotaDone, No> {
        let range = 1..=limits::QUOTA_AMOUNT_MAX;
        within("amount", op.amount, range).map_err(Refusal::from)?;
        within("overdraftCap", op.overdraft_cap, 0..=op.amount).map_err(Refusal::from)?;
        self.place(namespace, &op.node)?;
        if self.space(namespace).shares.len() >= limits::QUOTA_SHARES_MAX {
            let max = limits::QUOTA_SHARES_MAX as u64;
            return Err(self.limit_reached("shares of one namespace", max).into());
        }
        if self.space(namespace).shares.contains_key(&op.share) || self.paused_until > self.time {
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused);
            return Err(No::Forget(refusal.retry_after(self.paused_ms().max(1_000))));
        }
        let items = [Item { node: op.node.clone(), amount: op.amount }];
        if let Some(home) = self.items_away(namespace, &items) {
            return Err(wrong_region(&home).into());
        }
        let Demand::Of(asks) = self.demand(namespace, &items) else {
            unreachable!("the node was just found")
        };
        let kept = self.kept(namespace);
        let space = self.space(namespace);
        let trial = Trial::of(&space.trees, &asks);
        if !trial.passes(&space.trees, &kept) {
            let layers = space.short_layers(&trial, &kept, Vec::new());
            return Err(self.exhausted(layers).into());
        }
        let (owner, place) = (owner_of(&op.region), asks[0].place);
        let share = Share {
            place,
            owner: owner.clone(),
            amount: op.amount,
            lent: 0,
            overdraft_cap: op.overdraft_cap,
            is_reclaimed: false,
        };
        let posting = Posting { committed: 0, reserved: signed(op.amount) };
        let lines = self.post(namespace, &owner, &[(place, posting)]);
        self.assert_within_limits(namespace, &[(place, posting)]);
        let shared = share.shared(op.share, None);
        self.space_mut(namespace).shares.insert(op.share, share);
        let (share, overdraft_cap) = (op.share, op.overdraft_cap);
        let change = QuotaChange::ShareGranted { share, overdraft_cap };
        self.books_event(caller, namespace, &op.node, &owner, change, lines, None);
        Ok(QuotaDone::Shared(shared))
    }

    /// The region has less of it from here on. What is free again makes up for what was lent, first.
    pub(super) fn return_share(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &ShareReturn,
    ) -> Result<QuotaDone, No> {
        within("returned", op.returned, 0..=limits::QUOTA_AMOUNT_MAX).map_err(Refusal::from)?;
        within("spent", op.spent, 0..=limits::QUOTA_AMOUNT_MAX).map_err(Refusal::from)?;
        let (mut share, node) = self.share(namespace, op.share)?;
        let asked = op.returned + op.spent;
        if asked > share.amount || asked == 0 {
            let (owner, has) = (share.owner, share.amount);
            return Err(super::commit::excess(Excess { node, owner, has, asked }).into());
        }
        let before = share.kept();
        share.amount -= asked;
        share.lent = (share.lent - share.lent.min(op.returned)).min(share.amount);
        let reserved = difference(share.kept(), before);
        let commit = (op.spent > 0).then(|| self.next_object());
        if let Some(commit) = commit {
            self.add_lot(namespace, share.place, &share.owner, commit, op.spent);
        }
        let posting = Posting { committed: signed(op.spent), reserved };
        let lines = self.post(namespace, &share.owner, &[(share.place, posting)]);
        let shared = share.shared(op.share, commit);
        let change = QuotaChange::ShareReturned { share: op.share, commit };
        self.share_changed(caller, namespace, op.share, share, (node, change, lines), None);
        Ok(QuotaDone::Shared(shared))
    }

    /// Lends again what the cap allows, although the region may still use it.
    pub(super) fn reclaim_share(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &ShareReclaim,
    ) -> Result<QuotaDone, No> {
        let (mut share, node) = self.share(namespace, op.share)?;
        if share.is_reclaimed {
            let invalid = Invalid::new("shareId", "has been reclaimed: its region has to report");
            return Err(Refusal::from(invalid).into());
        }
        share.is_reclaimed = true;
        share.lent = share.overdraft_cap.min(share.amount);
        let lent = share.lent;
        let posting = Posting { committed: 0, reserved: -signed(lent) };
        let lines = self.post(namespace, &share.owner, &[(share.place, posting)]);
        let shared = share.shared(op.share, None);
        let change = QuotaChange::ShareReclaimed { share: op.share, lent };
        let reason = Some(&op.reason);
        self.share_changed(caller, namespace, op.share, share, (node, change, lines), reason);
        Ok(QuotaDone::Shared(shared))
    }

    /// What other regions have been lent; `None`: there is no such namespace.
    pub fn quota_shares(&self, namespace: &NamespaceName) -> Option<Vec<ShareView>> {
        let space = self.space(self.namespace_id(namespace)?);
        let view = |(&name, share): (&ReservationId, &Share)| ShareView {
            share: name,
            node: space.name(share.place),
            owner: share.owner.clone(),
            amount: share.amount,
            kept: share.kept(),
            overdraft_cap: share.overdraft_cap,
            is_reclaimed: share.is_reclaimed,
        };
        Some(space.shares.iter().map(view).collect())
    }

    fn share(&self, namespace: u32, name: ReservationId) -> Result<(Share, NodeRef), Refusal> {
        let missing = || Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Share));
        let space = self.space(namespace);
        let share = space.shares.get(&name).ok_or_else(missing)?;
        Ok((share.clone(), space.name(share.place)))
    }

    fn share_changed(
        &mut self,
        caller: &Caller,
        namespace: u32,
        name: ReservationId,
        share: Share,
        (node, change, lines): (NodeRef, QuotaChange, Vec<LedgerLine>),
        reason: Option<&Reason>,
    ) {
        let owner = share.owner.clone();
        let shares = &mut self.space_mut(namespace).shares;
        match share.amount {
            0 => drop(shares.remove(&name)),
            _ => drop(shares.insert(name, share)),
        }
        let event = QuotaEvent { reservation: None, change, lines, reason: reason.cloned() };
        let resource = super::lifecycle::resource_of_node(&node);
        self.ledger_event(caller, namespace, resource, Some(owner), event);
    }

    /// The home of a node among these that is elsewhere, and has lent nothing to this region.
    pub(super) fn items_away(&self, namespace: u32, items: &[Item]) -> Option<RegionName> {
        let space = self.space(namespace);
        items.iter().find_map(|item| space.home_of(self, &item.node)).cloned()
    }
}

impl Space {
    /// Above a node, the home that is elsewhere and has lent nothing.
    fn home_of<'a>(&'a self, state: &State, node: &NodeRef) -> Option<&'a RegionName> {
        (0..=node.path.depth().min(1)).find_map(|depth| {
            let above = NodeRef { path: node.path.ancestor(depth), ..node.clone() };
            let limits = &self.node(self.find(&above)?).limits;
            state.away(limits.home.as_ref()).filter(|_| limits.limit + limits.burst == 0)
        })
    }
}

impl Share {
    fn shared(&self, share: ReservationId, commit: Option<ObjectId>) -> Shared {
        let (amount, kept, is_reclaimed) = (self.amount, self.kept(), self.is_reclaimed);
        Shared { share, amount, kept, is_reclaimed, commit }
    }
}
