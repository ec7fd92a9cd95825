//! One replica: plans, claims, runs, renews, finishes, and is killed, paused and cut off meanwhile.

use super::{
    super::plan::{Next, next},
    ledger::{Grant, Refusal, Service},
    world::{Execution, Network, World},
};
use sereno_api::RunResult;

/// What a replica is at.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Killed; starts anew at this moment.
    Dead {
        until: u64,
    },
    Idle {
        wake: u64,
    },
    Claiming {
        request: u64,
        version: u64,
        slot: u64,
        sent: Vec<u64>,
    },
    Running {
        grant: Grant,
        deadline: u64,
        renew_at: u64,
        done_at: u64,
        result: RunResult,
    },
    Finishing {
        token: u64,
        result: RunResult,
    },
    Abandoning {
        request: u64,
    },
}

pub(super) struct Replica {
    pub phase: Phase,
    /// A paused process does nothing, but its watchdog does.
    pub paused_until: u64,
    /// Ahead of the service's wall clock, in milliseconds.
    pub skew: i64,
    cut_off_until: u64,
    next_call: u64,
}

/// The longest that a plan is believed without another read.
const POLL: u64 = 5_000;
/// A claim that is not answered for so long is given up.
const CLAIM_WITHIN: u64 = 10_000;

/// The local deadline: from when the call was sent, less 1 % and 20 ms.
fn local_deadline(sent: u64, expires_in: u64) -> u64 {
    sent + expires_in - expires_in / 100 - 20
}

impl Replica {
    pub(super) fn new(skew: i64) -> Self {
        let phase = Phase::Idle { wake: 0 };
        Self { phase, paused_until: 0, skew, cut_off_until: 0, next_call: 0 }
    }

    pub(super) fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    fn wall(&self, world: &World) -> u64 {
        world.wall().saturating_add_signed(self.skew)
    }

    /// What happens to it from outside.
    pub(super) fn suffer(&mut self, world: &mut World) {
        let now = world.now;
        if matches!(self.phase, Phase::Dead { .. }) {
            return;
        }
        if world.chance(0.0006) {
            world.stop(&self.phase);
            self.phase = Phase::Dead { until: now + world.some(100..4_000) };
        } else if world.chance(0.0006) {
            self.paused_until = now + world.some(100..9_000);
        } else if world.chance(0.0004) {
            self.cut_off_until = now + world.some(100..9_000);
        }
    }

    /// One step of its own.
    pub(super) fn act(&mut self, world: &mut World, service: &mut Service) {
        let now = world.now;
        // The watchdog acts in a paused process's stead, and so does the clock of what it runs.
        if let Phase::Running { grant, deadline, done_at, result, .. } = self.phase {
            let is_done = done_at <= now && self.paused_until <= now;
            if is_done || deadline <= now {
                world.stop(&self.phase);
                let result = if is_done { result } else { RunResult::Failed };
                if is_done && result == RunResult::Succeeded {
                    world.completed(grant);
                }
                self.phase = Phase::Finishing { token: grant.token, result };
            }
        }
        if self.paused_until > now || (self.next_call > now && !self.is_working()) {
            return;
        }
        match self.phase.clone() {
            Phase::Dead { until } if until <= now => self.phase = Phase::Idle { wake: now },
            Phase::Idle { wake } if wake <= now => self.plan(world, service),
            Phase::Claiming { request, version, slot, sent } => {
                self.claim(world, service, (request, version, slot), sent);
            }
            Phase::Running { renew_at, .. } if renew_at <= now => self.renew(world, service),
            Phase::Finishing { token, result } => {
                let answer = self.call(world, |_| service.finish(token, result));
                self.idle_after(answer, now);
            }
            Phase::Abandoning { request } => {
                let answer = self.call(world, |_| service.abandon(request));
                self.idle_after(answer, now);
            }
            _ => {}
        }
    }

    /// What was owed is done once it is answered.
    fn idle_after(&mut self, answer: Option<()>, now: u64) {
        if answer.is_some() {
            self.phase = Phase::Idle { wake: now };
        }
    }

    /// A call that may be lost on its way, or its answer.
    fn call<T>(&mut self, world: &mut World, act: impl FnOnce(&mut World) -> T) -> Option<T> {
        self.next_call = world.now + world.some(50..400);
        if self.cut_off_until > world.now {
            return None;
        }
        match world.network() {
            Network::Lost => None,
            Network::AnswerLost => {
                act(world);
                None
            }
            Network::Good => {
                self.next_call = world.now;
                Some(act(world))
            }
        }
    }

    fn plan(&mut self, world: &mut World, service: &mut Service) {
        let Some(ledger) = self.call(world, |_| service.read()) else { return };
        let wall = self.wall(world);
        let wait = match next(&ledger, &world.schedule, wall) {
            Next::Claim(slot) => {
                let request = world.draw();
                self.phase =
                    Phase::Claiming { request, version: ledger.version, slot, sent: Vec::new() };
                return;
            }
            Next::Wait(until) => until.map_or(POLL, |until| until.saturating_sub(wall).min(POLL)),
            Next::Paused => POLL,
        };
        self.phase = Phase::Idle { wake: world.now + wait };
    }

    fn claim(
        &mut self,
        world: &mut World,
        service: &mut Service,
        (request, version, slot): (u64, u64, u64),
        mut sent: Vec<u64>,
    ) {
        let now = world.now;
        sent.push(now);
        let given_up = sent[0] + CLAIM_WITHIN <= now;
        self.phase = match given_up {
            true => Phase::Abandoning { request },
            false => Phase::Claiming { request, version, slot, sent },
        };
        if given_up {
            return;
        }
        let wall = world.wall();
        match self.call(world, |_| service.claim(request, version, slot, wall)) {
            None => {}
            Some(Err(Refusal::TooEarly)) => self.phase = Phase::Idle { wake: now + 500 },
            Some(Err(_)) => self.phase = Phase::Idle { wake: now + world.some(1..200) },
            Some(Ok(grant)) => self.begin(world, service, grant),
        }
    }

    fn begin(&mut self, world: &mut World, service: &Service, grant: Grant) {
        let now = world.now;
        let deadline = local_deadline(now, grant.expires_in);
        if deadline <= now {
            self.phase = Phase::Finishing { token: grant.token, result: RunResult::Failed };
            return;
        }
        let done_at = now + world.some(10..world.work_max);
        let result = match world.chance(world.failing) {
            true => RunResult::Failed,
            false => RunResult::Succeeded,
        };
        world.begun(
            service,
            Execution { slot: grant.slot, attempt: grant.attempt, token: grant.token },
        );
        let renew_at = now + grant.expires_in / 3;
        self.phase = Phase::Running { grant, deadline, renew_at, done_at, result };
    }

    fn renew(&mut self, world: &mut World, service: &mut Service) {
        let now = world.now;
        let Phase::Running { grant, .. } = self.phase else { return };
        let answer = self.call(world, |_| service.renew(grant.token));
        let Phase::Running { deadline, renew_at, .. } = &mut self.phase else { return };
        match answer {
            Some(Ok(expires_in)) => {
                *deadline = local_deadline(now, expires_in);
                *renew_at = now + expires_in / 3;
            }
            // The service says that it is over: at once.
            Some(Err(_)) => *deadline = now,
            None => *renew_at = now + 300,
        }
    }
}
