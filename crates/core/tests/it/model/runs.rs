//! The reference's attempts at a job's slots: claimed, finished by their own account, ended.

use super::{
    commands::{Ask, Terms},
    ledger::{Attempt, Run},
    reference::{At, Face, Reference, Request, Stage},
    requests::{No, Scope, for_good, invalid},
};
use sereno_core::{
    command::{Acquire, ClaimRun, Family, FinishRun, JobCommand, Missed, Operation, RunResult},
    event::EventKind,
    ids::{LeaseId, Slot},
    names::{Caller, ResourceName},
    outcome::{Code, Detail, Done, End, Outcome, Refusal, RunFinished, RunState},
};

const FAMILY: Family = Family::Job;

impl Reference {
    pub(super) fn claim_run(&mut self, caller: &Caller, op: &ClaimRun) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let first = ClaimRun { lease_id: LeaseId::default(), ..op.clone() };
        let content = Operation::Job(JobCommand::ClaimRun(first));
        let space = self.space(&op.namespace);
        let known = self.recall(&scope);
        self.touch_job(space, &op.job);
        if let Some(space) = space
            && let Ok(job) = self.job_named(space, &op.job)
        {
            self.touch_resource(At { space, family: FAMILY }, &self.leased_name(job, op.slot.0));
        }
        self.revision += 1;
        let Some(known) = known else {
            let result = self.claim_anew(&scope, space, op, &content);
            return self.conclude(scope, space, content, result);
        };
        if let Some(reused) = self.reused(known, &content) {
            return reused;
        }
        self.asked_again(known, |_, code, _| Refusal::new(code))
    }

    /// Runs that may overlap must not fence each other out: each slot is a resource of its own.
    fn leased_name(&self, job: usize, slot: u64) -> ResourceName {
        let job = &self.jobs[job];
        match job.definition.overlap {
            true => ResourceName::new(&format!("{}/{slot}", job.name)).expect("a name"),
            false => job.name.clone(),
        }
    }

    /// The refusal because of an attempt under way.
    pub(super) fn run_claimed(&self, index: usize) -> Refusal {
        let holder = self.shown(index, 0);
        let left = holder.expires_in_ms;
        let detail = Detail::Run { holder: Some(holder) };
        Refusal::new(Code::RunClaimed).with(detail).retry_after(left)
    }

    fn claim_anew(
        &mut self,
        scope: &Scope,
        space: Option<usize>,
        op: &ClaimRun,
        content: &Operation,
    ) -> Result<Done, No> {
        let space = self.admit_lease(space, op.lease_id)?;
        let job = self.job_named(space, &op.job)?;
        self.check_claim(job, op).map_err(for_good)?;
        let policy = self.spaces[space].policy.clone();
        if op.lease_ttl_ms.is_some_and(|ttl_ms| !self.is_ttl(&policy, ttl_ms)) {
            return Err(for_good(invalid()));
        }
        let like = Acquire {
            namespace: op.namespace.clone(),
            resource: op.job.clone(),
            request_id: op.request_id.clone(),
            owner: op.owner.clone(),
            lease_id: op.lease_id,
            lease_ttl_ms: op.lease_ttl_ms,
            wait_timeout_ms: 0,
            max_hold_ms: None,
            fencing: None,
            labels: op.labels.clone(),
        };
        let names = [self.leased_name(job, op.slot.0)];
        self.check_leases(scope, &like, &names, 0)?;
        let run = self.jobs[job].write_down(op.slot.0);
        run.state = RunState::Claimed;
        run.attempt += 1;
        let attempt = run.attempt;
        let ask = Ask {
            family: FAMILY,
            face: Face::Run { job, slot: op.slot.0 },
            like: &like,
            resources: &names,
            content: content.clone(),
        };
        let terms = Terms {
            fencing: policy.fencing,
            ttl_ms: op.lease_ttl_ms.unwrap_or(policy.default_ttl_ms),
            max_hold_ms: Some(self.jobs[job].definition.max_run_ms),
        };
        let index = self.new_claim(scope, At { space, family: FAMILY }, &ask, &terms);
        self.grant(index, false);
        let token = self.requests[index].claim().parts[0].token;
        let last = Attempt {
            lease_id: op.lease_id,
            token,
            owner: op.owner.clone(),
            started_ms: self.wall_ms(),
            ended_ms: None,
            end: None,
        };
        self.jobs[job].run_mut(op.slot.0).expect("it was just written").last = Some(last);
        self.job_event(&scope.1, job, EventKind::RunClaimed { slot: op.slot, attempt, token });
        self.leave_out_earlier(&scope.1, job, op.slot.0);
        Ok(self.granted(index))
    }

    fn check_claim(&self, job: usize, op: &ClaimRun) -> Result<(), Refusal> {
        let of = &self.jobs[job];
        if of.version != op.job_version {
            let detail = Detail::Version { current: of.version };
            return Err(Refusal::new(Code::VersionConflict).with(detail));
        }
        if of.paused {
            return Err(Refusal::new(Code::RunPaused));
        }
        self.check_open(job, op.slot.0)?;
        if let (false, Some(&(_, index))) = (of.definition.overlap, self.under_way(job).first()) {
            return Err(self.run_claimed(index));
        }
        let at = At { space: of.space, family: FAMILY };
        match self.delay(at, &self.leased_name(job, op.slot.0)) {
            None => Ok(()),
            Some(delay) => {
                let refusal = Refusal::new(Code::RunClaimed).with(Detail::Run { holder: None });
                Err(refusal.retry_after(delay.deadline - self.time))
            }
        }
    }

    /// Unless all missed slots are to run, a claimed one takes the place of those before it; but an extra run does not.
    fn leave_out_earlier(&mut self, caller: &Caller, job: usize, slot: u64) {
        let of = &mut self.jobs[job];
        let is_extra = of.runs.iter().any(|run| run.slot == slot && run.asked);
        if of.definition.missed == Missed::All || of.definition.overlap || is_extra {
            return;
        }
        of.watermark = of.watermark.max(slot);
        let is_left_out =
            |run: &&mut Run| run.slot < slot && run.state == RunState::Retry && !run.asked;
        let mut left_out = Vec::new();
        for run in of.runs.iter_mut().filter(is_left_out) {
            run.state = RunState::Skipped;
            left_out.push((run.slot, run.attempt));
        }
        left_out.sort_unstable();
        for (slot, attempt) in left_out {
            let (slot, state, reason) = (Slot(slot), RunState::Skipped, None);
            let kind = EventKind::RunChanged { slot, attempt, state, reason };
            self.job_event(caller, job, kind);
        }
    }

    pub(super) fn finish_run(&mut self, caller: &Caller, op: &FinishRun) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let content = Operation::Job(JobCommand::FinishRun(op.clone()));
        let touch = |state: &mut Self, _| state.touch_lease(&op.lease);
        self.write(scope, content, touch, |state, space| state.finish_anew(caller, space, op))
    }

    fn finish_anew(&mut self, caller: &Caller, space: usize, op: &FinishRun) -> Result<Done, No> {
        let job = self.job_named(space, &op.lease.resource)?;
        let is_it = |last: &Attempt| last.lease_id == op.lease.lease_id;
        let found = self.jobs[job].runs.iter().find(|run| run.last.as_ref().is_some_and(is_it));
        let Some(run) = found else {
            return Err(for_good(self.not_the_last(space, op)));
        };
        let (slot, attempt, was) = (run.slot, run.attempt, run.state);
        let end_was = run.last.as_ref().expect("found by it").end;
        let may_retry = attempt <= self.jobs[job].definition.retries;
        let state = match (op.result, was) {
            (RunResult::Succeeded, _) => RunState::Succeeded,
            // What will not run again does not begin to because its last attempt says late that it failed.
            (RunResult::Failed, RunState::Skipped) => RunState::Skipped,
            (RunResult::Failed, RunState::Lost) => RunState::Failed,
            (RunResult::Failed, _) if may_retry => RunState::Retry,
            (RunResult::Failed, _) => RunState::Failed,
        };
        if end_was == Some(End::Finished) && was != state {
            return Err(for_good(Refusal::new(Code::RunFinished)));
        }
        let under_way = self.under_way(job).into_iter().find(|(of, _)| *of == slot);
        if let Some((_, index)) = under_way {
            self.end_part(index, 0, End::Finished, self.time, Some(caller), None);
        }
        let now_ms = self.wall_ms();
        let run = self.jobs[job].run_mut(slot).expect("just found");
        run.state = state;
        let last = run.last.as_mut().expect("found by it");
        last.end = Some(End::Finished);
        last.ended_ms = last.ended_ms.or(Some(now_ms));
        let slot = Slot(slot);
        if was != state || end_was != Some(End::Finished) {
            let kind = EventKind::RunChanged { slot, attempt, state, reason: None };
            self.job_event(caller, job, kind);
        }
        Ok(Done::RunFinished(RunFinished { slot, attempt, state }))
    }

    /// Whoever comes with an attempt after which another was claimed, or with none.
    fn not_the_last(&self, space: usize, op: &FinishRun) -> Refusal {
        let is_it = |request: &Request| {
            request.stage == Stage::Ended
                && request.claim().lease_id == op.lease.lease_id
                && request.claim().at.space == space
        };
        match self.requests.iter().position(is_it) {
            Some(index) => self.lease_ended(index, 0, true),
            None => Refusal::new(Code::NotHolder),
        }
    }

    /// What the end of an attempt's lease means for its slot. Who finishes says so itself.
    pub(super) fn attempt_ended(&mut self, index: usize, job: usize, slot: u64, end: End) {
        let now_ms = self.wall_ms();
        let caller = self.requests[index].scope.1.clone();
        let retries = self.jobs[job].definition.retries;
        let run = self.jobs[job].run_mut(slot).expect("it was claimed");
        let last = run.last.as_mut().expect("it was claimed");
        (last.end, last.ended_ms) = (Some(end), Some(now_ms));
        if end == End::Finished {
            return;
        }
        if end == End::Abandoned {
            // Never begun, by its own account.
            run.attempt -= 1;
        }
        run.state = if run.attempt <= retries { RunState::Retry } else { RunState::Lost };
        let (slot, attempt, state) = (Slot(slot), run.attempt, run.state);
        let kind = EventKind::RunChanged { slot, attempt, state, reason: None };
        self.job_event(&caller, job, kind);
    }
}
