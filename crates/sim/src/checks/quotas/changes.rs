//! What each change of the books has to do, and may do.

use super::{
    Held, Items, Late, Moment, Quotas,
    books::{Moves, count, layers},
    key_of, signed, summed,
};
use crate::checks::{Marks, Told, request_key};
use sereno_core::{
    command::{NodeRef, OnExpiry, Operation, QuotaCommand},
    event::{Event, QuotaChange, QuotaEvent},
    ids::{ReservationId, Token},
    names::Owner,
};

/// With a sign.
pub(super) fn moved(items: &Items, committed: i64, reserved: i64) -> Moves {
    let mut moves = Moves::new();
    for (node, &amount) in items {
        count(&mut moves, node, committed * signed(amount), reserved * signed(amount));
    }
    moves
}

pub(super) fn add(moves: &mut Moves, other: Moves) {
    other.into_iter().for_each(|(node, (committed, reserved))| {
        count(moves, &node, committed, reserved);
    });
}

impl Quotas {
    pub(super) fn changes(
        &mut self,
        event: &Event,
        of: &QuotaEvent,
        moves: &Moves,
        moment: &Moment,
        told: &Told,
        marks: &mut Marks,
    ) {
        let named = || of.reservation.expect("a change of a reservation names it");
        let owner = || event.owner.clone().expect("use is somebody's");
        let due: Moves = match &of.change {
            QuotaChange::LimitPut { node, limits, version, debt } => {
                let before = self.books.nodes.insert(node.clone(), (limits.clone(), *version));
                let before = before.map_or(0, |(_, version)| version);
                assert!(*version == before + 1, "versions count: {version} after {before}");
                let excess = self.books.excess().remove(node).unwrap_or(0);
                assert!(*debt == excess, "S9: a debt is shown: {debt} of {excess} at {node:?}");
                Moves::new()
            }
            QuotaChange::NodeRemoved { node } => {
                self.books.remove(node);
                marks.mark("a node of a quota is removed");
                Moves::new()
            }
            QuotaChange::Reserved { waited_ms } => {
                if waited_ms.is_some() {
                    marks.mark("a reserve is granted after a wait");
                }
                self.reserved(named(), waited_ms.is_some(), moment)
            }
            QuotaChange::Begun { on_expiry } => {
                let (name, fence) = named();
                assert!(
                    matches!(moment.quota(), Some(QuotaCommand::Begin(op)) if op.of.reservation == name),
                    "S4: work begins when its owner says so: {name}"
                );
                self.of(fence).on_expiry = *on_expiry;
                marks.mark("outside work begins");
                Moves::new()
            }
            QuotaChange::Resized => self.resized(named(), moment, marks),
            QuotaChange::Committed { commit, is_final, readmits: None, by_expiry } => {
                if *by_expiry {
                    marks.mark("a reservation is used by expiry");
                    self.check_due(named().1, OnExpiry::Commit, moment, told);
                }
                if !is_final {
                    marks.mark("a part is committed");
                }
                if matches!(moment.quota(), Some(QuotaCommand::Settle(_))) {
                    marks.mark("a quarantined reservation is settled");
                }
                self.committed(named(), *commit, *is_final, *by_expiry, moment)
            }
            QuotaChange::Committed { commit, readmits: Some(late), .. } => {
                marks.mark("an expired reservation is admitted again");
                self.readmitted(*late, *commit, moment)
            }
            QuotaChange::Released => {
                let (name, fence) = named();
                let held = self.ends(fence, "released");
                self.check_released(name, &held, moment, marks);
                moved(&held.items, 0, -1)
            }
            QuotaChange::Expired => {
                let (name, fence) = named();
                self.check_due(fence, OnExpiry::Release, moment, told);
                let held = self.ends(fence, "expired");
                let (owner, items) = (held.owner.clone(), held.items.clone());
                self.late.insert(name, Late { owner, items });
                marks.mark("a reservation expires");
                moved(&held.items, 0, -1)
            }
            QuotaChange::Quarantined => {
                let (_, fence) = named();
                self.check_due(fence, OnExpiry::Quarantine, moment, told);
                self.of(fence).is_quarantined = true;
                marks.mark("a reservation is quarantined");
                Moves::new()
            }
            QuotaChange::Returned { commit } => {
                marks.mark("use is given back");
                self.returned(*commit, moment)
            }
            QuotaChange::Reported { .. } => Moves::new(),
            QuotaChange::Reconciled { .. } => {
                marks.mark("drift is compensated");
                return self.reconciled(event, moves, moment);
            }
            QuotaChange::Adjusted => self.adjusted(moment),
            QuotaChange::ShareGranted { share, overdraft_cap } => {
                marks.mark("a share is lent");
                self.lent(*share, *overdraft_cap, moment)
            }
            QuotaChange::ShareReturned { share, .. } => {
                marks.mark("of a share something comes back");
                self.share_returned(*share, &owner(), moment)
            }
            QuotaChange::ShareReclaimed { share, lent } => {
                marks.mark("a share is reclaimed");
                self.reclaimed(*share, *lent)
            }
        };
        assert!(
            *moves == due,
            "S9: a change does what it says, at every item: {:?} has moved {moves:?}, due was {due:?}",
            of.change
        );
    }

    pub(super) fn of(&mut self, fence: Token) -> &mut Held {
        let ended = self.ended.get(&fence);
        let held = self.held.get_mut(&fence);
        held.unwrap_or_else(|| panic!("S10: {fence} is held, not over: {ended:?}"))
    }

    /// It has come to its end, the only one.
    pub(super) fn ends(&mut self, fence: Token, how: &'static str) -> Held {
        let before = self.ended.insert(fence, how);
        assert!(
            before.is_none(),
            "S10: a reservation ends once: {fence} was {before:?}, now {how}"
        );
        self.held
            .remove(&fence)
            .unwrap_or_else(|| panic!("S10: {fence} is {how}, and was never granted"))
    }

    fn reserved(
        &mut self,
        (name, fence): (ReservationId, Token),
        waited: bool,
        moment: &Moment,
    ) -> Moves {
        let op = self.asks.get(&name).unwrap_or_else(|| panic!("S5: {name} was asked for")).clone();
        let request = key_of(&op);
        let before = self.granted.insert(request.clone(), fence);
        assert!(
            before.is_none(),
            "S6: a repeated request does not reserve again: {request} had {before:?}, now {fence}"
        );
        self.waits.granted(name, &request, waited, moment.time);
        let items = summed(&op.items);
        let held = Held {
            name,
            request,
            owner: op.owner.clone(),
            items: items.clone(),
            deadline: moment.time,
            on_expiry: op.on_expiry,
            is_quarantined: false,
        };
        assert!(self.held.insert(fence, held).is_none(), "S2: fences rise: {fence}");
        self.check_within(&items);
        self.check_owner(&items, &op.owner, 0);
        moved(&items, 0, 1)
    }

    /// Where capacity is granted nothing is oversold, at any layer.
    pub(super) fn check_within(&self, items: &Items) {
        for node in items.keys().flat_map(layers) {
            let (sum, claim) = (self.books.sum(&node), self.books.claim(&node));
            let cap = self.books.cap(&node);
            assert!(
                sum.committed + sum.reserved <= claim && claim <= cap,
                "S9: never oversold: {node:?} has {sum:?} and claims {claim} of {cap}"
            );
        }
    }

    /// Nobody reserves more than an owner may. `more`: what is admitted and not held.
    pub(super) fn check_owner(&self, items: &Items, owner: &Owner, more: u64) {
        for node in items.keys().flat_map(layers) {
            let Some(max) = self.books.nodes[&node].0.owner_reserved_max else { continue };
            let is_below = |one: &NodeRef| layers(one).contains(&node);
            let own = self.held.values().filter(|held| held.owner == *owner);
            let held = own.flat_map(|held| &held.items).filter(|(one, _)| is_below(one));
            let sum = held.map(|(_, amount)| amount).sum::<u64>() + more;
            assert!(sum <= max, "S9: {owner} has {sum} of at most {max} at {node:?}");
        }
    }

    fn resized(
        &mut self,
        (name, fence): (ReservationId, Token),
        moment: &Moment,
        marks: &mut Marks,
    ) -> Moves {
        let Some(QuotaCommand::Resize(op)) = moment.quota().filter(|op| names(op, name)) else {
            panic!("S4: a reservation is resized when its owner says so: {name}")
        };
        let held = self.of(fence);
        let before = held.items.clone();
        for item in &op.items {
            held.items.insert(item.node.clone(), item.amount);
        }
        held.items.retain(|_, amount| *amount > 0);
        let (after, owner) = (held.items.clone(), held.owner.clone());
        let grown =
            |(node, amount): (&NodeRef, &u64)| before.get(node).is_none_or(|had| had < amount);
        let grown: Items = after
            .iter()
            .filter(|&(node, amount)| grown((node, amount)))
            .map(|(node, &amount)| (node.clone(), amount))
            .collect();
        let has_shrunk =
            before.iter().any(|(node, had)| after.get(node).is_none_or(|now| now < had));
        if has_shrunk {
            marks.mark("a reservation shrinks");
        }
        if !grown.is_empty() {
            marks.mark("a reservation grows");
            self.check_within(&grown);
            self.check_owner(&grown, &owner, 0);
        }
        let mut due = moved(&before, 0, -1);
        add(&mut due, moved(&after, 0, 1));
        due
    }

    /// S8: its deadline has passed, its owner knows, and this is what it wanted then.
    fn check_due(&mut self, fence: Token, fate: OnExpiry, moment: &Moment, told: &Told) {
        let held = self.of(fence).clone();
        let time = moment.time;
        assert!(
            time >= held.deadline && !held.is_quarantined,
            "S8: no reservation ends before its deadline: {fence} at {time}, due {}",
            held.deadline
        );
        assert!(held.on_expiry == fate, "a reservation's fate is its owner's choice: {held:?}");
        let belief = told.belief(fence, moment.now);
        assert!(
            belief.is_none(),
            "L4: who loses a reservation knows it before: {fence} of {belief:?}"
        );
    }

    fn check_released(&self, name: ReservationId, held: &Held, moment: &Moment, marks: &mut Marks) {
        let operation = moment.cause.map(|command| &command.operation);
        let is_its = match operation {
            Some(Operation::Quota(QuotaCommand::Release(op))) => op.of.reservation == name,
            Some(Operation::Quota(QuotaCommand::Settle(op))) => {
                marks.mark("a quarantined reservation is settled");
                op.of.reservation == name && held.is_quarantined
            }
            Some(Operation::Abandon(op)) => {
                marks.mark("a reservation is abandoned");
                request_key(op.family, &op.namespace, &op.request_id) == held.request
            }
            Some(Operation::EndDeserted(_)) => {
                marks.mark("a reservation that reached nobody is taken back");
                true
            }
            _ => false,
        };
        assert!(is_its, "S4: a reservation is given back by its owner: {name} by {operation:?}");
    }

    /// Nodes are above their limits only since a rule was changed, or since the books were set right, and no other
    /// write makes that worse.
    pub(super) fn check_excess(&mut self, change: &QuotaChange, marks: &mut Marks) {
        let excess = self.books.excess();
        let may_rise = matches!(
            change,
            QuotaChange::LimitPut { .. }
                | QuotaChange::NodeRemoved { .. }
                | QuotaChange::Reconciled { .. }
                | QuotaChange::Adjusted
                | QuotaChange::ShareReturned { .. }
        );
        for (node, &over) in &excess {
            let before = self.excess.get(node).copied().unwrap_or(0);
            assert!(
                may_rise || over <= before,
                "S9: only a cut brings a debt: {node:?} is over by {over} after {change:?}, was {before}"
            );
            if before == 0 {
                marks.mark("a debt shows");
            }
        }
        self.excess = excess;
    }
}

/// Whether a write is about this reservation.
pub(super) fn names(op: &QuotaCommand, name: ReservationId) -> bool {
    match op {
        QuotaCommand::Resize(op) => op.of.reservation == name,
        QuotaCommand::Commit(op) => op.of.reservation == name,
        _ => false,
    }
}
