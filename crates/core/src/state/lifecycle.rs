//! The life of claims and lock delays: queued, granted, handed over, ended. Every change of ownership is here,
//! whoever causes it, so that each rule (counters, queue order, lock delay, reply memory) is kept in one place.

use super::{
    Settled, State,
    claim::{Claim, Delay, Face, Held, Holding},
    memory::Fate,
};
use crate::{
    command::Family,
    event::EventKind,
    ids::{ClusterTime, ObjectId},
    names::{Caller, Reason, ResourceName},
    outcome::{self, Code, Detail, Done, Elected, End, Refusal, RunClaimed, WaitEnd, Waiting},
    planted::{self, Planted},
};

impl State {
    /// Does to a due object what the sweep would: one revision, the hand-over included.
    pub(super) fn end_due(&mut self, id: ObjectId) {
        self.next_revision();
        if let Some(delay) = self.delays.get(&id) {
            assert!(delay.deadline <= self.time, "only what is due is swept");
            let delay = delay.clone();
            self.end_delay(id, &delay);
            if delay.owner.is_none() {
                self.hand_over(delay.namespace, delay.family, &delay.resource);
            }
            return;
        }
        if self.quotas.has(id) {
            return self.end_due_reservation(id);
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
        let claim = self.claims.get(&id).map(|claim| claim.deadline);
        let deadline = claim.or_else(|| self.quotas.deadline_of(id));
        if deadline.is_some_and(|deadline| deadline <= self.time) {
            self.end_due(id);
            self.look_if_changed();
        }
    }

    /// Ends the resource's holder or lock delay if due and unswept, so that nobody barges past its queue.
    pub(super) fn touch_resource(&mut self, namespace: u32, family: Family, name: &ResourceName) {
        loop {
            let resources = &self.namespaces[namespace as usize].space(family).resources;
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
        let resources = &mut namespace.space_mut(claim.family()).resources;
        let resource = resources.entry(claim.holdings[0].resource.clone()).or_default();
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
        let family = claim.family();
        if let Face::Candidate { version, .. } = &mut claim.face {
            *version = self.revision;
        }
        self.deadlines.insert((claim.deadline, id));
        for index in 0..claim.holdings.len() {
            let token = self.next_token();
            claim.holdings[index].token = token;
            let namespace = &mut self.namespaces[claim.namespace as usize];
            let name = claim.holdings[index].resource.clone();
            if family == Family::Hold {
                namespace.held_names.insert(name.clone());
                *namespace.held_by.entry(claim.owner.clone()).or_default() += 1;
            }
            let space = namespace.space_mut(family);
            let resource = space.resources.entry(name).or_default();
            assert!(
                resource.is_free(),
                "at most one valid lease (S1): {:?}",
                claim.holdings[index]
            );
            resource.holder = Some(id);
            space.by_age.insert(token, (id, index as u32));
            let waited_ms = waited.then(|| claim.created_at.until(now));
            self.claim_event(&claim, index, EventKind::Granted { token, waited_ms });
        }
        self.memory.granted(claim.record, claim.holdings[0].token, self.revision);
        self.claims.insert(id, claim);
    }

    /// The resource has become free: the first waiter whose own deadline is not due has it.
    fn hand_over(&mut self, namespace_id: u32, family: Family, name: &ResourceName) {
        let namespace = &mut self.namespaces[namespace_id as usize];
        let resources = &mut namespace.space_mut(family).resources;
        let resource = resources.get_mut(name).expect("what was held is known");
        assert!(resource.is_free(), "only what is free is handed over");
        let now = self.time;
        let due = |id: &&ObjectId| {
            self.claims[*id].deadline <= now && !planted::has(Planted::HandOverToDue)
        };
        resource.due += resource.queue.range(resource.due..).take_while(due).count();
        let index = resource.due;
        if index == resource.queue.len() {
            if resource.is_idle() {
                resources.remove(name);
            }
            return;
        }
        let id = resource.queue.remove(index).expect("its index was just found");
        namespace.waiters -= 1;
        self.grant_waiter(id);
    }

    /// Grants a claim that has just left its queue.
    pub(super) fn grant_waiter(&mut self, id: ObjectId) {
        let claim = self.claims.remove(&id).expect("a queued claim exists");
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        self.grant(id, claim, true);
        let outcome = self.decided(None, Ok(self.granted(id)));
        self.applied.settled.push(Settled { claim: id, outcome });
    }

    /// What a holding claim is told now.
    pub(super) fn granted(&self, id: ObjectId) -> Done {
        if self.quotas.has(id) {
            return self.granted_reservation(id);
        }
        let claim = &self.claims[&id];
        let grant = claim.grant(id, self.time);
        match &claim.face {
            Face::Lock => Done::Granted(grant),
            Face::Candidate { value, version } => {
                let (value, version) = (value.clone(), version.0);
                Done::Elected(Elected { grant, value, version })
            }
            &Face::Hold { begun } => {
                Done::Held(outcome::Held { grant, owner: claim.owner.clone(), yours: false, begun })
            }
            Face::Run { job, slot } => {
                let attempt =
                    self.namespaces[claim.namespace as usize].jobs[job].runs[slot].attempt;
                Done::RunClaimed(RunClaimed { grant, slot: *slot, attempt })
            }
        }
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
        let (namespace, family, name) = self.end_without_heir(id, index, end, at, by);
        if !self.begin_delay(namespace, family, &name, end, at) {
            self.hand_over(namespace, family, &name);
        }
    }

    /// The same without what follows for those who wait.
    pub(super) fn end_without_heir(
        &mut self,
        id: ObjectId,
        index: usize,
        end: End,
        at: ClusterTime,
        by: Option<(&Caller, Option<&Reason>)>,
    ) -> (u32, Family, ResourceName) {
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
        self.end_repeats(&mut claim, end);

        let family = claim.family();
        let space = self.namespaces[namespace_id as usize].space_mut(family);
        let resource = space.resources.get_mut(&name).expect("what is held is known");
        assert!(resource.holder == Some(id), "only the current lease ends (S4)");
        resource.holder = None;
        assert!(space.by_age.remove(&token).is_some(), "every holding is listed by age");

        let held_ms = held.granted_at.until(at);
        let (by, reason) = by.unwrap_or((&claim.caller, None));
        let reason = reason.cloned();
        let kind = EventKind::Ended { token, end, held_ms, reason };
        self.claim_event_by(by, &claim, index, kind);
        match &claim.face {
            Face::Lock | Face::Candidate { .. } => {}
            &Face::Hold { begun } => self.hold_ended(&claim, &name, begun, at),
            Face::Run { job, slot } => self.run_ended(&claim, job, *slot, end),
        }
        if claim.is_all_ended() {
            assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
            let spent = claim.spent.expect("an ended lease is spent");
            self.end_request(&claim, Fate::Ended(spent));
        } else {
            self.claims.insert(id, claim);
        }
        (namespace_id, family, name)
    }

    /// After an expiry or a forced release nobody is granted for the namespace's `lockDelay`, counted from `at`.
    /// Says whether there is anything left of it.
    fn begin_delay(
        &mut self,
        namespace_id: u32,
        family: Family,
        name: &ResourceName,
        end: End,
        at: ClusterTime,
    ) -> bool {
        let namespace = &mut self.namespaces[namespace_id as usize];
        // Holds have none: there the sale itself decides, and the shelf should not look empty.
        let delayed =
            matches!(end, End::Expired | End::MaxHold | End::Forced) && family != Family::Hold;
        let deadline = at.plus(namespace.policy.lock_delay_ms);
        if !delayed || deadline <= self.time || planted::has(Planted::LockDelayIgnored) {
            return false;
        }
        namespace.delays += 1;
        let id = ObjectId(self.next_object);
        self.next_object += 1;
        let resources = &mut namespace.space_mut(family).resources;
        resources.get_mut(name).expect("what was held is known").delay = Some(id);
        self.deadlines.insert((deadline, id));
        let (namespace, resource) = (namespace_id, name.clone());
        self.delays.insert(id, Delay { namespace, family, resource, owner: None, deadline });
        true
    }

    fn end_delay(&mut self, id: ObjectId, delay: &Delay) {
        self.delays.remove(&id).expect("what ends has begun");
        assert!(self.deadlines.remove(&(delay.deadline, id)), "every delay has its deadline");
        let namespace = &mut self.namespaces[delay.namespace as usize];
        if let Some(owner) = &delay.owner {
            let key = (delay.resource.clone(), owner.clone());
            assert!(namespace.cooling.remove(&key) == Some(id), "an owner has one cool-down each");
            return;
        }
        namespace.delays -= 1;
        let resources = &mut namespace.space_mut(delay.family).resources;
        let resource = resources.get_mut(&delay.resource).expect("what is delayed is known");
        assert!(resource.delay.take() == Some(id), "a resource has one lock delay");
    }

    /// Ends a wait without a grant. `None`: by the caller's Abandon.
    pub(super) fn end_wait(&mut self, id: ObjectId, why: Option<WaitEnd>) {
        let claim = self.claims.remove(&id).expect("what ends has begun");
        assert!(claim.held.is_none(), "a holder does not wait");
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        let namespace = &mut self.namespaces[claim.namespace as usize];
        namespace.waiters -= 1;
        let name = &claim.holdings[0].resource;
        let resources = &mut namespace.space_mut(claim.family()).resources;
        let resource = resources.get_mut(name).expect("what is waited for is known");
        resource.leave(id);
        if resource.is_idle() {
            resources.remove(name);
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
        let resources = &self.namespaces[claim.namespace as usize].space(claim.family()).resources;
        let place = resources[&claim.holdings[0].resource].place(id);
        Waiting { claim: id, place, wait_expires_in_ms: self.time.until(claim.deadline) }
    }

    fn claim_event(&mut self, claim: &Claim, index: usize, kind: EventKind) {
        self.claim_event_by(&claim.caller, claim, index, kind);
    }

    fn claim_event_by(&mut self, caller: &Caller, claim: &Claim, index: usize, kind: EventKind) {
        let subject = (&claim.holdings[index].resource, &claim.owner, claim.lease_id.public_hash());
        self.event(caller, claim.namespace, claim.family(), Some(subject), kind);
    }
}
