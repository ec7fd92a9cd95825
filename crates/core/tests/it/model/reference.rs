//! The rules of DESIGN.md once more, as plainly as they can be said: vectors, scanned from end to end, nothing kept
//! that can be found by looking. What a request is stands in one place, live or remembered. Slow, and meant to be.

use sereno_core::{
    Applied, Settled,
    command::{Family, Operation},
    entry::{Body, Entry},
    event::{Event, EventKind},
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Token},
    limits,
    names::{Caller, NamespaceName, Owner, Reason, RequestId, ResourceName},
    outcome::{Code, Detail, Done, End, Grant, Holder, Outcome, Refusal, WaitEnd},
    policy::{Fencing, Policy},
};

pub(super) struct Reference {
    pub(super) time: u64,
    pub(super) revision: u64,
    pub(super) last_token: u64,
    pub(super) level: u32,
    pub(super) paused_until: u64,
    pub(super) clock: u64,
    pub(super) next_object: u64,
    pub(super) min_ttl_ms: u64,
    pub(super) spaces: Vec<Space>,
    pub(super) requests: Vec<Request>,
    pub(super) delays: Vec<Delay>,
    pub(super) out: Applied,
}

pub(super) struct Space {
    pub(super) name: NamespaceName,
    pub(super) version: u64,
    pub(super) policy: Policy,
}

/// A resource that nobody is granted until the deadline.
pub(super) struct Delay {
    pub(super) object: u64,
    pub(super) space: usize,
    pub(super) resource: ResourceName,
    pub(super) deadline: u64,
}

/// A request that has been seen and not been forgotten.
pub(super) struct Request {
    pub(super) scope: (NamespaceName, Caller, Family, RequestId),
    /// `None`: forbidden before it was seen.
    pub(super) content: Option<Operation>,
    pub(super) counted_in: usize,
    /// The revision of its first answer of the present kind.
    pub(super) answered: u64,
    pub(super) stage: Stage,
    /// `None`: it is live.
    pub(super) forget_at: Option<u64>,
    pub(super) claim: Option<Claim>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Waiting,
    Holding,
    Ended,
    Refused(Code, Limit),
    WaitEnded(WaitEnd),
    Done(Token),
}

/// Which limit a `LIMIT_REACHED` was about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Leases,
    Waiters,
    Neither,
}

/// What a request that was queued or granted has or had.
pub(super) struct Claim {
    pub(super) object: u64,
    pub(super) space: usize,
    pub(super) lease_id: LeaseId,
    pub(super) owner: Owner,
    pub(super) fencing: Fencing,
    pub(super) ttl_ms: u64,
    pub(super) max_hold_ms: Option<u64>,
    pub(super) parts: Vec<Part>,
    pub(super) created: u64,
    pub(super) deadline: u64,
    pub(super) granted: u64,
    pub(super) handed_over: bool,
    /// Where `maxHold` ends it.
    pub(super) last_deadline: Option<u64>,
    /// How the first of its parts ended.
    pub(super) spent: Option<End>,
    pub(super) asked: u64,
}

pub(super) struct Part {
    pub(super) resource: ResourceName,
    pub(super) token: Token,
    pub(super) ended: Option<End>,
}

impl Request {
    pub(super) fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Holding)
    }

    pub(super) fn claim(&self) -> &Claim {
        self.claim.as_ref().expect("it was queued or granted")
    }

    fn claim_mut(&mut self) -> &mut Claim {
        self.claim.as_mut().expect("it was queued or granted")
    }

    /// The part of `resource` that is held now.
    pub(super) fn holds(&self, space: usize, resource: &ResourceName) -> Option<usize> {
        let claim = self.claim.as_ref().filter(|claim| claim.space == space)?;
        let held = |part: &Part| part.resource == *resource && part.ended.is_none();
        claim.parts.iter().position(held).filter(|_| self.stage == Stage::Holding)
    }

    pub(super) fn waits_for(&self, space: usize, resource: &ResourceName) -> bool {
        self.stage == Stage::Waiting
            && self.claim().space == space
            && self.claim().parts[0].resource == *resource
    }
}

impl Reference {
    pub(super) fn new() -> Self {
        let name = NamespaceName::new("default").expect("a name");
        Self {
            time: 0,
            revision: 0,
            last_token: 0,
            level: 1,
            paused_until: 0,
            clock: 0,
            next_object: 1,
            min_ttl_ms: 5_000,
            spaces: vec![Space { name, version: 1, policy: Policy::default() }],
            requests: Vec::new(),
            delays: Vec::new(),
            out: Applied::default(),
        }
    }

    pub(super) fn apply(&mut self, entry: &Entry) -> Applied {
        self.time = entry.time.0;
        self.clock = entry.token_clock_us;
        let mut due = self.deadlines();
        due.retain(|&(deadline, _)| deadline <= self.time);
        due.sort_unstable();
        for &(_, object) in due.iter().take(1_000) {
            self.end_due(object);
        }
        self.forget();
        match &entry.body {
            Body::Announce(announce) => {
                if let Some(genesis) = &announce.genesis {
                    self.min_ttl_ms = genesis.min_ttl_ms;
                    self.last_token = self.clock + 5 * 60 * 1_000_000 - 1;
                }
            }
            Body::Resign => {}
            Body::Batch(commands) => {
                for command in commands {
                    let outcome = self.command(command);
                    self.out.outcomes.push(outcome);
                }
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Everything that has a deadline.
    pub(super) fn deadlines(&self) -> Vec<(u64, u64)> {
        let live = self.requests.iter().filter(|request| request.is_live());
        let claims = live.map(|request| (request.claim().deadline, request.claim().object));
        claims.chain(self.delays.iter().map(|delay| (delay.deadline, delay.object))).collect()
    }

    /// Forgetting is never early; the code says that it may be late by up to a tenth of a second.
    fn forget(&mut self) {
        let now = self.time;
        self.requests
            .retain(|request| request.forget_at.is_none_or(|at| at.div_ceil(100) * 100 > now));
    }

    pub(super) fn end_due(&mut self, object: u64) {
        self.revision += 1;
        if let Some(index) = self.delays.iter().position(|delay| delay.object == object) {
            let delay = self.delays.remove(index);
            return self.hand_over(delay.space, &delay.resource);
        }
        let index = self.by_object(object).expect("it is live");
        let claim = self.requests[index].claim();
        if self.requests[index].stage == Stage::Waiting {
            return self.end_wait(index, Some(WaitEnd::TimedOut));
        }
        let end = match claim.last_deadline {
            Some(last) if last == claim.deadline => End::MaxHold,
            _ => End::Expired,
        };
        self.end_all_parts(index, end, claim.deadline);
    }

    pub(super) fn by_object(&self, object: u64) -> Option<usize> {
        let is_it = |request: &Request| request.is_live() && request.claim().object == object;
        self.requests.iter().position(is_it)
    }

    pub(super) fn holder(&self, space: usize, resource: &ResourceName) -> Option<(usize, usize)> {
        let holds =
            |(index, request): (usize, &Request)| Some((index, request.holds(space, resource)?));
        self.requests.iter().enumerate().find_map(holds)
    }

    pub(super) fn delay(&self, space: usize, resource: &ResourceName) -> Option<&Delay> {
        self.delays.iter().find(|delay| delay.space == space && delay.resource == *resource)
    }

    /// Who waits for it, in order.
    pub(super) fn queue(&self, space: usize, resource: &ResourceName) -> Vec<usize> {
        let waits = |&index: &usize| self.requests[index].waits_for(space, resource);
        let mut queue: Vec<_> = (0..self.requests.len()).filter(waits).collect();
        queue.sort_by_key(|&index| self.requests[index].claim().object);
        queue
    }

    /// It has become free: the first waiter who still has the right to it is granted.
    fn hand_over(&mut self, space: usize, resource: &ResourceName) {
        let now = self.time;
        let queue = self.queue(space, resource);
        let alive = |&&index: &&usize| self.requests[index].claim().deadline > now;
        let Some(&next) = queue.iter().find(alive) else { return };
        self.grant(next, true);
        let outcome = self.answer(None, Ok(Done::Granted(self.grant_of(next))));
        let claim = ObjectId(self.requests[next].claim().object);
        self.out.settled.push(Settled { claim, outcome });
    }

    pub(super) fn grant(&mut self, index: usize, handed_over: bool) {
        let (now, revision, clock) = (self.time, self.revision, self.clock);
        self.requests[index].stage = Stage::Holding;
        self.requests[index].answered = revision;
        let claim = self.requests[index].claim_mut();
        claim.granted = now;
        claim.handed_over = handed_over;
        claim.last_deadline = claim.max_hold_ms.map(|ms| now + ms);
        claim.deadline = (now + claim.ttl_ms).min(claim.last_deadline.unwrap_or(u64::MAX));
        let waited_ms = handed_over.then(|| now - claim.created);
        for part in 0..self.requests[index].claim().parts.len() {
            self.last_token = (self.last_token + 1).max(clock);
            let token = Token(self.last_token);
            self.requests[index].claim_mut().parts[part].token = token;
            self.event(index, part, None, EventKind::Granted { token, waited_ms });
        }
    }

    pub(super) fn end_all_parts(&mut self, index: usize, end: End, at: u64) {
        for part in 0..self.requests[index].claim().parts.len() {
            if self.requests[index].claim().parts[part].ended.is_none() {
                self.end_part(index, part, end, at, None, None);
            }
        }
    }

    pub(super) fn end_part(
        &mut self,
        index: usize,
        part: usize,
        end: End,
        at: u64,
        by: Option<&Caller>,
        reason: Option<Reason>,
    ) {
        let (now, revision) = (self.time, self.revision);
        let request = &mut self.requests[index];
        let claim = request.claim.as_mut().expect("it holds");
        claim.parts[part].ended = Some(end);
        if claim.spent.is_none() {
            claim.spent = Some(end);
            request.answered = revision;
        }
        let (space, held_ms) = (claim.space, at - claim.granted);
        let (resource, token) = (claim.parts[part].resource.clone(), claim.parts[part].token);
        let all_ended = claim.parts.iter().all(|part| part.ended.is_some());
        let all_released = claim.parts.iter().all(|part| part.ended == Some(End::Released));
        let policy = &self.spaces[space].policy;
        if all_ended {
            let window_ms =
                if all_released { policy.reply_refusals_ms } else { policy.reply_endings_ms };
            request.stage = Stage::Ended;
            request.forget_at = Some(now + window_ms);
        }
        let free_at = match end {
            End::Expired | End::MaxHold | End::Forced => at + policy.lock_delay_ms,
            End::Released | End::Abandoned => now,
            other => unreachable!("{other:?} is not how a lock ends"),
        };
        self.event(index, part, by, EventKind::Ended { token, end, held_ms, reason });
        if free_at > now {
            let object = self.number();
            self.delays.push(Delay { object, space, resource, deadline: free_at });
        } else {
            self.hand_over(space, &resource);
        }
    }

    pub(super) fn end_wait(&mut self, index: usize, why: Option<WaitEnd>) {
        let waited_ms = self.time - self.requests[index].claim().created;
        let window_ms = self.spaces[self.requests[index].claim().space].policy.reply_refusals_ms;
        self.event(index, 0, None, EventKind::WaitEnded { why, waited_ms });
        let request = &mut self.requests[index];
        request.forget_at = Some(self.time + window_ms);
        request.answered = self.revision;
        request.stage = match why {
            Some(why) => Stage::WaitEnded(why),
            None => Stage::Refused(Code::Abandoned, Limit::Neither),
        };
        let refusal = match why {
            Some(why) => Refusal::new(Code::WaitTimeout).with(Detail::Wait(why)),
            None => Refusal::new(Code::Abandoned),
        };
        let claim = ObjectId(request.claim().object);
        let outcome = self.answer(None, Err(refusal));
        self.out.settled.push(Settled { claim, outcome });
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next_object += 1;
        self.next_object - 1
    }

    pub(super) fn answer(&self, first: Option<u64>, result: Result<Done, Refusal>) -> Outcome {
        let (revision, time) = (Revision(self.revision), ClusterTime(self.time));
        Outcome { revision, time, replayed: first.map(Revision), result }
    }

    pub(super) fn grant_of(&self, index: usize) -> Grant {
        let claim = self.requests[index].claim();
        Grant {
            claim: ObjectId(claim.object),
            lease_id: claim.lease_id,
            holdings: claim.parts.iter().map(|part| (part.resource.clone(), part.token)).collect(),
            fencing: claim.fencing,
            expires_in_ms: claim.deadline - self.time,
            final_deadline_in_ms: claim.last_deadline.map(|last| last - self.time),
        }
    }

    pub(super) fn shown(&self, index: usize, part: usize) -> Holder {
        let claim = self.requests[index].claim();
        Holder {
            owner: claim.owner.clone(),
            token: claim.parts[part].token,
            held_for_ms: self.time - claim.granted,
            expires_in_ms: claim.deadline.saturating_sub(self.time),
        }
    }

    pub(super) fn event(
        &mut self,
        index: usize,
        part: usize,
        by: Option<&Caller>,
        kind: EventKind,
    ) {
        let request = &self.requests[index];
        let claim = request.claim();
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Lock,
            namespace: Some(self.spaces[claim.space].name.clone()),
            resource: Some(claim.parts[part].resource.clone()),
            owner: Some(claim.owner.clone()),
            caller: by.unwrap_or(&request.scope.1).clone(),
            lease_hash: Some(claim.lease_id.public_hash()),
            kind,
        });
    }

    /// The beginning of a new log from this state as a backup.
    pub(super) fn restored(&mut self, floor: u64, pause_ms: u64) {
        let waits = |&index: &usize| self.requests[index].stage == Stage::Waiting;
        let mut waiting: Vec<_> = (0..self.requests.len()).filter(waits).collect();
        waiting.sort_by_key(|&index| self.requests[index].claim().object);
        for index in waiting {
            self.revision += 1;
            self.end_wait(index, Some(WaitEnd::Restored));
        }
        self.out = Applied::default();
        self.last_token = self.last_token.max(floor.saturating_sub(1));
        self.paused_until = self.time + pause_ms;
    }

    pub(super) fn space(&self, name: &NamespaceName) -> Option<usize> {
        self.spaces.iter().position(|space| space.name == *name)
    }

    /// Held resources and waiting requests of one namespace, or of all.
    pub(super) fn counts(&self, space: Option<usize>) -> (u64, u64) {
        let (mut leases, mut waiters) = (0, 0);
        for request in self.requests.iter().filter(|request| request.is_live()) {
            let claim = request.claim();
            if space.is_some_and(|space| space != claim.space) {
                continue;
            }
            match request.stage {
                Stage::Waiting => waiters += 1,
                _ => {
                    leases += claim.parts.iter().filter(|part| part.ended.is_none()).count() as u64
                }
            }
        }
        (leases, waiters)
    }

    pub(super) fn limit(&self, limit: &str, max: u64) -> Detail {
        let sweep_pending = self.deadlines().iter().any(|&(deadline, _)| deadline <= self.time);
        Detail::Limit { limit: limit.into(), max, sweep_pending }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_until > self.time
    }

    /// The most that any entry may forget is not modelled; no history of the tests comes near it.
    pub(super) fn assert_modelled(&self) {
        assert!(
            self.requests.len() < limits::FORGET_RECORDS_MAX,
            "the reference knows no such size"
        );
    }
}
