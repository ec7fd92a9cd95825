//! The reference's commands that end, extend or forbid what was asked for, in whatever family.

use super::{
    reference::{At, Face, Limit, Reference, Request, Stage},
    requests::{No, for_good, invalid},
};
use sereno_core::{
    command::{Abandon, EndDeserted, Family, ForceRelease, LeaseRef, Operation, Renew, RenewMany},
    event::EventKind,
    names::{Caller, NamespaceName, ResourceName},
    outcome::{
        AbandonedWas, Code, Detail, Done, End, NotReleased, Outcome, Refusal, Renewed, WaitEnd,
    },
};

impl Reference {
    /// How a request's lease ended: of the whole request, or of one part.
    pub(super) fn lease_ended(&self, index: usize, part: usize, whole: bool) -> Refusal {
        let claim = self.requests[index].claim();
        let end = if whole { claim.spent } else { claim.parts[part].ended };
        let (end, token) = (end.expect("it has ended"), claim.parts[part].token);
        Refusal::new(Code::LeaseEnded).with(Detail::Ended { end, token })
    }

    /// The request and part that a lease id names, or why there is none. A lease of one resource that has ended is
    /// known by its id alone.
    pub(super) fn named(&self, at: At, lease: &LeaseRef) -> Result<(usize, usize), Refusal> {
        let stranger = || Refusal::new(Code::NotHolder);
        let is_it = |request: &Request| {
            request.claim.as_ref().is_some_and(|claim| claim.lease_id == lease.lease_id)
        };
        let index = self.requests.iter().position(is_it).ok_or_else(stranger)?;
        let (request, claim) = (&self.requests[index], self.requests[index].claim());
        let is_it = match request.stage {
            Stage::Holding => claim.at == at,
            Stage::Ended => claim.at.space == at.space,
            _ => false,
        };
        if !is_it {
            return Err(stranger());
        }
        let part = claim.parts.iter().position(|part| part.resource == lease.resource);
        let part = match (part, &request.stage) {
            (None, Stage::Ended) if claim.parts.len() == 1 => 0,
            (part, _) => part.ok_or_else(stranger)?,
        };
        match claim.parts[part].ended {
            Some(_) => Err(self.lease_ended(index, part, false)),
            None => Ok((index, part)),
        }
    }

    pub(super) fn touch_lease(&mut self, lease: &LeaseRef) {
        let is_it = |request: &Request| {
            request.claim.as_ref().is_some_and(|claim| claim.lease_id == lease.lease_id)
        };
        if let Some(index) = self.requests.iter().position(is_it) {
            self.touch_request(index);
        }
    }

    pub(super) fn renew(&mut self, caller: &Caller, family: Family, op: &Renew) -> Outcome {
        self.touch_lease(&op.lease);
        self.revision += 1;
        let lease = self.as_leased(family, &op.lease);
        let result = self.renew_one(caller, family, &op.namespace, &lease, op.lease_ttl_ms);
        self.answer(None, result.map(Done::Renewed))
    }

    pub(super) fn renew_many(&mut self, caller: &Caller, op: &RenewMany) -> Outcome {
        op.leases.iter().for_each(|lease| self.touch_lease(lease));
        self.revision += 1;
        if !(1..=1_000).contains(&op.leases.len()) {
            return self.answer(None, Err(invalid()));
        }
        let mut results = Vec::new();
        for lease in &op.leases {
            let (family, of) = (Family::Lock, &op.namespace);
            results.push(self.renew_one(caller, family, of, lease, op.lease_ttl_ms));
        }
        self.answer(None, Ok(Done::RenewedMany(results)))
    }

    fn renew_one(
        &mut self,
        caller: &Caller,
        family: Family,
        namespace: &NamespaceName,
        lease: &LeaseRef,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let space = self.space(namespace).ok_or(Refusal::new(Code::NotFound))?;
        let (index, part) = self.named(At { space, family }, lease)?;
        let policy = &self.spaces[space].policy;
        if ttl_ms.is_some_and(|ttl_ms| !self.is_ttl(policy, ttl_ms)) {
            return Err(invalid());
        }
        self.extend(caller, index, part, ttl_ms)
    }

    /// Moves a deadline forward, as far as the longest ownership allows.
    pub(super) fn extend(
        &mut self,
        caller: &Caller,
        index: usize,
        part: usize,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let (now, revision) = (self.time, self.revision);
        let claim = self.requests[index].claim.as_mut().expect("it holds");
        let token = claim.parts[part].token;
        claim.asked = revision;
        if claim.last_deadline == Some(claim.deadline) {
            let detail = Detail::FinalDeadline { in_ms: claim.deadline - now, token };
            let code = Code::MaxHoldReached;
            self.event(index, part, Some(caller), EventKind::Refused { code });
            return Err(Refusal::new(code).with(detail));
        }
        claim.ttl_ms = ttl_ms.unwrap_or(claim.ttl_ms);
        let last = claim.last_deadline.unwrap_or(u64::MAX);
        claim.deadline = claim.deadline.max((now + claim.ttl_ms).min(last));
        Ok(Renewed {
            token,
            expires_in_ms: claim.deadline - now,
            final_deadline_in_ms: claim.last_deadline.map(|last| last - now),
            clipped: now + claim.ttl_ms > last,
        })
    }

    pub(super) fn release(
        &mut self,
        caller: &Caller,
        family: Family,
        namespace: &NamespaceName,
        lease: &LeaseRef,
    ) -> Outcome {
        self.touch_lease(lease);
        self.revision += 1;
        let Some(space) = self.space(namespace) else {
            return self.answer(None, Err(Refusal::new(Code::NotFound)));
        };
        let already = match self.named(At { space, family }, lease) {
            Ok((index, part)) => {
                self.end_part(index, part, End::Released, self.time, Some(caller), None);
                None
            }
            Err(Refusal { detail: Detail::Ended { end, .. }, .. }) => Some(NotReleased::Ended(end)),
            Err(_) => Some(NotReleased::Unknown),
        };
        self.answer(None, Ok(Done::Released { already }))
    }

    pub(super) fn abandon(&mut self, caller: &Caller, op: &Abandon) -> Outcome {
        if op.family == Family::Admin {
            self.revision += 1;
            return self.answer(None, Err(invalid()));
        }
        let scope = (op.namespace.clone(), caller.clone(), op.family, op.request_id.clone());
        let known = self.recall(&scope);
        self.revision += 1;
        let was = match known {
            None => {
                let space = self.space(&op.namespace);
                if let Err(No::ForNow(refusal)) = self.admit(space) {
                    return self.answer(None, Err(refusal));
                }
                let forget_at = Some(self.time + self.refusals_ms(space, op.family));
                let stage = Stage::Refused(Code::Abandoned, Limit::Neither);
                self.remember(scope, space, None, stage, forget_at);
                AbandonedWas::Unseen
            }
            Some(index) => match self.requests[index].stage.clone() {
                Stage::Waiting => {
                    self.end_wait(index, None);
                    AbandonedWas::Waiting
                }
                Stage::Holding => {
                    self.end_all_parts(index, End::Abandoned, self.time);
                    AbandonedWas::Granted
                }
                Stage::Ended => {
                    AbandonedWas::Ended(self.requests[index].claim().spent.expect("it ended"))
                }
                Stage::Refused(code, _) => AbandonedWas::Refused(code),
                Stage::WaitEnded(_) => AbandonedWas::Refused(Code::WaitTimeout),
                Stage::YoursEnded(end, _) => AbandonedWas::Ended(end),
                // What was written stays; who was told of a hold that was there already has none to give up.
                Stage::Done(_) | Stage::Yours { .. } => AbandonedWas::Done,
            },
        };
        self.answer(None, Ok(Done::Abandoned { was }))
    }

    /// A run is named by its job, also where it is leased by a longer name.
    fn as_leased(&self, family: Family, lease: &LeaseRef) -> LeaseRef {
        let (mut lease, id) = (lease.clone(), lease.lease_id);
        let is_it =
            |request: &&Request| request.stage == Stage::Holding && request.claim().lease_id == id;
        if let Some(request) = self.requests.iter().find(is_it)
            && let Face::Run { job, .. } = request.claim().face
            && (family, &self.jobs[job].name) == (Family::Job, &lease.resource)
        {
            lease.resource = request.claim().parts[0].resource.clone();
        }
        lease
    }

    pub(super) fn force_release(
        &mut self,
        caller: &Caller,
        family: Family,
        op: &ForceRelease,
        content: &Operation,
    ) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Admin, op.request_id.clone());
        let named = self.space(&op.namespace).map(|space| self.forced_name(space, family, op));
        let resource = named.unwrap_or_else(|| op.resource.clone());
        let name = resource.clone();
        let touch = move |state: &mut Self, space: Option<usize>| {
            if let Some(space) = space {
                state.touch_resource(At { space, family }, &name);
            }
        };
        self.write(scope, content.clone(), touch, |state, space| {
            let held = state.holder(At { space, family }, &resource);
            let is_it = |&(index, part): &(usize, usize)| {
                state.requests[index].claim().parts[part].token == op.token
            };
            let (index, part) =
                held.filter(is_it).ok_or_else(|| for_good(Refusal::new(Code::NotHolder)))?;
            let reason = Some(op.reason.clone());
            state.end_part(index, part, End::Forced, state.time, Some(caller), reason);
            Ok(Done::ForceReleased { token: op.token })
        })
    }

    /// The same of a run that is to be ended: the token says which.
    fn forced_name(&self, space: usize, family: Family, op: &ForceRelease) -> ResourceName {
        let is_it = |request: &&Request| {
            let Face::Run { job, .. } = request.claim().face else { return false };
            let job = &self.jobs[job];
            let is_of = (job.space, &job.name) == (space, &op.resource);
            is_of && request.claim().parts[0].token == op.token
        };
        let mut live = self.requests.iter().filter(|request| request.stage == Stage::Holding);
        match live.find(is_it).filter(|_| family == Family::Job) {
            Some(run) => run.claim().parts[0].resource.clone(),
            None => op.resource.clone(),
        }
    }

    pub(super) fn end_deserted(&mut self, op: &EndDeserted) -> Outcome {
        if let Some(index) = self.by_object(op.claim.0) {
            self.touch_request(index);
        }
        self.revision += 1;
        let live = self.by_object(op.claim.0);
        let unasked = live.filter(|&index| self.requests[index].claim().asked <= op.asked_at.0);
        let ended = match unasked {
            Some(index) if self.requests[index].stage == Stage::Waiting => {
                self.end_wait(index, Some(WaitEnd::Deserted));
                true
            }
            Some(index) if self.requests[index].claim().handed_over => {
                self.end_all_parts(index, End::Abandoned, self.time);
                true
            }
            _ => false,
        };
        self.answer(None, Ok(Done::DesertedEnded(ended)))
    }
}
