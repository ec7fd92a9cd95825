//! Waiting for quota: who goes next, and what is kept for whom.
//!
//! Those who wait for the same nodes stand in one *lane*; `order` has the order over the heads of all lanes.
//!
//! The first of a lane stands for it; only who comes new and does not wait may pass none of those behind it either.
//! From the front on each is tried. Who does not pass blocks the nodes at which it is short for all behind it; one
//! who has waited too long has kept for it what it can take of the other nodes too, so that what comes free adds up.
//! The starvation bound: patience plus the longest lifetime of the reservations in its way, for the oldest of those who
//! have waited too long; for the others from when they are the oldest. Committed use in the way has no bound.
//!
//! An ask that lies under a guarantee does not raise what the node above claims, so nothing there blocks it: that is
//! how guarantees go first, and are never lent beyond recall.

use super::{Phase, Reservation, Space, State, order::Head};
use crate::{
    event::QuotaChange,
    ids::ObjectId,
    limits,
    outcome::{Code, Detail, Refusal, WaitEnd, Waiting},
    quota::{Asked, Kept, Place, Trial},
    state::{Settled, memory::Fate},
};
use std::{cmp::Reverse, collections::BTreeSet};

/// Which nodes a lane is about. Who wants several has a lane alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneKey {
    pub(super) places: Vec<Place>,
    alone: ObjectId,
}

/// Those who wait for the same nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) by_age: BTreeSet<ObjectId>,
    pub(super) by_rank: BTreeSet<(Reverse<u8>, ObjectId)>,
    pub(super) by_amount: BTreeSet<(u64, ObjectId)>,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }
}

/// What a look at all who wait comes to.
struct Survey {
    /// Who can be granted now.
    next: Option<ObjectId>,
    kept: Kept,
}

fn key_of(id: ObjectId, items: &[Asked]) -> LaneKey {
    let mut places: Vec<_> = items.iter().map(|item| item.place).collect();
    places.sort_unstable();
    let alone = if places.len() > 1 { id } else { ObjectId(0) };
    LaneKey { places, alone }
}

impl State {
    /// Puts a new reservation into its lane.
    pub(super) fn enqueue_reservation(&mut self, id: ObjectId, reservation: Reservation) {
        assert!(reservation.phase == Phase::Waiting, "only who waits is queued");
        self.join_lane(id, &reservation);
        self.count_reservation(&reservation, id);
        self.deadlines.insert((reservation.deadline, id));
        let caller = reservation.caller.clone();
        self.queue_event(&caller, &reservation, crate::event::EventKind::Queued);
        self.quotas.reservations.insert(id, Box::new(reservation));
    }

    pub(super) fn join_lane(&mut self, id: ObjectId, reservation: &Reservation) {
        let of = &mut self.namespaces[reservation.namespace as usize];
        let lane = of.quotas.lanes.entry(key_of(id, &reservation.items)).or_default();
        lane.by_age.insert(id);
        lane.by_rank.insert((Reverse(reservation.priority), id));
        lane.by_amount.insert((reservation.items[0].amount, id));
        of.waiters += 1;
        self.quotas.waited_for.insert(reservation.namespace);
        self.quotas.changed = Some(reservation.namespace);
    }

    fn leave_lane(&mut self, id: ObjectId, reservation: &Reservation) {
        let of = &mut self.namespaces[reservation.namespace as usize];
        of.waiters -= 1;
        let key = key_of(id, &reservation.items);
        let lane = of.quotas.lanes.get_mut(&key).expect("who waits stands in a lane");
        assert!(lane.by_age.remove(&id), "who waits stands in its lane");
        lane.by_rank.remove(&(Reverse(reservation.priority), id));
        lane.by_amount.remove(&(reservation.items[0].amount, id));
        if lane.by_age.is_empty() {
            of.quotas.lanes.remove(&key);
        }
        if of.quotas.lanes.is_empty() {
            self.quotas.waited_for.remove(&reservation.namespace);
        }
        self.quotas.changed = Some(reservation.namespace);
    }

    /// What a waiting reservation is told now. Its place is that by age, among those who want the same nodes.
    pub(in crate::state) fn waiting_reservation(&self, id: ObjectId) -> Waiting {
        let reservation = self.reservation(id);
        let lane = &self.space(reservation.namespace).lanes[&key_of(id, &reservation.items)];
        let place = lane.by_age.range(..=id).count() as u64;
        let wait_expires_in_ms = self.time.until(reservation.deadline);
        Waiting { claim: id, place, wait_expires_in_ms }
    }

    /// Ends a wait without a grant. `None`: by the caller's Abandon.
    pub(in crate::state) fn end_quota_wait(&mut self, id: ObjectId, why: Option<WaitEnd>) {
        let reservation = self.quotas.reservations.remove(&id).expect("a wait ends once");
        assert!(reservation.phase == Phase::Waiting, "what holds does not wait");
        assert!(self.deadlines.remove(&(reservation.deadline, id)), "every wait has its deadline");
        self.leave_lane(id, &reservation);
        self.uncount_reservation(&reservation);
        let waited_ms = reservation.created_at.until(self.time);
        let kind = crate::event::EventKind::WaitEnded { why, waited_ms };
        let caller = reservation.caller.clone();
        self.queue_event(&caller, &reservation, kind);
        let (fate, refusal) = match why {
            Some(why) => {
                let refusal = Refusal::new(Code::WaitTimeout).with(Detail::Wait(why));
                (Fate::WaitEnded(why), refusal)
            }
            None => (Fate::Refused(Code::Abandoned), Refusal::new(Code::Abandoned)),
        };
        self.end_quota_request(&reservation, fate);
        let outcome = self.decided(None, Err(refusal));
        self.applied.settled.push(Settled { claim: id, outcome });
    }

    /// Looks at those who wait in this namespace, if anything has changed there since the last look.
    pub(in crate::state) fn look_if_changed(&mut self) {
        if let Some(namespace) = self.quotas.changed.take() {
            self.look(namespace);
            self.quotas.changed = None;
        }
    }

    /// Looks at all who wait: at the beginning of an entry, when what was due has been swept and time has passed.
    pub(in crate::state) fn look_at_all(&mut self) {
        self.quotas.changed = None;
        self.quotas.is_look_pending = false;
        for namespace in self.quotas.waited_for.clone() {
            self.look(namespace);
        }
        self.quotas.changed = None;
    }

    fn look(&mut self, namespace: u32) {
        if self.space(namespace).lanes.is_empty() || self.paused_until > self.time {
            return;
        }
        for _ in 0..limits::QUOTA_GRANTS_MAX {
            let Some(id) = self.survey(namespace, true).next else { return };
            self.grant_waiting(id);
        }
        self.quotas.is_look_pending = true;
    }

    /// Who can be granted now: nobody, once all have been looked at.
    pub(super) fn next_waiting(&self, namespace: u32) -> Option<ObjectId> {
        self.survey(namespace, true).next
    }

    pub(super) fn grant_waiting(&mut self, id: ObjectId) {
        let reservation = self.quotas.reservations.remove(&id).expect("who is next waits");
        assert!(self.deadlines.remove(&(reservation.deadline, id)), "every wait has its deadline");
        self.leave_lane(id, &reservation);
        self.grant_reservation(id, reservation, true);
        let outcome = self.decided(None, Ok(self.granted_reservation(id)));
        self.applied.settled.push(Settled { claim: id, outcome });
    }

    /// What is kept for those who wait, from whoever comes now.
    pub(super) fn kept(&self, namespace: u32) -> Kept {
        match self.space(namespace).lanes.is_empty() {
            true => Kept::default(),
            false => self.kept_from_all(namespace),
        }
    }

    /// Who comes now passes nobody who waits: also not those behind the first of a lane.
    fn kept_from_all(&self, namespace: u32) -> Kept {
        let space = self.space(namespace);
        let mut kept = self.survey(namespace, false).kept;
        for lane in space.lanes.values() {
            let trials = lane.by_amount.iter().rev().map(|(_, id)| {
                let of = self.reservation(*id);
                (of, Trial::of(&space.trees, &of.items))
            });
            // The largest is short wherever another one is.
            let largest = trials.into_iter().find(|(of, trial)| self.is_eligible(space, of, trial));
            let Some((_, trial)) = largest else { continue };
            let none = Kept::default();
            for row in trial.short(&space.trees, &none) {
                kept.all(&space.trees, row.place);
            }
        }
        kept
    }

    /// Goes through those who wait in order, to the first who passes (`to_grant`), or through all of them, as if
    /// those who pass had been granted.
    fn survey(&self, namespace: u32, to_grant: bool) -> Survey {
        let space = self.space(namespace);
        let mut kept = Kept::default();
        for (key, head) in self.heads(namespace) {
            if head.trial.passes(&space.trees, &kept) {
                if to_grant {
                    return Survey { next: Some(head.id), kept };
                }
                head.asks.iter().for_each(|ask| kept.ask(&space.trees, ask));
                continue;
            }
            let short: Vec<_> =
                head.trial.short(&space.trees, &kept).map(|row| row.place).collect();
            // First what it can take, layer by layer: where it is short all is kept anyway.
            if head.has_waited_too_long {
                head.asks.iter().for_each(|ask| kept.ask(&space.trees, ask));
            }
            short.into_iter().for_each(|place| kept.all(&space.trees, place));
            if to_grant && let Some(id) = self.smaller(space, key, &head, &kept) {
                return Survey { next: Some(id), kept };
            }
        }
        Survey { next: None, kept }
    }

    /// Somebody behind the head of a lane who passes all the same, for a guarantee holds the smaller ask.
    fn smaller(&self, space: &Space, key: &LaneKey, head: &Head, kept: &Kept) -> Option<ObjectId> {
        let lane = &space.lanes[key];
        let passes = |&id: &ObjectId| {
            let of = self.reservation(id);
            id != head.id
                && self.is_eligible(space, of, &Trial::of(&space.trees, &of.items))
                && Trial::of(&space.trees, &of.items).passes(&space.trees, kept)
        };
        // If the smallest does not pass, none does.
        let smallest = lane.by_amount.iter().map(|(_, id)| *id).find(|id| *id != head.id)?;
        if !Trial::of(&space.trees, &self.reservation(smallest).items).passes(&space.trees, kept) {
            return None;
        }
        let in_order: Vec<_> = self.in_order(space, key, lane).collect();
        in_order.into_iter().find(|id| passes(id))
    }

    /// An event of the queue, which does not change the books.
    fn queue_event(
        &mut self,
        caller: &crate::names::Caller,
        of: &Reservation,
        kind: crate::event::EventKind,
    ) {
        let nothing = QuotaChange::Released;
        self.reservation_event(caller, of, nothing, Vec::new(), None);
        self.applied.events.last_mut().expect("it was just made").kind = kind;
    }
}

impl Space {
    /// How many wait for this very node.
    pub(super) fn waiting_at(&self, place: Place) -> usize {
        let lanes = self.lanes.iter().filter(|(key, _)| key.places.contains(&place));
        lanes.map(|(_, lane)| lane.len()).sum()
    }
}
