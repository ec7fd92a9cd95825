//! What every worker of the mixed load has: its name, its dice, the node that it asks, and how it goes on without an answer.

use super::{Stop, door::Door};
use crate::history::{Heard, Op};
use rand::{RngExt, rngs::StdRng};
use sereno_api::RetryWith;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// So often a call is repeated that has to come through.
const PERSISTENCE: usize = 12;

/// Who calls.
pub(super) struct Caller {
    pub(super) door: Arc<Door>,
    pub(super) name: String,
    pub(super) random: StdRng,
    pub(super) stop: Stop,
    requests: u32,
    node: usize,
}

/// What became of asking for a lease.
pub(super) enum Asked {
    /// It was granted: the answer.
    Granted(Box<Heard>),
    /// For good.
    Refused,
    /// Nobody knows: the caller does not ask any more.
    GivenUp,
}

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Caller {
    pub(super) fn new(door: Arc<Door>, name: String, mut random: StdRng, stop: Stop) -> Self {
        let node = random.random_range(0..door.nodes());
        Self { door, name, random, stop, requests: 0, node }
    }

    /// A while until the next thing.
    pub(super) async fn pause(&mut self) {
        let pause = self.random.random_range(5..120);
        self.rest(ms(pause)).await;
    }

    /// Ends early when the run does.
    pub(super) async fn rest(&mut self, pause: Duration) {
        let _ = tokio::time::timeout(pause, self.stop.wait()).await;
    }

    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    pub(super) fn new_request(&mut self) -> String {
        self.requests += 1;
        format!("{}-{:05}", self.name, self.requests)
    }

    pub(super) async fn call(&mut self, op: &Op) -> Heard {
        self.door.call(&self.name, self.node, op).await
    }

    /// The same call at two nodes at once, as a network may make copies. The first one's answer.
    pub(super) async fn twice(&mut self, op: &Op) -> Heard {
        let other = (self.node + 1) % self.door.nodes();
        let copy = self.door.call(&self.name, other, op);
        let (first, _) = tokio::join!(self.door.call(&self.name, self.node, op), copy);
        first
    }

    /// The next node, after a little while.
    pub(super) async fn move_on(&mut self) {
        self.node = (self.node + 1) % self.door.nodes();
        let pause = self.random.random_range(10..60);
        tokio::time::sleep(ms(pause)).await;
    }

    /// Until it is decided, or hopeless.
    pub(super) async fn insist(&mut self, op: &Op) -> Option<Heard> {
        for _ in 0..PERSISTENCE {
            let heard = self.call(op).await;
            if !is_undecided(&heard) {
                return Some(heard);
            }
            self.move_on().await;
        }
        None
    }

    /// Asks for a lease, with the same request again and again.
    pub(super) async fn ask(&mut self, op: &Op, patience: Duration) -> Asked {
        let begun = Instant::now();
        if self.chance(5) {
            self.twice(op).await;
        }
        while begun.elapsed() < patience {
            let heard = tokio::time::timeout(patience, self.call(op)).await;
            match heard {
                Ok(heard) if heard.is_wait() => {
                    if self.chance(30) {
                        self.move_on().await;
                    }
                }
                Ok(heard) if is_undecided(&heard) => self.move_on().await,
                Ok(Heard::Problem(_)) => return Asked::Refused,
                Ok(heard) => return Asked::Granted(Box::new(heard)),
                // Its connection is closed, and its answer never read.
                Err(_) => return Asked::GivenUp,
            }
        }
        Asked::GivenUp
    }
}

/// The same call has to be sent again.
pub(super) fn is_undecided(heard: &Heard) -> bool {
    match heard {
        Heard::Nothing { .. } => true,
        Heard::Problem(problem) => problem.retry_with == Some(RetryWith::SameRequestId),
        _ => false,
    }
}
