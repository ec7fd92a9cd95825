//! Commits: reserved capacity becomes use, whole or in part, in time or late; and what an operator settles.

use super::{
    Phase, State,
    lifecycle::Change,
    request::{Found, ended, quarantined},
    reserve::{Demand, check_items},
};
use crate::{
    command::{Commit, Item, Late, Settle, Settlement},
    event::QuotaChange,
    ids::{ObjectId, Token},
    names::{Caller, Invalid, Owner},
    outcome::{Code, Committed, Detail, End, Excess, Exhausted, QuotaDone, Refusal},
    planted::{self, Planted},
    quota::{Asked, Posting, Trial, signed},
    state::{region::wrong_region, request::No},
};

/// What becomes of one item of a reservation.
#[derive(Clone, Copy, Debug)]
struct Split {
    of: Asked,
    taken: u64,
}

impl State {
    pub(super) fn commit(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Commit,
    ) -> Result<QuotaDone, No> {
        if let Some(items) = &op.items {
            check_items(items, 0).map_err(Refusal::from)?;
        }
        match self.find_reservation(namespace, &op.of)? {
            Found::Over(refusal) => Err(refusal.into()),
            Found::Late(id) => self.commit_late(caller, namespace, op, id),
            Found::It(id) => {
                let of = self.reservation(id);
                match of.phase {
                    Phase::Quarantined => return Err(quarantined(of.fence).into()),
                    Phase::Waiting => {
                        let invalid =
                            Invalid::new("reservationId", "waits still: nothing is reserved");
                        return Err(Refusal::from(invalid).into());
                    }
                    Phase::Reserved | Phase::InFlight => {}
                }
                let splits = self.splits(namespace, id, op.items.as_deref())?;
                let done = self.commit_splits(caller, id, &splits, op.is_final, None);
                Ok(QuotaDone::Committed(done))
            }
        }
    }

    /// What is taken of each item; `None`: all.
    ///
    /// # Errors
    /// `ExceedsReservation` for more than there is.
    fn splits(
        &self,
        namespace: u32,
        id: ObjectId,
        items: Option<&[Item]>,
    ) -> Result<Vec<Split>, Refusal> {
        let reservation = self.reservation(id);
        let Some(items) = items else {
            let all = |&of: &Asked| Split { of, taken: of.amount };
            return Ok(reservation.items.iter().map(all).collect());
        };
        let nothing = |&of: &Asked| Split { of, taken: 0 };
        let mut splits: Vec<_> = reservation.items.iter().map(nothing).collect();
        for item in items {
            let place = self.space(namespace).find(&item.node);
            let split = splits.iter_mut().find(|split| Some(split.of.place) == place);
            let (has, taken) =
                split.as_ref().map_or((0, 0), |split| (split.of.amount, split.taken));
            let asked = taken + item.amount;
            if asked > has {
                let (node, owner) = (item.node.clone(), reservation.owner.clone());
                return Err(excess(Excess { node, owner, has, asked }));
            }
            if let Some(split) = split {
                split.taken = asked;
            }
        }
        Ok(splits)
    }

    /// Turns what is taken into use. The rest is given back by a final commit, and stays reserved after another.
    fn commit_splits(
        &mut self,
        caller: &Caller,
        id: ObjectId,
        splits: &[Split],
        is_final: bool,
        readmits: Option<crate::ids::ReservationId>,
    ) -> Committed {
        let by_expiry = false;
        self.commit_as(caller, id, splits, (is_final, by_expiry, readmits, None))
    }

    /// The deadline of a reservation whose fate is to be used has passed.
    pub(super) fn commit_at_expiry(&mut self, id: ObjectId) {
        let reservation = self.reservation(id);
        let caller = reservation.caller.clone();
        let all = |&of: &Asked| Split { of, taken: of.amount };
        let splits: Vec<_> = reservation.items.iter().map(all).collect();
        self.commit_as(&caller, id, &splits, (true, true, None, None));
    }

    fn commit_as(
        &mut self,
        caller: &Caller,
        id: ObjectId,
        splits: &[Split],
        (is_final, by_expiry, readmits, reason): CommitKind,
    ) -> Committed {
        let commit = self.next_object();
        let keeps = |split: &&Split| !is_final && split.taken < split.of.amount;
        let ends = !splits.iter().any(|split| keeps(&split));
        let reservation = match ends {
            true => self.remove_reservation(id, End::Committed),
            false => Box::new(self.reservation(id).clone()),
        };
        let (namespace, owner) = (reservation.namespace, reservation.owner.clone());
        let mut changes: Vec<Change> = Vec::with_capacity(splits.len());
        for split in splits {
            let frees_all = ends || planted::has(Planted::PartCommitFreesRest);
            let freed = if frees_all { split.of.amount } else { split.taken };
            self.add_lot(namespace, split.of.place, &owner, commit, split.taken);
            let posting = Posting { committed: signed(split.taken), reserved: -signed(freed) };
            changes.push((split.of.place, posting));
        }
        let lines = self.post(namespace, &owner, &changes);
        let rest = |split: &Split| Asked { amount: split.of.amount - split.taken, ..split.of };
        let rests: Vec<_> = splits.iter().map(rest).filter(|item| item.amount > 0).collect();
        if !ends {
            self.set_items(id, rests.clone());
        }
        let change = QuotaChange::Committed { commit, is_final: ends, readmits, by_expiry };
        self.reservation_event(caller, &reservation, change, lines, reason);
        let space = self.space(namespace);
        let taken = |split: &Split| Asked { amount: split.taken, ..split.of };
        let taken: Vec<_> = splits.iter().map(taken).filter(|item| item.amount > 0).collect();
        let (returned, left) = if ends { (rests, Vec::new()) } else { (Vec::new(), rests) };
        Committed {
            commit,
            reservation: reservation.name,
            taken: space.names(&taken),
            returned: space.names(&returned),
            left: space.names(&left),
            readmits,
        }
    }

    /// A live reservation has these items from here on.
    pub(super) fn set_items(&mut self, id: ObjectId, items: Vec<Asked>) {
        let reservation = self.reservation_mut(id);
        let (namespace, count) = (reservation.namespace, items.len() as u64);
        let before = std::mem::replace(&mut reservation.items, items).len() as u64;
        let open_items = &mut self.space_mut(namespace).open_items;
        *open_items = *open_items + count - before;
    }

    /// The reservation has expired. As a new one it is admitted like any other; then it is used at once.
    fn commit_late(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Commit,
        id: ObjectId,
    ) -> Result<QuotaDone, No> {
        let late = self.quotas.late[&id].clone();
        if op.late == Late::Reject {
            return Err(ended(End::Expired, late.fence).into());
        }
        if !op.is_final {
            let invalid = Invalid::new("final", "must be true of a late commit");
            return Err(Refusal::from(invalid).into());
        }
        if self.paused_until > self.time {
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused);
            return Err(No::Forget(refusal.retry_after(self.paused_ms())));
        }
        if self.quotas.by_name.contains_key(&op.readmitted) {
            let invalid = Invalid::new("reservationId", "must be drawn at random by the node");
            return Err(No::Forget(invalid.into()));
        }
        let items = late_items(&late.items, op.items.as_deref(), &late.owner)?;
        if let Some(home) = self.items_away(namespace, &items) {
            return Err(wrong_region(&home).into());
        }
        let asks = match self.demand(namespace, &items) {
            Demand::Of(asks) => asks,
            Demand::Unknown(layers) => {
                return Err(no_capacity(layers, self.is_sweep_pending()).into());
            }
        };
        let kept = self.kept(namespace);
        let space = self.space(namespace);
        let trial = Trial::of(&space.trees, &asks);
        let owner_layers = space.owner_layers(&trial, &late.owner);
        let is_short = !owner_layers.is_empty() || !trial.passes(&space.trees, &kept);
        if is_short && !planted::has(Planted::LateCommitUnchecked) {
            let layers = space.short_layers(&trial, &kept, owner_layers);
            return Err(no_capacity(layers, self.is_sweep_pending()).into());
        }
        // It is done with: no other commit admits it again (S10).
        if !planted::has(Planted::ReadmitsTwice) {
            self.remove_late(id);
        }
        let fence = self.next_token();
        Ok(QuotaDone::Committed(self.readmit(caller, op, &late, &asks, fence)))
    }

    /// Books a reservation that begins and ends in one.
    fn readmit(
        &mut self,
        caller: &Caller,
        op: &Commit,
        late: &super::Late,
        asks: &[Asked],
        fence: Token,
    ) -> Committed {
        let commit = self.next_object();
        let namespace = late.namespace;
        let mut changes: Vec<Change> = Vec::with_capacity(asks.len());
        for ask in asks {
            self.add_lot(namespace, ask.place, &late.owner, commit, ask.amount);
            changes.push((ask.place, Posting { committed: signed(ask.amount), reserved: 0 }));
        }
        let lines = self.post(namespace, &late.owner, &changes);
        self.assert_within_limits(namespace, &changes);
        let readmits = Some(late.name);
        let change = QuotaChange::Committed { commit, is_final: true, readmits, by_expiry: false };
        let event = crate::event::QuotaEvent {
            reservation: Some((op.readmitted, fence)),
            change,
            lines,
            reason: None,
        };
        let resource = super::lifecycle::resource_of(op.readmitted);
        self.ledger_event(caller, namespace, resource, Some(late.owner.clone()), event);
        Committed {
            commit,
            reservation: op.readmitted,
            taken: self.space(namespace).names(asks),
            returned: Vec::new(),
            left: Vec::new(),
            readmits,
        }
    }

    pub(super) fn settle(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Settle,
    ) -> Result<QuotaDone, No> {
        let id = match self.find_reservation(namespace, &op.of)? {
            Found::Over(refusal) => return Err(refusal.into()),
            Found::Late(id) => return Err(ended(End::Expired, self.quotas.late[&id].fence).into()),
            Found::It(id) => id,
        };
        if self.reservation(id).phase != Phase::Quarantined {
            let rule = "is not in quarantine: its owner commits or releases it";
            return Err(Refusal::from(Invalid::new("reservationId", rule)).into());
        }
        let all = |&of: &Asked| Split { of, taken: of.amount };
        let splits: Vec<_> = self.reservation(id).items.iter().map(all).collect();
        let commit = match op.settlement {
            Settlement::Commit => {
                let kind = (true, false, None, Some(&op.reason));
                Some(self.commit_as(caller, id, &splits, kind).commit)
            }
            Settlement::Release => {
                self.give_back(id, caller, End::Released, QuotaChange::Released);
                self.give_reason(&op.reason);
                None
            }
        };
        Ok(QuotaDone::Settled { settlement: op.settlement, commit })
    }

    /// The last event was an operator's, who said why.
    fn give_reason(&mut self, reason: &crate::names::Reason) {
        let event = self.applied.events.last_mut().expect("it was just made");
        if let crate::event::EventKind::Quota(event) = &mut event.kind {
            event.reason = Some(reason.clone());
        }
    }
}

/// Whether it is final, comes by expiry, readmits an expired one; and an operator's reason.
type CommitKind<'a> =
    (bool, bool, Option<crate::ids::ReservationId>, Option<&'a crate::names::Reason>);

/// What a late commit asks for: at most what was reserved, and something.
fn late_items(had: &[Item], items: Option<&[Item]>, owner: &Owner) -> Result<Vec<Item>, Refusal> {
    let Some(items) = items else { return Ok(had.to_vec()) };
    let mut asked: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        match asked.iter_mut().find(|one| one.node == item.node) {
            Some(one) => one.amount += item.amount,
            None => asked.push(item.clone()),
        }
    }
    asked.retain(|item| item.amount > 0);
    for Item { node, amount } in &asked {
        let has = had.iter().find(|one| one.node == *node).map_or(0, |one| one.amount);
        if *amount > has {
            let (node, owner) = (node.clone(), owner.clone());
            return Err(excess(Excess { node, owner, has, asked: *amount }));
        }
    }
    match asked.is_empty() {
        true => Err(Invalid::new("items", "must name some amount: it comes late").into()),
        false => Ok(asked),
    }
}

pub(super) fn excess(excess: Excess) -> Refusal {
    Refusal::new(Code::ExceedsReservation).with(Detail::Excess(excess))
}

fn no_capacity(layers: Vec<crate::outcome::Layer>, sweep_pending: bool) -> Refusal {
    let detail = Detail::Exhausted(Exhausted { layers, sweep_pending });
    Refusal::new(Code::ExpiredNoCapacity).with(detail)
}
