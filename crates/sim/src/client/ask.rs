//! New work: which lock, or locks, on which terms; and giving up.

use super::{Asking, Job, What};
use crate::{checks::request_key, world::World};
use sereno_core::{
    command::{Abandon, Acquire, AcquireAll, Operation},
    ids::LeaseId,
    names::{Labels, NamespaceName, RequestId, ResourceName},
    policy::Fencing,
};
use sereno_node::clock::Mono;

/// A client repeats a request for no longer than this, and then abandons it.
const PATIENCE_MS: u64 = 55_000;
/// How long it tries to release or abandon.
pub(super) const ENDING_MS: u64 = 40_000;

impl World {
    pub(super) fn client_begins(&mut self, client: usize, now: Mono) {
        // What is drawn for it is drawn in its own histories alone.
        if self.config.is_of_quotas() && self.random.in_1000(self.config.quotas) {
            return self.quota_begins(client, now);
        }
        if self.random.in_1000(130) {
            return self.operator_begins(client, now);
        }
        if self.random.in_1000(self.config.faces) {
            return self.face_begins(client, now);
        }
        let namespace = self.some_namespace();
        let waits = self.random.in_1000(600);
        let is_patient = self.random.in_1000(600);
        let until = if is_patient { PATIENCE_MS } else { self.random.between(100, 12_000) };
        let takes_all = self.random.in_1000(self.config.alls);
        let resources = if takes_all { self.some_resources() } else { vec![self.some_resource()] };
        let waits = waits && resources.len() == 1;
        let longest_ms = if self.random.in_1000(250) { 45_000 } else { 20_000 };
        let asking = Asking {
            what: What::Locks,
            namespace,
            resources,
            request_id: self.request_id(),
            ttl_ms: self.random.between(1_500, 12_000),
            wait_ms: if waits { self.random.between(200, longest_ms) } else { 0 },
            hold_ms: if waits { self.random.between(0, 6_000) } else { 0 },
            max_hold_ms: self.some_max_hold(),
            fencing: self.some_fencing(),
            keeps_ms: self.random.between(20, self.config.keeps_ms),
            until: now.plus_ms(until),
        };
        self.clients[client].job = Job::Asking(asking.clone());
        self.client_asks(client, &asking);
    }

    pub(super) fn some_namespace(&mut self) -> NamespaceName {
        let other = usize::from(self.random.in_1000(200));
        self.namespaces[other].clone()
    }

    pub(super) fn some_resource(&mut self) -> ResourceName {
        let index = self.random.below(self.config.resources);
        self.resources[index].clone()
    }

    /// Several, in the one order that all clients take them in; or in any.
    pub(super) fn some_resources(&mut self) -> Vec<ResourceName> {
        let count = self.random.between(1, self.resources.len() as u64) as usize;
        let mut some: Vec<_> = self.resources[..count].to_vec();
        if self.random.in_1000(300) {
            some.reverse();
        }
        some
    }

    pub(super) fn some_max_hold(&mut self) -> Option<u64> {
        self.random.in_1000(100).then(|| self.random.between(1_000, 9_000))
    }

    pub(super) fn some_fencing(&mut self) -> Option<Fencing> {
        match self.random.between(0, 9) {
            0 => Some(Fencing::BestEffort),
            1..=3 => Some(Fencing::Enforced),
            _ => None,
        }
    }

    pub(crate) fn request_id(&mut self) -> RequestId {
        self.requests += 1;
        RequestId::new(&format!("request-{}", self.requests)).expect("a valid id")
    }

    pub(super) fn client_asks(&mut self, client: usize, asking: &Asking) {
        let operation = match &asking.what {
            What::Locks => self.acquire(client, asking),
            What::Term { candidate } => self.campaign(asking, candidate),
            What::Hold { owner, replaces } => self.take_hold(asking, owner, replaces),
            What::Run { version, slot, .. } => self.claim_run(client, asking, *version, *slot),
        };
        // Some do not wait for as long as they asked to be held.
        let longest = asking.hold_ms + self.random.between(800, 6_000);
        let is_hasty = self.random.in_1000(150);
        let timeout_ms = if is_hasty { self.random.between(5, longest) } else { longest };
        self.send(client, operation, timeout_ms, asking.hold_ms);
    }

    fn acquire(&mut self, client: usize, asking: &Asking) -> Operation {
        let Asking { namespace, resources, request_id, ttl_ms, .. } = asking.clone();
        let (max_hold_ms, fencing) = (asking.max_hold_ms, asking.fencing);
        let owner = self.clients[client].owner.clone();
        // By the door, anew for each call.
        let lease_id = LeaseId(self.random.id());
        let (lease_ttl_ms, labels) = (Some(ttl_ms), Labels::default());
        let [resource] = &resources[..] else {
            return Operation::AcquireAll(AcquireAll {
                namespace,
                resources,
                request_id,
                owner,
                lease_id,
                lease_ttl_ms,
                max_hold_ms,
                fencing,
                labels,
            });
        };
        Operation::Acquire(Acquire {
            namespace,
            resource: resource.clone(),
            request_id,
            owner,
            lease_id,
            lease_ttl_ms,
            wait_timeout_ms: asking.wait_ms,
            max_hold_ms,
            fencing,
            labels,
        })
    }

    pub(super) fn client_abandons(&mut self, client: usize, asking: Asking, now: Mono) {
        let family = asking.what.family();
        let Asking { namespace, request_id, .. } = asking;
        self.say(|| format!("c{client} abandons {request_id}"));
        let key = request_key(family, &namespace, &request_id);
        self.truth.checks.told.abandoned.insert(key);
        let abandon = Abandon { namespace, family, request_id };
        let operations = vec![Operation::Abandon(abandon)];
        self.clients[client].job = Job::Doing { operations, until: now.plus_ms(ENDING_MS) };
    }
}
