//! The mixed load on jobs: replicas that claim slots, renew, write what they did under the attempt's token, finish well or
//! badly, give claims back, die in the middle, and come back late. An operator ends attempts.

use super::caller::{Asked, Caller, ms};
use crate::{
    history::{Family, Heard, LeaseOf, Op},
    resource::{self, What},
};
use rand::RngExt;
use sereno_api::{Job, RunState};
use sereno_schedule::instant;
use std::{
    io,
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const FAMILY: Family = Family::Job;
/// A slot each two seconds.
const SLOT_MS: u64 = 2_000;
/// How often a run is tried again: each job by its own rule.
pub(crate) const RETRIES: [u32; 3] = [0, 2, 5];

/// The jobs of a run.
pub(crate) fn job(index: usize) -> String {
    // A name that ends with digits alone is that of a run.
    format!("job/j{index}")
}

/// Every slot of the last one counts, of the others the latest.
pub(crate) fn put(index: usize) -> Op {
    let all = index + 1 == RETRIES.len();
    Op::PutJob { resource: job(index), all, retries: RETRIES[index] }
}

/// One worker: a replica of all jobs.
pub(super) struct Worker {
    pub(super) caller: Caller,
    pub(super) resource: SocketAddr,
}

impl Worker {
    pub(super) async fn run(mut self) {
        while !self.caller.stop.is_set() {
            let name = job(self.caller.random.random_range(0..RETRIES.len()));
            if let Some(job) = self.look(name).await {
                match self.caller.random.random_range(0..100) {
                    0..4 => self.force(&job).await,
                    _ => self.attempt(job).await,
                }
            }
            self.caller.pause().await;
        }
    }

    async fn look(&mut self, resource: String) -> Option<Job> {
        match self.caller.call(&Op::Get { family: FAMILY, resource }).await {
            Heard::Ledger(job) => Some(*job),
            _ => {
                self.caller.move_on().await;
                None
            }
        }
    }

    async fn force(&mut self, job: &Job) {
        let live = job.runs.iter().find(|run| run.state == RunState::Claimed);
        if let Some(token) = live.and_then(|run| run.fencing_token) {
            let (resource, request) = (job.job.clone(), self.caller.new_request());
            self.caller.insist(&Op::Force { family: FAMILY, resource, token, request }).await;
        }
    }

    /// What died or failed, before what is due now; and at times what has been over for long.
    fn slot(&mut self, job: &Job) -> u64 {
        let of = |state: RunState| {
            let run = job.runs.iter().rev().find(|run| run.state == state)?;
            instant::parse(&run.slot)
        };
        let due = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let ms = u64::try_from(since.as_millis()).expect("it is not that late");
            ms - ms % SLOT_MS
        };
        let over = self.caller.chance(10).then(|| of(RunState::Succeeded)).flatten();
        over.or_else(|| of(RunState::Retry)).unwrap_or_else(due)
    }

    async fn attempt(&mut self, job: Job) {
        let (slot, request) = (self.slot(&job), self.caller.new_request());
        let ttl_ms = [1_500, 2_500][self.caller.random.random_range(0..2)];
        let (resource, version) = (job.job, job.version);
        let op = Op::Claim {
            resource: resource.clone(),
            version,
            slot,
            request: request.clone(),
            ttl_ms,
        };
        match self.caller.ask(&op, ms(8_000)).await {
            Asked::Granted(heard) => {
                let Heard::Claimed(claimed) = *heard else {
                    panic!("no answer to a claim: {heard:?}")
                };
                let lease = LeaseOf { family: FAMILY, resource, lease: claimed.lease_id, request };
                // The resource is no part of what is tested: without it there is nothing to do.
                let done = self.work(&lease, slot, claimed.fencing_token, ms(ttl_ms)).await;
                done.expect("the resource is there");
            }
            Asked::Refused => {}
            Asked::GivenUp => {
                self.caller.insist(&Op::Abandon { family: FAMILY, resource, request }).await;
            }
        }
    }

    async fn work(
        &mut self,
        lease: &LeaseOf,
        slot: u64,
        token: u64,
        ttl: Duration,
    ) -> io::Result<()> {
        let fate = self.caller.random.random_range(0..100);
        if fate < 8 {
            let (resource, request) = (lease.resource.clone(), lease.request.clone());
            self.caller.insist(&Op::Abandon { family: FAMILY, resource, request }).await;
            return Ok(());
        }
        match fate {
            // It stands still past its lease, and goes on as if nothing had been.
            8..25 => self.caller.rest(ttl + ms(1_000)).await,
            25..45 => {
                for _ in 0..self.caller.random.random_range(2..6) {
                    self.caller.rest(ttl / 3).await;
                    self.caller.insist(&Op::Renew(lease.clone())).await;
                }
            }
            _ => {}
        }
        let is_written = self.write(&lease.resource, slot, token).await?;
        if fate % 10 == 9 {
            // It dies just before it says so.
            return Ok(());
        }
        let (succeeded, request) =
            (is_written && !self.caller.chance(15), self.caller.new_request());
        let op = Op::Finish { lease: lease.clone(), succeeded, request };
        if self.caller.chance(15) {
            self.caller.twice(&op).await;
        }
        self.caller.insist(&op).await;
        Ok(())
    }

    /// The slot is written into a set, under the attempt's token. Refused: a later attempt was there.
    async fn write(&mut self, job: &str, slot: u64, token: u64) -> io::Result<bool> {
        let mut door = resource::Door::open(self.resource).await?;
        let read = door.ask(job, Some(token), What::Read).await?;
        if !read.done {
            return Ok(false);
        }
        let mut all = read.all;
        all.insert(slot);
        Ok(door.ask(job, Some(token), What::Write { element: slot, all }).await?.done)
    }
}
