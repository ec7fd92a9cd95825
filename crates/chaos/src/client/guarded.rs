//! Jepsen's lock workloads, with the SDK's guards: a set guarded by the lock only, a set guarded by lock and fence,
//! and the mutex itself, a room that only the holder should be in. And an elected leader who writes under its term.

use super::{Stop, door::Door};
use crate::{
    clock::{SECOND, now},
    history::Family,
    resource::{self, What},
};
use rand::{RngExt, rngs::StdRng};
use sereno_client::{Client, Guard};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};

/// What is done under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Add to a set: read, change, write back; guarded by the lock only.
    Plain,
    /// The same with the token.
    Fenced,
    /// Enter the room, and leave it.
    Room,
    /// As `Fenced`, by the leader of an election.
    Led,
}

impl Work {
    /// What guards it.
    pub(super) fn guarded_by(self) -> (Family, &'static str) {
        match self {
            Self::Plain => (Family::Lock, "guarded/plain"),
            Self::Fenced => (Family::Lock, "guarded/fenced"),
            Self::Room => (Family::Lock, "guarded/room"),
            Self::Led => (Family::Election, "guarded/led"),
        }
    }

    fn is_fenced(self) -> bool {
        matches!(self, Self::Fenced | Self::Led)
    }
}

pub(super) struct Worker {
    pub(super) door: Arc<Door>,
    pub(super) sereno: Client,
    pub(super) resource: SocketAddr,
    pub(super) random: StdRng,
    pub(super) stop: Stop,
    pub(super) work: Work,
}

/// Sets change their name after so long, so that none grows large.
const SET_LIFE: u64 = 20 * SECOND;
/// How long for lock and term.
const WAIT: Duration = Duration::from_secs(3);

impl Worker {
    pub(super) async fn run(mut self) {
        let (family, name) = self.work.guarded_by();
        let place = family.place(name);
        while !self.stop.is_set() {
            let ttl = Duration::from_millis([2_000, 3_000][self.random.random_range(0..2)]);
            // Some stand still in the middle for longer than their lease; nobody renews it meanwhile, for a process
            // that stands still does not do that either.
            let dreams = self.random.random_range(0..100) < 6;
            // The resource is no part of what is tested: without it there is nothing to do. What the service answers
            // in the end, or its silence, is its own business.
            if family == Family::Election {
                self.lead(name, &place, ttl, dreams).await;
            } else {
                self.lock(name, &place, ttl, dreams).await;
            }
            let pause = Duration::from_millis(self.random.random_range(10..200));
            let _ = tokio::time::timeout(pause, self.stop.wait()).await;
        }
    }

    async fn lock(&mut self, name: &str, place: &str, ttl: Duration, dreams: bool) {
        let mut acquire = self.sereno.lock(name).ttl(ttl).wait(WAIT);
        if dreams {
            acquire = acquire.max_hold(ttl);
        }
        if let Ok(guard) = acquire.acquire().await {
            self.under(&guard, place, dreams).await.expect("the resource is there");
            let _ = guard.release().await;
        }
    }

    async fn lead(&mut self, name: &str, place: &str, ttl: Duration, dreams: bool) {
        let mut campaign = self.sereno.election(name).ttl(ttl).wait(WAIT);
        if dreams {
            campaign = campaign.max_hold(ttl);
        }
        if let Ok(leadership) = campaign.campaign().await {
            let done = self.under(leadership.guard(), place, dreams).await;
            done.expect("the resource is there");
            let _ = leadership.resign().await;
        }
    }

    async fn under(&mut self, guard: &Guard, place: &str, dreams: bool) -> io::Result<()> {
        let since = now();
        let Ok(token) = guard.token() else { return Ok(()) };
        self.still_holds(guard, place, token, since);
        let mut resource = resource::Door::open(self.resource).await?;
        let fence = Some(token).filter(|_| self.work.is_fenced());
        let name = format!("{place}/{}", since / SET_LIFE);
        if self.work == Work::Room {
            resource.ask(&name, None, What::Enter).await?;
            self.think(guard, place, token, since).await;
            self.dream(dreams).await;
            resource.ask(&name, None, What::Leave).await?;
            return Ok(());
        }
        let read = resource.ask(&name, fence, What::Read).await?;
        let holds = self.think(guard, place, token, since).await;
        if holds && read.done {
            // Between that look at the guard and this write the process may stand still for as long as it likes.
            self.dream(dreams).await;
            let element = self.random.random_range(0..1 << 52);
            let mut all = read.all;
            all.insert(element);
            resource.ask(&name, fence, What::Write { element, all }).await?;
        }
        Ok(())
    }

    /// Some work, with a look at the guard after each part of it.
    async fn think(&mut self, guard: &Guard, place: &str, token: u64, since: u64) -> bool {
        for _ in 0..self.random.random_range(1..6) {
            let part = Duration::from_millis(self.random.random_range(0..15));
            tokio::time::sleep(part).await;
            if !self.still_holds(guard, place, token, since) {
                return false;
            }
        }
        true
    }

    async fn dream(&mut self, dreams: bool) {
        if dreams {
            let pause = Duration::from_millis(self.random.random_range(500..6_000));
            tokio::time::sleep(pause).await;
        }
    }

    fn still_holds(&self, guard: &Guard, place: &str, token: u64, since: u64) -> bool {
        let before = now();
        let holds = guard.check().is_ok();
        if holds {
            self.door.recorder().guard(place, token, since, before);
        }
        holds
    }
}
