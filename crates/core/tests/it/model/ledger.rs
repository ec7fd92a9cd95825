//! The reference's jobs, as section 9 has them: what each is, and what has become of its slots.

use super::{
    reference::{Face, Reference, Stage},
    requests::{No, for_good, invalid},
};
use sereno_core::{
    command::{Family, JobCommand, JobDefinition, Operation, PauseJob, PutJob, SlotOfJob},
    event::{Event, EventKind},
    ids::{LeaseId, Revision, Slot, Token},
    names::{Caller, Owner, Reason, ResourceName},
    outcome::{Code, Detail, Done, End, Missing, Outcome, Refusal, RunState},
};

pub(super) struct Job {
    pub(super) space: usize,
    pub(super) name: ResourceName,
    pub(super) version: u64,
    pub(super) definition: JobDefinition,
    pub(super) paused: bool,
    /// What lies before it and is not listed counts as finished.
    pub(super) watermark: u64,
    /// In no order.
    pub(super) runs: Vec<Run>,
}

/// A slot that something has become of.
pub(super) struct Run {
    pub(super) slot: u64,
    pub(super) state: RunState,
    pub(super) attempt: u32,
    pub(super) asked: bool,
    pub(super) reason: Option<Reason>,
    pub(super) last: Option<Attempt>,
}

pub(super) struct Attempt {
    pub(super) lease_id: LeaseId,
    pub(super) token: Token,
    pub(super) owner: Owner,
    pub(super) started_ms: u64,
    pub(super) ended_ms: Option<u64>,
    pub(super) end: Option<End>,
}

impl Job {
    pub(super) fn run(&self, slot: u64) -> Option<&Run> {
        self.runs.iter().find(|run| run.slot == slot)
    }

    pub(super) fn run_mut(&mut self, slot: u64) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.slot == slot)
    }

    /// The run of a slot, written down if it was not.
    pub(super) fn write_down(&mut self, slot: u64) -> &mut Run {
        if self.run(slot).is_none() {
            let (state, attempt, asked) = (RunState::Asked, 0, false);
            self.runs.push(Run { slot, state, attempt, asked, reason: None, last: None });
        }
        self.run_mut(slot).expect("it was just written")
    }
}

impl Reference {
    pub(super) fn job(&mut self, caller: &Caller, op: &JobCommand) -> Outcome {
        let content = Operation::Job(op.clone());
        match op {
            JobCommand::Put(op) => self.put_job(caller, op),
            JobCommand::ClaimRun(op) => self.claim_run(caller, op),
            JobCommand::RenewRun(op) => self.renew(caller, Family::Job, op),
            JobCommand::FinishRun(op) => self.finish_run(caller, op),
            JobCommand::Pause(op) => self.pause(caller, op, content, true),
            JobCommand::Resume(op) => self.pause(caller, op, content, false),
            JobCommand::Skip(op) => self.skip(caller, op, content),
            JobCommand::RunNow(op) => self.run_now(caller, op),
            JobCommand::ForceRelease(_) => unreachable!("is done elsewhere"),
        }
    }

    pub(super) fn wall_ms(&self) -> u64 {
        self.clock / 1_000
    }

    pub(super) fn job_named(&self, space: usize, name: &ResourceName) -> Result<usize, No> {
        let is_it = |job: &Job| job.space == space && job.name == *name;
        self.jobs.iter().position(is_it).ok_or_else(|| for_good(no_job()))
    }

    /// Attempts under way: the slot, and the request that has claimed it.
    pub(super) fn under_way(&self, job: usize) -> Vec<(u64, usize)> {
        let mut all = Vec::new();
        for (index, request) in self.requests.iter().enumerate() {
            if request.stage == Stage::Holding
                && let Face::Run { job: of, slot } = request.claim().face
                && of == job
            {
                all.push((slot, index));
            }
        }
        all.sort_unstable();
        all
    }

    /// Ends the attempts that are due.
    pub(super) fn touch_job(&mut self, space: Option<usize>, name: &ResourceName) {
        let job = space.and_then(|space| self.job_named(space, name).ok());
        let claims = job.map_or(Vec::new(), |job| self.under_way(job));
        for (_, index) in claims {
            self.touch_request(index);
        }
    }

    pub(super) fn is_paused_now(&self, space: Option<usize>, op: &JobCommand) -> bool {
        let name = match op {
            JobCommand::Pause(op) | JobCommand::Resume(op) => &op.job,
            JobCommand::Skip(op) | JobCommand::RunNow(op) => &op.job,
            other => unreachable!("{other:?} changes no job"),
        };
        let job = space.and_then(|space| self.job_named(space, name).ok());
        job.is_some_and(|job| self.jobs[job].paused)
    }

    fn put_job(&mut self, caller: &Caller, op: &PutJob) -> Outcome {
        let space = self.space(&op.namespace);
        self.touch_job(space, &op.job);
        self.revision += 1;
        let result = self.try_put_job(caller, space, op);
        self.answer(None, result)
    }

    fn try_put_job(
        &mut self,
        caller: &Caller,
        space: Option<usize>,
        op: &PutJob,
    ) -> Result<Done, Refusal> {
        let text = op.job.as_str();
        let is_like_a_run = text
            .rsplit_once('/')
            .is_some_and(|(_, last)| last.bytes().all(|byte| byte.is_ascii_digit()));
        if text.len() > 200 || is_like_a_run || op.definition.check().is_err() {
            return Err(invalid());
        }
        let space = space.ok_or(Refusal::new(Code::NotFound))?;
        let known = self.job_named(space, &op.job).ok();
        let current = known.map_or(0, |job| self.jobs[job].version);
        if current != op.expected_version {
            let detail = Detail::Version { current };
            return Err(Refusal::new(Code::VersionConflict).with(detail));
        }
        let now = self.wall_ms();
        let job = match known {
            Some(job) => {
                if self.jobs[job].definition.overlap != op.definition.overlap {
                    return Err(invalid());
                }
                job
            }
            None => {
                let (name, definition) = (op.job.clone(), op.definition.clone());
                let (version, paused, watermark, runs) = (0, false, now, Vec::new());
                self.jobs.push(Job { space, name, version, definition, paused, watermark, runs });
                self.jobs.len() - 1
            }
        };
        let of = &mut self.jobs[job];
        let is_another = of.definition.schedule != op.definition.schedule
            || of.definition.zone != op.definition.zone;
        if is_another {
            of.watermark = of.watermark.max(now);
        }
        of.version += 1;
        of.definition = op.definition.clone();
        let version = of.version;
        self.job_event(caller, job, EventKind::JobPut { version });
        Ok(Done::JobPut { version })
    }

    fn pause(
        &mut self,
        caller: &Caller,
        op: &PauseJob,
        content: Operation,
        paused: bool,
    ) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Job, op.request_id.clone());
        let touch = |state: &mut Self, space| state.touch_job(space, &op.job);
        self.write(scope, content, touch, |state, space| {
            let job = state.job_named(space, &op.job)?;
            if state.jobs[job].paused != paused {
                state.jobs[job].paused = paused;
                let kind = EventKind::JobPaused { paused, reason: op.reason.clone() };
                state.job_event(caller, job, kind);
            }
            Ok(Done::JobChanged { paused, slot: None })
        })
    }

    fn skip(&mut self, caller: &Caller, op: &SlotOfJob, content: Operation) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Job, op.request_id.clone());
        let touch = |state: &mut Self, space| state.touch_job(space, &op.job);
        self.write(scope, content, touch, |state, space| {
            let job = state.job_named(space, &op.job)?;
            state.check_open(job, op.slot.0).map_err(for_good)?;
            let run = state.jobs[job].write_down(op.slot.0);
            run.state = RunState::Skipped;
            run.reason = Some(op.reason.clone());
            let (attempt, reason) = (run.attempt, Some(op.reason.clone()));
            let state_now = RunState::Skipped;
            let kind = EventKind::RunChanged { slot: op.slot, attempt, state: state_now, reason };
            state.job_event(caller, job, kind);
            let paused = state.jobs[job].paused;
            Ok(Done::JobChanged { paused, slot: Some(op.slot) })
        })
    }

    /// Whether a slot may still be run or left out, as far as the ledger is concerned.
    pub(super) fn check_open(&self, job: usize, slot: u64) -> Result<(), Refusal> {
        let code = match self.jobs[job].run(slot).map(|run| run.state) {
            Some(RunState::Asked | RunState::Retry) => return Ok(()),
            Some(RunState::Claimed) => {
                let under_way = self.under_way(job);
                let it = under_way.iter().find(|(of, _)| *of == slot).expect("it is under way");
                return Err(self.run_claimed(it.1));
            }
            Some(RunState::Succeeded | RunState::Skipped) => Code::RunFinished,
            Some(RunState::Failed | RunState::Lost) => Code::RetriesExhausted,
            None if slot < self.jobs[job].watermark => Code::RunFinished,
            // Extra runs have no whole second, and run only when asked for.
            None if !slot.is_multiple_of(1_000) => Code::RunFinished,
            None => return Ok(()),
        };
        Err(Refusal::new(code))
    }

    /// The slot is drawn by the door, and is not part of the content.
    fn run_now(&mut self, caller: &Caller, op: &SlotOfJob) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Job, op.request_id.clone());
        let first = SlotOfJob { slot: Slot(0), ..op.clone() };
        let content = Operation::Job(JobCommand::RunNow(first));
        let touch = |state: &mut Self, space| state.touch_job(space, &op.job);
        self.write(scope, content, touch, |state, space| {
            let job = state.job_named(space, &op.job)?;
            let mut slot = op.slot.0.max(state.jobs[job].watermark);
            while slot.is_multiple_of(1_000) || state.jobs[job].run(slot).is_some() {
                slot += 1;
            }
            let run = state.jobs[job].write_down(slot);
            run.asked = true;
            run.reason = Some(op.reason.clone());
            let (slot, reason) = (Slot(slot), op.reason.clone());
            state.job_event(caller, job, EventKind::RunAsked { slot, reason });
            Ok(Done::JobChanged { paused: state.jobs[job].paused, slot: Some(slot) })
        })
    }

    pub(super) fn job_event(&mut self, caller: &Caller, job: usize, kind: EventKind) {
        let job = &self.jobs[job];
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Job,
            namespace: Some(self.spaces[job.space].name.clone()),
            resource: Some(job.name.clone()),
            owner: None,
            caller: caller.clone(),
            lease_hash: None,
            kind,
        });
    }
}

pub(super) fn no_job() -> Refusal {
    Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Job))
}
