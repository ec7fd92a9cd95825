//! Claims: requests that wait or hold, and the resources that they are about.

use super::memory::RecordId;
use crate::{
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Token},
    names::{Caller, Labels, NamespaceName, Owner, ResourceName},
    outcome::{End, Grant, Holder},
    policy::{Fencing, Policy},
};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A request that waits or holds. It has one deadline; a holding one may hold several resources.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) namespace: u32,
    pub(super) record: RecordId,
    pub(super) lease_id: LeaseId,
    pub(super) owner: Owner,
    pub(super) caller: Caller,
    pub(super) labels: Labels,
    pub(super) fencing: Fencing,
    pub(super) ttl_ms: u64,
    pub(super) max_hold_ms: Option<u64>,
    /// In the order asked for. A waiting claim has exactly one.
    pub(super) holdings: Vec<Holding>,
    pub(super) created_at: ClusterTime,
    /// Of the wait, or of the lease.
    pub(super) deadline: ClusterTime,
    /// `None`: waiting.
    pub(super) held: Option<Held>,
    /// How the first of its resources ended: from then on the request is spent, and answered so.
    pub(super) spent: Option<End>,
    /// The last revision at which its owner asked for it; see `EndDeserted`.
    pub(super) asked_at: Revision,
}

/// What a holding claim has that a waiting one has not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) granted_at: ClusterTime,
    pub(super) renewed_at: ClusterTime,
    /// Granted by a hand-over, not at once.
    pub(super) waited: bool,
    pub(super) final_deadline: Option<ClusterTime>,
}

/// One resource of a claim.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) resource: ResourceName,
    /// 0 while waiting.
    pub(super) token: Token,
    /// An AcquireAll can lose or release its resources one by one.
    pub(super) ended: Option<End>,
}

impl Claim {
    /// The holding of `resource`, if the claim has one, and its place.
    pub(super) fn holding(&self, resource: &ResourceName) -> Option<(usize, &Holding)> {
        self.holdings.iter().enumerate().find(|(_, holding)| holding.resource == *resource)
    }

    pub(super) fn is_all_ended(&self) -> bool {
        self.holdings.iter().all(|holding| holding.ended.is_some())
    }

    /// How the lease ends when its deadline passes.
    pub(super) fn end_at_deadline(&self) -> End {
        match self.held.and_then(|held| held.final_deadline) {
            Some(final_deadline) if final_deadline == self.deadline => End::MaxHold,
            _ => End::Expired,
        }
    }

    pub(super) fn final_deadline_in_ms(&self, now: ClusterTime) -> Option<u64> {
        self.held.and_then(|held| held.final_deadline).map(|at| now.until(at))
    }

    /// The grant as answered now.
    pub(super) fn grant(&self, id: ObjectId, now: ClusterTime) -> Grant {
        assert!(self.held.is_some(), "only a holder is answered with a grant");
        let holdings = self.holdings.iter().map(|h| (h.resource.clone(), h.token)).collect();
        Grant {
            claim: id,
            lease_id: self.lease_id,
            holdings,
            fencing: self.fencing,
            expires_in_ms: now.until(self.deadline),
            final_deadline_in_ms: self.final_deadline_in_ms(now),
        }
    }

    /// The holder as others may see it.
    pub(super) fn holder(&self, token: Token, now: ClusterTime) -> Holder {
        let held = self.held.expect("only a holder is shown as one");
        Holder {
            owner: self.owner.clone(),
            token,
            held_for_ms: held.granted_at.until(now),
            expires_in_ms: now.until(self.deadline),
        }
    }
}

/// A resource that is held, waited for, or in its lock delay. Idle ones have no record at all.
#[derive(Clone, Debug, Default)]
pub(super) struct Resource {
    pub(super) holder: Option<ObjectId>,
    /// Waiting claims in order; claims are numbered as created, so this is sorted.
    pub(super) queue: VecDeque<ObjectId>,
    /// So many at its front are known to be due: a hand-over looks at each only once. Never stored.
    pub(super) due: usize,
    pub(super) delay: Option<ObjectId>,
}

impl Resource {
    pub(super) fn is_idle(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty() && self.delay.is_none()
    }

    pub(super) fn is_free(&self) -> bool {
        self.holder.is_none() && self.delay.is_none()
    }

    /// The place of a waiting claim: 1 is next.
    pub(super) fn place(&self, claim: ObjectId) -> u64 {
        let index = self.queue.binary_search(&claim).expect("a waiting claim is in its queue");
        index as u64 + 1
    }
}

/// After an expiry or a forced release: nobody is granted until the deadline.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub(super) namespace: u32,
    pub(super) resource: ResourceName,
    pub(super) deadline: ClusterTime,
}

/// A namespace: its rules, its resources, its counters.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) name: NamespaceName,
    pub(super) version: u64,
    pub(super) policy: Policy,
    /// Never iterated: its order is not that of the log. `by_age` and the claims have all there is to list.
    pub(super) resources: HashMap<ResourceName, Resource>,
    /// Held resources by token, which is by age of the grant.
    pub(super) by_age: BTreeMap<Token, (ObjectId, u32)>,
    pub(super) waiters: u64,
    pub(super) delays: u64,
    pub(super) records: u64,
}

impl Namespace {
    pub(super) fn new(name: NamespaceName, policy: Policy) -> Self {
        Self {
            name,
            version: 1,
            policy,
            resources: HashMap::new(),
            by_age: BTreeMap::new(),
            waiters: 0,
            delays: 0,
            records: 0,
        }
    }

    /// Held resources.
    pub(super) fn leases(&self) -> u64 {
        self.by_age.len() as u64
    }

    /// What counts against `maxLeases`. A resource in its lock delay keeps its share: the first of its queue
    /// gets it afterwards, and must not find the namespace full.
    pub(super) fn leases_taken(&self) -> u64 {
        self.leases() + self.delays
    }
}
