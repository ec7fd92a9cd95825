//! The life of a reservation: granted, ended, and every change of the books on the way. Whoever causes it, what holds
//! of all (sums, owners' counts, ledger, reply memory) is kept here.

use super::{Late, Phase, QuotaDone, Reservation, State, deviations, request::quarantined};
use crate::{
    command::{EndDeserted, NodeRef, OnExpiry},
    event::{Event, EventKind, LayerChange, LedgerLine, QuotaChange, QuotaEvent},
    ids::{ClusterTime, ObjectId, ReservationId},
    limits,
    names::{Caller, Owner, Reason, ResourceName},
    outcome::{
        AbandonedWas, Done, End, Refusal, ReservationState, Reserved, ReservedItem, WaitEnd,
    },
    quota::{Asked, Place, Posting, changed, signed},
    state::memory::Fate,
};

/// A change of direct use at one node.
pub(super) type Change = (Place, Posting);

impl State {
    /// Makes a reservation hold what it asks for, which passes. Fences are minted here and nowhere else.
    pub(super) fn grant_reservation(
        &mut self,
        id: ObjectId,
        mut reservation: Box<Reservation>,
        waited: bool,
    ) {
        assert!(!reservation.is_holding(), "a reservation is granted once");
        assert!(self.paused_until <= self.time, "nothing is granted during the pause");
        let now = self.time;
        reservation.phase = Phase::Reserved;
        reservation.fence = self.next_token();
        (reservation.granted_at, reservation.waited) = (now, waited);
        reservation.final_deadline = now.plus(reservation.max_lifetime_ms);
        reservation.deadline = now.plus(reservation.ttl_ms).min(reservation.final_deadline);
        self.deadlines.insert((reservation.deadline, id));
        self.memory.granted(reservation.record, reservation.fence, self.revision);
        let waited_ms = waited.then(|| reservation.created_at.until(now));
        if !waited {
            self.count_reservation(&reservation, id);
        }
        let take =
            |item: &Asked| (item.place, Posting { committed: 0, reserved: signed(item.amount) });
        let changes: Vec<_> = reservation.items.iter().map(take).collect();
        let lines = self.post(reservation.namespace, &reservation.owner, &changes);
        self.assert_within_limits(reservation.namespace, &changes);
        let change = QuotaChange::Reserved { waited_ms };
        let caller = reservation.caller.clone();
        self.reservation_event(&caller, &reservation, change, lines, None);
        self.quotas.reservations.insert(id, reservation);
    }

    /// A new reservation is known by its name, and counted.
    pub(super) fn count_reservation(&mut self, reservation: &Reservation, id: ObjectId) {
        let named = self.quotas.by_name.insert(reservation.name, id);
        assert!(named.is_none(), "a reservation's name is its own");
        let space = self.space_mut(reservation.namespace);
        space.reservations += 1;
        space.open_items += reservation.items.len() as u64;
    }

    /// S9, at each grant and every layer.
    pub(super) fn assert_within_limits(&self, namespace: u32, changes: &[Change]) {
        if deviations::is_unchecked() {
            return;
        }
        let space = self.space(namespace);
        for &((tree, id), _) in changes {
            let tree = &space.trees[tree as usize];
            let mut next = Some(id);
            while let Some(id) = next {
                let node = tree.node(id);
                let used = node.committed + node.reserved;
                assert!(used <= node.claim && node.claim <= node.cap(), "never oversold (S9)");
                next = node.parent;
            }
        }
    }

    /// Changes the books, and gives the ledger's lines.
    pub(super) fn post(
        &mut self,
        namespace: u32,
        owner: &Owner,
        changes: &[Change],
    ) -> Vec<LedgerLine> {
        let space = self.space_mut(namespace);
        let mut lines = Vec::with_capacity(changes.len());
        for &(place, posting) in changes {
            if posting == (Posting { committed: 0, reserved: 0 }) {
                continue;
            }
            let mut layers = Vec::with_capacity(4);
            let tree = &mut space.trees[place.0 as usize];
            tree.post(place.1, posting, |_, node| {
                let committed = (changed(node.committed, -posting.committed), node.committed);
                let reserved = (changed(node.reserved, -posting.reserved), node.reserved);
                layers.push(LayerChange { committed, reserved });
            });
            tree.post_owner(place.1, owner, posting.reserved);
            layers.reverse();
            lines.push(LedgerLine { node: space.name(place), layers });
        }
        self.quotas.changed = Some(namespace);
        lines
    }

    /// Counts a commit for its owner at a node. The books follow by [`Self::post`].
    pub(super) fn add_lot(
        &mut self,
        namespace: u32,
        place: Place,
        owner: &Owner,
        commit: ObjectId,
        amount: u64,
    ) {
        if amount == 0 {
            return;
        }
        let space = self.space_mut(namespace);
        let accounts = &mut space.node_mut(place).accounts;
        let is_new = !accounts.contains_key(owner);
        accounts.entry(owner.clone()).or_default().add(commit, amount);
        space.accounts += u64::from(is_new);
    }

    /// Takes an account away that has nothing left.
    pub(super) fn close_account(&mut self, namespace: u32, place: Place, owner: &Owner) {
        let space = self.space_mut(namespace);
        let accounts = &mut space.node_mut(place).accounts;
        if accounts.get(owner).is_some_and(|account| account.total() == 0) {
            accounts.remove(owner);
            space.accounts -= 1;
        }
    }

    /// Does to a due reservation what the sweep would.
    pub(in crate::state) fn end_due_reservation(&mut self, id: ObjectId) {
        let reservation = self.reservation(id);
        assert!(reservation.is_due(self.time), "only what is due is swept");
        let (phase, fate, at) = (reservation.phase, reservation.on_expiry, reservation.deadline);
        match (phase, fate) {
            (Phase::Waiting, _) if self.is_granted_too_late(id) => self.grant_waiting(id),
            (Phase::Waiting, _) => self.end_quota_wait(id, Some(WaitEnd::TimedOut)),
            (_, OnExpiry::Release) => self.expire(id, at),
            (_, OnExpiry::Commit) => self.commit_at_expiry(id),
            (_, OnExpiry::Quarantine) => self.quarantine(id),
        }
    }

    /// Its capacity is free again, and what it was is kept for a late commit.
    fn expire(&mut self, id: ObjectId, at: ClusterTime) {
        let reservation = self.reservation(id);
        let (namespace, name) = (reservation.namespace, reservation.name);
        let late = Late {
            namespace,
            name,
            owner: reservation.owner.clone(),
            fence: reservation.fence,
            items: self.space(namespace).names(&reservation.items),
            until: at.plus(limits::LATE_WINDOW_MS),
        };
        let caller = reservation.caller.clone();
        self.give_back(id, &caller, End::Expired, QuotaChange::Expired);
        if late.until > self.time {
            self.quotas.by_name.insert(name, id);
            self.quotas.late_until.insert((late.until, id));
            self.quotas.late.insert(id, late);
            self.space_mut(namespace).reservations += 1;
        }
    }

    fn quarantine(&mut self, id: ObjectId) {
        let reservation = self.reservation_mut(id);
        reservation.phase = Phase::Quarantined;
        let deadline = reservation.deadline;
        assert!(self.deadlines.remove(&(deadline, id)), "every reservation has its deadline");
        self.free_quarantined(id);
        let reservation = self.reservation(id).clone();
        let caller = reservation.caller.clone();
        self.reservation_event(&caller, &reservation, QuotaChange::Quarantined, Vec::new(), None);
    }

    /// Ends a holding reservation without use.
    pub(super) fn give_back(
        &mut self,
        id: ObjectId,
        caller: &Caller,
        end: End,
        change: QuotaChange,
    ) -> Box<Reservation> {
        let reservation = self.remove_reservation(id, end);
        let free =
            |item: &Asked| (item.place, Posting { committed: 0, reserved: -signed(item.amount) });
        let changes: Vec<_> = reservation.items.iter().map(free).collect();
        let lines = self.post(reservation.namespace, &reservation.owner, &changes);
        if end == End::Expired {
            self.forget_layer(reservation.namespace, &changes);
        }
        self.reservation_event(caller, &reservation, change, lines, None);
        reservation
    }

    /// A holding reservation has come to its end (S10): its request is answered so from here on. The books are
    /// changed by the caller.
    pub(super) fn remove_reservation(&mut self, id: ObjectId, end: End) -> Box<Reservation> {
        let reservation = self.quotas.reservations.remove(&id).expect("a reservation ends once");
        assert!(reservation.is_holding(), "what waits holds nothing");
        let had_deadline = self.deadlines.remove(&(reservation.deadline, id));
        assert!(had_deadline != (reservation.phase == Phase::Quarantined), "as its phase says");
        self.uncount_reservation(&reservation);
        self.memory.spent(reservation.record, self.revision);
        self.end_quota_request(&reservation, Fate::Ended(end));
        reservation
    }

    pub(super) fn uncount_reservation(&mut self, reservation: &Reservation) {
        self.quotas.by_name.remove(&reservation.name).expect("a reservation is known by its name");
        let space = self.space_mut(reservation.namespace);
        space.reservations -= 1;
        space.open_items -= reservation.items.len() as u64;
    }

    pub(super) fn end_quota_request(&mut self, reservation: &Reservation, fate: Fate) {
        let policy = &self.namespaces[reservation.namespace as usize].policy;
        let forget_at = self.time.plus(policy.reply_endings_ms);
        self.memory.ended(reservation.record, fate, self.revision, None, forget_at);
    }

    /// Ends what a request has come to, for its Abandon. Only an operator ends what is quarantined.
    pub(in crate::state) fn abandon_reservation(
        &mut self,
        id: ObjectId,
    ) -> Result<AbandonedWas, Refusal> {
        let of = self.reservation(id);
        let caller = of.caller.clone();
        match of.phase {
            Phase::Waiting => {
                self.end_quota_wait(id, None);
                Ok(AbandonedWas::Waiting)
            }
            Phase::Quarantined => Err(quarantined(of.fence)),
            Phase::Reserved | Phase::InFlight => {
                self.give_back(id, &caller, End::Abandoned, QuotaChange::Released);
                Ok(AbandonedWas::Granted)
            }
        }
    }

    /// By the leader: nobody has asked for it during the grace. A hand-over is only taken back while nothing was done
    /// with it.
    pub(in crate::state) fn end_deserted_reservation(&mut self, op: &EndDeserted) -> bool {
        let Some(of) = self.quotas.reservations.get(&op.claim) else { return false };
        if of.asked_at > op.asked_at {
            return false;
        }
        match (of.phase, of.waited) {
            (Phase::Waiting, _) => self.end_quota_wait(op.claim, Some(WaitEnd::Deserted)),
            (Phase::Reserved, true) => {
                let caller = of.caller.clone();
                self.give_back(op.claim, &caller, End::Abandoned, QuotaChange::Released);
            }
            _ => return false,
        }
        true
    }

    /// A repeat of a live reservation's request asks for it.
    pub(in crate::state) fn reservation_again(&mut self, id: ObjectId) -> Option<Done> {
        let revision = self.revision;
        let of = self.quotas.reservations.get_mut(&id)?;
        of.asked_at = revision;
        Some(match of.phase {
            Phase::Waiting => Done::Waiting(self.waiting_reservation(id)),
            _ => self.granted_reservation(id),
        })
    }

    /// Forgets expired reservations that can no longer be committed late.
    pub(in crate::state) fn forget_late(&mut self) {
        for _ in 0..limits::FORGET_RECORDS_MAX {
            let Some(&(until, id)) = self.quotas.late_until.first() else { return };
            if until > self.time {
                return;
            }
            self.remove_late(id);
        }
    }

    pub(super) fn remove_late(&mut self, id: ObjectId) -> Late {
        let late = self.quotas.late.remove(&id).expect("what is forgotten was kept");
        assert!(
            self.quotas.late_until.remove(&(late.until, id)),
            "what is kept is kept until then"
        );
        self.quotas.by_name.remove(&late.name).expect("what is kept is known by its name");
        self.space_mut(late.namespace).reservations -= 1;
        late
    }

    /// What a holding reservation's owner is told now.
    pub(super) fn reserved(&self, id: ObjectId) -> Reserved {
        let reservation = self.reservation(id);
        let space = self.space(reservation.namespace);
        let item = |asked: &Asked| ReservedItem {
            item: crate::command::Item { node: space.name(asked.place), amount: asked.amount },
            available: space.tree(asked.place).available(asked.place.1),
        };
        Reserved {
            claim: id,
            reservation: reservation.name,
            fence: reservation.fence,
            state: reservation.state(),
            items: reservation.items.iter().map(item).collect(),
            expires_in_ms: match reservation.phase {
                Phase::Quarantined => 0,
                _ => self.time.until(reservation.deadline),
            },
            final_deadline_in_ms: self.time.until(reservation.final_deadline),
            clipped: false,
        }
    }

    pub(in crate::state) fn granted_reservation(&self, id: ObjectId) -> Done {
        Done::Quota(QuotaDone::Reserved(self.reserved(id)))
    }

    pub(super) fn reservation_event(
        &mut self,
        caller: &Caller,
        of: &Reservation,
        change: QuotaChange,
        lines: Vec<LedgerLine>,
        reason: Option<&Reason>,
    ) {
        let named = Some((of.name, of.fence));
        let event = QuotaEvent { reservation: named, change, lines, reason: reason.cloned() };
        let resource = resource_of(of.name);
        self.ledger_event(caller, of.namespace, resource, Some(of.owner.clone()), event);
    }

    /// An event about a node, without a reservation.
    pub(super) fn node_event(
        &mut self,
        caller: &Caller,
        namespace: u32,
        node: &NodeRef,
        owner: Option<&Owner>,
        change: QuotaChange,
    ) {
        let event = QuotaEvent { reservation: None, change, lines: Vec::new(), reason: None };
        self.ledger_event(caller, namespace, resource_of_node(node), owner.cloned(), event);
    }

    pub(super) fn ledger_event(
        &mut self,
        caller: &Caller,
        namespace: u32,
        resource: ResourceName,
        owner: Option<Owner>,
        event: QuotaEvent,
    ) {
        self.applied.events.push(Event {
            revision: self.revision,
            family: super::FAMILY,
            namespace: Some(self.namespaces[namespace as usize].name.clone()),
            resource: Some(resource),
            owner,
            caller: caller.clone(),
            lease_hash: None,
            kind: EventKind::Quota(Box::new(event)),
        });
    }
}

impl Reservation {
    pub(super) fn state(&self) -> ReservationState {
        match self.phase {
            Phase::Waiting => ReservationState::Waiting,
            Phase::Reserved => ReservationState::Reserved,
            Phase::InFlight => ReservationState::InFlight,
            Phase::Quarantined => ReservationState::Quarantined,
        }
    }
}

/// The name in a reservation's fence key.
pub(super) fn resource_of(name: ReservationId) -> ResourceName {
    ResourceName::new(&name.to_hex()).expect("hexadecimal digits are a name")
}

/// A node as one name: `gpu/acme/vision`.
pub(super) fn resource_of_node(node: &NodeRef) -> ResourceName {
    let text = match node.path.as_str() {
        "" => node.quota.to_string(),
        path => format!("{}/{path}", node.quota),
    };
    ResourceName::new(&text).expect("a quota and a path are a name")
}
