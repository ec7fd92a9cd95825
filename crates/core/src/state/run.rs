//! Attempts to run a job's slots (DESIGN.md section 9): claimed, renewed, finished, lost. A claim is a lease; what a
//! slot has come to stands in the job's ledger.

use super::{
    State,
    acquire::{Ask, Terms},
    claim::{Claim, Face},
    deviations,
    job::{Attempt, Job, Run},
    memory::{Content, Fate, Fingerprint, encode},
    request::{No, Request},
};
use crate::{
    command::{ClaimRun, Family, FinishRun, ForceRelease, LeaseRef, Missed, Renew, RunResult},
    event::EventKind,
    ids::{ObjectId, Slot, Token},
    names::{Caller, ResourceName},
    outcome::{Code, Detail, Done, End, Outcome, Refusal, RunFinished, RunState},
};
use borsh::BorshSerialize as _;

const FAMILY: Family = Family::Job;

/// What a run is called as a leased resource: the job, or one slot of it where they may overlap.
pub(super) fn run_name(job: &ResourceName, slot: Slot, overlap: bool) -> ResourceName {
    match overlap {
        false => job.clone(),
        true => ResourceName::new(&format!("{job}/{slot}")).expect("a job's name leaves room"),
    }
}

impl State {
    /// Ends the job's attempts that are due and unswept.
    pub(super) fn touch_runs(&mut self, namespace: Option<u32>, job: &ResourceName) {
        let Some(namespace) = namespace else { return };
        let Ok(job) = self.job_of(namespace, job) else { return };
        for (_, claim) in job.live().collect::<Vec<_>>() {
            self.touch_claim(claim);
        }
    }

    pub(super) fn claim_run(&mut self, caller: &Caller, op: &ClaimRun) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        let known = self.recall(&request);
        self.touch_runs(request.namespace, &op.job);
        if let Some(namespace) = request.namespace
            && let Ok(job) = self.job_of(namespace, &op.job)
        {
            let name = run_name(&op.job, op.slot, job.definition.overlap);
            self.touch_resource(namespace, FAMILY, &name);
        }
        self.next_revision();
        let Some(known) = known else {
            let result = self.claim_run_anew(caller, &request, op);
            return self.conclude(&request, result);
        };
        if !self.is_same_content(known, &request) {
            return self.reused();
        }
        let not_a_claim = |_| unreachable!("what was done at once claimed no run");
        self.replay(known, not_a_claim, |state, _, code| state.claim_refused_again(code, op))
    }

    fn claim_run_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &ClaimRun,
    ) -> Result<Done, No> {
        let namespace = self.admit_lease(request, op.lease_id)?;
        self.check_claimable(namespace, op)?;
        self.check_open_runs(namespace, &op.job, op.slot)?;
        let policy = &self.namespaces[namespace as usize].policy;
        let (default_ms, fencing) = (policy.default_ttl_ms, policy.fencing);
        let ttl_ms = match op.lease_ttl_ms {
            Some(ttl_ms) => self.check_ttl(namespace, "leaseTtl", ttl_ms).map_err(Refusal::from)?,
            None => default_ms,
        };
        let definition = &self.job_of(namespace, &op.job)?.definition;
        let resource = run_name(&op.job, op.slot, definition.overlap);
        let terms = Terms { ttl_ms, max_hold_ms: Some(definition.max_run_ms), fencing };
        let ask = Ask {
            face: Face::Run { job: op.job.clone(), slot: op.slot },
            caller,
            resources: std::slice::from_ref(&resource),
            owner: &op.owner,
            lease_id: op.lease_id,
            lease_ttl_ms: Some(ttl_ms),
            wait_timeout_ms: 0,
            max_hold_ms: terms.max_hold_ms,
            fencing: Some(fencing),
            labels: &op.labels,
        };
        self.check_lease_limit_after(namespace, &ask, 0)?;
        self.begin_attempt(namespace, op);
        let done = self.grant_at_once(request, namespace, &ask, &terms);
        let Done::RunClaimed(claimed) = &done else { unreachable!("a run was granted") };
        self.attempt_granted(caller, namespace, op, claimed.grant.claim);
        Ok(done)
    }

    /// # Errors
    /// Why the slot cannot be claimed now.
    fn check_claimable(&self, namespace: u32, op: &ClaimRun) -> Result<(), Refusal> {
        let job = self.job_of(namespace, &op.job)?;
        if job.version != op.job_version {
            let detail = Detail::Version { current: job.version };
            return Err(Refusal::new(Code::VersionConflict).with(detail));
        }
        if job.paused {
            return Err(Refusal::new(Code::RunPaused));
        }
        self.check_slot(namespace, &op.job, op.slot)?;
        if !job.definition.overlap
            && let Some((slot, _)) = job.live().next()
        {
            return Err(self.run_claimed(&job.runs[&slot]));
        }
        let name = run_name(&op.job, op.slot, job.definition.overlap);
        let resources = &self.namespaces[namespace as usize].space(FAMILY).resources;
        match resources.get(&name).and_then(|resource| resource.delay) {
            None => Ok(()),
            Some(delay) => {
                let left_ms = self.time.until(self.delays[&delay].deadline);
                let refusal = Refusal::new(Code::RunClaimed).with(Detail::Run { holder: None });
                Err(refusal.retry_after(left_ms))
            }
        }
    }

    /// The refusal because of an attempt that is under way.
    pub(super) fn run_claimed(&self, run: &Run) -> Refusal {
        let refusal = Refusal::new(Code::RunClaimed);
        let Some((id, token)) = run.last.as_ref().and_then(|last| Some((last.claim?, last.token)))
        else {
            return refusal;
        };
        let claim = &self.claims[&id];
        let holder = Some(claim.holder(token, self.time));
        refusal.with(Detail::Run { holder }).retry_after(self.time.until(claim.deadline))
    }

    /// Opens the attempt in the ledger, before its lease is granted.
    fn begin_attempt(&mut self, namespace: u32, op: &ClaimRun) {
        let job = self.job_mut(namespace, &op.job).expect("it was just checked");
        let run = job.runs.entry(op.slot).or_insert_with(|| Run::new(RunState::Claimed));
        run.state = RunState::Claimed;
        run.attempt += 1;
    }

    /// Writes the granted lease into the ledger; a later slot takes the place of those before it.
    fn attempt_granted(&mut self, caller: &Caller, namespace: u32, op: &ClaimRun, id: ObjectId) {
        let token = self.claims[&id].holdings[0].token;
        let started_at_ms = self.wall_ms();
        let job = self.job_mut(namespace, &op.job).expect("it was just checked");
        let run = job.runs.get_mut(&op.slot).expect("it was just opened");
        let (owner, lease_id) = (op.owner.clone(), op.lease_id);
        let claim = Some(id);
        let (ended_at_ms, end) = (None, None);
        run.last = Some(Attempt { claim, lease_id, token, owner, started_at_ms, ended_at_ms, end });
        let attempt = run.attempt;
        let kind = EventKind::RunClaimed { slot: op.slot, attempt, token };
        let superseded = supersede(job, op.slot);
        self.job_event(caller, namespace, &op.job, kind);
        for (slot, attempt) in superseded {
            let (state, reason) = (RunState::Skipped, None);
            let kind = EventKind::RunChanged { slot, attempt, state, reason };
            self.job_event(caller, namespace, &op.job, kind);
        }
    }

    fn claim_refused_again(&self, code: Code, op: &ClaimRun) -> Refusal {
        let namespace = self.namespace_id(&op.namespace);
        match namespace.map(|namespace| self.check_claimable(namespace, op)) {
            Some(Err(refusal)) if refusal.code == code => refusal,
            _ => self.job_refused(code),
        }
    }

    pub(super) fn renew_run(&mut self, caller: &Caller, op: &Renew) -> Outcome {
        // Who renews names the job; an overlapping run is leased by a longer name.
        self.touch_lease(&op.lease);
        let resource = self.leased_run(&op.lease);
        let lease = LeaseRef { resource, lease_id: op.lease.lease_id };
        let (namespace, lease_ttl_ms) = (op.namespace.clone(), op.lease_ttl_ms);
        self.renew(caller, FAMILY, &Renew { namespace, lease, lease_ttl_ms })
    }

    fn leased_run(&self, lease: &LeaseRef) -> ResourceName {
        let record = self.memory.find_lease(lease.lease_id).map(|record| self.memory.get(record));
        let claim = match record.map(|record| record.fate) {
            Some(Fate::Live(id)) => &self.claims[&id],
            _ => return lease.resource.clone(),
        };
        match &claim.face {
            Face::Run { job, .. } if *job == lease.resource => claim.holdings[0].resource.clone(),
            _ => lease.resource.clone(),
        }
    }

    pub(super) fn finish_run(&mut self, caller: &Caller, op: &FinishRun) -> Outcome {
        let request = self.request(caller, &op.namespace, FAMILY, &op.request_id, op);
        let known = self.recall(&request);
        self.touch_lease(&op.lease);
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let not_a_change = |_| unreachable!("the end of a run is remembered as that");
            return self.replay(known, not_a_change, |state, _, code| state.job_refused(code));
        }
        let result = self.finish_run_anew(caller, &request, op);
        self.conclude(&request, result)
    }

    fn finish_run_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &FinishRun,
    ) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        let job = self.job_of(namespace, &op.lease.resource)?;
        let is_it = |run: &Run| run.last.as_ref().is_some_and(|a| a.lease_id == op.lease.lease_id);
        let found = job.runs.iter().rev().find(|(_, run)| is_it(run));
        let Some((&slot, run)) = found.or_else(|| deviations::another_run(job)) else {
            return Err(self.later_attempt(namespace, op).into());
        };
        let finished = match (op.result, run.state) {
            (RunResult::Succeeded, _) => RunState::Succeeded,
            // What will not run again is not opened by its last attempt, which says late that it failed.
            (RunResult::Failed, RunState::Skipped) => RunState::Skipped,
            (RunResult::Failed, RunState::Lost) => RunState::Failed,
            (RunResult::Failed, _) if run.attempt <= job.definition.retries => RunState::Retry,
            (RunResult::Failed, _) => RunState::Failed,
        };
        let last = run.last.as_ref().expect("it was found by it");
        let (attempt, was, live) = (run.attempt, run.state, last.claim);
        if last.end == Some(End::Finished) && was != finished {
            return Err(Refusal::new(Code::RunFinished).into());
        }
        let is_news = was != finished || last.end != Some(End::Finished);
        if let Some(id) = live {
            self.end_holding(id, 0, End::Finished, self.time, Some((caller, None)));
        }
        let now_ms = self.wall_ms();
        let job = self.job_mut(namespace, &op.lease.resource).expect("it was just found");
        let run = job.runs.get_mut(&slot).expect("it was just found");
        run.state = finished;
        let last = run.last.as_mut().expect("it was found by it");
        last.end = Some(End::Finished);
        last.ended_at_ms.get_or_insert(now_ms);
        job.keep_bounded();
        let state = finished;
        self.remember_write(request, Token(slot.0), Fate::RunFinished { attempt, state });
        if is_news {
            let kind = EventKind::RunChanged { slot, attempt, state, reason: None };
            self.job_event(caller, namespace, &op.lease.resource, kind);
        }
        Ok(Done::RunFinished(RunFinished { slot, attempt, state }))
    }

    /// Whoever comes with an attempt that is not its slot's last one.
    fn later_attempt(&self, namespace: u32, op: &FinishRun) -> Refusal {
        let record = self.memory.find_lease(op.lease.lease_id).map(|id| self.memory.get(id));
        let record = record.filter(|record| record.namespace == namespace);
        match record.map(|record| (record.fate, record.token)) {
            Some((Fate::Ended(end), token)) => super::request::lease_ended(end, token),
            _ => Refusal::new(Code::NotHolder),
        }
    }

    pub(super) fn force_release_run(&mut self, caller: &Caller, op: &ForceRelease) -> Outcome {
        // Overlapping runs are leased by a longer name: the token says which is meant.
        let namespace = self.namespace_id(&op.namespace);
        let job = namespace.and_then(|namespace| self.job_of(namespace, &op.resource).ok());
        let live = job.and_then(|job| {
            job.live().find(|(_, id)| self.claims[id].holdings[0].token == op.token)
        });
        let named = live.map(|(_, id)| self.claims[&id].holdings[0].resource.clone());
        let resource = named.unwrap_or_else(|| op.resource.clone());
        self.force_release_at(caller, FAMILY, op, &resource)
    }

    /// Part of the end of an attempt's lease. One that finished by its own account is written by whoever says so.
    pub(super) fn run_ended(&mut self, claim: &Claim, job: &ResourceName, slot: Slot, end: End) {
        let now_ms = self.wall_ms();
        let namespace = claim.namespace;
        let job_now = self.job_mut(namespace, job).expect("a run belongs to a job");
        let retries = job_now.definition.retries;
        let run = job_now.runs.get_mut(&slot).expect("an attempt stands in the ledger");
        let last = run.last.as_mut().expect("an attempt stands in the ledger");
        last.claim = None;
        last.end = Some(end);
        last.ended_at_ms = Some(now_ms);
        if end == End::Finished {
            return;
        }
        if end == End::Abandoned {
            // It says that it was never begun: the next one is the same attempt.
            run.attempt = deviations::given_back(run.attempt);
        }
        run.state = match run.attempt <= retries {
            true => RunState::Retry,
            false => RunState::Lost,
        };
        let (attempt, state, reason) = (run.attempt, run.state, None);
        job_now.keep_bounded();
        let kind = EventKind::RunChanged { slot, attempt, state, reason };
        self.job_event(&claim.caller, namespace, job, kind);
    }
}

/// Where only the latest slot counts, older ones that nobody is running are left out. Says which of the ledger were.
/// A run that an operator asked for is an extra one: it takes no slot's place.
fn supersede(job: &mut Job, slot: Slot) -> Vec<(Slot, u32)> {
    if job.definition.missed == Missed::All || job.definition.overlap || slot.is_extra() {
        return Vec::new();
    }
    job.watermark = job.watermark.max(slot);
    let mut superseded = Vec::new();
    for (&older, run) in job.runs.range_mut(..slot) {
        if run.state == RunState::Retry && !older.is_extra() {
            run.state = RunState::Skipped;
            superseded.push((older, run.attempt));
        }
    }
    job.keep_bounded();
    superseded
}

impl Content for ClaimRun {
    fn fingerprint(&self) -> Fingerprint {
        let what = (&self.job, self.job_version, self.slot, &self.owner);
        let terms = (self.lease_ttl_ms, &self.labels);
        encode(|buffer| (15_u8, what, terms).serialize(buffer))
    }
}

impl Content for FinishRun {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (16_u8, &self.lease, self.result).serialize(buffer))
    }
}
