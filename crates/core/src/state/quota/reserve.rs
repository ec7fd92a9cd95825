//! Reserve: whether capacity is taken, queued for or refused. One command over all items and all layers.

use super::{FAMILY, Phase, Reservation, Space, State};
use crate::{
    command::{Item, Reserve},
    ids::{LeaseId, ObjectId, ReservationId, Token},
    limits,
    names::{Caller, Invalid},
    outcome::{Code, Done, Layer, Outcome, Refusal},
    policy::within,
    quota::{Asked, Kept, Trial},
    state::{
        memory::Fate,
        request::{No, Request},
    },
};

/// The reply memory finds a reservation by its name as it finds a lease.
pub(super) fn lease_of(name: ReservationId) -> LeaseId {
    LeaseId(name.0)
}

/// What a reserve asks of the trees.
pub(super) enum Demand {
    /// All nodes are there.
    Of(Vec<Asked>),
    /// Some layers have no limit: that is a limit of 0.
    Unknown(Vec<Layer>),
}

impl State {
    pub(super) fn reserve(&mut self, caller: &Caller, op: &Reserve) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        let request = request.or_anew(lease_of(op.reservation));
        let known = self.recall(&request);
        self.next_revision();
        let Some(known) = known else {
            let result = self.reserve_anew(caller, &request, op);
            return self.conclude(&request, result);
        };
        if !self.is_same_content(known, &request) {
            return self.reused();
        }
        let not_an_ask = |_| unreachable!("what was done at once asked for no reservation");
        let mut outcome = self.replay(known, not_an_ask, |state, fate, code| {
            state.reserve_refused_again(fate, code, &request, op)
        });
        if let Err(refusal) = &mut outcome.result
            && refusal.code == Code::LeaseEnded
        {
            refusal.code = Code::ReservationEnded;
        }
        outcome
    }

    fn reserve_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &Reserve,
    ) -> Result<Done, No> {
        let namespace = self.admit_lease(request, lease_of(op.reservation))?;
        if self.quotas.by_name.contains_key(&op.reservation) {
            let invalid = Invalid::new("reservationId", "must be drawn at random by the node");
            return Err(No::Forget(invalid.into()));
        }
        self.check_reserve(namespace, op)?;
        if let Some(home) = self.items_away(namespace, &op.items) {
            return Err(crate::state::region::wrong_region(&home).into());
        }
        let asks = match self.demand(namespace, &op.items) {
            Demand::Of(asks) => asks,
            Demand::Unknown(layers) => return Err(self.exhausted(layers).into()),
        };
        self.check_reservation_bounds(namespace, asks.len() as u64)?;
        let kept = self.kept(namespace);
        let space = self.space(namespace);
        let trial = Trial::of(&space.trees, &asks);
        let owner_layers = space.owner_layers(&trial, &op.owner);
        if owner_layers.is_empty() && trial.passes(&space.trees, &kept) {
            let id = self.next_object();
            let reservation = self.new_reservation(caller, request, op, namespace, asks, id);
            self.grant_reservation(id, Box::new(reservation), false);
            return Ok(self.granted(id));
        }
        let layers = space.short_layers(&trial, &kept, owner_layers.clone());
        self.note_quota_refusal(namespace, &op.owner, &asks, &layers);
        let never = !owner_layers.is_empty() || !self.fits_when_idle(namespace, &asks);
        if never {
            return Err(Refusal { retry_after_ms: None, ..self.exhausted(layers) }.into());
        }
        if op.wait_timeout_ms == 0 {
            return Err(self.exhausted(layers).into());
        }
        self.check_quota_queue(namespace, &asks)?;
        let id = self.next_object();
        let deadline = self.wait_deadline(op.wait_timeout_ms);
        let reservation = self.new_reservation(caller, request, op, namespace, asks, id);
        self.enqueue_reservation(id, Reservation { deadline, ..reservation });
        Ok(Done::Waiting(self.waiting_reservation(id)))
    }

    /// Checks a request's own fields.
    fn check_reserve(&self, namespace: u32, op: &Reserve) -> Result<(), Refusal> {
        check_items(&op.items, 1)?;
        self.check_ttl(namespace, "ttl", op.ttl_ms)?;
        within("waitTimeout", op.wait_timeout_ms, 0..=limits::WAIT_TIMEOUT_MS_MAX)?;
        if let Some(lifetime_ms) = op.max_lifetime_ms {
            let range = limits::TTL_MS_MIN..=limits::RESERVATION_LIFETIME_MS_MAX;
            within("maxLifetime", lifetime_ms, range)?;
        }
        Ok(())
    }

    fn check_reservation_bounds(&self, namespace: u32, items: u64) -> Result<(), Refusal> {
        let space = self.space(namespace);
        let max = limits::RESERVATIONS_PER_NAMESPACE_MAX;
        if space.reservations >= max {
            return Err(self.limit_reached("reservations", max));
        }
        let max = limits::QUOTA_ACCOUNTS_MAX;
        if space.accounts + space.open_items + items > max {
            return Err(self.limit_reached("accounts of quotas", max));
        }
        Ok(())
    }

    fn check_quota_queue(&mut self, namespace: u32, asks: &[Asked]) -> Result<(), No> {
        let of = &self.namespaces[namespace as usize];
        let waiting = asks.iter().map(|ask| of.quotas.waiting_in(ask.place.0)).max();
        if waiting.unwrap_or(0) >= limits::QUOTA_WAITERS_MAX {
            let max = limits::QUOTA_WAITERS_MAX as u64;
            let refusal = self.limit_reached("waiters of one quota", max);
            return Err(No::Remember(Refusal { code: Code::QueueFull, ..refusal }));
        }
        let max = of.policy.max_waiters;
        if of.waiters >= max {
            return Err(No::TooManyWaiters(self.limit_reached("maxWaiters", max)));
        }
        Ok(())
    }

    fn new_reservation(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &Reserve,
        namespace: u32,
        items: Vec<Asked>,
        id: ObjectId,
    ) -> Reservation {
        let lifetime_ms = op.max_lifetime_ms.unwrap_or(limits::RESERVATION_LIFETIME_MS_DEFAULT);
        Reservation {
            namespace,
            record: self.remember_live(request, lease_of(op.reservation), id),
            name: op.reservation,
            owner: op.owner.clone(),
            caller: caller.clone(),
            labels: op.labels.clone(),
            items,
            phase: Phase::Waiting,
            fence: Token(0),
            ttl_ms: op.ttl_ms,
            max_lifetime_ms: lifetime_ms,
            on_expiry: op.on_expiry,
            priority: op.priority,
            created_at: self.time,
            granted_at: self.time,
            waited: false,
            deadline: self.time,
            final_deadline: self.time,
            asked_at: self.revision,
        }
    }

    /// Finds the nodes of an ask, and adds up what is asked of each.
    pub(super) fn demand(&self, namespace: u32, items: &[Item]) -> Demand {
        let space = self.space(namespace);
        let (mut asks, mut unknown) = (Vec::<Asked>::with_capacity(items.len()), Vec::new());
        for item in items {
            let Some(place) = space.find(&item.node) else {
                space.unknown_layers(item, &mut unknown);
                continue;
            };
            match asks.iter_mut().find(|ask| ask.place == place) {
                Some(ask) => ask.amount += item.amount,
                None => asks.push(Asked { place, amount: item.amount }),
            }
        }
        match unknown.is_empty() {
            true => Demand::Of(asks),
            false => Demand::Unknown(unknown),
        }
    }

    /// Whether an ask would pass if nothing were used.
    fn fits_when_idle(&self, namespace: u32, asks: &[Asked]) -> bool {
        let trees = &self.space(namespace).trees;
        Trial::when_idle(trees, asks).passes(trees, &Kept::default())
    }

    fn reserve_refused_again(
        &self,
        fate: Fate,
        code: Code,
        request: &Request,
        op: &Reserve,
    ) -> Refusal {
        let Some(namespace) = request.namespace else { return Refusal::new(code) };
        let policy = &self.namespaces[namespace as usize].policy;
        match code {
            Code::QuotaExhausted => match self.demand(namespace, &op.items) {
                Demand::Unknown(layers) => self.exhausted(layers),
                Demand::Of(asks) => {
                    let (space, kept) = (self.space(namespace), self.kept(namespace));
                    let trial = Trial::of(&space.trees, &asks);
                    let owner_layers = space.owner_layers(&trial, &op.owner);
                    self.exhausted(space.short_layers(&trial, &kept, owner_layers))
                }
            },
            Code::QueueFull => {
                let max = limits::QUOTA_WAITERS_MAX as u64;
                Refusal { code, ..self.limit_reached("waiters of one quota", max) }
            }
            Code::LimitReached if fate == Fate::TooManyWaiters => {
                self.limit_reached("maxWaiters", policy.max_waiters)
            }
            Code::LimitReached => match self.check_reservation_bounds(namespace, 1) {
                Err(refusal) => refusal,
                Ok(()) => Refusal::new(code),
            },
            Code::InvalidArgument => match self.check_reserve(namespace, op) {
                Err(refusal) if refusal.code == code => refusal,
                _ => Invalid::new("requestId", "was refused under an earlier policy").into(),
            },
            _ => Refusal::new(code),
        }
    }
}

/// 1 to 16 items of at least this much.
pub(super) fn check_items(items: &[Item], least: u64) -> Result<(), Invalid> {
    within("items", items.len() as u64, 1..=limits::QUOTA_ITEMS_MAX as u64)?;
    for item in items {
        within("amount", item.amount, least..=limits::QUOTA_AMOUNT_MAX)?;
    }
    Ok(())
}

impl Space {
    /// How many wait for something of this tree.
    fn waiting_in(&self, tree: u32) -> usize {
        let lanes = self.lanes.iter().filter(|(key, _)| key.places.iter().any(|at| at.0 == tree));
        lanes.map(|(_, lane)| lane.len()).sum()
    }
}
