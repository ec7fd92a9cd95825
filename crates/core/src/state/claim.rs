//! Claims: requests that wait or hold, and the resources that they are about.

use super::{job::Job, memory::RecordId, quota};
use crate::{
    command::Family,
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Slot, Token},
    names::{Caller, Labels, NamespaceName, Owner, RegionName, ResourceName, Value},
    outcome::{End, Grant, Holder},
    policy::{Fencing, HoldPolicy, Policy},
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The families whose names are leased.
pub(super) const LEASED: [Family; 4] = [Family::Lock, Family::Election, Family::Job, Family::Hold];

/// A request that waits or holds. It has one deadline; a holding one may hold several resources.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) namespace: u32,
    pub(super) face: Face,
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
    /// Of a hold: later requests of the owner that were answered with it. They end when a resource of it does.
    pub(super) repeats: Vec<RecordId>,
}

/// What a claim is besides a lease: by its family.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Face {
    /// A lock: nothing.
    Lock,
    /// A candidate or leader.
    Candidate {
        value: Value,
        /// The revision of the grant or of the last proclaim; 0 while waiting.
        version: Revision,
    },
    /// A hold, and whether its payment has begun.
    Hold { begun: bool },
    /// An attempt to run a slot.
    Run { job: ResourceName, slot: Slot },
}

impl Face {
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Lock => Family::Lock,
            Self::Candidate { .. } => Family::Election,
            Self::Hold { .. } => Family::Hold,
            Self::Run { .. } => Family::Job,
        }
    }
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

    pub(super) fn family(&self) -> Family {
        self.face.family()
    }

    /// How the lease ends when its deadline passes.
    pub(super) fn end_at_deadline(&self) -> End {
        if self.face == (Face::Hold { begun: true }) {
            return End::Expired;
        }
        match self.held.and_then(|held| held.final_deadline) {
            Some(final_deadline) if final_deadline == self.deadline => End::MaxHold,
            _ => End::Expired,
        }
    }

    pub(super) fn final_deadline_in_ms(&self, now: ClusterTime) -> Option<u64> {
        self.held.and_then(|held| held.final_deadline).map(|at| now.until(at))
    }

    /// The grant as answered now: what has not ended of it.
    pub(super) fn grant(&self, id: ObjectId, now: ClusterTime) -> Grant {
        assert!(self.held.is_some(), "only a holder is answered with a grant");
        let live = self.holdings.iter().filter(|holding| holding.ended.is_none());
        let holdings = live.map(|h| (h.resource.clone(), h.token)).collect();
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

    /// Takes a waiting claim out of the queue.
    pub(super) fn leave(&mut self, claim: ObjectId) {
        let index = self.place(claim) as usize - 1;
        self.queue.remove(index);
        self.due -= usize::from(index < self.due);
    }

    /// The place of a waiting claim: 1 is next.
    pub(super) fn place(&self, claim: ObjectId) -> u64 {
        let index = self.queue.binary_search(&claim).expect("a waiting claim is in its queue");
        index as u64 + 1
    }
}

/// After the end of a lease: nobody is granted until the deadline, or its owner is not.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub(super) namespace: u32,
    pub(super) family: Family,
    pub(super) resource: ResourceName,
    /// `None`: a lock delay, for everybody. Else the cool-down of a hold's owner.
    pub(super) owner: Option<Owner>,
    pub(super) deadline: ClusterTime,
}

/// The names of one family in one namespace.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Never iterated: its order is not that of the log. `by_age` and the claims have all there is to list.
    pub(super) resources: HashMap<ResourceName, Resource>,
    /// Held resources by token, which is by age of the grant.
    pub(super) by_age: BTreeMap<Token, (ObjectId, u32)>,
}

/// A namespace: its rules, its resources, its counters.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) name: NamespaceName,
    pub(super) version: u64,
    pub(super) policy: Policy,
    pub(super) hold_policy: HoldPolicy,
    locks: Space,
    elections: Space,
    runs: Space,
    holds: Space,
    pub(super) jobs: BTreeMap<ResourceName, Job>,
    /// Held resources of the hold family, by name.
    pub(super) held_names: BTreeSet<ResourceName>,
    /// How many resources each owner holds. Never iterated.
    pub(super) held_by: HashMap<Owner, u64>,
    /// Cool-downs. Never iterated.
    pub(super) cooling: HashMap<(ResourceName, Owner), ObjectId>,
    /// A fence guard has reported for one of its fence keys.
    pub(super) proven: bool,
    /// The region that decides about it; `None`: wherever it is asked for.
    pub(super) home: Option<RegionName>,
    /// Trees of limits, and who waits for them.
    pub(super) quotas: quota::Space,
    pub(super) waiters: u64,
    /// Lock delays, without cool-downs.
    pub(super) delays: u64,
    pub(super) records: u64,
}

impl Namespace {
    pub(super) fn new(name: NamespaceName, policy: Policy) -> Self {
        Self {
            name,
            version: 1,
            policy,
            hold_policy: HoldPolicy::default(),
            locks: Space::default(),
            elections: Space::default(),
            runs: Space::default(),
            holds: Space::default(),
            jobs: BTreeMap::new(),
            held_names: BTreeSet::new(),
            held_by: HashMap::new(),
            cooling: HashMap::new(),
            proven: false,
            home: None,
            quotas: quota::Space::default(),
            waiters: 0,
            delays: 0,
            records: 0,
        }
    }

    /// The names of a family.
    pub(super) fn space(&self, family: Family) -> &Space {
        match family {
            Family::Lock => &self.locks,
            Family::Election => &self.elections,
            Family::Job => &self.runs,
            Family::Hold => &self.holds,
            Family::Admin | Family::Quota => unreachable!("these have no names to lease"),
        }
    }

    /// The same, to change.
    pub(super) fn space_mut(&mut self, family: Family) -> &mut Space {
        match family {
            Family::Lock => &mut self.locks,
            Family::Election => &mut self.elections,
            Family::Job => &mut self.runs,
            Family::Hold => &mut self.holds,
            Family::Admin | Family::Quota => unreachable!("these have no names to lease"),
        }
    }

    /// All families' names, with their family.
    pub(super) fn spaces(&self) -> [(Family, &Space); 4] {
        LEASED.map(|family| (family, self.space(family)))
    }

    /// Held resources of all families.
    pub(super) fn leases(&self) -> u64 {
        self.spaces().iter().map(|(_, space)| space.by_age.len() as u64).sum()
    }

    /// What counts against `maxLeases`. A resource in its lock delay keeps its share: the first of its queue
    /// gets it afterwards, and must not find the namespace full.
    pub(super) fn leases_taken(&self) -> u64 {
        self.leases() + self.delays
    }
}
