//! The reference's commands that end, extend or forbid, and those of operators and leaders.

use super::{
    commands::{No, for_good, invalid},
    reference::{Limit, Reference, Request, Space, Stage},
};
use sereno_core::{
    command::{
        Abandon, EndDeserted, Family, ForceRelease, LeaseRef, Operation, PutNamespace, Renew,
        RenewMany, SetTokenFloor,
    },
    event::{Event, EventKind},
    ids::{Revision, Token},
    names::{Caller, NamespaceName},
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
    fn named(&self, space: usize, lease: &LeaseRef) -> Result<(usize, usize), Refusal> {
        let stranger = || Refusal::new(Code::NotHolder);
        let is_it = |request: &Request| {
            request.claim.as_ref().is_some_and(|claim| claim.lease_id == lease.lease_id)
        };
        let index = self.requests.iter().position(is_it).ok_or_else(stranger)?;
        let (request, claim) = (&self.requests[index], self.requests[index].claim());
        if claim.space != space || !matches!(request.stage, Stage::Holding | Stage::Ended) {
            return Err(stranger());
        }
        let part = claim.parts.iter().position(|part| part.resource == lease.resource);
        let part = match (part, request.stage) {
            (None, Stage::Ended) if claim.parts.len() == 1 => 0,
            (part, _) => part.ok_or_else(stranger)?,
        };
        match claim.parts[part].ended {
            Some(_) => Err(self.lease_ended(index, part, false)),
            None => Ok((index, part)),
        }
    }

    fn touch_lease(&mut self, lease: &LeaseRef) {
        let is_it = |request: &Request| {
            request.claim.as_ref().is_some_and(|claim| claim.lease_id == lease.lease_id)
        };
        if let Some(index) = self.requests.iter().position(is_it) {
            self.touch_request(index);
        }
    }

    pub(super) fn renew(&mut self, caller: &Caller, op: &Renew) -> Outcome {
        self.touch_lease(&op.lease);
        self.revision += 1;
        let result = self.renew_one(caller, &op.namespace, &op.lease, op.lease_ttl_ms);
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
            results.push(self.renew_one(caller, &op.namespace, lease, op.lease_ttl_ms));
        }
        self.answer(None, Ok(Done::RenewedMany(results)))
    }

    fn renew_one(
        &mut self,
        caller: &Caller,
        namespace: &NamespaceName,
        lease: &LeaseRef,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let space = self.space(namespace).ok_or(Refusal::new(Code::NotFound))?;
        let (index, part) = self.named(space, lease)?;
        let policy = &self.spaces[space].policy;
        if ttl_ms.is_some_and(|ttl_ms| !self.is_ttl(policy, ttl_ms)) {
            return Err(invalid());
        }
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
        namespace: &NamespaceName,
        lease: &LeaseRef,
    ) -> Outcome {
        self.touch_lease(lease);
        self.revision += 1;
        let Some(space) = self.space(namespace) else {
            return self.answer(None, Err(Refusal::new(Code::NotFound)));
        };
        let already = match self.named(space, lease) {
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
                let window_ms = self.spaces[space.unwrap_or(0)].policy.reply_refusals_ms;
                let stage = Stage::Refused(Code::Abandoned, Limit::Neither);
                self.remember(scope, space, None, stage, Some(self.time + window_ms));
                AbandonedWas::Unseen
            }
            Some(index) => match self.requests[index].stage {
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
                Stage::Done(_) => unreachable!("another family"),
            },
        };
        self.answer(None, Ok(Done::Abandoned { was }))
    }

    pub(super) fn force_release(&mut self, caller: &Caller, op: &ForceRelease) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Admin, op.request_id.clone());
        let content = Operation::ForceRelease(op.clone());
        let space = self.space(&op.namespace);
        let known = self.recall(&scope);
        if let Some(space) = space {
            self.touch_resource(space, &op.resource);
        }
        self.revision += 1;
        if let Some(known) = known {
            return self.written_again(known, &content, |token| Done::ForceReleased { token });
        }
        let result = self.admit(space).and_then(|space| {
            let held = self.holder(space, &op.resource);
            let is_it = |&(index, part): &(usize, usize)| {
                self.requests[index].claim().parts[part].token == op.token
            };
            let (index, part) =
                held.filter(is_it).ok_or_else(|| for_good(Refusal::new(Code::NotHolder)))?;
            let reason = Some(op.reason.clone());
            self.end_part(index, part, End::Forced, self.time, Some(caller), reason);
            let forget_at = Some(self.time + self.spaces[space].policy.reply_endings_ms);
            let stage = Stage::Done(op.token);
            self.remember(scope.clone(), Some(space), Some(content.clone()), stage, forget_at);
            Ok(Done::ForceReleased { token: op.token })
        });
        self.conclude(scope, space, content, result)
    }

    fn written_again(
        &self,
        known: usize,
        content: &Operation,
        done: impl Fn(Token) -> Done,
    ) -> Outcome {
        if let Some(reused) = self.reused(known, content) {
            return reused;
        }
        let result = match self.requests[known].stage {
            Stage::Done(token) => Ok(done(token)),
            Stage::Refused(Code::InvalidArgument, _) => Err(invalid()),
            Stage::Refused(code, _) => Err(Refusal::new(code)),
            _ => unreachable!("operators' writes are decided at once"),
        };
        self.answer(Some(self.requests[known].answered), result)
    }

    pub(super) fn put_namespace(&mut self, caller: &Caller, op: &PutNamespace) -> Outcome {
        self.revision += 1;
        if op.policy.check(self.min_ttl_ms).is_err() {
            return self.answer(None, Err(invalid()));
        }
        let known = self.space(&op.namespace);
        let current = known.map_or(0, |space| self.spaces[space].version);
        if current != op.expected_version {
            let refusal = Refusal::new(Code::VersionConflict).with(Detail::Version { current });
            return self.answer(None, Err(refusal));
        }
        let (name, version, policy) = (op.namespace.clone(), current + 1, op.policy.clone());
        let space = Space { name, version, policy };
        match known {
            Some(index) => self.spaces[index] = space,
            None => self.spaces.push(space),
        }
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Lock,
            namespace: Some(op.namespace.clone()),
            resource: None,
            owner: None,
            caller: caller.clone(),
            lease_hash: None,
            kind: EventKind::NamespacePut { version },
        });
        self.answer(None, Ok(Done::NamespacePut { version }))
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

    pub(super) fn set_token_floor(&mut self, caller: &Caller, op: &SetTokenFloor) -> Outcome {
        let name = self.spaces[0].name.clone();
        let scope = (name, caller.clone(), Family::Admin, op.request_id.clone());
        let content = Operation::SetTokenFloor(op.clone());
        let known = self.recall(&scope);
        self.revision += 1;
        if let Some(known) = known {
            return self.written_again(known, &content, |floor| Done::TokenFloorSet { floor });
        }
        let result = self.admit(Some(0)).and_then(|_| {
            let year_us = 366 * 24 * 3_600 * 1_000_000;
            if op.floor.0 > self.clock + year_us {
                return Err(for_good(invalid()));
            }
            let rises = op.floor.0 > self.last_token + 1;
            self.last_token = self.last_token.max(op.floor.0.saturating_sub(1));
            let floor = Token(self.last_token + 1);
            let forget_at = Some(self.time + self.spaces[0].policy.reply_endings_ms);
            let stage = Stage::Done(floor);
            self.remember(scope.clone(), Some(0), Some(content.clone()), stage, forget_at);
            if rises || self.level == 1 {
                self.admin_event(caller, EventKind::TokenFloorSet { floor });
            }
            Ok(Done::TokenFloorSet { floor })
        });
        self.conclude(scope, Some(0), content, result)
    }

    pub(super) fn raise_level(&mut self, caller: &Caller, level: u32) -> Outcome {
        self.revision += 1;
        if level > self.level {
            self.level = level;
            self.admin_event(caller, EventKind::LevelRaised { level });
        }
        self.answer(None, Ok(Done::LevelRaised { level: self.level }))
    }

    fn admin_event(&mut self, caller: &Caller, kind: EventKind) {
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Admin,
            namespace: None,
            resource: None,
            owner: None,
            caller: caller.clone(),
            lease_hash: None,
            kind,
        });
    }
}
