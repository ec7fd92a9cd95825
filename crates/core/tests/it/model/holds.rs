//! The reference's holds, as section 10 has them: the owner's, whoever asks, and never waited for.

use super::{
    commands::{Ask, Terms, is_list, is_max_hold, not_free},
    reference::{At, Face, Part, Reference, Request, Stage},
    requests::{No, Scope, for_good, invalid},
};
use sereno_core::{
    command::{
        Acquire, BeginHold, Family, Hold, HoldCommand, HoldRef, Operation, ReleaseHold, RenewHold,
    },
    event::EventKind,
    ids::{LeaseId, Token},
    names::{Caller, Owner, ResourceName},
    outcome::{Code, Detail, Done, End, HoldExtended, Outcome, Refusal, Renewed},
};

const FAMILY: Family = Family::Hold;

/// A part of a request.
type Place = (usize, usize);

impl Reference {
    pub(super) fn hold(&mut self, caller: &Caller, op: &HoldCommand) -> Outcome {
        match op {
            HoldCommand::Hold(op) => self.take(caller, op),
            HoldCommand::Renew(op) => self.renew_hold(caller, op),
            HoldCommand::Begin(op) => self.begin(caller, op),
            HoldCommand::Release(op) => self.give_back(caller, op),
            HoldCommand::ForceRelease(forced) => {
                let content = Operation::Hold(op.clone());
                self.force_release(caller, FAMILY, forced, &content)
            }
            HoldCommand::PutPolicy(op) => self.put_namespace(caller, &op.put, Some(&op.holds)),
        }
    }

    fn take(&mut self, caller: &Caller, op: &Hold) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let first = Hold { lease_id: LeaseId::default(), ..op.clone() };
        let content = Operation::Hold(HoldCommand::Hold(first));
        let space = self.space(&op.namespace);
        let known = self.recall(&scope);
        if let Some(space) = space {
            let at = At { space, family: FAMILY };
            op.resources.iter().for_each(|resource| self.touch_resource(at, resource));
            op.replaces.iter().for_each(|one| self.touch_resource(at, &one.resource));
            self.touch_cool_downs(at, op);
        }
        self.revision += 1;
        let Some(known) = known else {
            let result = self.take_anew(&scope, space, op, &content);
            return self.conclude(scope, space, content, result);
        };
        if let Some(reused) = self.reused(known, &content) {
            return reused;
        }
        self.asked_again(known, |_, code, _| Refusal::new(code))
    }

    fn touch_cool_downs(&mut self, at: At, op: &Hold) {
        for resource in &op.resources {
            let due = self.cool_down(at, resource, &op.owner);
            if let Some((object, _)) = due.filter(|&(_, deadline)| deadline <= self.time) {
                self.end_due(object);
            }
        }
    }

    /// Which object keeps this owner from having that resource again, and until when.
    fn cool_down(&self, at: At, resource: &ResourceName, owner: &Owner) -> Option<(u64, u64)> {
        let delays = self.delays.iter().filter(|delay| delay.at == at);
        let mut own = delays.filter(|delay| delay.owner.as_ref() == Some(owner));
        let delay = own.find(|delay| delay.resource == *resource)?;
        Some((delay.object, delay.deadline))
    }

    fn take_anew(
        &mut self,
        scope: &Scope,
        space: Option<usize>,
        op: &Hold,
        content: &Operation,
    ) -> Result<Done, No> {
        let space = self.admit_lease(space, op.lease_id)?;
        let at = At { space, family: FAMILY };
        let policy = self.spaces[space].policy.clone();
        let is_both = |one: &HoldRef| op.resources.contains(&one.resource);
        let is_sound = is_list(&op.resources)
            && op.replaces.len() <= 64
            && !op.replaces.iter().any(is_both)
            && self.is_ttl(&policy, op.ttl_ms)
            && op.max_hold_ms.is_none_or(|ms| is_max_hold(&policy, ms));
        if !is_sound {
            return Err(for_good(invalid()));
        }
        let replaced = self.replaced(at, op)?;
        if let Some(index) = self.whole_hold(at, op) {
            let object = self.requests[index].claim().object;
            let is_its =
                |stage: &Stage| matches!(stage, Stage::Yours { object: of, .. } if *of == object);
            if self.requests.iter().filter(|request| is_its(&request.stage)).count() >= 100 {
                return Err(No::ForNow(self.limit_reached("repeated requests of one hold", 100)));
            }
            self.end_replaced(&scope.1, &replaced);
            let done = self.yours_again(object);
            let token = done.grant().expect("it is held").holdings[0].1;
            let (stage, content) = (Stage::Yours { object, token }, Some(content.clone()));
            self.remember(scope.clone(), Some(space), content, stage, None);
            return Ok(done);
        }
        let in_the_way = self.in_the_way(at, &op.resources);
        if !in_the_way.is_empty() {
            return Err(for_good(not_free(Code::Taken, in_the_way)));
        }
        let like = like(op);
        self.check_hoarding(scope, at, &like, op, replaced.len() as u64)?;
        self.end_replaced(&scope.1, &replaced);
        let ask = Ask {
            family: FAMILY,
            face: Face::Hold { begun: false },
            like: &like,
            resources: &op.resources,
            content: content.clone(),
        };
        let max_hold_ms = op.max_hold_ms.or(policy.max_hold_ms);
        let terms = Terms { fencing: policy.fencing, ttl_ms: op.ttl_ms, max_hold_ms };
        let index = self.new_claim(scope, at, &ask, &terms);
        self.grant(index, false);
        Ok(self.granted(index))
    }

    /// The owner's holds that end in the same moment; what is gone is not missed.
    fn replaced(&self, at: At, op: &Hold) -> Result<Vec<Place>, No> {
        let mut all: Vec<Place> = Vec::new();
        for one in &op.replaces {
            let Some(place) = self.owners(at, &one.resource, &op.owner) else { continue };
            if !self.may_end(place, one) {
                return Err(for_good(Refusal::new(Code::NotHolder)));
            }
            if !all.contains(&place) {
                all.push(place);
            }
        }
        all.sort_by_key(|&(index, part)| (self.requests[index].claim().object, part));
        Ok(all)
    }

    fn end_replaced(&mut self, caller: &Caller, replaced: &[Place]) {
        for &(index, part) in replaced {
            self.end_part(index, part, End::Replaced, self.time, Some(caller), None);
        }
    }

    /// The part by which the owner holds a resource.
    fn owners(&self, at: At, resource: &ResourceName, owner: &Owner) -> Option<Place> {
        let is_its = |&(index, _): &Place| self.requests[index].claim().owner == *owner;
        self.holder(at, resource).filter(is_its)
    }

    fn is_meant(&self, (index, part): Place, hold: &HoldRef) -> bool {
        let token = self.requests[index].claim().parts[part].token;
        hold.fence.is_none_or(|fence| fence == token)
    }

    /// A begun hold is ended only by who has its fence.
    fn may_end(&self, place: Place, hold: &HoldRef) -> bool {
        let is_begun = matches!(self.requests[place.0].claim().face, Face::Hold { begun: true });
        self.is_meant(place, hold) && !(is_begun && hold.fence.is_none())
    }

    /// The owner's hold of all that is asked for and nothing else.
    fn whole_hold(&self, at: At, op: &Hold) -> Option<usize> {
        let (index, _) = self.owners(at, &op.resources[0], &op.owner)?;
        let parts = &self.requests[index].claim().parts;
        let live = parts.iter().filter(|part| part.ended.is_none());
        let live: Vec<_> = live.map(|part| &part.resource).collect();
        let is_all = live.len() == op.resources.len();
        (is_all && live.iter().all(|name| op.resources.contains(name))).then_some(index)
    }

    /// Whoever asks for a hold that they have is told of it.
    pub(super) fn yours_again(&self, object: u64) -> Done {
        let index = self.by_object(object).expect("it is live");
        let mut done = self.granted(index);
        if let Done::Held(held) = &mut done {
            held.yours = true;
        }
        done
    }

    /// Cool-downs first, then the owner's cap, then the namespace's.
    fn check_hoarding(
        &mut self,
        scope: &Scope,
        at: At,
        like: &Acquire,
        op: &Hold,
        ending: u64,
    ) -> Result<(), No> {
        let policy = self.spaces[at.space].holds.clone();
        let until = op.resources.iter().filter_map(|name| self.cool_down(at, name, &op.owner));
        if let Some(until) = until.map(|(_, deadline)| deadline).max() {
            self.refused_by_rule(scope, like, &op.resources[0], Code::LimitReached);
            let (limit, max) = ("holdCooldown".into(), policy.cooldown_ms);
            let detail = Detail::Limit { limit, max, sweep_pending: false };
            let refusal = Refusal::new(Code::LimitReached).with(detail);
            return Err(for_good(refusal.retry_after(until - self.time)));
        }
        let held = self.held_by(at, &op.owner) + op.resources.len() as u64;
        if let Some(max) = policy.per_owner.filter(|max| held > max + ending) {
            self.refused_by_rule(scope, like, &op.resources[0], Code::LimitReached);
            return Err(for_good(self.limit_reached("holdsPerOwner", max)));
        }
        self.check_leases(scope, like, &op.resources, ending)
    }

    fn held_by(&self, at: At, owner: &Owner) -> u64 {
        let live = self.requests.iter().filter(|request| request.stage == Stage::Holding);
        let claims = live.map(|request| request.claim());
        let own = claims.filter(|claim| claim.at == at && claim.owner == *owner);
        own.flat_map(|claim| &claim.parts).filter(|part| part.ended.is_none()).count() as u64
    }

    fn renew_hold(&mut self, caller: &Caller, op: &RenewHold) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let content = Operation::Hold(HoldCommand::Renew(op.clone()));
        self.write(scope, content, touch(&op.hold), |state, space| {
            let (index, part) = state.meant(space, &op.hold, &op.owner)?;
            let policy = &state.spaces[space].policy;
            if op.ttl_ms.is_some_and(|ttl_ms| !state.is_ttl(policy, ttl_ms)) {
                return Err(for_good(invalid()));
            }
            let renewed = state.extend(caller, index, part, op.ttl_ms).map_err(for_good)?;
            let begun = matches!(state.requests[index].claim().face, Face::Hold { begun: true });
            Ok(Done::HoldExtended(HoldExtended { renewed, begun }))
        })
    }

    /// The part that is to go on.
    fn meant(&self, space: usize, hold: &HoldRef, owner: &Owner) -> Result<Place, No> {
        let place = self.owners(At { space, family: FAMILY }, &hold.resource, owner);
        let place = place.filter(|&place| self.is_meant(place, hold));
        place.ok_or_else(|| for_good(Refusal::new(Code::NotHolder)))
    }

    fn begin(&mut self, caller: &Caller, op: &BeginHold) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let content = Operation::Hold(HoldCommand::Begin(op.clone()));
        self.write(scope, content, touch(&op.hold), |state, space| {
            let (index, part) = state.meant(space, &op.hold, &op.owner)?;
            if !(1_000..=3_600_000).contains(&op.ttl_ms) {
                return Err(for_good(invalid()));
            }
            let (now, revision) = (state.time, state.revision);
            let claim = state.requests[index].claim_mut();
            let token = claim.parts[part].token;
            claim.asked = revision;
            if !matches!(claim.face, Face::Hold { begun: true }) {
                claim.face = Face::Hold { begun: true };
                claim.deadline = claim.deadline.max(now + op.ttl_ms);
                claim.last_deadline = Some(claim.deadline);
                let parts = state.requests[index].claim().parts.iter().enumerate();
                let held = parts.filter(|(_, part)| part.ended.is_none());
                let held: Vec<_> = held.map(|(part, of)| (part, of.token)).collect();
                for (part, token) in held {
                    state.event(index, part, Some(caller), EventKind::Begun { token });
                }
            }
            Ok(state.extended_now(index, token))
        })
    }

    fn extended_now(&self, index: usize, token: Token) -> Done {
        let claim = self.requests[index].claim();
        let renewed = Renewed {
            token,
            expires_in_ms: claim.deadline - self.time,
            final_deadline_in_ms: claim.last_deadline.map(|last| last - self.time),
            clipped: false,
        };
        let begun = matches!(claim.face, Face::Hold { begun: true });
        Done::HoldExtended(HoldExtended { renewed, begun })
    }

    /// An extension once more, with what is left now: of a hold that is gone, nothing.
    pub(super) fn extended_again(&self, space: Option<usize>, token: Token) -> Done {
        let has_it = |request: &Request| {
            request.stage == Stage::Holding && {
                let claim = request.claim();
                let is_it = |part: &Part| part.token == token && part.ended.is_none();
                Some(claim.at.space) == space && claim.parts.iter().any(is_it)
            }
        };
        match self.requests.iter().position(has_it) {
            Some(index) => self.extended_now(index, token),
            None => {
                let renewed =
                    Renewed { token, expires_in_ms: 0, final_deadline_in_ms: None, clipped: false };
                Done::HoldExtended(HoldExtended { renewed, begun: false })
            }
        }
    }

    fn give_back(&mut self, caller: &Caller, op: &ReleaseHold) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let content = Operation::Hold(HoldCommand::Release(op.clone()));
        self.write(scope, content, touch(&op.hold), |state, space| {
            let at = At { space, family: FAMILY };
            let Some(place) = state.owners(at, &op.hold.resource, &op.owner) else {
                return Ok(Done::HoldReleased { released: false });
            };
            if !state.may_end(place, &op.hold) {
                return Err(for_good(Refusal::new(Code::NotHolder)));
            }
            state.end_part(place.0, place.1, End::Released, state.time, Some(caller), None);
            Ok(Done::HoldReleased { released: true })
        })
    }
}

/// Ends what is due of the resource that a write names.
fn touch(hold: &HoldRef) -> impl FnOnce(&mut Reference, Option<usize>) + '_ {
    |state, space| {
        if let Some(space) = space {
            state.touch_resource(At { space, family: FAMILY }, &hold.resource);
        }
    }
}

/// In the words of an acquire.
fn like(op: &Hold) -> Acquire {
    Acquire {
        namespace: op.namespace.clone(),
        resource: op.resources[0].clone(),
        request_id: op.request_id.clone(),
        owner: op.owner.clone(),
        lease_id: op.lease_id,
        lease_ttl_ms: Some(op.ttl_ms),
        wait_timeout_ms: 0,
        max_hold_ms: op.max_hold_ms,
        fencing: None,
        labels: op.labels.clone(),
    }
}
