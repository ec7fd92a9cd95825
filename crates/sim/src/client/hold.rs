//! Holding: what the client believes, renewals, writes to what the lock protects, and the release.

use super::{Holding, Job, What, ask::ENDING_MS};
use crate::{
    checks::Belief,
    clock::MS,
    event::{Event, ToClient, Write},
    place::Place,
    world::World,
};
use sereno_core::command::{Family, LeaseRef, Operation, Release, Renew, RenewMany};
use sereno_node::clock::Mono;

/// The client's own deadline: from the moment it sent the call, less 1 % and 20 ms.
pub(super) fn own_deadline(sent_at: Mono, expires_in_ms: u64) -> Mono {
    let kept_ns = expires_in_ms * 990_000;
    Mono((sent_at.0 + kept_ns).saturating_sub(20 * MS))
}

impl Holding {
    fn leases(&self) -> impl DoubleEndedIterator<Item = LeaseRef> {
        let lease_id = self.lease_id;
        self.holdings.iter().map(move |(resource, _)| {
            let resource = resource.clone();
            LeaseRef { resource, lease_id }
        })
    }

    fn names(&self) -> String {
        let name = |(resource, token): &(_, _)| format!("{}/{resource} {token}", self.namespace);
        self.holdings.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

impl World {
    /// It holds, as far as it knows: that must be true.
    pub(super) fn client_holds(&mut self, client: usize, holding: Holding) {
        let it = &mut self.clients[client];
        let until = it.clock.real(holding.deadline);
        it.job = Job::Holding(holding.clone());
        if !holding.is_confirmed || until <= self.agenda.now {
            return;
        }
        for (resource, token) in &holding.holdings {
            let place = Place::new(holding.what.family(), &holding.namespace, resource);
            self.truth.checks.relies(&place, *token, Belief { client, until });
        }
    }

    /// What a holder does beside its calls: stops in time, releases, writes.
    pub(super) fn client_uses(&mut self, client: usize, now: Mono) {
        let Job::Holding(holding) = &self.clients[client].job else { return };
        let has_lost = holding.deadline <= now;
        if has_lost || holding.release_at <= now {
            let holding = holding.clone();
            if has_lost {
                self.mark("a client finds its lease lost by its own clock");
            }
            let how = if has_lost { "has lost" } else { "releases" };
            self.say(|| format!("c{client} {how} {}", holding.names()));
            return self.client_releases(client, &holding);
        }
        if holding.write_at <= now {
            self.client_writes(client, now);
        }
    }

    /// It has looked whether it holds, and does; what it does then takes a while, and now and then a long one.
    fn client_writes(&mut self, client: usize, now: Mono) {
        let pause_ms = self.random.between(20, 1_200);
        let Job::Holding(holding) = &mut self.clients[client].job else { return };
        holding.write_at = now.plus_ms(pause_ms);
        if !holding.is_confirmed {
            return;
        }
        let (count, lease) = (holding.holdings.len(), holding.lease_id.public_hash());
        let (resource, token) = holding.holdings[now.0 as usize % count].clone();
        let place = Place::new(holding.what.family(), &holding.namespace, &resource);
        let work = if self.random.in_1000(50) { 4_000 * MS } else { 3 * MS };
        let work = self.random.between(0, work);
        let what = ToClient::Write(Write { place, token, lease });
        let life = self.clients[client].life;
        self.agenda.after(work, Event::Client(client, life, what));
    }

    pub(super) fn client_renews(&mut self, client: usize, holding: &Holding) {
        let namespace = holding.namespace.clone();
        // Most keep what they were granted.
        let changes = self.random.in_1000(40);
        let lease_ttl_ms = changes.then(|| self.random.between(1_000, 12_000));
        let is_many = holding.holdings.len() > 1 || self.random.in_1000(300);
        let operation = if holding.what.family() != Family::Lock {
            self.face_renews(holding, lease_ttl_ms)
        } else if is_many {
            let leases = holding.leases().collect();
            Operation::RenewMany(RenewMany { namespace, leases, lease_ttl_ms })
        } else {
            let lease = holding.leases().next().expect("a holding has a resource");
            Operation::Renew(Renew { namespace, lease, lease_ttl_ms })
        };
        let timeout_ms = (holding.ttl_ms / 6).max(300);
        self.send(client, operation, timeout_ms, 0);
    }

    /// In the reverse of the order in which they were granted.
    pub(super) fn client_releases(&mut self, client: usize, holding: &Holding) {
        // A renewal under way is of no interest any more.
        if self.clients[client].open.is_some() {
            self.attempt_over(client, true);
        }
        let told = &mut self.truth.checks.told;
        for (_, token) in &holding.holdings {
            told.relies_no_more(*token);
        }
        told.released.insert(holding.lease_id.public_hash());
        let release =
            |lease| Operation::Release(Release { namespace: holding.namespace.clone(), lease });
        let operations = match holding.what {
            What::Locks => holding.leases().map(release).collect(),
            _ => self.face_releases(holding),
        };
        self.client_does(client, operations, ENDING_MS);
    }
}
