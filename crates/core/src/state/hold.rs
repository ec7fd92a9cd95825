//! Holds (DESIGN.md section 10): addressed by their owner, never waiting. Taking and freeing in one command, caps and
//! cool-downs, and the payment that has begun.

use super::{
    State,
    acquire::{Ask, Terms, check_resources, not_free},
    claim::{Claim, Delay, Face},
    memory::{Content, Fate, Fingerprint, RecordId, encode},
    request::{No, Request},
};
use crate::{
    command::{BeginHold, Family, Hold, HoldCommand, HoldRef, ReleaseHold, RenewHold},
    event::EventKind,
    ids::{ClusterTime, ObjectId, Token},
    limits,
    names::{Caller, Invalid, Owner, ResourceName},
    outcome::{Code, Detail, Done, End, HoldExtended, Outcome, Refusal, Renewed},
    planted::{self, Planted},
    policy::within,
};
use borsh::BorshSerialize as _;

const FAMILY: Family = Family::Hold;

impl State {
    pub(super) fn hold(&mut self, caller: &Caller, op: &HoldCommand) -> Outcome {
        match op {
            HoldCommand::Hold(op) => self.take_hold(caller, op),
            HoldCommand::Renew(op) => self.renew_hold(caller, op),
            HoldCommand::Begin(op) => self.begin_hold(caller, op),
            HoldCommand::Release(op) => self.release_hold(caller, op),
            HoldCommand::ForceRelease(op) => self.force_release(caller, FAMILY, op),
            HoldCommand::PutPolicy(op) => self.put_hold_policy(caller, op),
        }
    }

    fn take_hold(&mut self, caller: &Caller, op: &Hold) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        let known = self.recall(&request);
        if let Some(namespace) = request.namespace {
            let replaced = op.replaces.iter().map(|one| &one.resource);
            for resource in op.resources.iter().chain(replaced) {
                self.touch_resource(namespace, FAMILY, resource);
            }
            self.touch_cool_downs(namespace, op);
        }
        self.next_revision();
        let Some(known) = known else {
            let result = self.take_hold_anew(caller, &request, op);
            return self.conclude(&request, result);
        };
        if !self.is_same_content(known, &request) {
            return self.reused();
        }
        let is_repeat = self.is_repeat(known);
        let not_an_ask = |_| unreachable!("what was done at once asked for no lease");
        let mut outcome = self.replay(known, not_an_ask, |state, _, code| {
            state.hold_refused_again(code, &request, op)
        });
        if let Ok(Done::Held(held)) = &mut outcome.result {
            held.yours = is_repeat;
        }
        outcome
    }

    fn take_hold_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &Hold,
    ) -> Result<Done, No> {
        let namespace = self.admit_lease(request, op.lease_id)?;
        let terms = self.hold_terms(namespace, op)?;
        let ask = Ask {
            face: Face::Hold { begun: false },
            caller,
            resources: &op.resources,
            owner: &op.owner,
            lease_id: op.lease_id,
            lease_ttl_ms: Some(op.ttl_ms),
            wait_timeout_ms: 0,
            max_hold_ms: op.max_hold_ms,
            fencing: None,
            labels: &op.labels,
        };
        let replaced = self.replaced(namespace, op)?;
        if let Some(id) = self.yours(namespace, op) {
            if self.claims[&id].repeats.len() >= limits::HOLD_REPEATS_MAX {
                let max = limits::HOLD_REPEATS_MAX as u64;
                return Err(No::Forget(self.limit_reached("repeated requests of one hold", max)));
            }
            self.end_replaced(caller, &replaced);
            self.remember_repeat(request, id);
            let mut done = self.granted(id);
            if let Done::Held(held) = &mut done {
                held.yours = true;
            }
            return Ok(done);
        }
        let in_the_way = self.in_the_way(namespace, FAMILY, &op.resources);
        if !in_the_way.is_empty() {
            return Err(not_free(Code::Taken, in_the_way).into());
        }
        self.check_hold_limits(namespace, &ask, replaced.len() as u64)?;
        self.end_replaced(caller, &replaced);
        Ok(self.grant_at_once(request, namespace, &ask, &terms))
    }

    fn hold_terms(&self, namespace: u32, op: &Hold) -> Result<Terms, Refusal> {
        check_resources(&op.resources)?;
        within("replaces", op.replaces.len() as u64, 0..=limits::HOLD_RESOURCES_MAX as u64)?;
        if let Some(both) = op.replaces.iter().find(|one| op.resources.contains(&one.resource)) {
            let rule = format!("names {:?}, which is to be held: renew it instead", both.resource);
            return Err(Invalid::new("replaces", rule).into());
        }
        let policy = &self.namespaces[namespace as usize].policy;
        let ttl_ms = self.check_ttl(namespace, "ttl", op.ttl_ms)?;
        let ceiling = policy.max_hold_ms.unwrap_or(limits::MAX_HOLD_MS_MAX);
        if let Some(max_hold_ms) = op.max_hold_ms {
            within("maxHold", max_hold_ms, limits::TTL_MS_MIN.min(ceiling)..=ceiling)?;
        }
        let max_hold_ms = op.max_hold_ms.or(policy.max_hold_ms);
        Ok(Terms { ttl_ms, max_hold_ms, fencing: policy.fencing })
    }

    /// What ends when this hold is taken. Holds that are gone already are not missed.
    fn replaced(&self, namespace: u32, op: &Hold) -> Result<Vec<(ObjectId, usize)>, Refusal> {
        let mut replaced = Vec::new();
        for one in &op.replaces {
            match self.find_hold(namespace, one, &op.owner, true) {
                Found::It(id, index) => replaced.push((id, index)),
                Found::Other => return Err(Refusal::new(Code::NotHolder)),
                Found::Nothing => {}
            }
        }
        replaced.sort_unstable();
        replaced.dedup();
        Ok(replaced)
    }

    fn end_replaced(&mut self, caller: &Caller, replaced: &[(ObjectId, usize)]) {
        for &(id, index) in replaced {
            self.end_holding(id, index, End::Replaced, self.time, Some((caller, None)));
        }
    }

    /// The owner's hold of just these resources.
    fn yours(&self, namespace: u32, op: &Hold) -> Option<ObjectId> {
        let resources = &self.namespaces[namespace as usize].space(FAMILY).resources;
        let id = resources.get(&op.resources[0])?.holder?;
        let claim = &self.claims[&id];
        let live = claim.holdings.iter().filter(|holding| holding.ended.is_none());
        let is_asked = |name: &ResourceName| op.resources.contains(name);
        let is_it = claim.owner == op.owner
            && live.clone().count() == op.resources.len()
            && live.into_iter().all(|holding| is_asked(&holding.resource));
        is_it.then_some(id)
    }

    fn check_hold_limits(&mut self, namespace: u32, ask: &Ask, ending: u64) -> Result<(), No> {
        if let Some(refusal) = self.cooling(namespace, ask.resources, ask.owner) {
            self.note_refusal(namespace, ask, refusal.code);
            return Err(refusal.into());
        }
        let of = &self.namespaces[namespace as usize];
        if let Some(max) = of.hold_policy.per_owner {
            let held = of.held_by.get(ask.owner).copied().unwrap_or(0);
            if held + ask.resources.len() as u64 > max + ending {
                self.note_refusal(namespace, ask, Code::LimitReached);
                return Err(self.limit_reached("holdsPerOwner", max).into());
            }
        }
        self.check_lease_limit_after(namespace, ask, ending)
    }

    /// The refusal of an owner who has had one of these lately.
    fn cooling(
        &self,
        namespace: u32,
        resources: &[ResourceName],
        owner: &Owner,
    ) -> Option<Refusal> {
        let of = &self.namespaces[namespace as usize];
        let until = |name: &ResourceName| {
            let id = of.cooling.get(&(name.clone(), owner.clone()))?;
            if planted::has(Planted::CoolDownIgnored) {
                return None;
            }
            Some(self.delays[id].deadline)
        };
        let until = resources.iter().filter_map(until).max()?;
        let max = of.hold_policy.cooldown_ms;
        let detail = Detail::Limit { limit: "holdCooldown".into(), max, sweep_pending: false };
        let refusal = Refusal::new(Code::LimitReached).with(detail);
        Some(refusal.retry_after(self.time.until(until)))
    }

    fn touch_cool_downs(&mut self, namespace: u32, op: &Hold) {
        for name in &op.resources {
            let cooling = &self.namespaces[namespace as usize].cooling;
            let id = cooling.get(&(name.clone(), op.owner.clone())).copied();
            if let Some(id) = id.filter(|id| self.delays[id].deadline <= self.time) {
                self.end_due(id);
            }
        }
    }

    /// Part of the end of a hold's resource: the counters, and the cool-down where its payment had not begun.
    pub(super) fn hold_ended(
        &mut self,
        claim: &Claim,
        name: &ResourceName,
        begun: bool,
        at: ClusterTime,
    ) {
        let of = &mut self.namespaces[claim.namespace as usize];
        assert!(of.held_names.remove(name), "what is held is listed by name");
        let held = of.held_by.get_mut(&claim.owner).expect("an owner's holds are counted");
        *held -= 1;
        if *held == 0 {
            of.held_by.remove(&claim.owner);
        }
        let deadline = at.plus(of.hold_policy.cooldown_ms);
        if begun || deadline <= self.time {
            return;
        }
        let id = self.next_object();
        let key = (name.clone(), claim.owner.clone());
        let of = &mut self.namespaces[claim.namespace as usize];
        assert!(of.cooling.insert(key, id).is_none(), "who cools down does not hold");
        self.deadlines.insert((deadline, id));
        let (namespace, resource) = (claim.namespace, name.clone());
        let owner = Some(claim.owner.clone());
        self.delays.insert(id, Delay { namespace, family: FAMILY, resource, owner, deadline });
    }

    /// Whether the request was answered with the hold of another one.
    pub(super) fn is_repeat(&self, known: RecordId) -> bool {
        match self.memory.get(known).fate {
            Fate::Live(id) => self.claims[&id].record != known,
            _ => false,
        }
    }

    fn hold_refused_again(&self, code: Code, request: &Request, op: &Hold) -> Refusal {
        let Some(namespace) = request.namespace else { return Refusal::new(code) };
        let of = &self.namespaces[namespace as usize];
        match code {
            Code::Taken => not_free(code, self.in_the_way(namespace, FAMILY, &op.resources)),
            Code::LimitReached => match self.cooling(namespace, &op.resources, &op.owner) {
                Some(refusal) => refusal,
                None => {
                    let max = of.hold_policy.per_owner;
                    let (limit, max) =
                        max.map_or(("maxLeases", of.policy.max_leases), |m| ("holdsPerOwner", m));
                    self.limit_reached(limit, max)
                }
            },
            Code::InvalidArgument => match self.hold_terms(namespace, op) {
                Err(refusal) if refusal.code == code => refusal,
                _ => Invalid::new("requestId", "was refused under an earlier policy").into(),
            },
            _ => Refusal::new(code),
        }
    }

    fn find_hold(&self, namespace: u32, hold: &HoldRef, owner: &Owner, ends: bool) -> Found {
        let resources = &self.namespaces[namespace as usize].space(FAMILY).resources;
        let holder = resources.get(&hold.resource).and_then(|resource| resource.holder);
        let Some(id) = holder.filter(|id| self.claims[id].owner == *owner) else {
            return Found::Nothing;
        };
        let claim = &self.claims[&id];
        let (index, holding) = claim.holding(&hold.resource).expect("a holder holds its resource");
        let needs_fence = ends
            && claim.face == (Face::Hold { begun: true })
            && !planted::has(Planted::BegunEndsWithoutFence);
        let is_any = !ends && planted::has(Planted::HoldFenceIgnored);
        match hold.fence {
            Some(fence) if fence != holding.token && !is_any => Found::Other,
            None if needs_fence => Found::Other,
            _ => Found::It(id, index),
        }
    }

    fn renew_hold(&mut self, caller: &Caller, op: &RenewHold) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        self.write_hold(&request, &op.hold, Self::extended_again, |state, namespace| {
            let (id, index) = state.live_hold(namespace, &op.hold, &op.owner)?;
            let check = |ttl_ms| state.check_ttl(namespace, "ttl", ttl_ms);
            let ttl_ms = op.ttl_ms.map(check).transpose()?;
            let renewed = state.extend(caller, id, index, ttl_ms)?;
            Ok(state.extended(id, renewed))
        })
    }

    fn begin_hold(&mut self, caller: &Caller, op: &BeginHold) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        self.write_hold(&request, &op.hold, Self::extended_again, |state, namespace| {
            let (id, index) = state.live_hold(namespace, &op.hold, &op.owner)?;
            within("ttl", op.ttl_ms, limits::TTL_MS_MIN..=limits::HOLD_BEGUN_MS_MAX)?;
            state.begin_payment(caller, id, op.ttl_ms);
            let claim = &state.claims[&id];
            let renewed = Renewed {
                token: claim.holdings[index].token,
                expires_in_ms: state.time.until(claim.deadline),
                final_deadline_in_ms: claim.final_deadline_in_ms(state.time),
                clipped: false,
            };
            Ok(state.extended(id, renewed))
        })
    }

    /// The first begin sets the deadline; another changes nothing.
    fn begin_payment(&mut self, caller: &Caller, id: ObjectId, ttl_ms: u64) {
        let (now, revision) = (self.time, self.revision);
        let claim = self.claims.get_mut(&id).expect("its place was just found");
        claim.asked_at = revision;
        if claim.face == (Face::Hold { begun: true }) {
            return;
        }
        claim.face = Face::Hold { begun: true };
        let deadline = now.plus(ttl_ms).max(claim.deadline);
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        self.deadlines.insert((deadline, id));
        claim.deadline = deadline;
        claim.held.as_mut().expect("a hold is held").final_deadline = Some(deadline);
        let (namespace, owner) = (claim.namespace, claim.owner.clone());
        let lease_hash = claim.lease_id.public_hash();
        // For all of it: whoever watches one thing of a hold is told too.
        let held = claim.holdings.iter().filter(|holding| holding.ended.is_none());
        let held: Vec<_> = held.map(|it| (it.resource.clone(), it.token)).collect();
        for (resource, token) in held {
            let subject = (&resource, &owner, lease_hash);
            self.event(caller, namespace, FAMILY, Some(subject), EventKind::Begun { token });
        }
    }

    fn release_hold(&mut self, caller: &Caller, op: &ReleaseHold) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        let again =
            |_: &Self, _: Option<u32>, token| Done::HoldReleased { released: token != Token(0) };
        self.write_hold(&request, &op.hold, again, |state, namespace| {
            match state.find_hold(namespace, &op.hold, &op.owner, true) {
                Found::Other => Err(Refusal::new(Code::NotHolder)),
                Found::Nothing => Ok((Token(0), Done::HoldReleased { released: false })),
                Found::It(id, index) => {
                    let token = state.claims[&id].holdings[index].token;
                    state.end_holding(id, index, End::Released, state.time, Some((caller, None)));
                    Ok((token, Done::HoldReleased { released: true }))
                }
            }
        })
    }

    /// A write that names a hold by its owner: decided once, and remembered with the token that it was about; `again`
    /// answers a repeat.
    fn write_hold(
        &mut self,
        request: &Request,
        hold: &HoldRef,
        again: impl FnOnce(&Self, Option<u32>, Token) -> Done,
        write: impl FnOnce(&mut Self, u32) -> Result<(Token, Done), Refusal>,
    ) -> Outcome {
        let known = self.recall(request);
        if let Some(namespace) = request.namespace {
            self.touch_resource(namespace, FAMILY, &hold.resource);
        }
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, request) {
                return self.reused();
            }
            let again = again(self, request.namespace, self.memory.get(known).token);
            return self.replay(known, |_| again, |_, _, code| Refusal::new(code));
        }
        let result = self.admit(request).and_then(|namespace| {
            let (token, done) = write(self, namespace)?;
            self.remember_done(request, token);
            Ok(done)
        });
        self.conclude(request, result)
    }

    /// An earlier renewal or begin once more, with the figures of now: 0 ms are left of a hold that is gone.
    fn extended_again(&self, namespace: Option<u32>, token: Token) -> Done {
        let live = namespace.and_then(|namespace| {
            let space = self.namespaces[namespace as usize].space(FAMILY);
            space.by_age.get(&token).map(|&(id, _)| id)
        });
        let claim = live.map(|id| &self.claims[&id]);
        let renewed = Renewed {
            token,
            expires_in_ms: claim.map_or(0, |claim| self.time.until(claim.deadline)),
            final_deadline_in_ms: claim.and_then(|claim| claim.final_deadline_in_ms(self.time)),
            clipped: false,
        };
        let begun = claim.is_some_and(|claim| claim.face == (Face::Hold { begun: true }));
        Done::HoldExtended(HoldExtended { renewed, begun })
    }

    fn live_hold(
        &self,
        namespace: u32,
        hold: &HoldRef,
        owner: &Owner,
    ) -> Result<(ObjectId, usize), Refusal> {
        match self.find_hold(namespace, hold, owner, false) {
            Found::It(id, index) => Ok((id, index)),
            Found::Other | Found::Nothing => Err(Refusal::new(Code::NotHolder)),
        }
    }

    fn extended(&self, id: ObjectId, renewed: Renewed) -> (Token, Done) {
        let begun = self.claims[&id].face == (Face::Hold { begun: true });
        (renewed.token, Done::HoldExtended(HoldExtended { renewed, begun }))
    }
}

/// Whether the owner has the hold that is meant.
enum Found {
    It(ObjectId, usize),
    /// The owner holds the resource, but by another fence, or the fence is needed and missing.
    Other,
    Nothing,
}

impl Content for Hold {
    fn fingerprint(&self) -> Fingerprint {
        let terms = (self.ttl_ms, self.max_hold_ms, &self.labels);
        let what = (&self.resources, &self.owner, &self.replaces);
        encode(|buffer| (8_u8, what, terms).serialize(buffer))
    }
}

impl Content for RenewHold {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (9_u8, &self.hold, &self.owner, self.ttl_ms).serialize(buffer))
    }
}

impl Content for BeginHold {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (10_u8, &self.hold, &self.owner, self.ttl_ms).serialize(buffer))
    }
}

impl Content for ReleaseHold {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (11_u8, &self.hold, &self.owner).serialize(buffer))
    }
}
