//! The service, as a replica meets it: the real state machine, which decides every command, and the door's one rule of
//! its own. All times are milliseconds.

use super::super::ledger::{Ledger, Row};
use super::world::EPOCH;
use sereno_api::{Missed, Overlap, RunResult, RunState};
use sereno_core::{
    command::{
        self as core, Abandon, ClaimRun, Family, FinishRun, JobCommand, JobDefinition, LeaseRef,
        Operation, PauseJob, PutJob, Renew, SlotOfJob,
    },
    entry::Body,
    event::{Event, EventKind},
    ids::{LeaseId, Slot},
    limits,
    names::{
        Labels, NamespaceName, Owner, Reason, RequestId, ResourceName, ScheduleText, ZoneName,
    },
    outcome::{self, Code, Done, End},
    query::{JobView, RunView},
    testing::{Scribe, default_namespace, lease_id, resource_name},
};
use std::collections::{BTreeMap, BTreeSet};

/// The real ledger of one job, and what the log has said of its slots.
pub(super) struct Service {
    pub missed: Missed,
    pub overlap: Overlap,
    pub retries: u32,
    pub paused: bool,
    pub watermark: u64,
    /// As the state machine tells them after its last entry.
    pub rows: BTreeMap<u64, Entry>,
    /// What each slot that was ever claimed or asked for came to, by the log's events.
    states: BTreeMap<u64, RunState>,
    /// Slots that were accepted as done.
    pub succeeded: BTreeSet<u64>,
    scribe: Scribe,
    version: u64,
    /// Up to where the log has come on the wall clock; the rest is in `owed`.
    wall: u64,
    /// Time that is not written yet.
    owed: u64,
    drawn: u64,
    /// Of each token, the secret that goes with it.
    leases: BTreeMap<u64, LeaseId>,
}

/// One slot of the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub state: RunState,
    pub attempt: u32,
    pub token: u64,
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
    /// By the door.
    TooEarly,
    /// By the log.
    Code(Code),
}

const TTL: u64 = 5_000;
/// The longest that time goes on without an entry.
const HEARTBEAT: u64 = 50;

impl Entry {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, RunState::Asked | RunState::Retry | RunState::Claimed)
    }
}

fn job() -> ResourceName {
    resource_name("settlement")
}

fn reason() -> Reason {
    Reason::new("the simulation").unwrap()
}

fn request_id(kind: &str, number: u64) -> RequestId {
    RequestId::new(&format!("{kind}-{number:08}")).unwrap()
}

impl Service {
    /// A job that was put when the simulation began.
    pub(super) fn new(missed: Missed, overlap: Overlap, retries: u32) -> Self {
        let mut service = Self {
            missed,
            overlap,
            retries,
            paused: false,
            watermark: 0,
            rows: BTreeMap::new(),
            states: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            scribe: Scribe::new(),
            version: 0,
            wall: EPOCH,
            // The slot at the very beginning was due before the job was put.
            owed: 1,
            drawn: 0,
            leases: BTreeMap::new(),
        };
        service.done(Operation::RaiseLevel { level: 3 });
        service.put();
        service
    }

    fn view(&self) -> JobView {
        self.scribe.state.job_view(&default_namespace(), &job()).flatten().expect("it was put")
    }

    /// What a replica reads.
    pub(super) fn read(&mut self) -> Ledger {
        self.pass();
        let view = self.view();
        Ledger {
            version: view.version,
            paused: view.paused,
            missed: self.missed,
            overlap: self.overlap,
            watermark: view.watermark.0,
            rows: view.runs.iter().map(|run| (run.slot.0, row(run))).collect(),
        }
    }

    /// Time goes on by this, up to now on the wall clock; what is due ends. Cluster time stands still while the service
    /// is down: whoever leads after that goes on from its own wall clock.
    pub(super) fn tick(&mut self, by: u64, wall: u64) {
        if self.wall + by < wall {
            self.pass();
            let applied = self.scribe.lead("next", (wall - by) * 1_000);
            self.learn(&applied.events);
        }
        self.wall = wall;
        self.owed += by;
        if self.owed >= HEARTBEAT {
            self.pass();
        }
    }

    /// Writes the time that has passed.
    fn pass(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        if owed > 0 {
            let applied = self.scribe.write(owed, Body::Batch(Vec::new()));
            self.learn(&applied.events);
        }
    }

    fn decide(&mut self, operation: Operation) -> Result<Done, Code> {
        let owed = std::mem::take(&mut self.owed);
        let mut applied = self.scribe.batch(owed, vec![operation]);
        self.learn(&applied.events);
        let outcome = applied.outcomes.pop().expect("one outcome for one command");
        outcome.result.map_err(|refusal| refusal.code)
    }

    /// Of what nobody may refuse.
    fn done(&mut self, operation: Operation) -> Done {
        self.decide(operation).expect("it is done")
    }

    fn learn(&mut self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        for event in events {
            let (slot, state) = match event.kind {
                EventKind::RunAsked { slot, .. } => (slot, RunState::Asked),
                EventKind::RunClaimed { slot, .. } => (slot, RunState::Claimed),
                EventKind::RunChanged { slot, state, .. } => (slot, run_state(state)),
                _ => continue,
            };
            self.states.insert(slot.0, state);
            if state == RunState::Succeeded {
                self.succeeded.insert(slot.0);
            }
        }
        if let Some(view) = self.scribe.state.job_view(&default_namespace(), &job()).flatten() {
            (self.paused, self.watermark) = (view.paused, view.watermark.0);
            self.rows = view.runs.iter().map(|run| (run.slot.0, entry(run))).collect();
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
        self.states.get(&slot).copied()
    }

    pub(super) fn claim(
        &mut self,
        request: u64,
        version: u64,
        slot: u64,
        wall: u64,
    ) -> Result<Grant, Refusal> {
        if slot > wall + limits::SLOT_AHEAD_MS_MAX {
            return Err(Refusal::TooEarly);
        }
        self.drawn += 1;
        let claim = ClaimRun {
            namespace: default_namespace(),
            job: job(),
            job_version: version,
            slot: Slot(slot),
            request_id: request_id("claim", request),
            owner: Owner::new("a replica").unwrap(),
            lease_id: lease_id(self.drawn),
            lease_ttl_ms: Some(TTL),
            labels: Labels::default(),
        };
        match self.decide(Operation::Job(JobCommand::ClaimRun(claim))) {
            Ok(Done::RunClaimed(outcome::RunClaimed { grant, slot, attempt })) => {
                let token = grant.holdings[0].1.0;
                self.leases.insert(token, grant.lease_id);
                Ok(Grant { slot: slot.0, attempt, token, expires_in: grant.expires_in_ms })
            }
            Ok(other) => panic!("a claim was answered {other:?}"),
            Err(code) => Err(Refusal::Code(code)),
        }
    }

    fn lease(&self, token: u64) -> LeaseRef {
        LeaseRef { resource: job(), lease_id: self.leases[&token] }
    }

    pub(super) fn renew(&mut self, token: u64) -> Result<u64, Refusal> {
        let (namespace, lease) = (default_namespace(), self.lease(token));
        let renew = Renew { namespace, lease, lease_ttl_ms: Some(TTL) };
        match self.decide(Operation::Job(JobCommand::RenewRun(renew))) {
            Ok(Done::Renewed(renewed)) => Ok(renewed.expires_in_ms),
            Ok(other) => panic!("a renewal was answered {other:?}"),
            Err(code) => Err(Refusal::Code(code)),
        }
    }

    /// Whatever comes of it: a replica has no use for a refusal here.
    pub(super) fn finish(&mut self, token: u64, result: RunResult) {
        let (kind, result) = match result {
            RunResult::Succeeded => ("succeeded", core::RunResult::Succeeded),
            _ => ("failed", core::RunResult::Failed),
        };
        let (namespace, lease) = (default_namespace(), self.lease(token));
        let request_id = request_id(kind, token);
        let finish = FinishRun { namespace, lease, result, request_id };
        let _ = self.decide(Operation::Job(JobCommand::FinishRun(finish)));
    }

    /// A grant that nobody heard of was never run.
    pub(super) fn abandon(&mut self, request: u64) {
        let (namespace, family) = (default_namespace(), Family::Job);
        let request_id = request_id("claim", request);
        self.done(Operation::Abandon(Abandon { namespace, family, request_id }));
    }

    /// An operator puts the same definition once more: a new version.
    pub(super) fn put(&mut self) {
        let definition = JobDefinition {
            schedule: ScheduleText::new("* * * * * *").unwrap(),
            zone: ZoneName::new("UTC").unwrap(),
            missed: match self.missed {
                Missed::Skip => core::Missed::Skip,
                Missed::Latest => core::Missed::Latest,
                _ => core::Missed::All,
            },
            overlap: self.overlap == Overlap::Allow,
            retries: self.retries,
            max_run_ms: 3_600_000,
        };
        let (namespace, expected_version) = (default_namespace(), self.version);
        let put = PutJob { namespace, job: job(), expected_version, definition };
        match self.done(Operation::Job(JobCommand::Put(put))) {
            Done::JobPut { version } => self.version = version,
            other => panic!("a put was answered {other:?}"),
        }
    }

    fn operators(&mut self) -> (NamespaceName, ResourceName, RequestId, Reason) {
        self.drawn += 1;
        (default_namespace(), job(), request_id("operator", self.drawn), reason())
    }

    pub(super) fn pause(&mut self, paused: bool) {
        let (namespace, job, request_id, reason) = self.operators();
        let pause = PauseJob { namespace, job, request_id, reason };
        self.done(Operation::Job(match paused {
            true => JobCommand::Pause(pause),
            false => JobCommand::Resume(pause),
        }));
    }

    pub(super) fn run_now(&mut self, slot: u64) {
        let (namespace, job, request_id, reason) = self.operators();
        let slot = Slot(slot);
        let run = SlotOfJob { namespace, job, slot, request_id, reason };
        self.done(Operation::Job(JobCommand::RunNow(run)));
    }
}

fn entry(run: &RunView) -> Entry {
    let token = run.last.as_ref().map_or(0, |last| last.token.0);
    Entry { state: run_state(run.state), attempt: run.attempt, token }
}

/// As the door tells it and the client reads it.
fn row(run: &RunView) -> Row {
    let last = run.last.as_ref();
    let state = run_state(run.state);
    let failed = last.filter(|last| state == RunState::Retry && last.end == Some(End::Finished));
    Row {
        state,
        attempt: run.attempt,
        expires_in: last.and_then(|last| last.expires_in_ms).unwrap_or(0),
        is_extra: run.reason.is_some(),
        failed_at: failed.and_then(|last| last.ended_at_ms),
    }
}

fn run_state(state: outcome::RunState) -> RunState {
    match state {
        outcome::RunState::Asked => RunState::Asked,
        outcome::RunState::Claimed => RunState::Claimed,
        outcome::RunState::Retry => RunState::Retry,
        outcome::RunState::Succeeded => RunState::Succeeded,
        outcome::RunState::Failed => RunState::Failed,
        outcome::RunState::Lost => RunState::Lost,
        outcome::RunState::Skipped => RunState::Skipped,
    }
}
