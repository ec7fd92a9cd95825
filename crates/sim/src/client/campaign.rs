//! Candidates and leaders.

use super::{Asking, Holding, Job, What};
use crate::world::World;
use sereno_core::{
    command::{
        Campaign, ElectionCommand, Family, Handoff, LeaseRef, Operation, Proclaim, Release, Renew,
    },
    ids::LeaseId,
    names::{Labels, Owner, Value},
};
use sereno_node::clock::Mono;

impl World {
    pub(super) fn campaign_begins(&mut self, client: usize, now: Mono) {
        // Now and then another process has the same name.
        let candidate = match self.random.in_1000(250) {
            true => self.some_owner(),
            false => self.clients[client].owner.clone(),
        };
        let waits = self.random.in_1000(700);
        let asking = Asking {
            what: What::Term { candidate },
            namespace: self.some_namespace(),
            resources: vec![self.some_resource()],
            request_id: self.request_id(),
            ttl_ms: self.random.between(1_500, 12_000),
            wait_ms: if waits { self.random.between(200, 20_000) } else { 0 },
            hold_ms: if waits { self.random.between(0, 6_000) } else { 0 },
            max_hold_ms: self.some_max_hold(),
            fencing: self.some_fencing(),
            keeps_ms: self.random.between(20, self.config.keeps_ms),
            until: now.plus_ms(self.random.between(100, 30_000)),
        };
        self.clients[client].job = Job::Asking(asking.clone());
        self.client_asks(client, &asking);
    }

    fn some_owner(&mut self) -> Owner {
        let other = self.random.below(self.clients.len());
        self.clients[other].owner.clone()
    }

    /// Mostly one who waits, as far as the leader has seen.
    fn some_heir(&mut self, holding: &Holding) -> Owner {
        let (namespace, election) = (&holding.namespace, &holding.holdings[0].0);
        let view = self.truth.state.leased(Family::Election, namespace, election);
        let queue = view.map_or(Vec::new(), |view| view.queue);
        match self.random.in_1000(800) && !queue.is_empty() {
            true => queue[self.random.below(queue.len())].owner.clone(),
            false => self.some_owner(),
        }
    }

    pub(super) fn campaign(&mut self, asking: &Asking, candidate: &Owner) -> Operation {
        let lease_id = LeaseId(self.random.id());
        Operation::Election(ElectionCommand::Campaign(Campaign {
            namespace: asking.namespace.clone(),
            election: asking.resources[0].clone(),
            candidate: candidate.clone(),
            value: Value::new(candidate.as_str()).expect("a valid value"),
            request_id: asking.request_id.clone(),
            lease_id,
            lease_ttl_ms: Some(asking.ttl_ms),
            wait_timeout_ms: asking.wait_ms,
            max_hold_ms: asking.max_hold_ms,
            fencing: asking.fencing,
            labels: Labels::default(),
        }))
    }

    /// A renewal, or something to say first.
    pub(super) fn renew_term(&mut self, holding: &Holding, ttl_ms: Option<u64>) -> Operation {
        let namespace = holding.namespace.clone();
        let lease = term(holding);
        if self.random.in_1000(250) {
            let request_id = self.request_id();
            let value = Value::new(request_id.as_str()).expect("a valid value");
            let proclaim = Proclaim { namespace, lease, value, version: None, request_id };
            return Operation::Election(ElectionCommand::Proclaim(proclaim));
        }
        Operation::Election(ElectionCommand::Renew(Renew {
            namespace,
            lease,
            lease_ttl_ms: ttl_ms,
        }))
    }

    /// It resigns; some hand over to another candidate before, and resign all the same.
    pub(super) fn end_term(&mut self, holding: &Holding) -> Vec<Operation> {
        let (namespace, lease) = (holding.namespace.clone(), term(holding));
        let resign = Release { namespace: namespace.clone(), lease: lease.clone() };
        let mut operations = vec![Operation::Election(ElectionCommand::Resign(resign))];
        if self.random.in_1000(500) {
            let (to, request_id) = (self.some_heir(holding), self.request_id());
            let handoff = Handoff { namespace, lease, to, request_id };
            operations.push(Operation::Election(ElectionCommand::Handoff(handoff)));
        }
        operations
    }
}

fn term(holding: &Holding) -> LeaseRef {
    LeaseRef { resource: holding.holdings[0].0.clone(), lease_id: holding.lease_id }
}
