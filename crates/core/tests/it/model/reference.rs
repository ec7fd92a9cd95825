//! The rules of DESIGN.md once more, as plainly as they can be said: vectors, scanned from end to end, nothing kept
//! that can be found by looking. What a request is stands in one place, live or remembered. Slow, and meant to be.

use super::ledger::Job;
use sereno_core::{
    Applied,
    command::{Family, Operation},
    entry::{Body, Entry},
    ids::{LeaseId, Token},
    limits,
    names::{Caller, NamespaceName, Owner, RequestId, ResourceName, Value},
    outcome::{Code, Detail, Done, End, WaitEnd},
    policy::{Fencing, HoldPolicy, Policy},
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
    pub(super) jobs: Vec<Job>,
    pub(super) out: Applied,
}

pub(super) struct Space {
    pub(super) name: NamespaceName,
    pub(super) version: u64,
    pub(super) policy: Policy,
    pub(super) holds: HoldPolicy,
}

/// Where a name is looked for: families do not see each other's names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) space: usize,
    pub(super) family: Family,
}

/// A resource that nobody is granted until the deadline, or its owner is not.
pub(super) struct Delay {
    pub(super) object: u64,
    pub(super) at: At,
    pub(super) resource: ResourceName,
    /// `None`: everybody has to wait.
    pub(super) owner: Option<Owner>,
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

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Stage {
    Waiting,
    Holding,
    Ended,
    Refused(Code, Limit),
    WaitEnded(WaitEnd),
    /// A write, with its first answer.
    Done(Done),
    /// Answered with the hold that its owner had already: which, and its first token then.
    Yours {
        object: u64,
        token: Token,
    },
    /// The same, once one of the resources has ended.
    YoursEnded(End, Token),
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
    pub(super) at: At,
    pub(super) face: Face,
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

/// What a claim is besides a lease.
#[derive(Clone)]
pub(super) enum Face {
    Lock,
    Candidate {
        value: Value,
        version: u64,
    },
    Hold {
        begun: bool,
    },
    /// Of which job, and which of its slots.
    Run {
        job: usize,
        slot: u64,
    },
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

    pub(super) fn claim_mut(&mut self) -> &mut Claim {
        self.claim.as_mut().expect("it was queued or granted")
    }

    /// The part of `resource` that is held now.
    pub(super) fn holds(&self, at: At, resource: &ResourceName) -> Option<usize> {
        let claim = self.claim.as_ref().filter(|claim| claim.at == at)?;
        let held = |part: &Part| part.resource == *resource && part.ended.is_none();
        claim.parts.iter().position(held).filter(|_| self.stage == Stage::Holding)
    }

    pub(super) fn waits_for(&self, at: At, resource: &ResourceName) -> bool {
        self.stage == Stage::Waiting
            && self.claim().at == at
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
            spaces: vec![Space {
                name,
                version: 1,
                policy: Policy::default(),
                holds: HoldPolicy::default(),
            }],
            requests: Vec::new(),
            delays: Vec::new(),
            jobs: Vec::new(),
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

    pub(super) fn by_object(&self, object: u64) -> Option<usize> {
        let is_it = |request: &Request| request.is_live() && request.claim().object == object;
        self.requests.iter().position(is_it)
    }

    pub(super) fn holder(&self, at: At, resource: &ResourceName) -> Option<(usize, usize)> {
        let holds =
            |(index, request): (usize, &Request)| Some((index, request.holds(at, resource)?));
        self.requests.iter().enumerate().find_map(holds)
    }

    /// The lock delay of a resource.
    pub(super) fn delay(&self, at: At, resource: &ResourceName) -> Option<&Delay> {
        let is_it =
            |delay: &&Delay| delay.at == at && delay.resource == *resource && delay.owner.is_none();
        self.delays.iter().find(is_it)
    }

    /// Who waits for it, in order.
    pub(super) fn queue(&self, at: At, resource: &ResourceName) -> Vec<usize> {
        let waits = |&index: &usize| self.requests[index].waits_for(at, resource);
        let mut queue: Vec<_> = (0..self.requests.len()).filter(waits).collect();
        queue.sort_by_key(|&index| self.requests[index].claim().object);
        queue
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next_object += 1;
        self.next_object - 1
    }

    pub(super) fn space(&self, name: &NamespaceName) -> Option<usize> {
        self.spaces.iter().position(|space| space.name == *name)
    }

    /// Held resources and waiting requests of one namespace, or of all.
    pub(super) fn counts(&self, space: Option<usize>) -> (u64, u64) {
        let (mut leases, mut waiters) = (0, 0);
        for request in self.requests.iter().filter(|request| request.is_live()) {
            let claim = request.claim();
            if space.is_some_and(|space| space != claim.at.space) {
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
