//! A run ledger that obeys the rules of the service, as small as can be. All times are milliseconds.

use super::super::ledger::{Ledger, Row};
use sereno_api::{Missed, Overlap, RunResult, RunState};
use std::collections::{BTreeMap, BTreeSet};

/// The rules of the job, and how the ledger stands.
pub(super) struct Fake {
    pub missed: Missed,
    pub overlap: Overlap,
    pub retries: u32,
    pub version: u64,
    pub paused: bool,
    pub watermark: u64,
    /// Those that may still run, and the last [`KEPT`].
    pub rows: BTreeMap<u64, Entry>,
    /// Older ones: gone from the ledger, kept for the test.
    pub past: BTreeMap<u64, Entry>,
    /// Slots that were accepted as done.
    pub succeeded: BTreeSet<u64>,
    /// Cluster time: it stands still while the service is down.
    pub time: u64,
    tokens: u64,
    requests: BTreeMap<u64, Asked>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub state: RunState,
    pub attempt: u32,
    pub token: u64,
    deadline: u64,
    failed_at: Option<u64>,
    /// An operator asked for it: no later slot takes its place.
    asked: bool,
}

/// What a request has come to.
#[derive(Clone, Copy)]
enum Asked {
    Granted(Grant),
    Abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub slot: u64,
    pub attempt: u32,
    /// The token names the lease too.
    pub token: u64,
    pub expires_in: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    VersionConflict,
    Paused,
    TooEarly,
    Finished,
    Claimed,
    Ended,
    Abandoned,
}

pub(super) const TTL: u64 = 5_000;
/// How many rows of the past the ledger keeps.
const KEPT: usize = 100;

impl Entry {
    fn new(state: RunState) -> Self {
        let asked = state == RunState::Asked;
        Self { state, attempt: 0, token: 0, deadline: 0, failed_at: None, asked }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, RunState::Asked | RunState::Retry | RunState::Claimed)
    }
}

impl Fake {
    pub(super) fn new(missed: Missed, overlap: Overlap, retries: u32, watermark: u64) -> Self {
        Self {
            missed,
            overlap,
            retries,
            version: 1,
            paused: false,
            watermark,
            rows: BTreeMap::new(),
            past: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            time: 0,
            tokens: 0,
            requests: BTreeMap::new(),
        }
    }

    pub(super) fn read(&self) -> Ledger {
        let row = |(&slot, entry): (&u64, &Entry)| {
            let expires_in = entry.deadline.saturating_sub(self.time);
            let Entry { state, attempt, failed_at, asked: is_extra, .. } = *entry;
            (slot, Row { state, attempt, expires_in, is_extra, failed_at })
        };
        Ledger {
            version: self.version,
            paused: self.paused,
            missed: self.missed,
            overlap: self.overlap,
            watermark: self.watermark,
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// Time goes on, and what is due ends.
    pub(super) fn tick(&mut self, by: u64) {
        self.time += by;
        let retries = self.retries;
        for row in self.rows.values_mut() {
            if row.state == RunState::Claimed && row.deadline <= self.time {
                row.state = if row.attempt > retries { RunState::Lost } else { RunState::Retry };
            }
        }
        self.forget();
    }

    /// What is dropped lies below the watermark.
    fn forget(&mut self) {
        let over: Vec<u64> =
            self.rows.iter().filter(|(_, row)| !row.is_open()).map(|(&slot, _)| slot).collect();
        for slot in over.iter().rev().skip(KEPT) {
            self.past.extend(self.rows.remove_entry(slot));
            self.watermark = self.watermark.max(slot + 1);
        }
    }

    /// Whether nothing can run in this slot any more.
    pub(super) fn is_over(&self, slot: u64) -> bool {
        match self.rows.get(&slot) {
            Some(row) => !row.is_open(),
            None => slot < self.watermark,
        }
    }

    /// What it has come to, if it was ever claimed or asked for.
    pub(super) fn state(&self, slot: u64) -> Option<RunState> {
        self.rows.get(&slot).or(self.past.get(&slot)).map(|row| row.state)
    }

    pub(super) fn claim(
        &mut self,
        request: u64,
        version: u64,
        slot: u64,
        wall: u64,
    ) -> Result<Grant, Refusal> {
        match self.requests.get(&request) {
            Some(Asked::Abandoned) => return Err(Refusal::Abandoned),
            Some(Asked::Granted(grant)) => {
                let grant = *grant;
                let live = self.live(grant.token).ok_or(Refusal::Ended)?;
                let expires_in = self.rows[&live].deadline - self.time;
                return Ok(Grant { expires_in, ..grant });
            }
            None => {}
        }
        self.decide(version, slot, wall)?;
        self.tokens += 1;
        let entry = self.rows.entry(slot).or_insert(Entry::new(RunState::Claimed));
        entry.state = RunState::Claimed;
        entry.attempt += 1;
        entry.token = self.tokens;
        entry.deadline = self.time + TTL;
        entry.failed_at = None;
        let attempt = entry.attempt;
        self.leave_out_before(slot);
        let grant = Grant { slot, attempt, token: self.tokens, expires_in: TTL };
        self.requests.insert(request, Asked::Granted(grant));
        Ok(grant)
    }

    fn decide(&self, version: u64, slot: u64, wall: u64) -> Result<(), Refusal> {
        let row = self.rows.get(&slot);
        let busy = |row: &Entry| row.state == RunState::Claimed;
        let is_busy = match self.overlap {
            Overlap::Allow => row.is_some_and(busy),
            _ => self.rows.values().any(busy),
        };
        match () {
            () if version != self.version => Err(Refusal::VersionConflict),
            () if self.paused => Err(Refusal::Paused),
            () if slot > wall + 5_000 => Err(Refusal::TooEarly),
            () if self.is_over(slot) => Err(Refusal::Finished),
            () if is_busy => Err(Refusal::Claimed),
            () => Ok(()),
        }
    }

    fn leave_out_before(&mut self, slot: u64) {
        let is_extra = self.rows[&slot].asked;
        if self.overlap == Overlap::Allow || self.missed == Missed::All || is_extra {
            return;
        }
        self.watermark = self.watermark.max(slot);
        for (_, row) in self.rows.range_mut(..slot) {
            if row.state == RunState::Retry && !row.asked {
                row.state = RunState::Skipped;
            }
        }
    }

    /// The slot whose attempt has this token and a valid lease.
    pub(super) fn live(&self, token: u64) -> Option<u64> {
        let is_it = |row: &Entry| row.token == token && row.state == RunState::Claimed;
        self.rows.iter().find(|(_, row)| is_it(row)).map(|(&slot, _)| slot)
    }

    pub(super) fn renew(&mut self, token: u64) -> Result<u64, Refusal> {
        let slot = self.live(token).ok_or(Refusal::Ended)?;
        let deadline = self.time + TTL;
        self.rows.entry(slot).and_modify(|row| row.deadline = deadline);
        Ok(TTL)
    }

    /// Also after the end of the lease, while no later attempt was claimed.
    pub(super) fn finish(&mut self, token: u64, result: RunResult, wall: u64) {
        let retries = self.retries;
        let Some((&slot, row)) = self.rows.iter_mut().find(|(_, row)| row.token == token) else {
            return;
        };
        match (row.state, result) {
            (RunState::Claimed | RunState::Retry | RunState::Lost, RunResult::Succeeded) => {
                row.state = RunState::Succeeded;
                self.succeeded.insert(slot);
            }
            (RunState::Claimed, _) => {
                row.failed_at = Some(wall);
                row.state = if row.attempt > retries { RunState::Failed } else { RunState::Retry };
            }
            _ => {}
        }
    }

    /// A grant that nobody heard of was never run.
    pub(super) fn abandon(&mut self, request: u64) {
        if let Some(Asked::Granted(grant)) = self.requests.insert(request, Asked::Abandoned)
            && let Some(slot) = self.live(grant.token)
            && let Some(row) = self.rows.get_mut(&slot)
        {
            row.attempt -= 1;
            row.token = 0;
            row.state = RunState::Retry;
        }
    }

    pub(super) fn run_now(&mut self, slot: u64) {
        self.rows.entry(slot).or_insert(Entry::new(RunState::Asked));
    }
}
