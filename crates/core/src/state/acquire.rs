//! Acquire and AcquireAll (DESIGN.md section 8): whether a lock is granted, queued for or refused. The granting is done
//! by `lifecycle`.

use super::{
    State,
    claim::{Claim, Face, Holding},
    deviations,
    memory::Fate,
    request::{No, Request},
};
use crate::{
    command::{Acquire, AcquireAll, Family},
    event::EventKind,
    ids::{LeaseId, ObjectId, Token},
    limits,
    names::{Caller, Invalid, Labels, Owner, ResourceName},
    outcome::{Code, Detail, Done, InTheWay, Outcome, Refusal, WaitEnd},
    policy::{Fencing, within},
};
use std::collections::BTreeSet;

/// What all that ask for a lease have in common.
pub(super) struct Ask<'a> {
    pub(super) face: Face,
    pub(super) caller: &'a Caller,
    pub(super) resources: &'a [ResourceName],
    pub(super) owner: &'a Owner,
    pub(super) lease_id: LeaseId,
    pub(super) lease_ttl_ms: Option<u64>,
    pub(super) wait_timeout_ms: u64,
    pub(super) max_hold_ms: Option<u64>,
    pub(super) fencing: Option<Fencing>,
    pub(super) labels: &'a Labels,
}

/// The terms of a grant, after defaults.
pub(super) struct Terms {
    pub(super) ttl_ms: u64,
    pub(super) max_hold_ms: Option<u64>,
    pub(super) fencing: Fencing,
}

impl State {
    pub(super) fn acquire(&mut self, caller: &Caller, op: &Acquire) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Lock, &op.request_id, op);
        let ask = Ask {
            face: Face::Lock,
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
            face: Face::Lock,
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

    pub(super) fn ask(&mut self, request: &Request, ask: &Ask) -> Outcome {
        let family = ask.face.family();
        let aside = self.queues_aside(request.namespace, family, ask.resources);
        let outcome = self.ask_in_order(request, ask);
        self.queues_back(request.namespace, family, aside);
        outcome
    }

    fn ask_in_order(&mut self, request: &Request, ask: &Ask) -> Outcome {
        let known = self.recall(request);
        if let Some(namespace) = request.namespace {
            for resource in ask.resources {
                self.touch_resource(namespace, ask.face.family(), resource);
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
        // The same id for a write of another kind has other content, and was refused above.
        let not_an_ask = |_| unreachable!("what was done at once asked for no lease");
        self.replay(known, not_an_ask, |state, fate, code| {
            state.refusal_again(fate, code, request, ask)
        })
    }

    fn ask_anew(&mut self, request: &Request, ask: &Ask) -> Result<Done, No> {
        let namespace = self.admit_lease(request, ask.lease_id)?;
        let terms = self.terms(namespace, ask).inspect_err(|refusal| {
            if refusal.code == Code::FencingRequired {
                self.note_refusal(namespace, ask, refusal.code);
            }
        })?;
        let in_the_way = self.in_the_way(namespace, ask.face.family(), ask.resources);
        let free = deviations::free_part(ask.resources, &in_the_way);
        if let Some(free) = &free {
            let ask = Ask { resources: free, face: ask.face.clone(), ..*ask };
            return Ok(self.grant_at_once(request, namespace, &ask, &terms));
        }
        if in_the_way.is_empty() {
            self.check_lease_limit(namespace, ask)?;
            return Ok(self.grant_at_once(request, namespace, ask, &terms));
        }
        if ask.wait_timeout_ms == 0 {
            return Err(locked(in_the_way).into());
        }
        let replaced = self.replaced_wait(namespace, ask);
        self.check_queue_limits(namespace, ask, replaced.is_some())?;
        if let Some(earlier) = replaced {
            self.end_wait(earlier, Some(WaitEnd::Replaced));
        }
        let deadline = self.wait_deadline(ask.wait_timeout_ms);
        let id = self.next_object();
        let claim = self.claim(request, namespace, ask, &terms, id);
        self.enqueue(id, Claim { deadline, ..claim });
        Ok(Done::Waiting(self.waiting(id)))
    }

    /// The namespace of a new request for a lease.
    ///
    /// # Errors
    /// As [`Self::admit`]; and while granting is paused after a restore.
    pub(super) fn admit_lease(&self, request: &Request, lease_id: LeaseId) -> Result<u32, No> {
        let namespace = self.admit(request)?;
        if self.memory.find_lease(lease_id).is_some() || lease_id == LeaseId::default() {
            let invalid = Invalid::new("leaseId", "must be drawn at random by the node");
            return Err(No::Forget(invalid.into()));
        }
        if self.paused_ms() > 0 {
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused);
            return Err(No::Forget(refusal.retry_after(self.paused_ms())));
        }
        Ok(namespace)
    }

    pub(super) fn grant_at_once(
        &mut self,
        request: &Request,
        namespace: u32,
        ask: &Ask,
        terms: &Terms,
    ) -> Done {
        let id = self.next_object();
        let claim = Box::new(self.claim(request, namespace, ask, terms, id));
        self.grant(id, claim, false);
        self.granted(id)
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
            face: ask.face.clone(),
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
            repeats: Vec::new(),
        }
    }

    /// Checks a request against its namespace's policy and fills in the defaults.
    fn terms(&self, namespace: u32, ask: &Ask) -> Result<Terms, Refusal> {
        let policy = &self.namespaces[namespace as usize].policy;
        check_resources(ask.resources)?;
        let ttl_ms = match ask.lease_ttl_ms {
            Some(ttl_ms) => self.check_ttl(namespace, "leaseTtl", ttl_ms)?,
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

    pub(super) fn check_ttl(
        &self,
        namespace: u32,
        field: &str,
        ttl_ms: u64,
    ) -> Result<u64, Invalid> {
        let policy = &self.namespaces[namespace as usize].policy;
        let min_ttl_ms = policy.min_ttl_ms.unwrap_or(self.service_min_ttl_ms);
        within(field, ttl_ms, min_ttl_ms..=policy.max_ttl_ms)?;
        Ok(ttl_ms)
    }

    pub(super) fn in_the_way(
        &self,
        namespace: u32,
        family: Family,
        names: &[ResourceName],
    ) -> Vec<InTheWay> {
        let resources = &self.namespaces[namespace as usize].space(family).resources;
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
        self.check_lease_limit_after(namespace, ask, 0)
    }

    /// The same where `ending` leases end in the same moment.
    pub(super) fn check_lease_limit_after(
        &mut self,
        namespace: u32,
        ask: &Ask,
        ending: u64,
    ) -> Result<(), No> {
        let of = &self.namespaces[namespace as usize];
        let max = of.policy.max_leases;
        if of.leases_taken() + ask.resources.len() as u64 <= max + ending {
            return Ok(());
        }
        self.note_refusal(namespace, ask, Code::LimitReached);
        Err(self.limit_reached("maxLeases", max).into())
    }

    /// `replaces`: another wait of this queue ends when this one begins.
    fn check_queue_limits(&mut self, namespace: u32, ask: &Ask, replaces: bool) -> Result<(), No> {
        let of = &self.namespaces[namespace as usize];
        let resources = &of.space(ask.face.family()).resources;
        let queued = resources.get(&ask.resources[0]).map_or(0, |resource| resource.queue.len());
        let no = if queued - usize::from(replaces) >= limits::WAITERS_PER_RESOURCE_MAX {
            No::Remember(self.queue_full())
        } else if of.waiters - u64::from(replaces) >= of.policy.max_waiters {
            No::TooManyWaiters(self.limit_reached("maxWaiters", of.policy.max_waiters))
        } else {
            return Ok(());
        };
        self.note_refusal(namespace, ask, no.code());
        Err(no)
    }

    pub(super) fn limit_reached(&self, limit: &str, max: u64) -> Refusal {
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
    pub(super) fn note_refusal(&mut self, namespace: u32, ask: &Ask, code: Code) {
        let subject = (&ask.resources[0], ask.owner, ask.lease_id.public_hash());
        let kind = EventKind::Refused { code };
        self.event(ask.caller, namespace, ask.face.family(), Some(subject), kind);
    }

    /// The same refusal once more: the code is the first one's, the figures are those of now.
    fn refusal_again(&self, fate: Fate, code: Code, request: &Request, ask: &Ask) -> Refusal {
        let Some(namespace) = request.namespace else { return Refusal::new(code) };
        let policy = &self.namespaces[namespace as usize].policy;
        match code {
            Code::Locked => locked(self.in_the_way(namespace, ask.face.family(), ask.resources)),
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
}

pub(super) fn check_resources(resources: &[ResourceName]) -> Result<(), Invalid> {
    let count = resources.len() as u64;
    within("resources", count, 1..=limits::ACQUIRE_ALL_RESOURCES_MAX as u64)?;
    let mut seen = BTreeSet::new();
    match resources.iter().find(|resource| !seen.insert(*resource)) {
        Some(twice) => Err(Invalid::new("resources", format!("names {twice:?} twice"))),
        None => Ok(()),
    }
}

fn locked(in_the_way: Vec<InTheWay>) -> Refusal {
    not_free(Code::Locked, in_the_way)
}

/// What is in the way, and when it frees at the latest.
pub(super) fn not_free(code: Code, in_the_way: Vec<InTheWay>) -> Refusal {
    let frees_in_ms = |one: &InTheWay| match &one.holder {
        Some(holder) => holder.expires_in_ms,
        None => one.lock_delay_ms,
    };
    let retry_after_ms = in_the_way.iter().map(frees_in_ms).max().unwrap_or(0);
    Refusal::new(code).with(Detail::Locked(in_the_way)).retry_after(retry_after_ms)
}
