//! The commands of locks (DESIGN.md section 8): each decides, and leaves the doing to `lifecycle`.

use super::{
    State,
    claim::{Claim, Holding},
    deviations,
    memory::{Fate, RecordId},
    request::{No, Request, lease_ended},
};
use crate::{
    command::{
        Abandon, Acquire, AcquireAll, EndDeserted, Family, ForceRelease, LeaseRef, Release, Renew,
        RenewMany,
    },
    event::EventKind,
    ids::{LeaseId, ObjectId, Token},
    limits,
    names::{Caller, Invalid, Labels, NamespaceName, Owner, ResourceName},
    outcome::{
        AbandonedWas, Code, Detail, Done, End, InTheWay, NotReleased, Outcome, Refusal, Renewed,
        WaitEnd,
    },
    planted::{self, Planted},
    policy::{Fencing, within},
};
use std::collections::BTreeSet;

/// What Acquire and AcquireAll have in common.
struct Ask<'a> {
    caller: &'a Caller,
    resources: &'a [ResourceName],
    owner: &'a Owner,
    lease_id: LeaseId,
    lease_ttl_ms: Option<u64>,
    wait_timeout_ms: u64,
    max_hold_ms: Option<u64>,
    fencing: Option<Fencing>,
    labels: &'a Labels,
}

/// The terms of a grant, after defaults.
struct Terms {
    ttl_ms: u64,
    max_hold_ms: Option<u64>,
    fencing: Fencing,
}

impl State {
    pub(super) fn acquire(&mut self, caller: &Caller, op: &Acquire) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Lock, &op.request_id, op);
        let ask = Ask {
            caller,
            resources: std::slice::from_ref(&op.resource),
            owner: &op.owner,
            lease_id: op.lease_id,
            lease_ttl_ms: op.lease_ttl_ms,
            wait_timeout_ms: op.wait_timeout_ms,
            max_hold_ms: op.max_hold_ms,
            fencing: op.fencing,
            labels: &op.labels,
        };
        self.ask(&request, &ask)
    }

    pub(super) fn acquire_all(&mut self, caller: &Caller, op: &AcquireAll) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Lock, &op.request_id, op);
        let ask = Ask {
            caller,
            resources: &op.resources,
            owner: &op.owner,
            lease_id: op.lease_id,
            lease_ttl_ms: op.lease_ttl_ms,
            wait_timeout_ms: 0,
            max_hold_ms: op.max_hold_ms,
            fencing: op.fencing,
            labels: &op.labels,
        };
        self.ask(&request, &ask)
    }

    fn ask(&mut self, request: &Request, ask: &Ask) -> Outcome {
        let aside = self.queues_aside(request.namespace, ask.resources);
        let outcome = self.ask_in_order(request, ask);
        self.queues_back(request.namespace, aside);
        outcome
    }

    fn ask_in_order(&mut self, request: &Request, ask: &Ask) -> Outcome {
        let known = self.recall(request);
        if let Some(namespace) = request.namespace {
            for resource in ask.resources {
                self.touch_resource(namespace, resource);
            }
        }
        self.next_revision();
        let Some(known) = known else {
            let result = self.ask_anew(request, ask);
            return self.conclude(request, result);
        };
        if !self.is_same_content(known, request) {
            return self.reused();
        }
        let not_a_lock = |_| unreachable!("operators' writes are another family");
        self.replay(known, not_a_lock, |state, fate, code| {
            state.refusal_again(fate, code, request, ask)
        })
    }

    fn ask_anew(&mut self, request: &Request, ask: &Ask) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        if self.memory.find_lease(ask.lease_id).is_some() || ask.lease_id == LeaseId::default() {
            let invalid = Invalid::new("leaseId", "must be drawn at random by the node");
            return Err(No::Forget(invalid.into()));
        }
        if self.paused_ms() > 0 {
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused);
            return Err(No::Forget(refusal.retry_after(self.paused_ms())));
        }
        let terms = self.terms(namespace, ask).inspect_err(|refusal| {
            if refusal.code == Code::FencingRequired {
                self.note_refusal(namespace, ask, refusal.code);
            }
        })?;
        let in_the_way = self.in_the_way(namespace, ask.resources);
        let free = deviations::free_part(ask.resources, &in_the_way);
        if let Some(free) = &free {
            let ask = Ask { resources: free, ..*ask };
            return Ok(self.grant_at_once(request, namespace, &ask, &terms));
        }
        if in_the_way.is_empty() {
            self.check_lease_limit(namespace, ask)?;
            return Ok(self.grant_at_once(request, namespace, ask, &terms));
        }
        if ask.wait_timeout_ms == 0 {
            return Err(locked(in_the_way).into());
        }
        self.check_queue_limits(namespace, ask)?;
        let deadline = self.wait_deadline(ask.wait_timeout_ms);
        let id = self.next_object();
        let claim = self.claim(request, namespace, ask, &terms, id);
        self.enqueue(id, Claim { deadline, ..claim });
        Ok(Done::Waiting(self.waiting(id)))
    }

    fn grant_at_once(
        &mut self,
        request: &Request,
        namespace: u32,
        ask: &Ask,
        terms: &Terms,
    ) -> Done {
        let id = self.next_object();
        let claim = Box::new(self.claim(request, namespace, ask, terms, id));
        self.grant(id, claim, false);
        Done::Granted(self.claims[&id].grant(id, self.time))
    }

    fn claim(
        &mut self,
        request: &Request,
        namespace: u32,
        ask: &Ask,
        terms: &Terms,
        id: ObjectId,
    ) -> Claim {
        let holding = |resource: &ResourceName| Holding {
            resource: resource.clone(),
            token: Token(0),
            ended: None,
        };
        Claim {
            namespace,
            record: self.remember_live(request, ask.lease_id, id),
            lease_id: ask.lease_id,
            owner: ask.owner.clone(),
            caller: ask.caller.clone(),
            labels: ask.labels.clone(),
            fencing: terms.fencing,
            ttl_ms: terms.ttl_ms,
            max_hold_ms: terms.max_hold_ms,
            holdings: ask.resources.iter().map(holding).collect(),
            created_at: self.time,
            deadline: self.time,
            held: None,
            spent: None,
            asked_at: self.revision,
        }
    }

    /// Checks a request against its namespace's policy and fills in the defaults.
    fn terms(&self, namespace: u32, ask: &Ask) -> Result<Terms, Refusal> {
        let policy = &self.namespaces[namespace as usize].policy;
        check_resources(ask.resources)?;
        let ttl_ms = match ask.lease_ttl_ms {
            Some(ttl_ms) => self.check_ttl(namespace, ttl_ms)?,
            None => policy.default_ttl_ms,
        };
        within("waitTimeout", ask.wait_timeout_ms, 0..=limits::WAIT_TIMEOUT_MS_MAX)?;
        let ceiling = policy.max_hold_ms.unwrap_or(limits::MAX_HOLD_MS_MAX);
        if let Some(max_hold_ms) = ask.max_hold_ms {
            within("maxHold", max_hold_ms, limits::TTL_MS_MIN.min(ceiling)..=ceiling)?;
        }
        let fencing = ask.fencing.unwrap_or(policy.fencing);
        if policy.fencing_required && fencing == Fencing::BestEffort {
            return Err(Refusal::new(Code::FencingRequired));
        }
        Ok(Terms { ttl_ms, max_hold_ms: ask.max_hold_ms.or(policy.max_hold_ms), fencing })
    }

    fn check_ttl(&self, namespace: u32, ttl_ms: u64) -> Result<u64, Invalid> {
        let policy = &self.namespaces[namespace as usize].policy;
        let min_ttl_ms = policy.min_ttl_ms.unwrap_or(self.service_min_ttl_ms);
        within("leaseTtl", ttl_ms, min_ttl_ms..=policy.max_ttl_ms)?;
        Ok(ttl_ms)
    }

    fn in_the_way(&self, namespace: u32, names: &[ResourceName]) -> Vec<InTheWay> {
        let resources = &self.namespaces[namespace as usize].resources;
        let in_the_way = |name: &ResourceName| {
            let resource = resources.get(name).filter(|resource| !resource.is_free())?;
            let holder = resource.holder.map(|id| {
                let claim = &self.claims[&id];
                let (_, holding) = claim.holding(name).expect("a holder holds its resource");
                claim.holder(holding.token, self.time)
            });
            let delay = resource.delay.map(|id| self.time.until(self.delays[&id].deadline));
            let waiters = resource.queue.len() as u64;
            let resource = name.clone();
            Some(InTheWay { resource, holder, lock_delay_ms: delay.unwrap_or(0), waiters })
        };
        names.iter().filter_map(in_the_way).collect()
    }

    fn check_lease_limit(&mut self, namespace: u32, ask: &Ask) -> Result<(), No> {
        let of = &self.namespaces[namespace as usize];
        let max = of.policy.max_leases;
        if of.leases_taken() + ask.resources.len() as u64 <= max {
            return Ok(());
        }
        self.note_refusal(namespace, ask, Code::LimitReached);
        Err(self.limit_reached("maxLeases", max).into())
    }

    fn check_queue_limits(&mut self, namespace: u32, ask: &Ask) -> Result<(), No> {
        let of = &self.namespaces[namespace as usize];
        let waiters =
            of.resources.get(&ask.resources[0]).map_or(0, |resource| resource.queue.len());
        let no = if waiters >= limits::WAITERS_PER_RESOURCE_MAX {
            No::Remember(self.queue_full())
        } else if of.waiters >= of.policy.max_waiters {
            No::TooManyWaiters(self.limit_reached("maxWaiters", of.policy.max_waiters))
        } else {
            return Ok(());
        };
        self.note_refusal(namespace, ask, no.code());
        Err(no)
    }

    fn limit_reached(&self, limit: &str, max: u64) -> Refusal {
        Refusal::new(Code::LimitReached).with(self.limit(limit, max)).retry_after(1_000)
    }

    fn queue_full(&self) -> Refusal {
        let max = limits::WAITERS_PER_RESOURCE_MAX as u64;
        let detail = self.limit("waiters of one resource", max);
        Refusal::new(Code::QueueFull).with(detail).retry_after(1_000)
    }

    /// Counters fall when objects are swept: while any is due, the count may be about to.
    fn limit(&self, limit: &str, max: u64) -> Detail {
        let sweep_pending = self.next_deadline().is_some_and(|deadline| deadline <= self.time);
        Detail::Limit { limit: limit.into(), max, sweep_pending }
    }

    /// A refusal by an operator's rule is an event.
    fn note_refusal(&mut self, namespace: u32, ask: &Ask, code: Code) {
        let subject = (&ask.resources[0], ask.owner, ask.lease_id.public_hash());
        self.event(ask.caller, namespace, Some(subject), EventKind::Refused { code });
    }

    /// The same refusal once more: the code is the first one's, the figures are those of now.
    fn refusal_again(&self, fate: Fate, code: Code, request: &Request, ask: &Ask) -> Refusal {
        let Some(namespace) = request.namespace else { return Refusal::new(code) };
        let policy = &self.namespaces[namespace as usize].policy;
        match code {
            Code::Locked => locked(self.in_the_way(namespace, ask.resources)),
            Code::QueueFull => self.queue_full(),
            Code::LimitReached if fate == Fate::TooManyWaiters => {
                self.limit_reached("maxWaiters", policy.max_waiters)
            }
            Code::LimitReached => self.limit_reached("maxLeases", policy.max_leases),
            Code::InvalidArgument => match self.terms(namespace, ask) {
                Err(refusal) if refusal.code == code => refusal,
                _ => Invalid::new("requestId", "was refused under an earlier policy").into(),
            },
            _ => Refusal::new(code),
        }
    }

    pub(super) fn renew(&mut self, caller: &Caller, op: &Renew) -> Outcome {
        self.touch_lease(&op.lease);
        self.next_revision();
        let result = self.renew_one(caller, &op.namespace, &op.lease, op.lease_ttl_ms);
        self.decided(None, result.map(Done::Renewed))
    }

    pub(super) fn renew_many(&mut self, caller: &Caller, op: &RenewMany) -> Outcome {
        op.leases.iter().for_each(|lease| self.touch_lease(lease));
        self.next_revision();
        let count = op.leases.len() as u64;
        if let Err(invalid) = within("leases", count, 1..=limits::RENEW_MANY_LEASES_MAX as u64) {
            return self.decided(None, Err(invalid.into()));
        }
        let renew = |lease| self.renew_one(caller, &op.namespace, lease, op.lease_ttl_ms);
        let results = op.leases.iter().map(renew).collect();
        self.decided(None, Ok(Done::RenewedMany(results)))
    }

    fn touch_lease(&mut self, lease: &LeaseRef) {
        if let Some(Fate::Live(claim)) = self.fate_of(lease.lease_id) {
            self.touch_claim(claim);
        }
    }

    fn fate_of(&self, lease_id: LeaseId) -> Option<Fate> {
        self.memory.find_lease(lease_id).map(|record| self.memory.get(record).fate)
    }

    fn renew_one(
        &mut self,
        caller: &Caller,
        namespace: &NamespaceName,
        lease: &LeaseRef,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let not_found = || Refusal::new(Code::NotFound);
        let namespace = self.namespace_id(namespace).ok_or_else(not_found)?;
        let found = self.find_holding(namespace, lease);
        let (id, index) =
            self.or_anothers(Planted::RenewalOfAnother, namespace, &lease.resource, found)?;
        let ttl_ms = ttl_ms.map(|ttl_ms| self.check_ttl(namespace, ttl_ms)).transpose()?;
        let (now, revision) = (self.time, self.revision);

        let claim = self.claims.get_mut(&id).expect("its place was just found");
        let ttl_ms = ttl_ms.unwrap_or(claim.ttl_ms);
        let token = claim.holdings[index].token;
        let held = claim.held.as_mut().expect("a holding is held");
        let wanted = now.plus(ttl_ms);
        let allowed = held.final_deadline.map_or(wanted, |end| end.min(wanted));
        claim.asked_at = revision;
        if held.final_deadline == Some(claim.deadline) {
            let detail = Detail::FinalDeadline { in_ms: now.until(claim.deadline), token };
            let (code, owner) = (Code::MaxHoldReached, claim.owner.clone());
            let subject = (&lease.resource, &owner, lease.lease_id.public_hash());
            self.event(caller, namespace, Some(subject), EventKind::Refused { code });
            return Err(Refusal::new(code).with(detail));
        }
        held.renewed_at = now;
        claim.ttl_ms = ttl_ms;
        // Never nearer than it was: the owner may rely on every answer it has had (S8).
        let deadline = allowed.max(claim.deadline);
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        self.deadlines.insert((deadline, id));
        claim.deadline = deadline;
        Ok(Renewed {
            token,
            expires_in_ms: now.until(deadline),
            final_deadline_in_ms: claim.final_deadline_in_ms(now),
            clipped: allowed < wanted,
        })
    }

    /// The live holding that `lease` names.
    ///
    /// # Errors
    /// `LEASE_ENDED` for one that has ended, `NOT_HOLDER` for one never heard of, or of another resource.
    fn find_holding(&self, namespace: u32, lease: &LeaseRef) -> Result<(ObjectId, usize), Refusal> {
        let stranger = || Refusal::new(Code::NotHolder);
        let record = self.memory.find_lease(lease.lease_id).ok_or_else(stranger)?;
        let record = self.memory.get(record);
        if record.namespace != namespace {
            return Err(stranger());
        }
        match record.fate {
            Fate::Live(id) => {
                let claim = &self.claims[&id];
                let (index, holding) = claim
                    .holding(&lease.resource)
                    .filter(|_| claim.held.is_some())
                    .ok_or_else(stranger)?;
                match holding.ended {
                    Some(end) => Err(lease_ended(end, holding.token)),
                    None => Ok((id, index)),
                }
            }
            _ => match record.ended(&lease.resource) {
                Some((end, token)) => Err(lease_ended(end, token)),
                None => Err(stranger()),
            },
        }
    }

    pub(super) fn release(&mut self, caller: &Caller, op: &Release) -> Outcome {
        self.touch_lease(&op.lease);
        self.next_revision();
        let Some(namespace) = self.namespace_id(&op.namespace) else {
            return self.decided(None, Err(Refusal::new(Code::NotFound)));
        };
        let found = self.find_holding(namespace, &op.lease);
        let resource = &op.lease.resource;
        let found = self.or_anothers(Planted::ReleaseOfAnother, namespace, resource, found);
        let already = match found {
            Ok((id, index)) => {
                self.end_holding(id, index, End::Released, self.time, Some((caller, None)));
                None
            }
            Err(Refusal { detail: Detail::Ended { end, .. }, .. }) => Some(NotReleased::Ended(end)),
            Err(_) => Some(NotReleased::Unknown),
        };
        self.decided(None, Ok(Done::Released { already }))
    }

    pub(super) fn abandon(&mut self, caller: &Caller, op: &Abandon) -> Outcome {
        if op.family != Family::Lock {
            self.next_revision();
            let invalid = Invalid::new("family", "operators' writes are decided at once, and stay");
            return self.decided(None, Err(invalid.into()));
        }
        let known = self.recall_by_id(caller, &op.namespace, op.family, &op.request_id);
        self.next_revision();
        let was = match known {
            Some(record) => Ok(self.abandon_known(record)),
            None => self
                .forbid(caller, &op.namespace, op.family, &op.request_id)
                .map(|()| AbandonedWas::Unseen),
        };
        self.decided(None, was.map(|was| Done::Abandoned { was }))
    }

    fn abandon_known(&mut self, record: RecordId) -> AbandonedWas {
        match self.memory.get(record).fate {
            Fate::Live(id) if self.claims[&id].held.is_some() => {
                self.end_lease(id, End::Abandoned, self.time);
                AbandonedWas::Granted
            }
            Fate::Live(id) => {
                self.end_wait(id, None);
                AbandonedWas::Waiting
            }
            Fate::Ended(end) => AbandonedWas::Ended(end),
            Fate::Refused(code) => AbandonedWas::Refused(code),
            Fate::TooManyWaiters => AbandonedWas::Refused(Code::LimitReached),
            Fate::WaitEnded(_) => AbandonedWas::Refused(Code::WaitTimeout),
            Fate::Forbidden => AbandonedWas::Refused(Code::Abandoned),
            Fate::Done => unreachable!("operators' writes are another family"),
        }
    }

    pub(super) fn force_release(&mut self, caller: &Caller, op: &ForceRelease) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Admin, &op.request_id, op);
        let known = self.recall(&request);
        if let Some(namespace) = request.namespace {
            self.touch_resource(namespace, &op.resource);
        }
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let done = |token| Done::ForceReleased { token };
            return self.replay(known, done, |_, _, code| Refusal::new(code));
        }
        let result = self.force_release_anew(caller, &request, op);
        self.conclude(&request, result)
    }

    fn force_release_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &ForceRelease,
    ) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        let resources = &self.namespaces[namespace as usize].resources;
        let holder = resources.get(&op.resource).and_then(|resource| resource.holder);
        let holding = holder.and_then(|id| {
            let (index, holding) = self.claims[&id].holding(&op.resource)?;
            let is_it = holding.token == op.token || planted::has(Planted::ForceReleaseOfAnother);
            is_it.then_some((id, index))
        });
        let (id, index) = holding.ok_or_else(|| Refusal::new(Code::NotHolder))?;
        self.end_holding(id, index, End::Forced, self.time, Some((caller, Some(&op.reason))));
        self.remember_done(request, op.token);
        Ok(Done::ForceReleased { token: op.token })
    }

    pub(super) fn end_deserted(&mut self, op: &EndDeserted) -> Outcome {
        self.touch_claim(op.claim);
        self.next_revision();
        let ended = match self.claims.get(&op.claim) {
            Some(claim) if claim.asked_at <= op.asked_at => match claim.held {
                None => {
                    self.end_wait(op.claim, Some(WaitEnd::Deserted));
                    true
                }
                // Whoever was granted at once has its answer, or can ask for it: only hand-overs are taken back.
                Some(held) if held.waited => {
                    self.end_lease(op.claim, End::Abandoned, self.time);
                    true
                }
                Some(_) => false,
            },
            _ => false,
        };
        self.decided(None, Ok(Done::DesertedEnded(ended)))
    }
}

fn check_resources(resources: &[ResourceName]) -> Result<(), Invalid> {
    let count = resources.len() as u64;
    within("resources", count, 1..=limits::ACQUIRE_ALL_RESOURCES_MAX as u64)?;
    let mut seen = BTreeSet::new();
    match resources.iter().find(|resource| !seen.insert(*resource)) {
        Some(twice) => Err(Invalid::new("resources", format!("names {twice:?} twice"))),
        None => Ok(()),
    }
}

fn locked(in_the_way: Vec<InTheWay>) -> Refusal {
    let frees_in_ms = |one: &InTheWay| match &one.holder {
        Some(holder) => holder.expires_in_ms,
        None => one.lock_delay_ms,
    };
    let retry_after_ms = in_the_way.iter().map(frees_in_ms).max().unwrap_or(0);
    Refusal::new(Code::Locked).with(Detail::Locked(in_the_way)).retry_after(retry_after_ms)
}
