//! What must hold of every state, checked as a whole: after loading a snapshot, and by the tests after every
//! step. The cheap parts are asserted where the state changes.

use super::{State, claim::Claim, memory::Fate};
use crate::{
    ids::{ObjectId, Token},
    limits,
};

impl State {
    /// Panics with a message when an invariant is broken. Costs time in proportion to the state.
    pub fn check_invariants(&self) {
        for (&id, claim) in &self.claims {
            self.check_claim(id, claim);
        }
        for (&id, delay) in &self.delays {
            let resource = &self.namespaces[delay.namespace as usize].resources[&delay.resource];
            assert!(resource.delay == Some(id), "{:?} knows its lock delay", delay.resource);
            assert!(resource.holder.is_none(), "{:?} is not held in its delay", delay.resource);
            assert!(self.deadlines.contains(&(delay.deadline, id)), "every delay has a deadline");
        }
        let objects = self.claims.len() + self.delays.len();
        assert!(self.deadlines.len() == objects, "every deadline has its object");
        self.check_namespaces();
    }

    fn check_claim(&self, id: ObjectId, claim: &Claim) {
        assert!(id.0 < self.next_object, "objects are numbered as created");
        assert!(self.deadlines.contains(&(claim.deadline, id)), "every claim has a deadline");
        let record = self.memory.get(claim.record);
        assert!(record.fate == Fate::Live(id), "a live request and its claim know each other");
        assert!(record.lease_id == claim.lease_id, "a request has one lease id");
        assert!(!claim.is_all_ended(), "an ended claim is gone");
        let namespace = &self.namespaces[claim.namespace as usize];
        for (index, holding) in claim.holdings.iter().enumerate() {
            assert!(holding.token <= self.last_token, "no token is above the last one (S2)");
            let resource = namespace.resources.get(&holding.resource);
            if claim.held.is_none() {
                let resource = resource.expect("what is waited for is known");
                assert!(resource.queue.binary_search(&id).is_ok(), "a waiter is in its queue");
                assert!(holding.token == Token(0), "a waiter has no token");
            } else if holding.ended.is_none() {
                let resource = resource.expect("what is held is known");
                assert!(resource.holder == Some(id), "at most one valid lease (S1)");
                let row = (id, index as u32);
                assert!(namespace.by_age.get(&holding.token) == Some(&row), "listed by age");
            }
        }
        if let Some(end) = claim.held.and_then(|held| held.final_deadline) {
            assert!(claim.deadline <= end, "maxHold bounds every deadline");
        }
    }

    fn check_namespaces(&self) {
        let mut counts = vec![Counts::default(); self.namespaces.len()];
        for claim in self.claims.values() {
            let counts = &mut counts[claim.namespace as usize];
            match claim.held {
                Some(_) => {
                    counts.leases += claim.holdings.iter().filter(|h| h.ended.is_none()).count()
                }
                None => counts.waiters += 1,
            }
        }
        for delay in self.delays.values() {
            counts[delay.namespace as usize].delays += 1;
        }
        let mut records = 0;
        for (id, namespace) in self.namespaces.iter().enumerate() {
            let counts = &counts[id];
            assert!(namespace.waiters == counts.waiters as u64, "waiters are counted");
            assert!(namespace.leases() == counts.leases as u64, "leases are counted");
            assert!(namespace.delays == counts.delays as u64, "lock delays are counted");
            assert!(self.namespace_index[&namespace.name] as usize == id, "names find namespaces");
            #[allow(clippy::iter_over_hash_type)] // Order does not matter to a check of each.
            for (name, resource) in &namespace.resources {
                assert!(!resource.is_idle(), "{name:?} is idle and leaves no record");
                assert!(resource.queue.iter().is_sorted(), "{name:?} serves in order (L3)");
                let due = resource.queue.range(..resource.due);
                assert!(due.map(|id| self.claims[id].deadline).all(|at| at <= self.time), "due");
                assert!(resource.queue.len() <= limits::WAITERS_PER_RESOURCE_MAX, "bounded queue");
                let eligible = resource.queue.iter().any(|id| self.claims[id].deadline > self.time);
                assert!(!(resource.is_free() && eligible), "{name:?} is free while someone waits");
            }
            records += namespace.records;
        }
        assert!(records == self.memory.len() as u64, "remembered requests are counted");
    }
}

/// What the counters of one namespace have to say.
#[derive(Clone, Default)]
struct Counts {
    leases: usize,
    waiters: usize,
    delays: usize,
}
