//! Clients that do what the SDK does: the same request id over all attempts, on any node; a renewal at a third of
//! the TTL; their own deadline by their own clock (DESIGN.md section 3); abandon when they give up, release until
//! it is answered. And what users do besides: write to what the lock protects, die, stand still, be operators.

mod answer;
mod ask;
mod campaign;
mod face;
mod hold;
mod operator;
mod owner;
mod quota;
mod replica;
mod send;
mod turn;
mod words;

use crate::{
    clock::{Clock, Real},
    event::{Attempt, ToClient},
    place::Place,
};
use quota::{Keeping, Reserving};
use sereno_core::{
    command::{Family, HoldRef, Operation},
    ids::{ClusterTime, LeaseId, Revision, Slot, Token},
    names::{Caller, NamespaceName, Owner, RequestId, ResourceName},
    policy::Fencing,
};
use sereno_node::clock::Mono;

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
    /// Which log it is about.
    log: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Job {
    Idle,
    Asking(Asking),
    Holding(Holding),
    /// Asking for quota.
    Reserving(Reserving),
    /// Having some.
    Keeping(Keeping),
    /// One after the other, the last first, each until it is answered.
    Doing {
        operations: Vec<Operation>,
        until: Mono,
    },
    Reading {
        place: Place,
        then: Then,
        until: Mono,
    },
}

/// What a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    ForceRelease,
    PutNamespace,
}

/// What a lease is for.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Locks,
    /// To lead, by this name.
    Term {
        candidate: Owner,
    },
    /// For somebody, in place of others that they have.
    Hold {
        owner: Owner,
        replaces: Vec<HoldRef>,
    },
    /// One slot of a job, whose definition has this version.
    Run {
        job: ResourceName,
        version: u64,
        slot: Slot,
    },
}

impl What {
    /// With which it came.
    fn level(&self) -> u32 {
        match self {
            Self::Locks => 1,
            Self::Term { .. } | Self::Hold { .. } | Self::Run { .. } => 3,
        }
    }

    fn family(&self) -> Family {
        match self {
            Self::Locks => Family::Lock,
            Self::Term { .. } => Family::Election,
            Self::Hold { .. } => Family::Hold,
            Self::Run { .. } => Family::Job,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Asking {
    what: What,
    namespace: NamespaceName,
    /// One, or several for an acquire-all.
    resources: Vec<ResourceName>,
    request_id: RequestId,
    ttl_ms: u64,
    wait_ms: u64,
    hold_ms: u64,
    max_hold_ms: Option<u64>,
    fencing: Option<Fencing>,
    keeps_ms: u64,
    until: Mono,
}

#[derive(Clone, Debug)]
pub(crate) struct Holding {
    what: What,
    namespace: NamespaceName,
    holdings: Vec<(ResourceName, Token)>,
    lease_id: LeaseId,
    ttl_ms: u64,
    /// After a wait it is sure only once a renewal was answered.
    is_confirmed: bool,
    deadline: Mono,
    renew_at: Mono,
    write_at: Mono,
    release_at: Mono,
}

impl Client {
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
        }
    }

    /// Whether it still listens to this call.
    pub(crate) fn listens(&self, attempt: Attempt) -> bool {
        self.life == attempt.life && self.open.as_ref().is_some_and(|it| it.attempt == attempt)
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.job, Job::Idle) && self.open.is_none()
    }
}
