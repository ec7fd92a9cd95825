//! Scheduled jobs (DESIGN.md section 9): their definitions, the ledger of their slots, and what operators do to it.
//! Claims and attempts are in `run`.

use super::{
    State,
    memory::{Content, Fingerprint, encode},
    request::{No, Request},
};
use crate::{
    command::{Family, JobCommand, JobDefinition, PauseJob, PutJob, SlotOfJob},
    event::EventKind,
    ids::{LeaseId, ObjectId, Slot, Token},
    limits,
    names::{Caller, Invalid, NamespaceName, Owner, Reason, RequestId, ResourceName},
    outcome::{Code, Detail, Done, End, Missing, Outcome, Refusal, RunState},
    planted::{self, Planted},
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::BTreeMap;

/// A job: what it is, and what has become of its slots.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Job {
    pub(super) version: u64,
    pub(super) definition: JobDefinition,
    pub(super) paused: bool,
    /// Slots before this one that are not in `runs` count as finished.
    pub(super) watermark: Slot,
    pub(super) runs: BTreeMap<Slot, Run>,
}

/// One slot of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Run {
    pub(super) state: RunState,
    /// Attempts so far.
    pub(super) attempt: u32,
    pub(super) last: Option<Attempt>,
    /// Why an operator asked for it or left it out.
    pub(super) reason: Option<Reason>,
}

/// The last attempt of a slot.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Attempt {
    /// While it is under way.
    pub(super) claim: Option<ObjectId>,
    pub(super) lease_id: LeaseId,
    pub(super) token: Token,
    pub(super) owner: Owner,
    /// By the leader's wall clock, in milliseconds since 1970.
    pub(super) started_at_ms: u64,
    pub(super) ended_at_ms: Option<u64>,
    pub(super) end: Option<End>,
}

impl Run {
    pub(super) fn new(state: RunState) -> Self {
        Self { state, attempt: 0, last: None, reason: None }
    }
}

impl Job {
    fn new(definition: JobDefinition, watermark: Slot) -> Self {
        Self { version: 0, definition, paused: false, watermark, runs: BTreeMap::new() }
    }

    /// Claims that are live, with their slots.
    pub(super) fn live(&self) -> impl Iterator<Item = (Slot, ObjectId)> {
        self.runs.iter().filter_map(|(&slot, run)| Some((slot, run.last.as_ref()?.claim?)))
    }

    pub(super) fn open(&self) -> usize {
        self.runs.values().filter(|run| run.state.is_open()).count()
    }

    fn closed(&self) -> impl Iterator<Item = (Slot, &Run)> {
        self.runs.iter().filter(|(_, run)| !run.state.is_open()).map(|(&slot, run)| (slot, run))
    }

    /// Up to here the schedule's slots have had their turn: the newest of them that was ever claimed.
    fn frontier(&self) -> Option<Slot> {
        let mut latest_first = self.runs.iter().rev();
        latest_first
            .find(|(slot, run)| !slot.is_extra() && run.last.is_some())
            .map(|(&slot, _)| slot)
    }

    /// How many of the schedule's slots were left out ahead of their turn. To forget one of them would be to forget
    /// those before it, which nobody has run.
    fn left_out_ahead(&self) -> usize {
        let frontier = self.frontier();
        self.closed().filter(|&(slot, _)| !slot.is_extra() && Some(slot) > frontier).count()
    }

    /// Forgets the oldest slots that will not run again, as far as there are too many and their turn is over. An extra
    /// run that is forgotten needs no watermark: what is extra runs only as long as it is listed.
    pub(super) fn keep_bounded(&mut self) {
        let surplus = self.closed().count().saturating_sub(limits::RUNS_CLOSED_KEPT);
        if surplus == 0 {
            return;
        }
        let frontier = self.frontier();
        let closed = self.closed().map(|(slot, _)| slot);
        let may_go = closed.filter(|&slot| slot.is_extra() || Some(slot) <= frontier);
        for slot in may_go.take(surplus).collect::<Vec<_>>() {
            self.runs.remove(&slot);
            if !slot.is_extra() {
                self.watermark = self.watermark.max(Slot(slot.0 + 1));
            }
        }
    }
}

impl State {
    pub(super) fn job(&mut self, caller: &Caller, op: &JobCommand) -> Outcome {
        match op {
            JobCommand::Put(op) => self.put_job(caller, op),
            JobCommand::ClaimRun(op) => self.claim_run(caller, op),
            JobCommand::RenewRun(op) => self.renew_run(caller, op),
            JobCommand::FinishRun(op) => self.finish_run(caller, op),
            JobCommand::Pause(op) => self.pause_job(caller, op, true),
            JobCommand::Resume(op) => self.pause_job(caller, op, false),
            JobCommand::Skip(op) => self.skip_slot(caller, op),
            JobCommand::RunNow(op) => self.run_now(caller, op),
            JobCommand::ForceRelease(op) => self.force_release_run(caller, op),
        }
    }

    /// The leader's wall clock as of this entry, in milliseconds since 1970.
    pub(super) fn wall_ms(&self) -> u64 {
        self.token_clock_us / 1_000
    }

    fn put_job(&mut self, caller: &Caller, op: &PutJob) -> Outcome {
        self.touch_runs(self.namespace_id(&op.namespace), &op.job);
        self.next_revision();
        let result = self.try_put_job(caller, op);
        self.decided(None, result)
    }

    fn try_put_job(&mut self, caller: &Caller, op: &PutJob) -> Result<Done, Refusal> {
        check_job_name(&op.job)?;
        op.definition.check()?;
        let not_found = || Refusal::new(Code::NotFound);
        let namespace = self.namespace_id(&op.namespace).ok_or_else(not_found)?;
        let now = Slot(self.wall_ms());
        let jobs = &self.namespaces[namespace as usize].jobs;
        let current = jobs.get(&op.job).map_or(0, |job| job.version);
        if current != op.expected_version {
            let detail = Detail::Version { current };
            return Err(Refusal::new(Code::VersionConflict).with(detail));
        }
        if current == 0 && jobs.len() >= limits::JOBS_PER_NAMESPACE_MAX {
            let max = limits::JOBS_PER_NAMESPACE_MAX as u64;
            return Err(self.limit_reached("jobs of one namespace", max));
        }
        if let Some(job) = jobs.get(&op.job)
            && op.definition.overlap != job.definition.overlap
        {
            // It decides the fence key. An attempt that was begun under another one, and wakes up late, would not be
            // fenced out by those after it; and whether there is such an attempt nobody can know.
            let rule = "cannot be changed, for the fence key depends on it: make another job";
            return Err(Invalid::new("overlap", rule).into());
        }
        let new = || Job::new(op.definition.clone(), now);
        let jobs = &mut self.namespaces[namespace as usize].jobs;
        let job = jobs.entry(op.job.clone()).or_insert_with(new);
        let (before, after) = (&job.definition, &op.definition);
        if (&before.schedule, &before.zone) != (&after.schedule, &after.zone) {
            // What the new schedule would have run before it existed was never missed.
            job.watermark = job.watermark.max(now);
        }
        job.version += 1;
        job.definition = op.definition.clone();
        let version = job.version;
        self.job_event(caller, namespace, &op.job, EventKind::JobPut { version });
        Ok(Done::JobPut { version })
    }

    fn pause_job(&mut self, caller: &Caller, op: &PauseJob, paused: bool) -> Outcome {
        let content = (paused, op);
        let who = (&op.namespace, &op.job, &op.request_id);
        self.change_job(caller, who, &content, |state, namespace| {
            let job = state.job_mut(namespace, &op.job)?;
            let is_change = job.paused != paused;
            job.paused = paused;
            if is_change {
                let kind = EventKind::JobPaused { paused, reason: op.reason.clone() };
                state.job_event(caller, namespace, &op.job, kind);
            }
            Ok(Slot(0))
        })
    }

    fn skip_slot(&mut self, caller: &Caller, op: &SlotOfJob) -> Outcome {
        let content = (true, op);
        let who = (&op.namespace, &op.job, &op.request_id);
        self.change_job(caller, who, &content, |state, namespace| {
            state.check_slot(namespace, &op.job, op.slot)?;
            let (job, max) = (state.job_of(namespace, &op.job)?, limits::RUNS_CLOSED_KEPT);
            let is_ahead = !op.slot.is_extra() && Some(op.slot) > job.frontier();
            if is_ahead && job.left_out_ahead() >= max {
                return Err(state.limit_reached("slots of one job left out ahead", max as u64));
            }
            let job = state.job_mut(namespace, &op.job)?;
            let run = job.runs.entry(op.slot).or_insert_with(|| Run::new(RunState::Skipped));
            run.state = RunState::Skipped;
            run.reason = Some(op.reason.clone());
            let (attempt, state_now) = (run.attempt, run.state);
            job.keep_bounded();
            let reason = Some(op.reason.clone());
            let kind = EventKind::RunChanged { slot: op.slot, attempt, state: state_now, reason };
            state.job_event(caller, namespace, &op.job, kind);
            Ok(op.slot)
        })
    }

    /// Whether a slot is still to be decided.
    ///
    /// # Errors
    /// `RUN_CLAIMED` while an attempt is under way, `RUN_FINISHED` or `RETRIES_EXHAUSTED` for one that is over.
    pub(super) fn check_slot(
        &self,
        namespace: u32,
        job: &ResourceName,
        slot: Slot,
    ) -> Result<(), Refusal> {
        let job = self.job_of(namespace, job)?;
        match job.runs.get(&slot).map(|run| (run, run.state)) {
            Some((_, RunState::Asked | RunState::Retry)) => Ok(()),
            Some((run, RunState::Claimed)) => Err(self.run_claimed(run)),
            Some((_, RunState::Succeeded)) if planted::has(Planted::FinishedRunsAgain) => Ok(()),
            Some((_, RunState::Lost)) if planted::has(Planted::RetriesIgnored) => Ok(()),
            Some((_, RunState::Succeeded | RunState::Skipped)) => {
                Err(Refusal::new(Code::RunFinished))
            }
            Some((_, RunState::Failed | RunState::Lost)) => {
                Err(Refusal::new(Code::RetriesExhausted))
            }
            None if slot < job.watermark || slot.is_extra() => Err(Refusal::new(Code::RunFinished)),
            None => Ok(()),
        }
    }

    fn run_now(&mut self, caller: &Caller, op: &SlotOfJob) -> Outcome {
        let content = (false, op);
        let who = (&op.namespace, &op.job, &op.request_id);
        self.change_job(caller, who, &content, |state, namespace| {
            let max = limits::RUNS_OPEN_MAX;
            if state.job_of(namespace, &op.job)?.open() >= max {
                return Err(state.limit_reached("open runs of one job", max as u64));
            }
            let job = state.job_mut(namespace, &op.job)?;
            let is_free = |slot: &Slot| slot.is_extra() && !job.runs.contains_key(slot);
            // What lies before the watermark counts as finished, and never runs again.
            let mut slots = (op.slot.0.max(job.watermark.0)..).map(Slot);
            let slot = slots.find(is_free).expect("one is free");
            let reason = Some(op.reason.clone());
            job.runs.insert(slot, Run { reason, ..Run::new(RunState::Asked) });
            let kind = EventKind::RunAsked { slot, reason: op.reason.clone() };
            state.job_event(caller, namespace, &op.job, kind);
            Ok(slot)
        })
    }

    /// An operator's change of a job: decided once, and remembered with its slot.
    fn change_job(
        &mut self,
        caller: &Caller,
        (namespace, job, request_id): (&NamespaceName, &ResourceName, &RequestId),
        content: &impl Content,
        change: impl FnOnce(&mut Self, u32) -> Result<Slot, Refusal>,
    ) -> Outcome {
        let request = self.request(caller, namespace, Family::Job, request_id, content);
        let known = self.recall(&request);
        self.touch_runs(request.namespace, job);
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let again = self.job_changed(&request, job, Slot(self.memory.get(known).token.0));
            return self.replay(known, |_| again, |state, _, code| state.job_refused(code));
        }
        let result = self.admit(&request).and_then(|namespace| {
            let slot = change(self, namespace)?;
            self.remember_done(&request, Token(slot.0));
            Ok(self.job_changed(&request, job, slot))
        });
        self.conclude(&request, result)
    }

    fn job_changed(&self, request: &Request, job: &ResourceName, slot: Slot) -> Done {
        let job = request.namespace.and_then(|namespace| self.job_of(namespace, job).ok());
        let paused = job.is_some_and(|job| job.paused);
        Done::JobChanged { paused, slot: (slot.0 > 0).then_some(slot) }
    }

    /// The same refusal once more: who was in the way then is not told now.
    pub(super) fn job_refused(&self, code: Code) -> Refusal {
        match code {
            Code::NotFound => missing_job(),
            _ => Refusal::new(code),
        }
    }

    pub(super) fn job_of(&self, namespace: u32, job: &ResourceName) -> Result<&Job, Refusal> {
        self.namespaces[namespace as usize].jobs.get(job).ok_or_else(missing_job)
    }

    pub(super) fn job_mut(
        &mut self,
        namespace: u32,
        job: &ResourceName,
    ) -> Result<&mut Job, Refusal> {
        self.namespaces[namespace as usize].jobs.get_mut(job).ok_or_else(missing_job)
    }

    pub(super) fn job_event(
        &mut self,
        caller: &Caller,
        namespace: u32,
        job: &ResourceName,
        kind: EventKind,
    ) {
        self.applied.events.push(crate::event::Event {
            revision: self.revision,
            family: Family::Job,
            namespace: Some(self.namespaces[namespace as usize].name.clone()),
            resource: Some(job.clone()),
            owner: None,
            caller: caller.clone(),
            lease_hash: None,
            kind,
        });
    }

    /// Whether another run could be remembered at all.
    pub(super) fn check_open_runs(
        &self,
        namespace: u32,
        job: &ResourceName,
        slot: Slot,
    ) -> Result<(), No> {
        let max = limits::RUNS_OPEN_MAX;
        let job = self.job_of(namespace, job)?;
        let is_open = job.runs.get(&slot).is_some_and(|run| run.state.is_open());
        match is_open || job.open() < max {
            true => Ok(()),
            false => Err(No::Forget(self.limit_reached("open runs of one job", max as u64))),
        }
    }
}

pub(super) fn missing_job() -> Refusal {
    Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Job))
}

/// `name/slot` is the fence key of an overlapping run: no job may be called like one of another's.
fn check_job_name(job: &ResourceName) -> Result<(), Invalid> {
    let text = job.as_str();
    if text.len() > limits::JOB_BYTES_MAX {
        let rule = format!("must have 1 to {} bytes, has {}", limits::JOB_BYTES_MAX, text.len());
        return Err(Invalid::new("job", rule));
    }
    let last = text.rsplit('/').next().unwrap_or(text);
    if text.contains('/') && last.bytes().all(|byte| byte.is_ascii_digit()) {
        let rule = "must not end with a segment of digits: that is how runs are called";
        return Err(Invalid::new("job", rule));
    }
    Ok(())
}

impl Content for (bool, &PauseJob) {
    fn fingerprint(&self) -> Fingerprint {
        let (paused, op) = self;
        encode(|buffer| (13_u8, paused, &op.job, &op.reason).serialize(buffer))
    }
}

/// Of a skip (`true`), or of an extra run, whose slot is drawn by the door.
impl Content for (bool, &SlotOfJob) {
    fn fingerprint(&self) -> Fingerprint {
        let (skip, op) = self;
        let slot = skip.then_some(op.slot);
        encode(|buffer| (14_u8, slot, &op.job, &op.reason).serialize(buffer))
    }
}
