//! S1, S4, S8, L3 and L4: who holds what, who waits, and when each may lose it.

use crate::clock::Real;
use sereno_core::{
    command::{Command, Operation},
    entry::Entry,
    event::{Event, EventKind},
    ids::{ClusterTime, LeaseId, Token},
    names::{RequestId, ResourceName},
    outcome::{Done, End, Grant, Outcome, WaitEnd},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Nobody is taken for gone before this has passed, in cluster time, since it was asked for.
const GRACE_MS: u64 = 10_000;

/// What a client has been told of its lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief {
    /// Whose, for the message.
    #[expect(dead_code, reason = "it is printed")]
    pub(crate) client: usize,
    /// Until its own clock says that it may have lost it, in real time.
    pub(crate) until: Real,
}

/// Who holds a resource, as the log says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) token: Token,
    lease_hash: u64,
    /// In cluster time; the furthest that was ever decided.
    deadline: ClusterTime,
}

#[derive(Debug)]
struct Waiter {
    lease_hash: u64,
    deadline: ClusterTime,
    /// When a call for it came last.
    asked_at: ClusterTime,
}

#[derive(Debug, Default)]
pub(crate) struct Leases {
    pub(crate) holders: BTreeMap<ResourceName, Holder>,
    queues: BTreeMap<ResourceName, VecDeque<Waiter>>,
    /// What acquires asked for, by the public hash of their lease id.
    asked: BTreeMap<u64, (u64, RequestId)>,
    /// What clients rely on.
    pub(crate) beliefs: BTreeMap<Token, Belief>,
    ended: BTreeSet<Token>,
    /// Cluster time of the last announce.
    pub(super) announced_at: ClusterTime,
    /// By public hash of the lease id that a call drew: commands that landed, and those whose callers were told that
    /// they certainly have not and will not.
    landed: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// Calls of which a network made copies.
    pub(crate) copied: BTreeSet<u64>,
    /// Leases whose owner has sent a release, requests that were abandoned, tokens that an operator has ended.
    pub(crate) released: BTreeSet<u64>,
    pub(crate) abandoned: BTreeSet<String>,
    pub(crate) forced: BTreeSet<Token>,
}

impl Leases {
    pub(super) fn asked(&mut self, lease_id: LeaseId, wait_ms: u64, request: &RequestId) {
        let hash = lease_id.public_hash();
        self.asked.entry(hash).or_insert((wait_ms, request.clone()));
        self.landed.insert(hash);
        assert!(
            !self.refused.contains(&hash) || self.copied.contains(&hash),
            "S5: {request}: what was told as not applied is not applied"
        );
    }

    /// A caller is told that this call is certainly not applied.
    pub(crate) fn refused(&mut self, lease_id: LeaseId) {
        let hash = lease_id.public_hash();
        self.refused.insert(hash);
        assert!(
            !self.landed.contains(&hash) || self.copied.contains(&hash),
            "S5: what is told as not applied is not applied"
        );
    }

    pub(super) fn event(&mut self, event: &Event, entry: &Entry, now: Real) {
        let (Some(resource), Some(lease_hash)) = (&event.resource, event.lease_hash) else {
            return;
        };
        match event.kind {
            EventKind::Queued => {
                let deadline = entry.time.plus(self.asked[&lease_hash].0);
                let queue = self.queues.entry(resource.clone()).or_default();
                queue.push_back(Waiter { lease_hash, deadline, asked_at: entry.time });
            }
            EventKind::WaitEnded { why, .. } => {
                let queue = self.queues.entry(resource.clone()).or_default();
                let waiter = queue.iter().find(|waiter| waiter.lease_hash == lease_hash);
                if why == Some(WaitEnd::Deserted)
                    && let Some(waiter) = waiter
                {
                    let since = waiter.asked_at.max(self.announced_at);
                    assert!(
                        since.until(entry.time) >= GRACE_MS,
                        "S7: {resource}: a wait is deserted after its grace: {} ms",
                        since.until(entry.time)
                    );
                }
                let before = queue.len();
                queue.retain(|waiter| waiter.lease_hash != lease_hash);
                assert!(queue.len() + 1 == before, "S7: only a wait ends as one, and once");
            }
            EventKind::Granted { token, waited_ms } => {
                self.granted(resource, lease_hash, token, waited_ms.is_some(), entry.time);
            }
            EventKind::Ended { token, end, .. } => {
                self.ended(resource, lease_hash, token, end, entry.time, now);
            }
            _ => {}
        }
    }

    fn granted(
        &mut self,
        resource: &ResourceName,
        lease_hash: u64,
        token: Token,
        has_waited: bool,
        time: ClusterTime,
    ) {
        let queue = self.queues.entry(resource.clone()).or_default();
        if has_waited {
            let place = queue.iter().position(|waiter| waiter.lease_hash == lease_hash);
            let place =
                place.unwrap_or_else(|| panic!("S7: {resource}: only who waits is handed a lock"));
            let deadline = queue[place].deadline;
            assert!(deadline > time, "S7: {resource}: a wait that is over is not granted");
            let is_passed_over = |waiter: &Waiter| waiter.deadline > time;
            assert!(
                !queue.iter().take(place).any(is_passed_over),
                "L3: {resource}: waiters are served in order"
            );
            queue.remove(place);
        } else {
            assert!(
                !queue.iter().any(|waiter| waiter.deadline > time),
                "L3: {resource}: nobody barges past a queue"
            );
        }
        let holder = Holder { token, lease_hash, deadline: time };
        let before = self.holders.insert(resource.clone(), holder);
        assert!(before.is_none(), "S1: {resource} has one valid lease: {before:?} and {holder:?}");
    }

    fn ended(
        &mut self,
        resource: &ResourceName,
        lease_hash: u64,
        token: Token,
        end: End,
        time: ClusterTime,
        now: Real,
    ) {
        let holder = self.holders.remove(resource);
        let is_it = holder.is_some_and(|it| it.token == token && it.lease_hash == lease_hash);
        assert!(is_it, "S4: {resource}: only the current lease ends: {token}, held by {holder:?}");
        self.ended.insert(token);
        let belief = self.beliefs.get(&token);
        match end {
            End::Expired => {
                let deadline = holder.map_or(time, |holder| holder.deadline);
                assert!(
                    time >= deadline,
                    "S8: {resource}: no lease ends before its deadline: {token} at {time}, due {deadline}"
                );
                assert!(
                    belief.is_none_or(|belief| belief.until <= now),
                    "L4: {resource}: who loses a lease knows it before: {token} of {belief:?} at {now}"
                );
            }
            End::Released => assert!(
                self.released.contains(&lease_hash),
                "S4: {resource}: a lease is released by its owner: {token}"
            ),
            End::Forced => {
                assert!(self.forced.contains(&token), "S4: {resource}: {token} was ended by force")
            }
            End::Abandoned => {
                let request = self.asked.get(&lease_hash).map(|(_, request)| request.as_str());
                let by_owner = request.is_some_and(|request| self.abandoned.contains(request));
                let is_relied_on = belief.is_some_and(|belief| belief.until > now);
                assert!(
                    by_owner || !is_relied_on,
                    "S8: {resource}: a lease that its owner relies on is not taken back: {token}"
                );
            }
            End::MaxHold => panic!("S8: {resource}: nobody asked for a bound of {token}"),
        }
    }

    pub(super) fn outcome(&mut self, entry: &Entry, command: &Command, outcome: &Outcome) {
        match (&command.operation, &outcome.result) {
            (Operation::Acquire(_), Ok(Done::Granted(grant))) => self.told(entry, grant),
            (Operation::Acquire(acquire), Ok(Done::Waiting(_))) => {
                self.waits_on(&acquire.resource, &acquire.request_id, entry.time);
            }
            (Operation::Renew(renew), Ok(Done::Renewed(renewed))) => {
                let holder = self.holders.get_mut(&renew.lease.resource);
                let hash = renew.lease.lease_id.public_hash();
                let holder = holder.filter(|it| it.token == renewed.token && it.lease_hash == hash);
                let holder = holder.unwrap_or_else(|| {
                    panic!("S4: only the current lease is renewed: {}", renewed.token)
                });
                let deadline = entry.time.plus(renewed.expires_in_ms);
                assert!(deadline >= holder.deadline, "S8: a renewal brings no deadline nearer");
                holder.deadline = deadline;
            }
            _ => {}
        }
    }

    /// A call asks for a wait that is there.
    fn waits_on(&mut self, resource: &ResourceName, request: &RequestId, now: ClusterTime) {
        let asked = &self.asked;
        let is_its = |waiter: &&mut Waiter| {
            asked.get(&waiter.lease_hash).is_some_and(|(_, of)| of == request)
        };
        let queue = self.queues.get_mut(resource);
        if let Some(waiter) = queue.and_then(|queue| queue.iter_mut().find(is_its)) {
            waiter.asked_at = now;
        }
    }

    pub(super) fn settled(&mut self, entry: &Entry, outcome: &Outcome) {
        if let Ok(Done::Granted(grant)) = &outcome.result {
            self.told(entry, grant);
        }
    }

    /// An answer grants: it names a deadline that holds from now on.
    fn told(&mut self, entry: &Entry, grant: &Grant) {
        let (resource, token) = &grant.holdings[0];
        let deadline = entry.time.plus(grant.expires_in_ms);
        match self.holders.get_mut(resource).filter(|holder| holder.token == *token) {
            Some(holder) => holder.deadline = holder.deadline.max(deadline),
            // Ended by a later command of the same entry.
            None => assert!(
                self.ended.contains(token),
                "S4: {resource}: what is answered as granted is held: {token}"
            ),
        }
    }
}
