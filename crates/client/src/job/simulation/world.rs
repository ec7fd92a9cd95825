//! Time, chance, the network, and what has been seen to run.

use super::{
    ledger::{Grant, Service},
    replica::Phase,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sereno_api::{Missed, Overlap, RunState};
use sereno_schedule::Schedule;
use std::{collections::BTreeMap, ops::Range};

/// When the simulation begins on the wall clock (Unix milliseconds), as its log does.
pub(super) const EPOCH: u64 = sereno_core::testing::TOKEN_CLOCK_US / 1_000;

/// With `missed: skip` nothing begins later: 5 minutes, and what clocks differ by and a claim may take.
const SKIPPED_AFTER: u64 = 300_000 + 2_000 + 10_000;

pub(super) struct World {
    pub now: u64,
    /// The service answers.
    pub is_up: bool,
    pub schedule: Schedule,
    pub work_max: u64,
    /// How often the work fails by its own account.
    pub failing: f64,
    random: StdRng,
    last_id: u64,
    /// By token.
    working: BTreeMap<u64, Execution>,
    /// By fence key: one for the job, or one for each slot where they may overlap.
    last_tokens: BTreeMap<u64, u64>,
    /// Of each slot: what was begun, and how often it was done to its end.
    pub begun: BTreeMap<u64, u32>,
    pub done: BTreeMap<u64, u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub slot: u64,
    pub attempt: u32,
    pub token: u64,
}

pub(super) enum Network {
    Good,
    Lost,
    AnswerLost,
}

impl World {
    pub(super) fn new(seed: u64, schedule: Schedule, work_max: u64, failing: f64) -> Self {
        Self {
            now: 0,
            is_up: true,
            schedule,
            work_max,
            failing,
            random: StdRng::seed_from_u64(seed),
            last_id: 0,
            working: BTreeMap::new(),
            last_tokens: BTreeMap::new(),
            begun: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    /// The service's wall clock.
    pub(super) fn wall(&self) -> u64 {
        EPOCH + self.now
    }

    pub(super) fn chance(&mut self, of: f64) -> bool {
        self.random.random::<f64>() < of
    }

    pub(super) fn some(&mut self, range: Range<u64>) -> u64 {
        self.random.random_range(range)
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn network(&mut self) -> Network {
        match self.random.random_range(0..100) {
            _ if !self.is_up => Network::Lost,
            0..4 => Network::Lost,
            4..8 => Network::AnswerLost,
            _ => Network::Good,
        }
    }

    /// The promises, each time something begins.
    pub(super) fn begun(&mut self, service: &Service, execution: Execution) {
        let Execution { slot, attempt, token } = execution;
        assert!(!service.succeeded.contains(&slot), "finished and begun again: {execution:?}");
        let late = self.wall().saturating_sub(slot);
        let is_missed = service.missed == Missed::Skip && slot % 1_000 == 0 && attempt == 1;
        assert!(!is_missed || late <= SKIPPED_AFTER, "{execution:?} is {late} ms late");
        let row = &service.rows[&slot];
        assert_eq!(row.state, RunState::Claimed, "begun without a valid lease: {execution:?}");
        assert_eq!((row.attempt, row.token), (attempt, token), "{execution:?}");
        let fence_key = if service.overlap == Overlap::Allow { slot } else { 0 };
        let before = self.last_tokens.insert(fence_key, token);
        assert!(before.is_none_or(|before| token > before), "{execution:?} after {before:?}");
        let twice = self.working.values().find(|other| other.slot == slot);
        assert!(twice.is_none(), "{execution:?} while {twice:?} runs");
        let other = self.working.values().next().filter(|_| service.overlap != Overlap::Allow);
        assert!(other.is_none(), "{execution:?} beside {other:?}");
        assert!(attempt <= service.retries + 1, "{execution:?} with {} retries", service.retries);
        *self.begun.entry(slot).or_default() += 1;
        self.working.insert(token, execution);
    }

    /// Whatever it was at is stopped.
    pub(super) fn stop(&mut self, phase: &Phase) {
        if let Phase::Running { grant, .. } = phase {
            self.working.remove(&grant.token);
        }
    }

    /// The work of a slot came to its end.
    pub(super) fn completed(&mut self, grant: Grant) {
        *self.done.entry(grant.slot).or_default() += 1;
    }
}
