//! The life of claims and lock delays: queued, granted, handed over, ended. Every change of ownership is here,
//! whoever causes it, so that each rule (counters, queue order, lock delay, reply memory) is kept in one place.

use super::{
    Settled, State,
    claim::{Claim, Delay, Held, Holding},
    memory::Fate,
};
use crate::{
    event::EventKind,
    ids::{ClusterTime, ObjectId},
    names::{Caller, Reason, ResourceName},
    outcome::{Code, Detail, Done, End, Refusal, WaitEnd, Waiting},
    planted::{self, Planted},
};

impl State {
    /// Does to a due object what the sweep would: one revision, the hand-over included.
    pub(super) fn end_due(&mut self, id: ObjectId) {
        self.next_revision();
        if let Some(delay) = self.delays.get(&id) {
            assert!(delay.deadline <= self.time, "only what is due is swept");
            let (namespace, resource) = (delay.namespace, delay.resource.clone());
            self.end_delay(id, namespace, &resource);
            self.hand_over(namespace, &resource);
            return;
        }
        let claim = self.claims.get(&id).expect("what has a deadline is a claim or a lock delay");
        assert!(claim.deadline <= self.time, "only what is due is swept");
        if claim.held.is_some() {
            let (end, at) = (claim.end_at_deadline(), claim.deadline);
            self.end_lease(id, end, at);
        } else {
            self.end_wait(id, Some(WaitEnd::TimedOut));
        }
    }

    /// Ends the claim if it is due and unswept.
    pub(super) fn touch_claim(&mut self, id: ObjectId) {
        if self.claims.get(&id).is_some_and(|claim| claim.deadline <= self.time) {
            self.end_due(id);
        }
    }

    /// Ends the resource's holder or lock delay if due and unswept, so that nobody barges past its queue.
    pub(super) fn touch_resource(&mut self, namespace: u32, name: &ResourceName) {
        loop {
            let resources = &self.namespaces[namespace as usize].resources;
            let Some(resource) = resources.get(name) else { return };
            let Some(id) = resource.holder.or(resource.delay) else { return };
            let deadline = match self.claims.get(&id) {
                Some(claim) => claim.deadline,
                None => self.delays[&id].deadline,
            };
            if deadline > self.time {
                return;
            }
            self.end_due(id);
        }
    }

    /// Puts a new claim at the end of its resource's queue.
    pub(super) fn enqueue(&mut self, id: ObjectId, claim: Claim) {
        assert!(claim.held.is_none() && claim.holdings.len() == 1, "one resource is waited for");
        let namespace = &mut self.namespaces[claim.namespace as usize];
        let resource = namespace.resources.entry(claim.holdings[0].resource.clone()).or_default();
        assert!(resource.queue.back().is_none_or(|&last| last < id), "queues are in order");
        resource.queue.push_back(id);
        namespace.waiters += 1;
        self.deadlines.insert((claim.deadline, id));
        self.claim_event(&claim, 0, EventKind::Queued);
        self.claims.insert(id, Box::new(claim));
    }

    /// Makes a claim the holder of its resources, which are free: tokens are minted here and nowhere else.
    pub(super) fn grant(&mut self, id: ObjectId, mut claim: Box<Claim>, waited: bool) {
        assert!(claim.held.is_none(), "a claim is granted once");
        assert!(self.paused_until <= self.time, "nothing is granted during the pause");
        let now = self.time;
        let max_hold_ms = claim.max_hold_ms.filter(|_| !planted::has(Planted::MaxHoldIgnored));
        let final_deadline = max_hold_ms.map(|ms| now.plus(ms));
        let deadline = now.plus(claim.ttl_ms);
        claim.deadline = final_deadline.map_or(deadline, |end| end.min(deadline));
        claim.held = Some(Held { granted_at: now, renewed_at: now, waited, final_deadline });
        self.deadlines.insert((claim.deadline, id));
        for index in 0..claim.holdings.len() {
            let token = self.next_token();
            claim.holdings[index].token = token;
            let namespace = &mut self.namespaces[claim.namespace as usize];
            let name = claim.holdings[index].resource.clone();
            let resource = namespace.resources.entry(name).or_default();
            assert!(
                resource.is_free(),
                "at most one valid lease (S1): {:?}",
                claim.holdings[index]
            );
            resource.holder = Some(id);
            namespace.by_age.insert(token, (id, index as u32));
            let waited_ms = waited.then(|| claim.created_at.until(now));
            self.claim_event(&claim, index, EventKind::Granted { token, waited_ms });
        }
        self.memory.granted(claim.record, claim.holdings[0].token, self.revision);
        self.claims.insert(id, claim);
    }

    /// The resource has become free: the first waiter whose own deadline is not due has it.
    fn hand_over(&mut self, namespace_id: u32, name: &ResourceName) {
        let namespace = &mut self.namespaces[namespace_id as usize];
        let resource = namespace.resources.get_mut(name).expect("what was held is known");
        assert!(resource.is_free(), "only what is free is handed over");
        let now = self.time;
        let due = |id: &&ObjectId| {
            self.claims[*id].deadline <= now && !planted::has(Planted::HandOverToDue)
        };
        resource.due += resource.queue.range(resource.due..).take_while(due).count();
        let index = resource.due;
        if index == resource.queue.len() {
            if resource.is_idle() {
                namespace.resources.remove(name);
            }
            return;
        }
        let id = resource.queue.remove(index).expect("its index was just found");
        namespace.waiters -= 1;
        let claim = self.claims.remove(&id).expect("a queued claim exists");
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        self.grant(id, claim, true);
        let grant = self.claims[&id].grant(id, now);
        let outcome = self.decided(None, Ok(Done::Granted(grant)));
        self.applied.settled.push(Settled { claim: id, outcome });
    }

    /// Ends a whole lease at `at` (its deadline, or now).
    pub(super) fn end_lease(&mut self, id: ObjectId, end: End, at: ClusterTime) {
        let is_held = |holding: &Holding| holding.ended.is_none();
        let holdings = self.claims[&id].holdings.iter().map(is_held).collect::<Vec<_>>();
        for (index, _) in holdings.iter().enumerate().filter(|(_, is_held)| **is_held) {
            self.end_holding(id, index, end, at, None);
        }
    }

    /// Ends one resource of a lease, and the lease with its last one. `by`: who asked for it and why, where that
    /// is not the holder's own caller.
    pub(super) fn end_holding(
        &mut self,
        id: ObjectId,
        index: usize,
        end: End,
        at: ClusterTime,
        by: Option<(&Caller, Option<&Reason>)>,
    ) {
        let mut claim = self.claims.remove(&id).expect("what ends has begun");
        let held = claim.held.expect("only a holder's lease ends");
        let namespace_id = claim.namespace;
        let holding = &mut claim.holdings[index];
        assert!(holding.ended.is_none(), "a holding ends once");
        holding.ended = Some(end);
        let (name, token) = (holding.resource.clone(), holding.token);
        if claim.spent.is_none() {
            claim.spent = Some(end);
            self.memory.spent(claim.record, self.revision);
        }

        let namespace = &mut self.namespaces[namespace_id as usize];
        let resource = namespace.resources.get_mut(&name).expect("what is held is known");
        assert!(resource.holder == Some(id), "only the current lease ends (S4)");
        resource.holder = None;
        assert!(namespace.by_age.remove(&token).is_some(), "every holding is listed by age");

        let held_ms = held.granted_at.until(at);
        let (by, reason) = by.unwrap_or((&claim.caller, None));
        let reason = reason.cloned();
        let kind = EventKind::Ended { token, end, held_ms, reason };
        self.claim_event_by(by, &claim, index, kind);
        if claim.is_all_ended() {
            assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
            let spent = claim.spent.expect("an ended lease is spent");
            self.end_request(&claim, Fate::Ended(spent));
        } else {
            self.claims.insert(id, claim);
        }
        if !self.begin_delay(namespace_id, &name, end, at) {
            self.hand_over(namespace_id, &name);
        }
    }

    /// After an expiry or a forced release nobody is granted for the namespace's `lockDelay`, counted from `at`.
    /// Says whether there is anything left of it.
    fn begin_delay(
        &mut self,
        namespace_id: u32,
        name: &ResourceName,
        end: End,
        at: ClusterTime,
    ) -> bool {
        let namespace = &mut self.namespaces[namespace_id as usize];
        let delayed = matches!(end, End::Expired | End::MaxHold | End::Forced);
        let deadline = at.plus(namespace.policy.lock_delay_ms);
        if !delayed || deadline <= self.time || planted::has(Planted::LockDelayIgnored) {
            return false;
        }
        namespace.delays += 1;
        let id = ObjectId(self.next_object);
        self.next_object += 1;
        namespace.resources.get_mut(name).expect("what was held is known").delay = Some(id);
        self.deadlines.insert((deadline, id));
        let resource = name.clone();
        self.delays.insert(id, Delay { namespace: namespace_id, resource, deadline });
        true
    }

    fn end_delay(&mut self, id: ObjectId, namespace_id: u32, name: &ResourceName) {
        let delay = self.delays.remove(&id).expect("what ends has begun");
        assert!(self.deadlines.remove(&(delay.deadline, id)), "every delay has its deadline");
        let namespace = &mut self.namespaces[namespace_id as usize];
        namespace.delays -= 1;
        let resource = namespace.resources.get_mut(name).expect("what is delayed is known");
        assert!(resource.delay.take() == Some(id), "a resource has one lock delay");
    }

    /// Ends a wait without a grant. `None`: by the caller's Abandon.
    pub(super) fn end_wait(&mut self, id: ObjectId, why: Option<WaitEnd>) {
        let claim = self.claims.remove(&id).expect("what ends has begun");
        assert!(claim.held.is_none(), "a holder does not wait");
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        let namespace = &mut self.namespaces[claim.namespace as usize];
        let name = &claim.holdings[0].resource;
        let resource = namespace.resources.get_mut(name).expect("what is waited for is known");
        let index = resource.place(id) as usize - 1;
        resource.queue.remove(index);
        resource.due -= usize::from(index < resource.due);
        namespace.waiters -= 1;
        if resource.is_idle() {
            namespace.resources.remove(name);
        }
        let waited_ms = claim.created_at.until(self.time);
        self.claim_event(&claim, 0, EventKind::WaitEnded { why, waited_ms });
        let (fate, refusal) = match why {
            Some(why) => {
                let refusal = Refusal::new(Code::WaitTimeout).with(Detail::Wait(why));
                (Fate::WaitEnded(why), refusal)
            }
            None => (Fate::Refused(Code::Abandoned), Refusal::new(Code::Abandoned)),
        };
        self.end_request(&claim, fate);
        let outcome = self.decided(None, Err(refusal));
        self.applied.settled.push(Settled { claim: id, outcome });
    }

    /// What a waiting claim is told now.
    pub(super) fn waiting(&self, id: ObjectId) -> Waiting {
        let claim = &self.claims[&id];
        let resources = &self.namespaces[claim.namespace as usize].resources;
        let place = resources[&claim.holdings[0].resource].place(id);
        Waiting { claim: id, place, wait_expires_in_ms: self.time.until(claim.deadline) }
    }

    fn claim_event(&mut self, claim: &Claim, index: usize, kind: EventKind) {
        self.claim_event_by(&claim.caller, claim, index, kind);
    }

    fn claim_event_by(&mut self, caller: &Caller, claim: &Claim, index: usize, kind: EventKind) {
        let subject = (&claim.holdings[index].resource, &claim.owner, claim.lease_id.public_hash());
        self.event(caller, claim.namespace, Some(subject), kind);
    }
}
