//! The reference's commands that ask for a lease and may wait: locks as section 8 has them, campaigns as section 9.

use super::{
    reference::{At, Claim, Delay, Face, Limit, Part, Reference, Stage},
    requests::{No, Scope, for_good, invalid},
};
use sereno_core::{
    command::{Acquire, AcquireAll, Command, ElectionCommand, Family, JobCommand, Operation},
    event::{Event, EventKind},
    ids::{LeaseId, ObjectId, Revision, Token},
    limits,
    names::{Caller, ResourceName},
    outcome::{Code, Detail, Done, InTheWay, Outcome, Refusal, Waiting},
    policy::{Fencing, Policy},
};

/// What is asked for, in the words of an acquire of one.
pub(super) struct Ask<'a> {
    pub(super) family: Family,
    pub(super) face: Face,
    pub(super) like: &'a Acquire,
    pub(super) resources: &'a [ResourceName],
    pub(super) content: Operation,
}

impl Reference {
    pub(super) fn command(&mut self, command: &Command) -> Outcome {
        let Command { caller, born_at, operation } = command;
        let too_old = u128::from(self.time) > u128::from(born_at.0) + 30_000;
        if too_old || born_at.0 > self.time {
            self.revision += 1;
            return self.answer(None, Err(Refusal::new(Code::Unavailable).with(Detail::BornAt)));
        }
        if self.level < 3 && is_of_level_3(operation) {
            self.revision += 1;
            let detail = Detail::Level { needed: 3 };
            return self.answer(None, Err(Refusal::new(Code::Unavailable).with(detail)));
        }
        match operation {
            Operation::Acquire(op) => self.acquire(caller, op),
            Operation::AcquireAll(op) => self.acquire_all(caller, op),
            Operation::Renew(op) => self.renew(caller, Family::Lock, op),
            Operation::RenewMany(op) => self.renew_many(caller, op),
            Operation::Release(op) => self.release(caller, Family::Lock, &op.namespace, &op.lease),
            Operation::Abandon(op) => self.abandon(caller, op),
            Operation::ForceRelease(op) => self.force_release(caller, Family::Lock, op, operation),
            Operation::PutNamespace(op) => self.put_namespace(caller, op, None),
            Operation::EndDeserted(op) => self.end_deserted(op),
            Operation::SetTokenFloor(op) => self.set_token_floor(caller, op),
            Operation::RaiseLevel { level } => self.raise_level(caller, *level),
            Operation::HoldTrim => unreachable!("not generated"),
            Operation::Election(ElectionCommand::ForceRelease(op)) => {
                self.force_release(caller, Family::Election, op, operation)
            }
            Operation::Election(op) => self.election(caller, op),
            Operation::Hold(op) => self.hold(caller, op),
            Operation::Job(JobCommand::ForceRelease(op)) => {
                self.force_release(caller, Family::Job, op, operation)
            }
            Operation::Job(op) => self.job(caller, op),
            Operation::ReportGuard(op) => self.report_guard(caller, op),
            Operation::Quota(_) | Operation::SetRegion { .. } | Operation::PutHome(_) => {
                unreachable!("quotas have a model of their own")
            }
        }
    }

    fn acquire(&mut self, caller: &Caller, op: &Acquire) -> Outcome {
        let first = Acquire { lease_id: LeaseId::default(), wait_timeout_ms: 0, ..op.clone() };
        let ask = Ask {
            family: Family::Lock,
            face: Face::Lock,
            like: op,
            resources: std::slice::from_ref(&op.resource),
            content: Operation::Acquire(first),
        };
        self.ask(caller, &ask)
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
        let ask = Ask {
            family: Family::Lock,
            face: Face::Lock,
            like: &like,
            resources: &op.resources,
            content: Operation::AcquireAll(first),
        };
        self.ask(caller, &ask)
    }

    pub(super) fn ask(&mut self, caller: &Caller, ask: &Ask) -> Outcome {
        let op = ask.like;
        let scope = (op.namespace.clone(), caller.clone(), ask.family, op.request_id.clone());
        let space = self.space(&op.namespace);
        let known = self.recall(&scope);
        if let Some(space) = space {
            let at = At { space, family: ask.family };
            ask.resources.iter().for_each(|resource| self.touch_resource(at, resource));
        }
        self.revision += 1;
        let Some(known) = known else {
            let result = self.ask_anew(&scope, space, ask);
            return self.conclude(scope, space, ask.content.clone(), result);
        };
        if let Some(reused) = self.reused(known, &ask.content) {
            return reused;
        }
        let at = space.map(|space| At { space, family: ask.family });
        let refused = |state: &Self, code, limit| state.refused_again(code, limit, at, ask);
        self.asked_again(known, refused)
    }

    /// The answer to a request for a lease once more.
    pub(super) fn asked_again(
        &mut self,
        known: usize,
        refused: impl FnOnce(&Self, Code, Limit) -> Refusal,
    ) -> Outcome {
        let first = self.requests[known].answered;
        let result = match self.requests[known].stage.clone() {
            Stage::Waiting | Stage::Holding => self.live_again(known),
            Stage::Refused(code, limit) => Err(refused(self, code, limit)),
            Stage::Ended => Err(self.lease_ended(known, 0, true)),
            Stage::WaitEnded(why) => Err(Refusal::new(Code::WaitTimeout).with(Detail::Wait(why))),
            Stage::Yours { object, .. } => Ok(self.yours_again(object)),
            Stage::YoursEnded(end, token) => {
                Err(Refusal::new(Code::LeaseEnded).with(Detail::Ended { end, token }))
            }
            Stage::Done(_) => unreachable!("another content"),
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
            _ => Ok(self.granted(known)),
        }
    }

    fn refused_again(&self, code: Code, limit: Limit, at: Option<At>, ask: &Ask) -> Refusal {
        let Some(at) = at else { return Refusal::new(code) };
        let policy = &self.spaces[at.space].policy;
        match (code, limit) {
            (Code::Locked, _) => not_free(code, self.in_the_way(at, ask.resources)),
            (_, Limit::Leases) => self.limit_reached("maxLeases", policy.max_leases),
            (_, Limit::Waiters) => self.limit_reached("maxWaiters", policy.max_waiters),
            (Code::InvalidArgument, _) => invalid(),
            _ => Refusal::new(code),
        }
    }

    fn ask_anew(&mut self, scope: &Scope, space: Option<usize>, ask: &Ask) -> Result<Done, No> {
        let (op, resources) = (ask.like, ask.resources);
        let space = self.admit_lease(space, op.lease_id)?;
        let at = At { space, family: ask.family };
        let policy = self.spaces[space].policy.clone();
        let is_sound = is_list(resources)
            && op.lease_ttl_ms.is_none_or(|ttl_ms| self.is_ttl(&policy, ttl_ms))
            && op.wait_timeout_ms <= 600_000
            && op.max_hold_ms.is_none_or(|ms| is_max_hold(&policy, ms));
        if !is_sound {
            return Err(for_good(invalid()));
        }
        let fencing = op.fencing.unwrap_or(policy.fencing);
        if policy.fencing_required && fencing == Fencing::BestEffort {
            self.refused_by_rule(scope, op, &resources[0], Code::FencingRequired);
            return Err(for_good(Refusal::new(Code::FencingRequired)));
        }
        let in_the_way = self.in_the_way(at, resources);
        let waits = !in_the_way.is_empty();
        if !waits {
            self.check_leases(scope, op, resources, 0)?;
        }
        if waits && op.wait_timeout_ms == 0 {
            return Err(for_good(not_free(Code::Locked, in_the_way)));
        }
        if waits {
            let earlier = self.earlier_wait(at, &resources[0], &op.owner);
            let waiters = self.counts(Some(space)).1 - u64::from(earlier.is_some());
            if waiters >= policy.max_waiters {
                self.refused_by_rule(scope, op, &resources[0], Code::LimitReached);
                let refusal = self.limit_reached("maxWaiters", policy.max_waiters);
                return Err(No::ForGood(refusal, Limit::Waiters));
            }
            if let Some(earlier) = earlier {
                self.replace_wait(earlier);
            }
        }
        let terms = Terms {
            fencing,
            ttl_ms: op.lease_ttl_ms.unwrap_or(policy.default_ttl_ms),
            max_hold_ms: op.max_hold_ms.or(policy.max_hold_ms),
        };
        let index = self.new_claim(scope, at, ask, &terms);
        if waits {
            self.event(index, 0, None, EventKind::Queued);
            return Ok(Done::Waiting(self.waiting(index)));
        }
        self.grant(index, false);
        Ok(self.granted(index))
    }

    /// A request with a claim, which waits until it is granted.
    pub(super) fn new_claim(&mut self, scope: &Scope, at: At, ask: &Ask, terms: &Terms) -> usize {
        let op = ask.like;
        let part =
            |name: &ResourceName| Part { resource: name.clone(), token: Token(0), ended: None };
        let claim = Claim {
            object: self.number(),
            at,
            face: ask.face.clone(),
            lease_id: op.lease_id,
            owner: op.owner.clone(),
            fencing: terms.fencing,
            ttl_ms: terms.ttl_ms,
            max_hold_ms: terms.max_hold_ms,
            parts: ask.resources.iter().map(part).collect(),
            created: self.time,
            deadline: self.time + op.wait_timeout_ms,
            granted: 0,
            handed_over: false,
            last_deadline: None,
            spent: None,
            asked: self.revision,
        };
        let content = Some(ask.content.clone());
        self.remember(scope.clone(), Some(at.space), content, Stage::Waiting, None);
        let index = self.requests.len() - 1;
        self.requests[index].claim = Some(claim);
        index
    }

    /// Refuses what would be more leases than the namespace allows; `ending` of them end in the same moment.
    pub(super) fn check_leases(
        &mut self,
        scope: &Scope,
        op: &Acquire,
        resources: &[ResourceName],
        ending: u64,
    ) -> Result<(), No> {
        let space = self.space(&scope.0).expect("it was admitted");
        let max = self.spaces[space].policy.max_leases;
        let is_lock_delay = |delay: &&Delay| delay.at.space == space && delay.owner.is_none();
        let delays = self.delays.iter().filter(is_lock_delay).count() as u64;
        if self.counts(Some(space)).0 + delays + resources.len() as u64 <= max + ending {
            return Ok(());
        }
        self.refused_by_rule(scope, op, &resources[0], Code::LimitReached);
        Err(No::ForGood(self.limit_reached("maxLeases", max), Limit::Leases))
    }

    pub(super) fn is_ttl(&self, policy: &Policy, ttl_ms: u64) -> bool {
        (policy.min_ttl_ms.unwrap_or(self.min_ttl_ms)..=policy.max_ttl_ms).contains(&ttl_ms)
    }

    fn waiting(&self, index: usize) -> Waiting {
        let claim = self.requests[index].claim();
        let queue = self.queue(claim.at, &claim.parts[0].resource);
        let place = queue.iter().position(|&waiter| waiter == index).expect("it waits") as u64 + 1;
        let wait_expires_in_ms = claim.deadline.saturating_sub(self.time);
        Waiting { claim: ObjectId(claim.object), place, wait_expires_in_ms }
    }

    pub(super) fn in_the_way(&self, at: At, resources: &[ResourceName]) -> Vec<InTheWay> {
        let mut all = Vec::new();
        for resource in resources {
            let holder = self.holder(at, resource).map(|(index, part)| self.shown(index, part));
            let delay = self.delay(at, resource);
            if holder.is_some() || delay.is_some() {
                let lock_delay_ms =
                    delay.map_or(0, |delay| delay.deadline.saturating_sub(self.time));
                let waiters = self.queue(at, resource).len() as u64;
                all.push(InTheWay { resource: resource.clone(), holder, lock_delay_ms, waiters });
            }
        }
        all
    }

    pub(super) fn limit_reached(&self, limit: &str, max: u64) -> Refusal {
        Refusal::new(Code::LimitReached).with(self.limit(limit, max)).retry_after(1_000)
    }

    pub(super) fn refused_by_rule(
        &mut self,
        scope: &Scope,
        op: &Acquire,
        resource: &ResourceName,
        code: Code,
    ) {
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: scope.2,
            namespace: Some(scope.0.clone()),
            resource: Some(resource.clone()),
            owner: Some(op.owner.clone()),
            caller: scope.1.clone(),
            lease_hash: Some(op.lease_id.public_hash()),
            kind: EventKind::Refused { code },
        });
    }
}

/// What a grant goes by, after defaults.
pub(super) struct Terms {
    pub(super) fencing: Fencing,
    pub(super) ttl_ms: u64,
    pub(super) max_hold_ms: Option<u64>,
}

/// 1 to 64 resources, each once.
pub(super) fn is_list(resources: &[ResourceName]) -> bool {
    let distinct = resources.iter().enumerate().all(|(n, name)| !resources[..n].contains(name));
    (1..=64).contains(&resources.len()) && distinct
}

pub(super) fn is_max_hold(policy: &Policy, ms: u64) -> bool {
    (1_000..=policy.max_hold_ms.unwrap_or(limits::MAX_HOLD_MS_MAX)).contains(&ms)
}

fn is_of_level_3(operation: &Operation) -> bool {
    match operation {
        Operation::Abandon(op) => {
            matches!(op.family, Family::Election | Family::Hold | Family::Job)
        }
        Operation::Election(_)
        | Operation::Hold(_)
        | Operation::Job(_)
        | Operation::ReportGuard(_)
        | Operation::Quota(_)
        | Operation::SetRegion { .. }
        | Operation::PutHome(_) => true,
        _ => false,
    }
}

/// What is in the way, and when it frees at the latest.
pub(super) fn not_free(code: Code, in_the_way: Vec<InTheWay>) -> Refusal {
    let left = |one: &InTheWay| {
        one.holder.as_ref().map_or(one.lock_delay_ms, |holder| holder.expires_in_ms)
    };
    let retry_after_ms = in_the_way.iter().map(left).max().unwrap_or(0);
    Refusal::new(code).with(Detail::Locked(in_the_way)).retry_after(retry_after_ms)
}
