//! The mixed load: acquires that wait and that do not, renewals, releases, abandons, reads, forced releases; and all
//! that clients do wrong: they die, come late, send copies, and give up.

use super::{Stop, door::Door};
use crate::history::{Heard, LeaseOf, Op};
use rand::{RngExt, rngs::StdRng};
use sereno_api::RetryWith;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// So often a call is repeated that has to come through.
const PERSISTENCE: usize = 12;

/// One worker: one thing after the other.
pub(super) struct Worker {
    door: Arc<Door>,
    name: String,
    random: StdRng,
    stop: Stop,
    requests: u32,
    node: usize,
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Worker {
    pub(super) fn new(door: Arc<Door>, name: String, mut random: StdRng, stop: Stop) -> Self {
        let node = random.random_range(0..door.nodes());
        Self { door, name, random, stop, requests: 0, node }
    }

    pub(super) async fn run(mut self) {
        while !self.stop.is_set() {
            match self.random.random_range(0..100) {
                0..12 => self.read().await,
                12..15 => self.force().await,
                _ => self.session().await,
            }
            let pause = self.random.random_range(5..120);
            self.rest(ms(pause)).await;
        }
    }

    /// Ends early when the run does.
    async fn rest(&mut self, pause: Duration) {
        let _ = tokio::time::timeout(pause, self.stop.wait()).await;
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn resource(&mut self) -> String {
        match self.random.random_range(0..10) {
            0..4 => format!("hot/{}", self.random.random_range(0..3)),
            4..8 => format!("warm/{}", self.random.random_range(0..12)),
            _ => format!("own/{}", self.name),
        }
    }

    fn new_request(&mut self) -> String {
        self.requests += 1;
        format!("{}-{:05}", self.name, self.requests)
    }

    async fn call(&mut self, op: &Op) -> Heard {
        self.door.call(&self.name, self.node, op).await
    }

    /// The next node, after a little while.
    async fn move_on(&mut self) {
        self.node = (self.node + 1) % self.door.nodes();
        let pause = self.random.random_range(10..60);
        tokio::time::sleep(ms(pause)).await;
    }

    async fn read(&mut self) {
        let op = Op::Get { resource: self.resource() };
        if !matches!(self.call(&op).await, Heard::Read(_)) {
            self.move_on().await;
        }
    }

    /// An operator takes a lock away, from whoever has it.
    async fn force(&mut self) {
        let resource = format!("hot/{}", self.random.random_range(0..3));
        let Heard::Read(lock) = self.call(&Op::Get { resource: resource.clone() }).await else {
            return;
        };
        if let Some(holder) = lock.holder {
            let (token, request) = (holder.fencing_token, self.new_request());
            self.insist(&Op::Force { resource, token, request }).await;
        }
    }

    /// Until it is decided, or hopeless.
    async fn insist(&mut self, op: &Op) -> Option<Heard> {
        for _ in 0..PERSISTENCE {
            let heard = self.call(op).await;
            if !is_undecided(&heard) {
                return Some(heard);
            }
            self.move_on().await;
        }
        None
    }

    async fn session(&mut self) {
        let (resource, request) = (self.resource(), self.new_request());
        let ttl_ms = [2_000, 3_000, 5_000][self.random.random_range(0..3)];
        let wait_ms = if self.chance(40) { 0 } else { self.random.random_range(300..6_000) };
        let op =
            Op::Acquire { resource: resource.clone(), request: request.clone(), wait_ms, ttl_ms };
        let gives_up_in = match self.chance(10) {
            true => self.random.random_range(50..2_000),
            false => wait_ms + 10_000,
        };
        match self.acquire(&op, ms(gives_up_in)).await {
            Acquired::Lease(lease) => {
                let lease = LeaseOf { resource, lease, request };
                self.hold(&lease, ms(ttl_ms)).await;
            }
            Acquired::Refused => {}
            // Some do not even say that they have gone.
            Acquired::GivenUp if self.chance(15) => {}
            Acquired::GivenUp => {
                self.insist(&Op::Abandon { resource, request }).await;
            }
        }
    }

    async fn acquire(&mut self, op: &Op, patience: Duration) -> Acquired {
        let begun = Instant::now();
        if self.chance(5) {
            // The network makes copies.
            let other = (self.node + 1) % self.door.nodes();
            let copy = self.door.call(&self.name, other, op);
            let (first, second) = tokio::join!(self.door.call(&self.name, self.node, op), copy);
            drop((first, second));
        }
        while begun.elapsed() < patience {
            let heard = tokio::time::timeout(patience, self.call(op)).await;
            match heard {
                Ok(Heard::Granted(grant)) => return Acquired::Lease(grant.lease_id),
                Ok(Heard::Waiting(_)) if self.chance(30) => self.move_on().await,
                Ok(Heard::Waiting(_)) => {}
                Ok(heard) if is_undecided(&heard) => self.move_on().await,
                Ok(_) => return Acquired::Refused,
                // Its connection is closed, and its answer never read.
                Err(_) => return Acquired::GivenUp,
            }
        }
        Acquired::GivenUp
    }

    async fn hold(&mut self, lease: &LeaseOf, ttl: Duration) {
        match self.random.random_range(0..100) {
            0..60 => {
                let work = self.random.random_range(0..30);
                self.rest(ms(work)).await;
                self.insist(&Op::Release(lease.clone())).await;
            }
            60..75 => self.hold_on(lease, ttl).await,
            75..87 => {
                // Too long: what follows comes late.
                self.rest(ttl + ms(1_200)).await;
                let late = if self.chance(50) {
                    Op::Renew(lease.clone())
                } else {
                    Op::Release(lease.clone())
                };
                self.insist(&late).await;
            }
            87..92 => {}
            _ => {
                // Two releases at once, at two nodes.
                let (op, other) = (Op::Release(lease.clone()), (self.node + 1) % self.door.nodes());
                let copy = self.door.call(&self.name, other, &op);
                let (first, _) = tokio::join!(self.door.call(&self.name, self.node, &op), copy);
                if is_undecided(&first) {
                    self.insist(&op).await;
                }
            }
        }
    }

    /// For longer than one TTL.
    async fn hold_on(&mut self, lease: &LeaseOf, ttl: Duration) {
        for _ in 0..self.random.random_range(2..8) {
            self.rest(ttl / 3).await;
            let op = match self.chance(50) {
                true => Op::Renew(lease.clone()),
                false => Op::RenewMany { leases: vec![lease.clone()] },
            };
            let is_lost = match self.insist(&op).await {
                Some(Heard::Renewed(_)) => false,
                Some(Heard::RenewedMany(many)) => many.results.iter().any(|result| !result.ok),
                _ => true,
            };
            if is_lost || self.stop.is_set() {
                break;
            }
        }
        self.insist(&Op::Release(lease.clone())).await;
    }
}

enum Acquired {
    Lease(String),
    Refused,
    GivenUp,
}

/// The same call has to be sent again.
fn is_undecided(heard: &Heard) -> bool {
    match heard {
        Heard::Nothing { .. } => true,
        Heard::Problem(problem) => problem.retry_with == Some(RetryWith::SameRequestId),
        _ => false,
    }
}
