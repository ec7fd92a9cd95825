//! Reads of a state. They end nothing: an object that is due and unswept is shown with 0 ms left.

use super::{
    State,
    claim::{Claim, Face, Namespace, Resource},
    memory::Fingerprint,
};
use crate::{
    command::{Family, Operation},
    ids::{ObjectId, Token},
    limits,
    names::{Caller, NamespaceName, Owner, ResourceName},
    outcome::{Done, Grant, Outcome},
    query::{Due, FaceView, HolderView, ListLocks, LockPage, LockView, NamespaceView, WaiterView},
};

impl State {
    /// One resource, free or not; `None`: there is no such namespace.
    pub fn lock(&self, namespace: &NamespaceName, name: &ResourceName) -> Option<LockView> {
        self.leased(Family::Lock, namespace, name)
    }

    /// The same in any family whose names are leased.
    pub fn leased(
        &self,
        family: Family,
        namespace: &NamespaceName,
        name: &ResourceName,
    ) -> Option<LockView> {
        let namespace = &self.namespaces[self.namespace_id(namespace)? as usize];
        let Some(resource) = namespace.space(family).resources.get(name) else {
            let (resource, queue) = (name.clone(), Vec::new());
            return Some(LockView { resource, holder: None, lock_delay_ms: 0, waiters: 0, queue });
        };
        let mut view = self.lock_view(name, resource);
        let waiters = resource.queue.iter().take(limits::QUEUE_ROWS_MAX).enumerate();
        view.queue = waiters.map(|(index, id)| self.waiter_view(index, &self.claims[id])).collect();
        Some(view)
    }

    /// Held locks, oldest grant first; `None`: there is no such namespace.
    pub fn list_locks(&self, list: &ListLocks) -> Option<LockPage> {
        self.list_leased(Family::Lock, list)
    }

    /// The same in any family whose names are leased.
    pub fn list_leased(&self, family: Family, list: &ListLocks) -> Option<LockPage> {
        let namespace = &self.namespaces[self.namespace_id(&list.namespace)? as usize];
        let limit = list.limit.clamp(1, limits::PAGE_ROWS_MAX);
        let mut page = LockPage { locks: Vec::new(), next: None };
        let after = Token(list.after.0.saturating_add(1));
        let space = namespace.space(family);
        for (examined, (&token, &(id, index))) in space.by_age.range(after..).enumerate() {
            let claim = &self.claims[&id];
            let name = &claim.holdings[index as usize].resource;
            if is_listed(list, name, &claim.owner) {
                page.locks.push(self.lock_view(name, &space.resources[name]));
            }
            if page.locks.len() == limit || examined + 1 == limits::PAGE_EXAMINED_MAX {
                page.next = space.by_age.range(Token(token.0 + 1)..).next().map(|_| token);
                break;
            }
        }
        Some(page)
    }

    pub(super) fn lock_view(&self, name: &ResourceName, resource: &Resource) -> LockView {
        LockView {
            resource: name.clone(),
            holder: resource.holder.map(|id| self.holder_view(name, &self.claims[&id])),
            lock_delay_ms: resource
                .delay
                .map_or(0, |id| self.time.until(self.delays[&id].deadline)),
            waiters: resource.queue.len() as u64,
            queue: Vec::new(),
        }
    }

    fn holder_view(&self, name: &ResourceName, claim: &Claim) -> HolderView {
        let (_, holding) = claim.holding(name).expect("a holder holds its resource");
        let held = claim.held.expect("a holder holds");
        HolderView {
            holder: claim.holder(holding.token, self.time),
            caller: claim.caller.clone(),
            lease_hash: claim.lease_id.public_hash(),
            fencing: claim.fencing,
            labels: claim.labels.clone(),
            final_deadline_in_ms: claim.final_deadline_in_ms(self.time),
            renewed_ago_ms: held.renewed_at.until(self.time),
            face: match &claim.face {
                Face::Lock | Face::Run { .. } => FaceView::Plain,
                Face::Candidate { value, version } => {
                    FaceView::Leader { value: value.clone(), version: version.0 }
                }
                &Face::Hold { begun } => FaceView::Hold { begun },
            },
        }
    }

    fn waiter_view(&self, index: usize, claim: &Claim) -> WaiterView {
        WaiterView {
            place: index as u64 + 1,
            owner: claim.owner.clone(),
            waited_ms: claim.created_at.until(self.time),
            wait_expires_in_ms: self.time.until(claim.deadline),
        }
    }

    /// One namespace; `None`: there is none of that name.
    pub fn namespace(&self, name: &NamespaceName) -> Option<NamespaceView> {
        self.namespace_id(name).map(|id| namespace_view(&self.namespaces[id as usize]))
    }

    /// Namespaces in the order of their names, after `after`.
    pub fn namespaces(&self, after: &str, limit: usize) -> Vec<NamespaceView> {
        use std::ops::Bound::{Excluded, Unbounded};
        let ids = self.namespace_index.range::<str, _>((Excluded(after), Unbounded));
        ids.take(limit).map(|(_, &id)| namespace_view(&self.namespaces[id as usize])).collect()
    }

    /// What is due and unswept. Counting stops at 10,000.
    pub fn due(&self) -> Due {
        const COUNTED_MAX: usize = 10_000;
        let mut due = self.deadlines.iter().take_while(|(deadline, _)| *deadline <= self.time);
        let Some((oldest, _)) = due.next() else { return Due::default() };
        let objects = 1 + due.take(COUNTED_MAX - 1).count() as u64;
        Due { objects, oldest_ms: oldest.until(self.time) }
    }

    /// Held resources of all namespaces.
    pub fn leases(&self) -> u64 {
        self.namespaces.iter().map(Namespace::leases).sum()
    }

    /// Waiting requests of all namespaces.
    pub fn waiters(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.waiters).sum()
    }

    /// Remembered requests of all namespaces.
    pub fn reply_records(&self) -> u64 {
        self.memory.len() as u64
    }

    /// All waiting claims, for the grace that a new leader gives each of them.
    pub fn waiting_claims(&self) -> impl Iterator<Item = ObjectId> {
        let claims = self.claims.iter().filter(|(_, claim)| claim.held.is_none());
        claims.map(|(&id, _)| id).chain(self.quotas.waiting())
    }

    /// The last revision at which this claim's owner asked for it; `None`: it has ended.
    pub fn asked_at(&self, claim: ObjectId) -> Option<crate::ids::Revision> {
        let of_claim = self.claims.get(&claim).map(|claim| claim.asked_at);
        of_claim.or_else(|| self.quotas.asked_at(claim))
    }

    /// Milliseconds until the deadline of a lease, or of a reservation of that name; `None`: no such one is held.
    pub fn lease_expires_in_ms(&self, lease_id: crate::ids::LeaseId) -> Option<u64> {
        let record = self.memory.find_lease(lease_id)?;
        match self.memory.get(record).fate {
            super::memory::Fate::Live(id) => {
                let held = self.claims.get(&id).filter(|claim| claim.held.is_some());
                let reserved = || {
                    self.quotas
                        .deadline_of(id)
                        .filter(|_| self.quotas.is_waiting(id) == Some(false))
                };
                let deadline = held.map(|claim| claim.deadline).or_else(reserved)?;
                Some(self.time.until(deadline))
            }
            _ => None,
        }
    }

    /// What a claim that waits is told now; `None`: it does not wait (any more).
    pub fn waiting_answer(&self, claim: ObjectId) -> Option<Outcome> {
        if self.quotas.is_waiting(claim) == Some(true) {
            let waiting = self.waiting_reservation(claim);
            return Some(self.decided(None, Ok(Done::Waiting(waiting))));
        }
        self.claims.get(&claim).filter(|claim| claim.held.is_none())?;
        Some(self.decided(None, Ok(Done::Waiting(self.waiting(claim)))))
    }

    /// The grant of a claim that holds, as of now.
    pub fn grant_of(&self, claim: ObjectId) -> Option<Grant> {
        let held = self.claims.get(&claim).filter(|claim| claim.held.is_some())?;
        Some(held.grant(claim, self.time))
    }

    /// How long granting pauses after a restore: the longest lease that anybody may have been granted lately, and go
    /// on renewing (one keeps its TTL when the policy is cut), and the longest lock delay that may follow it.
    pub fn restore_pause_ms(&self) -> u64 {
        let policies = || self.namespaces.iter().map(|namespace| &namespace.policy);
        let allowed = policies().map(|policy| policy.max_ttl_ms);
        let live = self.claims.values().map(|claim| claim.ttl_ms);
        let reserved = self.quotas.longest_ttl_ms();
        let lease_ms = allowed
            .chain(live)
            .chain(reserved)
            .max()
            .expect("there is always the default namespace");
        let delay_ms = policies().map(|policy| policy.lock_delay_ms).max().unwrap_or(0);
        lease_ms + delay_ms
    }

    /// Whether a request has been decided or queued before: a repeat of it asks for nothing new.
    pub fn remembers(&self, caller: &Caller, operation: &Operation) -> bool {
        let of_family = |family, id: Option<_>| id.map(|id| (family, id));
        let request = match operation {
            Operation::Acquire(op) => Some((Family::Lock, &op.request_id)),
            Operation::AcquireAll(op) => Some((Family::Lock, &op.request_id)),
            Operation::ReportGuard(op) => Some((Family::Admin, &op.request_id)),
            Operation::Election(op) => of_family(Family::Election, op.request_id()),
            Operation::Hold(op) => of_family(Family::Hold, op.request_id()),
            Operation::Job(op) => of_family(Family::Job, op.request_id()),
            Operation::Quota(op) => Some((Family::Quota, op.request_id())),
            _ => None,
        };
        let (Some((family, id)), Some(namespace)) = (request, operation.namespace()) else {
            return false;
        };
        self.memory.find(Fingerprint::request(namespace, caller, family, id)).is_some()
    }

    /// Requests per second that a namespace allows; `None`: unbounded, or no such namespace.
    pub fn requests_per_second(&self, name: &NamespaceName) -> Option<u64> {
        self.namespaces[self.namespace_id(name)? as usize].policy.requests_per_second
    }
}

fn is_listed(list: &ListLocks, name: &ResourceName, owner: &Owner) -> bool {
    name.as_str().starts_with(&list.prefix) && list.owner.as_ref().is_none_or(|only| only == owner)
}

fn namespace_view(namespace: &Namespace) -> NamespaceView {
    NamespaceView {
        namespace: namespace.name.clone(),
        version: namespace.version,
        policy: namespace.policy.clone(),
        holds: namespace.hold_policy.clone(),
        home: namespace.home.clone(),
        is_proven: namespace.proven,
        leases: namespace.leases(),
        waiters: namespace.waiters,
        reply_records: namespace.records,
    }
}
