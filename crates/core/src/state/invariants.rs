//! What must hold of every state, checked as a whole: after loading a snapshot, and by the tests after every
//! step. The cheap parts are asserted where the state changes.

use super::{
    State,
    claim::{Claim, Face, Namespace},
    job::Run,
    memory::Fate,
};
use crate::{
    command::Family,
    ids::{ObjectId, Token},
    limits,
    names::Owner,
    outcome::RunState,
};
use std::collections::BTreeMap;

impl State {
    /// Panics with a message when an invariant is broken. Costs time in proportion to the state.
    pub fn check_invariants(&self) {
        for (&id, claim) in &self.claims {
            self.check_claim(id, claim);
        }
        for (&id, delay) in &self.delays {
            let of = &self.namespaces[delay.namespace as usize];
            match &delay.owner {
                None => {
                    let resource = &of.space(delay.family).resources[&delay.resource];
                    assert!(resource.delay == Some(id), "{:?} knows its delay", delay.resource);
                    assert!(resource.holder.is_none(), "{:?} is delayed, not held", delay.resource);
                }
                Some(owner) => {
                    let key = (delay.resource.clone(), owner.clone());
                    assert!(of.cooling.get(&key) == Some(&id), "a cool-down is found by its owner");
                }
            }
            assert!(self.deadlines.contains(&(delay.deadline, id)), "every delay has a deadline");
        }
        let objects = self.claims.len() + self.delays.len() + self.quotas.with_deadline();
        assert!(self.deadlines.len() == objects, "every deadline has its object");
        self.check_namespaces();
        self.check_quotas_invariants();
    }

    fn check_claim(&self, id: ObjectId, claim: &Claim) {
        assert!(id.0 < self.next_object, "objects are numbered as created");
        assert!(self.deadlines.contains(&(claim.deadline, id)), "every claim has a deadline");
        for &record in [&claim.record].into_iter().chain(&claim.repeats) {
            let fate = self.memory.get(record).fate;
            assert!(fate == Fate::Live(id), "a live request and its claim know each other");
        }
        self.check_face(id, claim);
        let record = self.memory.get(claim.record);
        assert!(record.lease_id == claim.lease_id, "a request has one lease id");
        assert!(!claim.is_all_ended(), "an ended claim is gone");
        let space = self.namespaces[claim.namespace as usize].space(claim.family());
        for (index, holding) in claim.holdings.iter().enumerate() {
            assert!(holding.token <= self.last_token, "no token is above the last one (S2)");
            let resource = space.resources.get(&holding.resource);
            if claim.held.is_none() {
                let resource = resource.expect("what is waited for is known");
                assert!(resource.queue.binary_search(&id).is_ok(), "a waiter is in its queue");
                assert!(holding.token == Token(0), "a waiter has no token");
            } else if holding.ended.is_none() {
                let resource = resource.expect("what is held is known");
                assert!(resource.holder == Some(id), "at most one valid lease (S1)");
                let row = (id, index as u32);
                assert!(space.by_age.get(&holding.token) == Some(&row), "listed by age");
            }
        }
        if let Some(end) = claim.held.and_then(|held| held.final_deadline) {
            assert!(claim.deadline <= end, "maxHold bounds every deadline");
        }
    }

    fn check_face(&self, id: ObjectId, claim: &Claim) {
        let is_hold = claim.family() == Family::Hold;
        assert!(is_hold || claim.repeats.is_empty(), "only holds are answered to other requests");
        if let Face::Run { job, slot } = &claim.face {
            let run = &self.namespaces[claim.namespace as usize].jobs[job].runs[slot];
            assert!(run.state == RunState::Claimed, "an attempt under way is in the ledger");
            let live = run.last.as_ref().and_then(|last| last.claim);
            assert!(live == Some(id), "a slot has one attempt under way");
        }
    }

    fn check_namespace(&self, namespace: &Namespace, counts: &Counts) {
        let cooling = namespace.cooling.len();
        assert!(cooling == counts.cooling, "cool-downs are indexed");
        let held: u64 = counts.held_by.values().sum();
        assert!(namespace.held_names.len() as u64 == held, "holds are listed by name");
        let owners = counts.held_by.iter().map(|(owner, &count)| (*owner, count));
        let owners = owners.collect::<BTreeMap<_, _>>();
        let kept: BTreeMap<_, _> = namespace.held_by.iter().map(|(o, &n)| (o, n)).collect();
        assert!(kept == owners, "an owner's holds are counted");
        for (name, job) in &namespace.jobs {
            let live = job.live().count();
            assert!(live <= 1 || job.definition.overlap, "{name:?} runs once at a time");
            for (_, id) in job.live() {
                assert!(self.claims.contains_key(&id), "{name:?} is run by a live claim");
            }
            let is_claimed = |run: &Run| run.state == RunState::Claimed;
            let claimed = job.runs.values().filter(|run| is_claimed(run)).count();
            assert!(claimed == live, "{name:?}: claimed slots have an attempt under way");
            let closed = job.runs.values().filter(|run| !run.state.is_open()).count();
            assert!(closed <= limits::RUNS_CLOSED_KEPT, "{name:?} keeps a bounded history");
        }
    }

    fn check_namespaces(&self) {
        let mut counts = vec![Counts::default(); self.namespaces.len()];
        for claim in self.claims.values() {
            let counts = &mut counts[claim.namespace as usize];
            let held = claim.holdings.iter().filter(|holding| holding.ended.is_none()).count();
            match claim.held {
                Some(_) => counts.leases += held,
                None => counts.waiters += 1,
            }
            if claim.family() == Family::Hold {
                *counts.held_by.entry(&claim.owner).or_default() += held as u64;
            }
        }
        for namespace in self.quotas.waiting_namespaces() {
            counts[namespace as usize].waiters += 1;
        }
        for delay in self.delays.values() {
            let counts = &mut counts[delay.namespace as usize];
            match delay.owner {
                None => counts.delays += 1,
                Some(_) => counts.cooling += 1,
            }
        }
        let mut records = 0;
        for (id, namespace) in self.namespaces.iter().enumerate() {
            let counts = &counts[id];
            assert!(namespace.waiters == counts.waiters as u64, "waiters are counted");
            assert!(namespace.leases() == counts.leases as u64, "leases are counted");
            assert!(namespace.delays == counts.delays as u64, "lock delays are counted");
            assert!(self.namespace_index[&namespace.name] as usize == id, "names find namespaces");
            self.check_namespace(namespace, counts);
            let resources = namespace.spaces().into_iter().flat_map(|(_, of)| &of.resources);
            for (name, resource) in resources {
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
struct Counts<'a> {
    leases: usize,
    waiters: usize,
    delays: usize,
    cooling: usize,
    held_by: BTreeMap<&'a Owner, u64>,
}
