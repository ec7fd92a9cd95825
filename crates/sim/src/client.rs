//! Clients that do what the SDK does: the same request id over all attempts, on any node; a renewal at a third of
//! the TTL; their own deadline by their own clock (DESIGN.md section 3); abandon when they give up, release until
//! it is answered. And what users do besides: die, stand still, be operators.

use crate::{
    clock::{Clock, MS, Real},
    event::{Arrival, Attempt, Call, Event, Seen, ToClient},
    world::World,
};
use sereno_core::{
    command::{Abandon, Acquire, Family, ForceRelease, LeaseRef, Operation, Release, Renew},
    ids::{ClusterTime, LeaseId, Revision, Token},
    names::{Caller, Labels, Owner, Reason, RequestId, ResourceName},
    outcome::{Code, Done, Outcome},
};
use sereno_node::{clock::Mono, handle::Reply};

/// A client repeats a request for no longer than this, and then abandons it.
const PATIENCE_MS: u64 = 55_000;
/// `bornAt` is sent back only while it is this fresh.
const BORN_AT_FRESH_MS: u64 = 10_000;
/// How long it tries to release or abandon.
const ENDING_MS: u64 = 40_000;

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) caller: Caller,
    owner: Owner,
    pub(crate) clock: Clock,
    /// After a death it is another one.
    pub(crate) life: u64,
    pub(crate) is_paused: bool,
    pub(crate) backlog: Vec<ToClient>,
    pub(crate) job: Job,
    attempts: u64,
    open: Option<Open>,
    /// Nothing is tried before this.
    next_at: Mono,
    wake_at: Option<Real>,
    /// The last cluster time it was told, and when.
    told: Option<(ClusterTime, Mono)>,
    /// No new work.
    pub(crate) is_closing: bool,
    /// Locks it has held, for the report.
    pub(crate) held: u64,
}

/// A call under way.
#[derive(Debug)]
struct Open {
    attempt: Attempt,
    node: usize,
    sent_at: Mono,
    ends_at: Mono,
    /// The newest revision that anybody had been told when a read was sent.
    floor: Revision,
}

#[derive(Clone, Debug)]
pub(crate) enum Job {
    Idle,
    Asking(Asking),
    Holding(Holding),
    /// What it does until it is answered.
    Ending {
        operation: Operation,
        until: Mono,
    },
    Reading {
        resource: ResourceName,
        then_force: bool,
        until: Mono,
    },
    Forcing {
        operation: Operation,
        until: Mono,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Asking {
    resource: ResourceName,
    request_id: RequestId,
    ttl_ms: u64,
    wait_ms: u64,
    hold_ms: u64,
    keeps_ms: u64,
    until: Mono,
}

#[derive(Clone, Debug)]
pub(crate) struct Holding {
    resource: ResourceName,
    lease_id: LeaseId,
    token: Token,
    ttl_ms: u64,
    /// After a wait it is sure only once a renewal was answered.
    is_confirmed: bool,
    deadline: Mono,
    renew_at: Mono,
    release_at: Mono,
}

impl Client {
    /// Whether it still listens to this call.
    pub(crate) fn listens(&self, attempt: Attempt) -> bool {
        self.life == attempt.life && self.open.as_ref().is_some_and(|it| it.attempt == attempt)
    }

    pub(crate) fn new(number: usize, clock: Clock) -> Self {
        Self {
            caller: Caller::new("").expect("anonymous is a caller"),
            owner: Owner::new(&format!("client-{number}")).expect("a valid owner"),
            clock,
            life: 0,
            is_paused: false,
            backlog: Vec::new(),
            job: Job::Idle,
            attempts: 0,
            open: None,
            next_at: Mono(0),
            wake_at: None,
            told: None,
            is_closing: false,
            held: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.job, Job::Idle) && self.open.is_none()
    }
}

/// The client's own deadline: from the moment it sent the call, less 1 % and 20 ms.
fn own_deadline(sent_at: Mono, expires_in_ms: u64) -> Mono {
    let kept_ns = expires_in_ms * 990_000;
    Mono((sent_at.0 + kept_ns).saturating_sub(20 * MS))
}

impl World {
    fn mono_of(&self, client: usize) -> Mono {
        self.clients[client].clock.mono(self.agenda.now)
    }

    /// Something has reached a client.
    pub(crate) fn client(&mut self, client: usize, life: u64, what: ToClient) {
        let it = &mut self.clients[client];
        if it.life != life {
            return;
        }
        if let ToClient::Wake = what {
            if it.wake_at != Some(self.agenda.now) {
                return;
            }
            it.wake_at = None;
        }
        if it.is_paused {
            it.backlog.push(what);
            return;
        }
        self.client_takes(client, what);
        self.client_turn(client);
    }

    pub(crate) fn client_resume(&mut self, client: usize) {
        if !std::mem::take(&mut self.clients[client].is_paused) {
            return;
        }
        // Its own clock comes first: what it believes must not depend on old answers.
        self.client_turn(client);
        for what in std::mem::take(&mut self.clients[client].backlog) {
            self.client_takes(client, what);
        }
        self.client_turn(client);
    }

    /// It dies, and somebody else comes who knows nothing.
    pub(crate) fn client_dies(&mut self, client: usize) {
        self.say(|| format!("c{client} dies"));
        let closes = self.random.in_1000(500);
        if let Some(open) = self.clients[client].open.take()
            && closes
        {
            self.hang_up_call(client, &open);
        }
        let it = &mut self.clients[client];
        it.life += 1;
        (it.job, it.told, it.wake_at) = (Job::Idle, None, None);
        (it.is_paused, it.backlog) = (false, Vec::new());
        self.client_turn(client);
    }

    fn hang_up_call(&mut self, client: usize, open: &Open) {
        if self.net.client_cut.contains(&(client, open.node)) || self.random.in_1000(50) {
            return;
        }
        let (to, delay) = (self.to(open.node), self.random.skewed(MS / 5, 30 * MS));
        self.agenda.after(delay, Event::Arrive(to, Arrival::Cancelled(open.attempt)));
    }

    /// Does what is due, and plans when to look again.
    pub(crate) fn client_turn(&mut self, client: usize) {
        let now = self.mono_of(client);
        if let Some(open) = &self.clients[client].open
            && open.ends_at <= now
        {
            self.attempt_over(client, true);
        }
        self.client_deadlines(client, now);
        if self.clients[client].open.is_none() && self.clients[client].next_at <= now {
            self.client_tries(client, now);
        }
        let it = &mut self.clients[client];
        let open_at = it.open.as_ref().map(|open| open.ends_at);
        let job_at = match &it.job {
            Job::Holding(holding) => Some(holding.deadline.min(holding.release_at)),
            _ => None,
        };
        let next_at = match (&it.open, &it.job) {
            (Some(_), _) => None,
            (None, Job::Holding(holding)) => Some(it.next_at.max(holding.renew_at)),
            (None, Job::Idle) if it.is_closing => None,
            (None, _) => Some(it.next_at),
        };
        let Some(at) = [open_at, job_at, next_at].into_iter().flatten().min() else { return };
        // Never at once again: a turn leaves nothing undone.
        let at = it.clock.real(at).max(self.agenda.now + MS / 10);
        if it.wake_at.is_none_or(|planned| at < planned) {
            it.wake_at = Some(at);
            let event = Event::Client(client, it.life, ToClient::Wake);
            self.agenda.at(at, event);
        }
    }

    /// The attempt comes to nothing: another may follow.
    fn attempt_over(&mut self, client: usize, hangs_up: bool) {
        let Some(open) = self.clients[client].open.take() else { return };
        if hangs_up {
            self.hang_up_call(client, &open);
        }
        let pause_ms = self.random.between(20, 400);
        self.clients[client].next_at = self.mono_of(client).plus_ms(pause_ms);
    }

    fn client_deadlines(&mut self, client: usize, now: Mono) {
        let Job::Holding(holding) = self.clients[client].job.clone() else { return };
        if holding.deadline > now && holding.release_at > now {
            return;
        }
        if holding.deadline <= now {
            self.mark("a client finds its lease lost by its own clock");
        }
        let how = if holding.deadline <= now { "has lost" } else { "releases" };
        self.say(|| format!("c{client} {how} {} {}", holding.resource, holding.token));
        self.client_releases(client, &holding, now);
    }

    fn client_releases(&mut self, client: usize, holding: &Holding, now: Mono) {
        // A renewal under way is of no interest any more.
        if self.clients[client].open.is_some() {
            self.attempt_over(client, true);
        }
        let leases = &mut self.truth.checks.leases;
        leases.beliefs.remove(&holding.token);
        leases.released.insert(holding.lease_id.public_hash());
        let lease = LeaseRef { resource: holding.resource.clone(), lease_id: holding.lease_id };
        let operation = Operation::Release(Release { namespace: self.namespace.clone(), lease });
        let it = &mut self.clients[client];
        it.job = Job::Ending { operation, until: now.plus_ms(ENDING_MS) };
        it.next_at = now;
    }

    fn client_tries(&mut self, client: usize, now: Mono) {
        match self.clients[client].job.clone() {
            Job::Idle if self.clients[client].is_closing => {}
            Job::Idle => self.client_begins(client, now),
            Job::Asking(asking) if asking.until <= now => {
                self.say(|| format!("c{client} abandons {}", asking.request_id));
                let leases = &mut self.truth.checks.leases;
                leases.abandoned.insert(asking.request_id.as_str().to_owned());
                let (namespace, request_id) = (self.namespace.clone(), asking.request_id);
                let abandon = Abandon { namespace, family: Family::Lock, request_id };
                let until = now.plus_ms(ENDING_MS);
                let operation = Operation::Abandon(abandon);
                self.clients[client].job = Job::Ending { operation, until };
                self.client_tries(client, now);
            }
            Job::Asking(asking) => {
                let operation = Operation::Acquire(self.acquire(client, &asking));
                // Some do not wait for as long as they asked to be held.
                let longest = asking.hold_ms + self.random.between(800, 6_000);
                let is_hasty = self.random.in_1000(150);
                let timeout_ms = if is_hasty { self.random.between(5, longest) } else { longest };
                self.send(client, operation, timeout_ms, asking.hold_ms);
            }
            Job::Holding(holding) if holding.renew_at <= now => {
                let lease =
                    LeaseRef { resource: holding.resource.clone(), lease_id: holding.lease_id };
                let namespace = self.namespace.clone();
                let renew = Renew { namespace, lease, lease_ttl_ms: None };
                let timeout_ms = (holding.ttl_ms / 6).max(300);
                self.send(client, Operation::Renew(renew), timeout_ms, 0);
            }
            Job::Holding(_) => {}
            Job::Ending { until, .. } | Job::Forcing { until, .. } | Job::Reading { until, .. }
                if until <= now =>
            {
                self.client_rests(client);
            }
            Job::Ending { operation, .. } | Job::Forcing { operation, .. } => {
                self.send(client, operation, 1_500, 0);
            }
            Job::Reading { resource, .. } => self.send_read(client, resource),
        }
    }

    fn acquire(&mut self, client: usize, asking: &Asking) -> Acquire {
        Acquire {
            namespace: self.namespace.clone(),
            resource: asking.resource.clone(),
            request_id: asking.request_id.clone(),
            owner: self.clients[client].owner.clone(),
            // By the door, anew for each call.
            lease_id: LeaseId(self.random.id()),
            lease_ttl_ms: Some(asking.ttl_ms),
            wait_timeout_ms: asking.wait_ms,
            max_hold_ms: None,
            fencing: None,
            labels: Labels::default(),
        }
    }

    fn client_rests(&mut self, client: usize) {
        let pause_ms = self.random.between(1, self.config.rests_ms);
        let now = self.mono_of(client);
        let it = &mut self.clients[client];
        it.job = Job::Idle;
        it.next_at = now.plus_ms(pause_ms);
    }

    fn client_begins(&mut self, client: usize, now: Mono) {
        let resource = self.random.below(self.config.resources);
        let resource = self.resources[resource].clone();
        if self.random.in_1000(120) {
            let then_force = self.random.in_1000(300);
            let job = Job::Reading { resource, then_force, until: now.plus_ms(8_000) };
            self.clients[client].job = job;
            return self.client_tries(client, now);
        }
        let waits = self.random.in_1000(600);
        let is_patient = self.random.in_1000(600);
        let until = if is_patient { PATIENCE_MS } else { self.random.between(100, 12_000) };
        let asking = Asking {
            resource,
            request_id: self.request_id(),
            ttl_ms: self.random.between(1_500, 12_000),
            wait_ms: if waits { self.random.between(200, 20_000) } else { 0 },
            hold_ms: if waits { self.random.between(0, 6_000) } else { 0 },
            keeps_ms: self.random.between(20, self.config.keeps_ms),
            until: now.plus_ms(until),
        };
        self.clients[client].job = Job::Asking(asking);
        self.client_tries(client, now);
    }

    fn request_id(&mut self) -> RequestId {
        self.requests += 1;
        RequestId::new(&format!("request-{}", self.requests)).expect("a valid id")
    }

    fn open(&mut self, client: usize, timeout_ms: u64) -> (Attempt, usize, Option<u64>) {
        let node = self.random.below(self.hosts.len());
        let now = self.mono_of(client);
        let floor = self.told_floor;
        let it = &mut self.clients[client];
        it.attempts += 1;
        let attempt = Attempt { client, life: it.life, number: it.attempts };
        let ends_at = now.plus_ms(timeout_ms);
        it.open = Some(Open { attempt, node, sent_at: now, ends_at, floor });
        if self.net.client_cut.contains(&(client, node)) {
            return (attempt, node, None);
        }
        if self.hosts[node].process.is_none() {
            let event = Event::Client(client, attempt.life, ToClient::Broken(attempt));
            self.agenda.after(MS, event);
            return (attempt, node, None);
        }
        let delay = self.random.skewed(MS / 5, 30 * MS);
        (attempt, node, Some(delay))
    }

    fn send(&mut self, client: usize, operation: Operation, timeout_ms: u64, hold_ms: u64) {
        let (attempt, node, delay) = self.open(client, timeout_ms);
        self.say(|| format!("c{client} -> n{node} {}", brief(&operation)));
        let now = self.mono_of(client);
        let told = self.clients[client].told;
        let is_fresh = |at: Mono| now.since_ns(at) < BORN_AT_FRESH_MS * MS;
        let born_at = told.filter(|&(_, at)| is_fresh(at)).map(|(time, _)| time);
        if let Some(delay) = delay {
            let call = Call { attempt, operation, born_at, timeout_ms, hold_ms };
            let to = self.to(node);
            // Now and then a network delivers a copy much later.
            if self.random.in_1000(30)
                && let Operation::Acquire(_) | Operation::Release(_) = call.operation
            {
                let operation = call.operation.clone();
                if let Operation::Acquire(acquire) = &operation {
                    let hash = acquire.lease_id.public_hash();
                    self.truth.checks.leases.copied.insert(hash);
                }
                let copy = Call { attempt, operation, born_at, timeout_ms, hold_ms };
                let late = self.random.between(MS, 60_000 * MS);
                self.agenda.after(late, Event::LateCopy(Box::new(copy)));
            }
            self.agenda.after(delay, Event::Arrive(to, Arrival::Call(Box::new(call))));
        }
    }

    fn send_read(&mut self, client: usize, resource: ResourceName) {
        let timeout_ms = 2_500;
        let (attempt, node, delay) = self.open(client, timeout_ms);
        if let Some(delay) = delay {
            let to = self.to(node);
            let read = Arrival::Read { attempt, timeout_ms, resource };
            self.agenda.after(delay, Event::Arrive(to, read));
        }
    }

    fn client_takes(&mut self, client: usize, what: ToClient) {
        let open = self.clients[client].open.as_ref();
        let is_open = |attempt: Attempt| open.is_some_and(|open| open.attempt == attempt);
        match what {
            ToClient::Wake => {}
            ToClient::Broken(attempt) if is_open(attempt) => self.attempt_over(client, false),
            ToClient::Reply(attempt, reply) => {
                let is_open = is_open(attempt);
                if let Reply::Decided(outcome) = &reply {
                    self.told_floor = self.told_floor.max(outcome.revision);
                }
                match reply {
                    Reply::Decided(outcome) if is_open => self.client_told(client, &outcome),
                    Reply::Undecided(undecided) if is_open => {
                        self.say(|| format!("c{client} <- {undecided:?}"));
                        self.attempt_over(client, false);
                    }
                    _ => {}
                }
            }
            ToClient::Read(attempt, seen) if is_open(attempt) => match seen {
                Ok(seen) => self.client_saw(client, seen),
                Err(_) => self.attempt_over(client, false),
            },
            ToClient::Broken(_) | ToClient::Read(..) => {}
        }
    }

    fn client_saw(&mut self, client: usize, seen: Seen) {
        let Some(open) = self.clients[client].open.take() else { return };
        assert!(
            seen.revision >= open.floor,
            "S5: a consistent read is not older than what was answered before it: {} below {}",
            seen.revision,
            open.floor
        );
        self.told_floor = self.told_floor.max(seen.revision);
        self.reads += 1;
        let Job::Reading { resource, then_force, .. } = self.clients[client].job.clone() else {
            return;
        };
        match seen.token.filter(|_| then_force) {
            None => self.client_rests(client),
            Some(token) => {
                self.truth.checks.leases.forced.insert(token);
                let reason = Reason::new("an operator wants it").expect("a valid reason");
                let request_id = self.request_id();
                let namespace = self.namespace.clone();
                let force = ForceRelease { namespace, resource, token, request_id, reason };
                let now = self.mono_of(client);
                let operation = Operation::ForceRelease(force);
                self.clients[client].job = Job::Forcing { operation, until: now.plus_ms(9_000) };
                self.clients[client].next_at = now;
            }
        }
    }

    fn client_told(&mut self, client: usize, outcome: &Outcome) {
        let Some(open) = self.clients[client].open.take() else { return };
        let now = self.mono_of(client);
        self.answers += 1;
        self.trace.mix(&[3, client as u64, outcome.revision.0]);
        self.say(|| format!("c{client} <- {}", brief_outcome(outcome)));
        let it = &mut self.clients[client];
        it.told = Some((outcome.time, now));
        it.next_at = now;
        if let Err(refusal) = &outcome.result
            && refusal.code == Code::Unavailable
        {
            // Not applied, not remembered: the same again, born anew.
            it.told = None;
            it.next_at = now.plus_ms(200);
            return;
        }
        match (it.job.clone(), &outcome.result) {
            (Job::Asking(asking), Ok(Done::Granted(grant))) => {
                let sent_at = open.sent_at;
                let holding = Holding {
                    resource: asking.resource,
                    lease_id: grant.lease_id,
                    token: grant.holdings[0].1,
                    ttl_ms: asking.ttl_ms,
                    is_confirmed: asking.wait_ms == 0,
                    deadline: own_deadline(sent_at, grant.expires_in_ms),
                    renew_at: if asking.wait_ms == 0 {
                        Mono(sent_at.0 + asking.ttl_ms * MS / 3)
                    } else {
                        now
                    },
                    release_at: now.plus_ms(asking.keeps_ms),
                };
                self.client_holds(client, holding);
            }
            (Job::Asking(_), Ok(Done::Waiting(_))) => {
                // Whoever does not have its call held asks again after a while.
                let pause_ms = self.random.between(20, 1_500);
                self.clients[client].next_at = now.plus_ms(pause_ms);
            }
            (Job::Holding(holding), Ok(Done::Renewed(renewed))) => {
                assert!(renewed.token == holding.token, "S4: a renewal is of the lease named");
                let deadline = own_deadline(open.sent_at, renewed.expires_in_ms);
                let holding = Holding {
                    is_confirmed: true,
                    deadline: deadline.max(holding.deadline),
                    renew_at: Mono(open.sent_at.0 + holding.ttl_ms * MS / 3),
                    ..holding
                };
                self.client_holds(client, holding);
            }
            (Job::Holding(holding), _) => {
                self.say(|| format!("c{client} is told that {} is over", holding.token));
                self.client_releases(client, &holding, now);
            }
            // Decided, one way or the other.
            _ => self.client_rests(client),
        }
    }

    /// It holds, as far as it knows: that must be true.
    fn client_holds(&mut self, client: usize, holding: Holding) {
        let it = &mut self.clients[client];
        let (until, token) = (it.clock.real(holding.deadline), holding.token);
        it.job = Job::Holding(holding.clone());
        if !holding.is_confirmed || until <= self.agenda.now {
            return;
        }
        it.held += 1;
        let leases = &mut self.truth.checks.leases;
        let holder = leases.holders.get(&holding.resource);
        let is_it = holder.is_some_and(|holder| holder.token == token);
        assert!(
            is_it || leases.forced.contains(&token),
            "S8: {}: who is told that it holds does so: c{client} with {token}, held by {holder:?}",
            holding.resource
        );
        let belief = crate::checks::Belief { client, until };
        leases.beliefs.insert(token, belief);
    }
}

fn brief(operation: &Operation) -> String {
    match operation {
        Operation::Acquire(op) => {
            format!("acquire {} {} wait {}", op.resource, op.request_id, op.wait_timeout_ms)
        }
        Operation::Renew(op) => format!("renew {}", op.lease.resource),
        Operation::Release(op) => format!("release {}", op.lease.resource),
        Operation::Abandon(op) => format!("abandon {}", op.request_id),
        Operation::ForceRelease(op) => format!("force-release {} {}", op.resource, op.token),
        other => format!("{other:?}"),
    }
}

fn brief_outcome(outcome: &Outcome) -> String {
    let result = match &outcome.result {
        Ok(Done::Granted(grant)) => {
            format!("granted {} for {} ms", grant.holdings[0].1, grant.expires_in_ms)
        }
        Ok(done) => format!("{done:?}"),
        Err(refusal) => format!("{:?}", refusal.code),
    };
    format!("revision {} time {}: {result}", outcome.revision, outcome.time)
}
