//! The reference's commands: each as section 8 has it.

use super::reference::{Claim, Limit, Part, Reference, Request, Stage};
use sereno_core::{
    command::{Acquire, AcquireAll, Command, Family, Operation},
    event::{Event, EventKind},
    ids::{LeaseId, ObjectId, Revision, Token},
    limits,
    names::{Caller, Invalid, NamespaceName, RequestId, ResourceName},
    outcome::{Code, Detail, Done, InTheWay, Outcome, Refusal, Waiting},
    policy::{Fencing, Policy},
};

pub(super) type Scope = (NamespaceName, Caller, Family, RequestId);

/// Which field, and in which words, is not the reference's business.
pub(super) fn invalid() -> Refusal {
    Invalid::new("", "").into()
}

/// Refused for good, or only for now.
pub(super) enum No {
    ForGood(Refusal, Limit),
    ForNow(Refusal),
}

pub(super) fn for_good(refusal: Refusal) -> No {
    No::ForGood(refusal, Limit::Neither)
}

impl Reference {
    pub(super) fn command(&mut self, command: &Command) -> Outcome {
        let Command { caller, born_at, operation } = command;
        let too_old = u128::from(self.time) > u128::from(born_at.0) + 30_000;
        if too_old || born_at.0 > self.time {
            self.revision += 1;
            return self.answer(None, Err(Refusal::new(Code::Unavailable).with(Detail::BornAt)));
        }
        match operation {
            Operation::Acquire(op) => self.acquire(caller, op),
            Operation::AcquireAll(op) => self.acquire_all(caller, op),
            Operation::Renew(op) => self.renew(caller, op),
            Operation::RenewMany(op) => self.renew_many(caller, op),
            Operation::Release(op) => self.release(caller, &op.namespace, &op.lease),
            Operation::Abandon(op) => self.abandon(caller, op),
            Operation::ForceRelease(op) => self.force_release(caller, op),
            Operation::PutNamespace(op) => self.put_namespace(caller, op),
            Operation::EndDeserted(op) => self.end_deserted(op),
            Operation::SetTokenFloor(op) => self.set_token_floor(caller, op),
            Operation::RaiseLevel { level } => self.raise_level(caller, *level),
            Operation::HoldTrim
            | Operation::Election(_)
            | Operation::Hold(_)
            | Operation::Job(_)
            | Operation::ReportGuard(_) => unreachable!("not generated"),
        }
    }

    fn acquire(&mut self, caller: &Caller, op: &Acquire) -> Outcome {
        let first = Acquire { lease_id: LeaseId::default(), wait_timeout_ms: 0, ..op.clone() };
        self.ask(caller, op, std::slice::from_ref(&op.resource), Operation::Acquire(first))
    }

    /// As an Acquire of several that does not wait.
    fn acquire_all(&mut self, caller: &Caller, op: &AcquireAll) -> Outcome {
        let first = AcquireAll { lease_id: LeaseId::default(), ..op.clone() };
        let like = Acquire {
            namespace: op.namespace.clone(),
            resource: ResourceName::new("unused").expect("a name"),
            request_id: op.request_id.clone(),
            owner: op.owner.clone(),
            lease_id: op.lease_id,
            lease_ttl_ms: op.lease_ttl_ms,
            wait_timeout_ms: 0,
            max_hold_ms: op.max_hold_ms,
            fencing: op.fencing,
            labels: op.labels.clone(),
        };
        self.ask(caller, &like, &op.resources, Operation::AcquireAll(first))
    }

    fn ask(
        &mut self,
        caller: &Caller,
        op: &Acquire,
        resources: &[ResourceName],
        content: Operation,
    ) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Lock, op.request_id.clone());
        let space = self.space(&op.namespace);
        let known = self.recall(&scope);
        for resource in resources.iter().filter(|_| space.is_some()) {
            self.touch_resource(space.expect("just checked"), resource);
        }
        self.revision += 1;
        let Some(known) = known else {
            let result = self.ask_anew(&scope, space, op, resources, &content);
            return self.conclude(scope, space, content, result);
        };
        if let Some(reused) = self.reused(known, &content) {
            return reused;
        }
        let first = self.requests[known].answered;
        let result = match self.requests[known].stage {
            Stage::Waiting | Stage::Holding => self.live_again(known),
            Stage::Refused(code, limit) => Err(self.refused_again(code, limit, space, resources)),
            Stage::Ended => Err(self.lease_ended(known, 0, true)),
            Stage::WaitEnded(why) => Err(Refusal::new(Code::WaitTimeout).with(Detail::Wait(why))),
            Stage::Done(_) => unreachable!("another family"),
        };
        self.answer(Some(first), result)
    }

    fn live_again(&mut self, known: usize) -> Result<Done, Refusal> {
        let revision = self.revision;
        self.requests[known].claim.as_mut().expect("it is live").asked = revision;
        if self.requests[known].claim().spent.is_some() {
            return Err(self.lease_ended(known, 0, true));
        }
        match self.requests[known].stage {
            Stage::Waiting => Ok(Done::Waiting(self.waiting(known))),
            _ => Ok(Done::Granted(self.grant_of(known))),
        }
    }

    fn refused_again(
        &self,
        code: Code,
        limit: Limit,
        space: Option<usize>,
        resources: &[ResourceName],
    ) -> Refusal {
        let Some(space) = space else { return Refusal::new(code) };
        let policy = &self.spaces[space].policy;
        match (code, limit) {
            (Code::Locked, _) => locked(self.in_the_way(space, resources)),
            (_, Limit::Leases) => self.limit_reached("maxLeases", policy.max_leases),
            (_, Limit::Waiters) => self.limit_reached("maxWaiters", policy.max_waiters),
            (Code::InvalidArgument, _) => invalid(),
            _ => Refusal::new(code),
        }
    }

    fn ask_anew(
        &mut self,
        scope: &Scope,
        space: Option<usize>,
        op: &Acquire,
        resources: &[ResourceName],
        content: &Operation,
    ) -> Result<Done, No> {
        let space = self.admit(space)?;
        let has_it = |claim: &Claim| claim.lease_id == op.lease_id;
        if self.requests.iter().any(|request| request.claim.as_ref().is_some_and(has_it)) {
            return Err(No::ForNow(invalid()));
        }
        if self.is_paused() {
            let left = self.paused_until - self.time;
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused).retry_after(left);
            return Err(No::ForNow(refusal));
        }
        let policy = self.spaces[space].policy.clone();
        let distinct = resources.iter().enumerate().all(|(n, name)| !resources[..n].contains(name));
        let is_sound = (1..=64).contains(&resources.len())
            && distinct
            && op.lease_ttl_ms.is_none_or(|ttl_ms| self.is_ttl(&policy, ttl_ms))
            && op.wait_timeout_ms <= 600_000
            && op.max_hold_ms.is_none_or(|ms| {
                (1_000..=policy.max_hold_ms.unwrap_or(limits::MAX_HOLD_MS_MAX)).contains(&ms)
            });
        if !is_sound {
            return Err(for_good(invalid()));
        }
        let fencing = op.fencing.unwrap_or(policy.fencing);
        if policy.fencing_required && fencing == Fencing::BestEffort {
            self.refused_by_rule(scope, op, &resources[0], Code::FencingRequired);
            return Err(for_good(Refusal::new(Code::FencingRequired)));
        }
        let in_the_way = self.in_the_way(space, resources);
        let waits = !in_the_way.is_empty();
        let (leases, waiters) = self.counts(Some(space));
        let delays = self.delays.iter().filter(|delay| delay.space == space).count() as u64;
        if !waits && leases + delays + resources.len() as u64 > policy.max_leases {
            self.refused_by_rule(scope, op, &resources[0], Code::LimitReached);
            let refusal = self.limit_reached("maxLeases", policy.max_leases);
            return Err(No::ForGood(refusal, Limit::Leases));
        }
        if waits && op.wait_timeout_ms == 0 {
            return Err(for_good(locked(in_the_way)));
        }
        if waits && waiters >= policy.max_waiters {
            self.refused_by_rule(scope, op, &resources[0], Code::LimitReached);
            let refusal = self.limit_reached("maxWaiters", policy.max_waiters);
            return Err(No::ForGood(refusal, Limit::Waiters));
        }
        let part =
            |name: &ResourceName| Part { resource: name.clone(), token: Token(0), ended: None };
        let claim = Claim {
            object: self.number(),
            space,
            lease_id: op.lease_id,
            owner: op.owner.clone(),
            fencing,
            ttl_ms: op.lease_ttl_ms.unwrap_or(policy.default_ttl_ms),
            max_hold_ms: op.max_hold_ms.or(policy.max_hold_ms),
            parts: resources.iter().map(part).collect(),
            created: self.time,
            deadline: self.time + op.wait_timeout_ms,
            granted: 0,
            handed_over: false,
            last_deadline: None,
            spent: None,
            asked: self.revision,
        };
        let content = Some(content.clone());
        self.remember(scope.clone(), Some(space), content, Stage::Waiting, None);
        let index = self.requests.len() - 1;
        self.requests[index].claim = Some(claim);
        if waits {
            self.event(index, 0, None, EventKind::Queued);
            return Ok(Done::Waiting(self.waiting(index)));
        }
        self.grant(index, false);
        Ok(Done::Granted(self.grant_of(index)))
    }

    pub(super) fn is_ttl(&self, policy: &Policy, ttl_ms: u64) -> bool {
        (policy.min_ttl_ms.unwrap_or(self.min_ttl_ms)..=policy.max_ttl_ms).contains(&ttl_ms)
    }

    fn waiting(&self, index: usize) -> Waiting {
        let claim = self.requests[index].claim();
        let queue = self.queue(claim.space, &claim.parts[0].resource);
        let place = queue.iter().position(|&waiter| waiter == index).expect("it waits") as u64 + 1;
        let wait_expires_in_ms = claim.deadline.saturating_sub(self.time);
        Waiting { claim: ObjectId(claim.object), place, wait_expires_in_ms }
    }

    fn in_the_way(&self, space: usize, resources: &[ResourceName]) -> Vec<InTheWay> {
        let mut all = Vec::new();
        for resource in resources {
            let holder = self.holder(space, resource).map(|(index, part)| self.shown(index, part));
            let delay = self.delay(space, resource);
            if holder.is_some() || delay.is_some() {
                let lock_delay_ms =
                    delay.map_or(0, |delay| delay.deadline.saturating_sub(self.time));
                let waiters = self.queue(space, resource).len() as u64;
                all.push(InTheWay { resource: resource.clone(), holder, lock_delay_ms, waiters });
            }
        }
        all
    }

    fn limit_reached(&self, limit: &str, max: u64) -> Refusal {
        Refusal::new(Code::LimitReached).with(self.limit(limit, max)).retry_after(1_000)
    }

    fn refused_by_rule(
        &mut self,
        scope: &Scope,
        op: &Acquire,
        resource: &ResourceName,
        code: Code,
    ) {
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Lock,
            namespace: Some(scope.0.clone()),
            resource: Some(resource.clone()),
            owner: Some(op.owner.clone()),
            caller: scope.1.clone(),
            lease_hash: Some(op.lease_id.public_hash()),
            kind: EventKind::Refused { code },
        });
    }

    pub(super) fn admit(&self, space: Option<usize>) -> Result<usize, No> {
        let of = space.unwrap_or(0);
        let records = self.requests.iter().filter(|request| request.counted_in == of).count();
        let max = self.spaces[of].policy.reply_records;
        if records as u64 >= max {
            let limit = "replyMemory.records".into();
            let detail = Detail::Limit { limit, max, sweep_pending: false };
            let refusal = Refusal::new(Code::Overloaded).with(detail).retry_after(1_000);
            return Err(No::ForNow(refusal));
        }
        space.ok_or_else(|| for_good(Refusal::new(Code::NotFound)))
    }

    pub(super) fn remember(
        &mut self,
        scope: Scope,
        space: Option<usize>,
        content: Option<Operation>,
        stage: Stage,
        forget_at: Option<u64>,
    ) {
        let (counted_in, answered) = (space.unwrap_or(0), self.revision);
        let claim = None;
        self.requests.push(Request {
            scope,
            content,
            counted_in,
            answered,
            stage,
            forget_at,
            claim,
        });
    }

    pub(super) fn conclude(
        &mut self,
        scope: Scope,
        space: Option<usize>,
        content: Operation,
        result: Result<Done, No>,
    ) -> Outcome {
        let refusal = match result {
            Ok(done) => return self.answer(None, Ok(done)),
            Err(No::ForNow(refusal)) => refusal,
            Err(No::ForGood(refusal, limit)) => {
                let window_ms = self.spaces[space.unwrap_or(0)].policy.reply_refusals_ms;
                let stage = Stage::Refused(refusal.code, limit);
                self.remember(scope, space, Some(content), stage, Some(self.time + window_ms));
                refusal
            }
        };
        self.answer(None, Err(refusal))
    }

    /// Finds a request, and ends what is due of it.
    pub(super) fn recall(&mut self, scope: &Scope) -> Option<usize> {
        let index = self.requests.iter().position(|request| request.scope == *scope)?;
        self.touch_request(index);
        Some(index)
    }

    pub(super) fn touch_request(&mut self, index: usize) {
        let request = &self.requests[index];
        if request.is_live() && request.claim().deadline <= self.time {
            self.end_due(request.claim().object);
        }
    }

    pub(super) fn touch_resource(&mut self, space: usize, resource: &ResourceName) {
        let now = self.time;
        let due = |reference: &Self| {
            let holder = reference.holder(space, resource).map(|(index, _)| {
                let claim = reference.requests[index].claim();
                (claim.deadline, claim.object)
            });
            let delay =
                reference.delay(space, resource).map(|delay| (delay.deadline, delay.object));
            holder.or(delay).filter(|&(deadline, _)| deadline <= now)
        };
        while let Some((_, object)) = due(self) {
            self.end_due(object);
        }
    }

    pub(super) fn reused(&self, known: usize, content: &Operation) -> Option<Outcome> {
        let first = self.requests[known].content.as_ref()?;
        (first != content).then(|| self.answer(None, Err(Refusal::new(Code::RequestIdReused))))
    }
}

fn locked(in_the_way: Vec<InTheWay>) -> Refusal {
    let left = |one: &InTheWay| {
        one.holder.as_ref().map_or(one.lock_delay_ms, |holder| holder.expires_in_ms)
    };
    let retry_after_ms = in_the_way.iter().map(left).max().unwrap_or(0);
    Refusal::new(Code::Locked).with(Detail::Locked(in_the_way)).retry_after(retry_after_ms)
}
