//! What a holder does with its reservation besides a commit: begin, extend, resize, release.

use super::{Phase, State, deviations, lifecycle::Change, request::Found, reserve::check_items};
use crate::{
    command::{Begin, Extend, Item, ReleaseReservation, Resize},
    event::QuotaChange,
    ids::{ClusterTime, ObjectId},
    limits,
    names::{Caller, Invalid},
    outcome::{Code, Detail, End, QuotaDone, Refusal, Reserved},
    policy::within,
    quota::{Asked, Place, Posting, Trial, difference},
    state::{region::wrong_region, request::No},
};

impl State {
    /// The first begin sets deadline and fate; another changes nothing.
    pub(super) fn begin_work(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Begin,
    ) -> Result<QuotaDone, No> {
        let range = limits::TTL_MS_MIN..=limits::IN_FLIGHT_MS_MAX;
        within("inFlightTtl", op.in_flight_ttl_ms, range).map_err(Refusal::from)?;
        let id = self.live_reservation(namespace, &op.of)?;
        let now = self.time;
        let reservation = self.reservation_mut(id);
        if reservation.phase == Phase::Reserved {
            reservation.phase = Phase::InFlight;
            reservation.on_expiry = op.on_expiry;
            reservation.ttl_ms = op.in_flight_ttl_ms;
            let deadline = now.plus(op.in_flight_ttl_ms).max(reservation.deadline);
            reservation.final_deadline = reservation.final_deadline.max(deadline);
            self.move_deadline(id, deadline);
            let reservation = self.reservation(id).clone();
            let change = QuotaChange::Begun { on_expiry: op.on_expiry };
            self.reservation_event(caller, &reservation, change, Vec::new(), None);
        }
        Ok(QuotaDone::Reserved(self.reserved(id)))
    }

    fn move_deadline(&mut self, id: ObjectId, deadline: ClusterTime) {
        let revision = self.revision;
        let reservation = self.reservation_mut(id);
        let before = std::mem::replace(&mut reservation.deadline, deadline);
        reservation.asked_at = revision;
        assert!(before <= deadline, "no deadline comes nearer (S8)");
        assert!(self.deadlines.remove(&(before, id)), "every reservation has its deadline");
        self.deadlines.insert((deadline, id));
    }

    /// Moves the deadline forward, at most to the end of its life.
    pub(super) fn extend_reservation(
        &mut self,
        namespace: u32,
        op: &Extend,
    ) -> Result<QuotaDone, No> {
        let id = self.live_reservation(namespace, &op.of)?;
        let (phase, now) = (self.reservation(id).phase, self.time);
        if let Some(ttl_ms) = op.ttl_ms {
            if phase == Phase::InFlight {
                let range = limits::TTL_MS_MIN..=limits::IN_FLIGHT_MS_MAX;
                within("ttl", ttl_ms, range).map_err(Refusal::from)?;
            } else {
                self.check_ttl(namespace, "ttl", ttl_ms).map_err(Refusal::from)?;
            }
        }
        let reservation = self.reservation_mut(id);
        let ttl_ms = op.ttl_ms.unwrap_or(reservation.ttl_ms);
        if reservation.deadline == reservation.final_deadline {
            let in_ms = now.until(reservation.deadline);
            let detail = Detail::FinalDeadline { in_ms, token: reservation.fence };
            return Err(Refusal::new(Code::MaxHoldReached).with(detail).into());
        }
        reservation.ttl_ms = ttl_ms;
        let wanted = now.plus(ttl_ms);
        let allowed = wanted.min(reservation.final_deadline);
        let deadline = allowed.max(reservation.deadline);
        self.move_deadline(id, deadline);
        let clipped = allowed < wanted;
        Ok(QuotaDone::Reserved(Reserved { clipped, ..self.reserved(id) }))
    }

    /// Ends the reservation without use. Of one that is over it says how that was.
    pub(super) fn release_reservation(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &ReleaseReservation,
    ) -> Result<QuotaDone, No> {
        let over = |end| Ok(QuotaDone::Released { items: Vec::new(), already: Some(end) });
        match self.find_reservation(namespace, &op.of)? {
            Found::Late(_) => over(End::Expired),
            Found::Over(refusal) => match refusal.detail {
                Detail::Ended { end, .. } if end != End::Committed => over(end),
                _ => Err(refusal.into()),
            },
            Found::It(_) => {
                let id = self.live_reservation(namespace, &op.of)?;
                let ended = self.give_back(id, caller, End::Released, QuotaChange::Released);
                let items = self.space(namespace).names(&ended.items);
                Ok(QuotaDone::Released { items, already: None })
            }
        }
    }

    /// Sets new amounts: what shrinks is given back, what grows is admitted like a new ask; both or nothing.
    pub(super) fn resize(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Resize,
    ) -> Result<QuotaDone, No> {
        check_items(&op.items, 0).map_err(Refusal::from)?;
        let id = self.live_reservation(namespace, &op.of)?;
        let items = self.resized(namespace, id, &op.items)?;
        let reservation = self.reservation(id).clone();
        let change = |(old, new): (&Asked, &Asked)| -> Change {
            let reserved = difference(new.amount, old.amount);
            (old.place, Posting { committed: 0, reserved })
        };
        let changes: Vec<_> = reservation.items.iter().zip(&items).map(change).collect();
        let grown: Vec<_> = changes.iter().copied().filter(|(_, by)| by.reserved > 0).collect();
        if !grown.is_empty() {
            self.check_growth(namespace, &reservation, &changes, &grown)?;
        }
        // What shrinks first: no layer is above its limit in between.
        let (shrunk, grown): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|(_, by)| by.reserved <= 0);
        let shrunk = deviations::given_back(shrunk);
        let mut lines = self.post(namespace, &reservation.owner, &shrunk);
        lines.extend(self.post(namespace, &reservation.owner, &grown));
        self.assert_within_limits(namespace, &grown);
        let left = items.into_iter().filter(|item| item.amount > 0).collect();
        self.set_items(id, left);
        let revision = self.revision;
        self.reservation_mut(id).asked_at = revision;
        let resized = self.reservation(id).clone();
        self.reservation_event(caller, &resized, QuotaChange::Resized, lines, None);
        Ok(QuotaDone::Reserved(self.reserved(id)))
    }

    /// The reservation's items with their new amounts.
    fn resized(&self, namespace: u32, id: ObjectId, named: &[Item]) -> Result<Vec<Asked>, Refusal> {
        let mut items = self.reservation(id).items.clone();
        let mut seen: Vec<Place> = Vec::new();
        for item in named {
            let place = self.space(namespace).find(&item.node);
            let Some(own) = items.iter_mut().find(|own| Some(own.place) == place) else {
                let rule = format!("{:?} is not part of the reservation", item.node.path);
                return Err(Invalid::new("items", rule).into());
            };
            if seen.contains(&own.place) {
                let rule = format!("names {:?} twice", item.node.path);
                return Err(Invalid::new("items", rule).into());
            }
            seen.push(own.place);
            own.amount = item.amount;
        }
        if items.iter().all(|item| item.amount == 0) {
            return Err(Invalid::new("items", "leave nothing: release it instead").into());
        }
        Ok(items)
    }

    /// Whether what grows passes, once what shrinks is given back.
    fn check_growth(
        &mut self,
        namespace: u32,
        of: &super::Reservation,
        changes: &[Change],
        grown: &[Change],
    ) -> Result<(), No> {
        if self.paused_until > self.time {
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused);
            return Err(No::Forget(refusal.retry_after(self.paused_ms())));
        }
        let shrunk = changes.iter().copied().filter(|(_, by)| by.reserved < 0);
        let shrunk: Vec<_> = shrunk.collect();
        let asks =
            grown.iter().map(|&(place, by)| Asked { place, amount: by.reserved.unsigned_abs() });
        let asks: Vec<_> = asks.collect();
        if let Some(home) = self.items_away(namespace, &self.space(namespace).names(&asks)) {
            return Err(wrong_region(&home).into());
        }
        self.post(namespace, &of.owner, &shrunk);
        let kept = self.kept(namespace);
        let space = self.space(namespace);
        let trial = Trial::of(&space.trees, &asks);
        let owner_layers = space.owner_layers(&trial, &of.owner);
        let is_short = !owner_layers.is_empty() || !trial.passes(&space.trees, &kept);
        let layers = is_short.then(|| space.short_layers(&trial, &kept, owner_layers));
        let undo =
            |&(place, by): &Change| (place, Posting { committed: 0, reserved: -by.reserved });
        let undone: Vec<_> = shrunk.iter().map(undo).collect();
        self.post(namespace, &of.owner, &undone);
        match layers {
            None => Ok(()),
            Some(layers) => {
                self.note_quota_refusal(namespace, &of.owner, &asks, &layers);
                Err(self.exhausted(layers).into())
            }
        }
    }
}
