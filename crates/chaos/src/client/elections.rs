//! The mixed load on elections: campaigns that wait and that do not, proclaims, resignations, hand-offs to candidates who
//! wait, candidates who campaign anew, leaders who die or come late, and operators who end a term.

use super::caller::{Asked, Caller, ms};
use crate::history::{Family, Heard, LeaseOf, Op};
use rand::RngExt;
use std::time::Duration;

/// How many elections there are.
pub(crate) const ELECTIONS: usize = 3;
const FAMILY: Family = Family::Election;

/// The elections of a run.
pub(crate) fn election(index: usize) -> String {
    format!("leader/{index}")
}

/// One worker: a candidate under many names.
pub(super) struct Worker(pub(super) Caller);

impl Worker {
    pub(super) async fn run(mut self) {
        while !self.0.stop.is_set() {
            let election = election(self.0.random.random_range(0..ELECTIONS));
            match self.0.random.random_range(0..100) {
                0..15 => {
                    self.look(&election).await;
                }
                15..18 => self.force(&election).await,
                _ => self.session(election).await,
            }
            self.0.pause().await;
        }
    }

    async fn look(&mut self, election: &str) -> Option<sereno_api::Election> {
        match self.0.call(&Op::Get { family: FAMILY, resource: election.into() }).await {
            Heard::Leader(election) => Some(election),
            _ => {
                self.0.move_on().await;
                None
            }
        }
    }

    async fn force(&mut self, election: &str) {
        let leader = self.look(election).await.and_then(|it| it.leader);
        if let Some(leader) = leader {
            let (resource, request) = (election.to_owned(), self.0.new_request());
            let op = Op::Force { family: FAMILY, resource, token: leader.term, request };
            self.0.insist(&op).await;
        }
    }

    async fn session(&mut self, election: String) {
        let request = self.0.new_request();
        let wait_ms = if self.0.chance(25) { 0 } else { self.0.random.random_range(500..6_000) };
        let ttl_ms = [2_000, 3_000][self.0.random.random_range(0..2)];
        let campaign = |request: &str, candidate: &str| Op::Campaign {
            resource: election.clone(),
            candidate: candidate.into(),
            value: format!("by {request}"),
            request: request.into(),
            wait_ms,
            ttl_ms,
        };
        let first = campaign(&request, &request);
        let patience = match self.0.chance(15) {
            false => wait_ms + 10_000,
            // Its process dies while it waits, and its next one campaigns by the same name.
            true => self.0.random.random_range(50..1_500),
        };
        let (mut asked, mut by) = (self.0.ask(&first, ms(patience)).await, request.clone());
        if matches!(asked, Asked::GivenUp) && self.0.chance(60) {
            by = self.0.new_request();
            let again = campaign(&by, &request);
            asked = self.0.ask(&again, ms(wait_ms + 10_000)).await;
        }
        match asked {
            Asked::Granted(heard) => {
                let Heard::Elected(elected) = *heard else {
                    panic!("no answer to a campaign: {heard:?}")
                };
                let (resource, lease) = (election, elected.lease_id);
                let lease = LeaseOf { family: FAMILY, resource, lease, request: by };
                self.lead(&lease, ms(ttl_ms)).await;
            }
            Asked::Refused => {}
            Asked::GivenUp if self.0.chance(15) => {}
            Asked::GivenUp => {
                let op = Op::Abandon { family: FAMILY, resource: election, request: by };
                self.0.insist(&op).await;
            }
        }
    }

    async fn lead(&mut self, lease: &LeaseOf, ttl: Duration) {
        if self.0.chance(60) {
            self.proclaim(lease).await;
        }
        match self.0.random.random_range(0..100) {
            0..35 => {
                let work = self.0.random.random_range(0..60);
                self.0.rest(ms(work)).await;
                self.0.insist(&Op::Release(lease.clone())).await;
            }
            35..65 => self.hand_off(lease).await,
            65..80 => {
                for _ in 0..self.0.random.random_range(2..6) {
                    self.0.rest(ttl / 3).await;
                    let renewed = self.0.insist(&Op::Renew(lease.clone())).await;
                    if !matches!(renewed, Some(Heard::Renewed(_))) || self.0.stop.is_set() {
                        break;
                    }
                }
                self.0.insist(&Op::Release(lease.clone())).await;
            }
            80..93 => {
                // It stands still past its term, and goes on as if nothing had been.
                self.0.rest(ttl + ms(1_200)).await;
                match self.0.random.random_range(0..3) {
                    0 => self.proclaim(lease).await,
                    1 => self.hand_off(lease).await,
                    _ => drop(self.0.insist(&Op::Renew(lease.clone())).await),
                }
            }
            _ => {}
        }
    }

    async fn proclaim(&mut self, lease: &LeaseOf) {
        let request = self.0.new_request();
        let value = format!("proclaimed {request}");
        self.0.insist(&Op::Proclaim { lease: lease.clone(), value, request }).await;
    }

    /// To somebody who was seen to wait; whether they still do is the point.
    async fn hand_off(&mut self, lease: &LeaseOf) {
        let queue = self.look(&lease.resource).await.map(|it| it.queue).unwrap_or_default();
        let waiting = queue.get(self.0.random.random_range(0..queue.len().max(1)));
        let to = waiting.map(|waiter| waiter.owner.clone());
        let nobody = || "nobody".to_owned();
        let (to, request) = (to.unwrap_or_else(nobody), self.0.new_request());
        let handed = self.0.insist(&Op::Handoff { lease: lease.clone(), to, request }).await;
        if !matches!(handed, Some(Heard::HandedOff(_))) {
            self.0.insist(&Op::Release(lease.clone())).await;
        }
    }
}
