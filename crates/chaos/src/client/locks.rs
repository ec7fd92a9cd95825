//! The mixed load on locks: acquires that wait and that do not, renewals, releases, abandons, reads, forced releases; and
//! all that clients do wrong: they die, come late, send copies, and give up.

use super::caller::{Asked, Caller, is_undecided, ms};
use crate::history::{Family, Heard, LeaseOf, Op};
use rand::RngExt;
use std::time::Duration;

/// One worker: one thing after the other.
pub(super) struct Worker(pub(super) Caller);

impl Worker {
    pub(super) async fn run(mut self) {
        while !self.0.stop.is_set() {
            match self.0.random.random_range(0..100) {
                0..12 => self.read().await,
                12..15 => self.force().await,
                _ => self.session().await,
            }
            self.0.pause().await;
        }
    }

    fn resource(&mut self) -> String {
        match self.0.random.random_range(0..10) {
            0..4 => format!("hot/{}", self.0.random.random_range(0..3)),
            4..8 => format!("warm/{}", self.0.random.random_range(0..12)),
            _ => format!("own/{}", self.0.name),
        }
    }

    async fn read(&mut self) {
        let op = Op::Get { family: Family::Lock, resource: self.resource() };
        if !matches!(self.0.call(&op).await, Heard::Read(_)) {
            self.0.move_on().await;
        }
    }

    /// An operator takes a lock away, from whoever has it.
    async fn force(&mut self) {
        let family = Family::Lock;
        let resource = format!("hot/{}", self.0.random.random_range(0..3));
        let Heard::Read(lock) = self.0.call(&Op::Get { family, resource: resource.clone() }).await
        else {
            return;
        };
        if let Some(holder) = lock.holder {
            let (token, request) = (holder.fencing_token, self.0.new_request());
            self.0.insist(&Op::Force { family, resource, token, request }).await;
        }
    }

    async fn session(&mut self) {
        let (family, resource, request) = (Family::Lock, self.resource(), self.0.new_request());
        let ttl_ms = [2_000, 3_000, 5_000][self.0.random.random_range(0..3)];
        let wait_ms = if self.0.chance(40) { 0 } else { self.0.random.random_range(300..6_000) };
        let op =
            Op::Acquire { resource: resource.clone(), request: request.clone(), wait_ms, ttl_ms };
        let gives_up_in = match self.0.chance(10) {
            true => self.0.random.random_range(50..2_000),
            false => wait_ms + 10_000,
        };
        match self.0.ask(&op, ms(gives_up_in)).await {
            Asked::Granted(heard) => {
                let Heard::Granted(grant) = *heard else {
                    panic!("no answer to an acquire: {heard:?}")
                };
                let lease = LeaseOf { family, resource, lease: grant.lease_id, request };
                self.hold(&lease, ms(ttl_ms)).await;
            }
            Asked::Refused => {}
            // Some do not even say that they have gone.
            Asked::GivenUp if self.0.chance(15) => {}
            Asked::GivenUp => {
                self.0.insist(&Op::Abandon { family, resource, request }).await;
            }
        }
    }

    async fn hold(&mut self, lease: &LeaseOf, ttl: Duration) {
        match self.0.random.random_range(0..100) {
            0..60 => {
                let work = self.0.random.random_range(0..30);
                self.0.rest(ms(work)).await;
                self.0.insist(&Op::Release(lease.clone())).await;
            }
            60..75 => self.hold_on(lease, ttl).await,
            75..87 => {
                // Too long: what follows comes late.
                self.0.rest(ttl + ms(1_200)).await;
                let late = if self.0.chance(50) {
                    Op::Renew(lease.clone())
                } else {
                    Op::Release(lease.clone())
                };
                self.0.insist(&late).await;
            }
            87..92 => {}
            _ => {
                // Two releases at once, at two nodes.
                let op = Op::Release(lease.clone());
                if is_undecided(&self.0.twice(&op).await) {
                    self.0.insist(&op).await;
                }
            }
        }
    }

    /// For longer than one TTL.
    async fn hold_on(&mut self, lease: &LeaseOf, ttl: Duration) {
        for _ in 0..self.0.random.random_range(2..8) {
            self.0.rest(ttl / 3).await;
            let op = match self.0.chance(50) {
                true => Op::Renew(lease.clone()),
                false => Op::RenewMany { leases: vec![lease.clone()] },
            };
            let is_lost = match self.0.insist(&op).await {
                Some(Heard::Renewed(_)) => false,
                Some(Heard::RenewedMany(many)) => many.results.iter().any(|result| !result.ok),
                _ => true,
            };
            if is_lost || self.0.stop.is_set() {
                break;
            }
        }
        self.0.insist(&Op::Release(lease.clone())).await;
    }
}
