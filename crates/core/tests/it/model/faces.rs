//! Makes the commands about elections, holds, jobs and guards that the acts of a history stand for.

use super::{
    acts::{namespace, resource},
    history::{Act, FAMILIES, Fence, JOBS, OfJob, OnHold, Terms, Who},
    reference::At,
    world::World,
};
use sereno_core::{
    command::{
        BeginHold, Campaign, ClaimRun, ElectionCommand, Family, FinishRun, Handoff, Hold,
        HoldCommand, HoldRef, JobCommand, JobDefinition, Missed, Operation, PauseJob, Proclaim,
        PutHoldPolicy, PutJob, ReleaseHold, RenewHold, ReportGuard, RunResult, SlotOfJob,
    },
    ids::{Slot, Token},
    names::{Labels, Owner, Reason, ResourceName, ScheduleText, Value, ZoneName},
    policy::{Fencing, HoldPolicy},
};

fn owner(number: usize) -> Owner {
    Owner::new(["anna", "bert", "cleo", "dora"][number]).expect("an owner")
}

fn reason() -> Reason {
    Reason::new("why").expect("a reason")
}

/// The definitions that are switched between.
fn definition(number: usize) -> JobDefinition {
    let plain = JobDefinition {
        schedule: ScheduleText::new("daily").expect("a schedule"),
        zone: ZoneName::new("UTC").expect("a zone"),
        missed: Missed::Latest,
        overlap: false,
        retries: 0,
        max_run_ms: 60_000,
    };
    match number {
        0 => plain,
        1 => JobDefinition { retries: 1, ..plain },
        2 => JobDefinition { missed: Missed::All, retries: 2, ..plain },
        3 => JobDefinition { missed: Missed::All, overlap: true, retries: 1, ..plain },
        4 => JobDefinition { missed: Missed::Skip, max_run_ms: 7_000, ..plain },
        5 => JobDefinition { schedule: ScheduleText::new("weekly").expect("one"), ..plain },
        _ => JobDefinition { retries: 101, ..plain },
    }
}

impl World {
    pub(super) fn face_operation(&mut self, act: &Act) -> Operation {
        match act {
            Act::Campaign { .. } | Act::Proclaim { .. } | Act::Handoff { .. } => {
                Operation::Election(self.election(act))
            }
            Act::Hold { .. } | Act::OnHold { .. } | Act::HoldPolicy { .. } => {
                Operation::Hold(self.hold(act))
            }
            Act::Report { space, refused, request } => {
                let namespace = namespace(*space);
                let request_id = self.request_id(Family::Admin, &namespace, 0, *request);
                let token = refused.then_some(Token(5));
                let (family, resource) = (Family::Hold, resource(0));
                let (guard, highest) = (owner(0), token);
                Operation::ReportGuard(ReportGuard {
                    namespace,
                    family,
                    resource,
                    guard,
                    token,
                    highest,
                    request_id,
                })
            }
            _ => Operation::Job(self.job(act)),
        }
    }

    fn election(&mut self, act: &Act) -> ElectionCommand {
        const FAMILY: Family = Family::Election;
        match act {
            Act::Campaign { who, terms, election, candidate, wait_ms } => {
                self.campaign(who, terms, &resource(*election), *candidate, *wait_ms)
            }
            Act::Proclaim { lease, version, request } => {
                let (namespace, _, lease) = self.lease_among(&[FAMILY], *lease, false);
                let present = self.reference.space(&namespace).and_then(|space| {
                    let at = At { space, family: FAMILY };
                    let (index, _) = self.reference.holder(at, &lease.resource)?;
                    Some(self.reference.version_of(index))
                });
                let version = version.map(|before| present.unwrap_or(1).saturating_sub(before));
                let request_id = self.request_id(FAMILY, &namespace, 0, *request);
                let value = Value::new(["one", "two"][self.drawn as usize % 2]).expect("a value");
                ElectionCommand::Proclaim(Proclaim { namespace, lease, value, version, request_id })
            }
            Act::Handoff { lease, to, request } => {
                let (namespace, _, lease) = self.lease_among(&[FAMILY], *lease, false);
                let request_id = self.request_id(FAMILY, &namespace, 0, *request);
                let to = owner(*to);
                ElectionCommand::Handoff(Handoff { namespace, lease, to, request_id })
            }
            other => unreachable!("{other:?} is no act of an election"),
        }
    }

    fn campaign(
        &mut self,
        who: &Who,
        terms: &Terms,
        election: &ResourceName,
        candidate: usize,
        wait_timeout_ms: u64,
    ) -> ElectionCommand {
        const FAMILY: Family = Family::Election;
        let namespace = namespace(who.space);
        ElectionCommand::Campaign(Campaign {
            request_id: self.request_id(FAMILY, &namespace, who.caller, who.request),
            namespace,
            election: election.clone(),
            candidate: owner(candidate),
            value: Value::new(if terms.label { "other" } else { "" }).expect("a value"),
            lease_id: self.draw(FAMILY, who.space, std::slice::from_ref(election)),
            lease_ttl_ms: terms.ttl_ms,
            wait_timeout_ms,
            max_hold_ms: terms.hold_ms,
            fencing: [Some(Fencing::Enforced), Some(Fencing::BestEffort), None]
                [usize::from(terms.fencing).min(2)],
            labels: Labels::default(),
        })
    }

    fn hold(&mut self, act: &Act) -> HoldCommand {
        const FAMILY: Family = Family::Hold;
        match act {
            Act::Hold { who, terms, resources, owner: of, replaces } => {
                let resources: Vec<_> = resources.iter().map(|&number| resource(number)).collect();
                let replaces = replaces.iter().map(|&(number, fence)| {
                    let resource = resource(number);
                    let fence = self.fence(who.space, &resource, fence);
                    HoldRef { resource, fence }
                });
                let replaces = replaces.collect();
                let namespace = namespace(who.space);
                HoldCommand::Hold(Hold {
                    request_id: self.request_id(FAMILY, &namespace, who.caller, who.request),
                    namespace,
                    owner: owner(*of),
                    lease_id: self.draw(FAMILY, who.space, &resources),
                    resources,
                    ttl_ms: terms.ttl_ms.unwrap_or(10_000),
                    max_hold_ms: terms.hold_ms,
                    replaces,
                    labels: Labels::default(),
                })
            }
            Act::OnHold { what, space, resource: name, owner: of, fence, ttl_ms, request } => {
                let (resource, namespace) = (resource(*name), namespace(*space));
                let fence = self.fence(*space, &resource, *fence);
                let request_id = self.request_id(FAMILY, &namespace, 0, *request);
                let (hold, owner, ttl_ms) = (HoldRef { resource, fence }, owner(*of), *ttl_ms);
                match what {
                    OnHold::Renew => {
                        HoldCommand::Renew(RenewHold { namespace, hold, owner, ttl_ms, request_id })
                    }
                    OnHold::Begin => {
                        let ttl_ms = ttl_ms.unwrap_or(20_000);
                        HoldCommand::Begin(BeginHold { namespace, hold, owner, ttl_ms, request_id })
                    }
                    OnHold::Release => {
                        HoldCommand::Release(ReleaseHold { namespace, hold, owner, request_id })
                    }
                }
            }
            Act::HoldPolicy { space, policy, per_owner, cooldown_ms, stale } => {
                let put = self.put_namespace(*space, *policy, *stale);
                let holds = HoldPolicy { per_owner: *per_owner, cooldown_ms: *cooldown_ms };
                HoldCommand::PutPolicy(PutHoldPolicy { put, holds })
            }
            other => unreachable!("{other:?} is no act of a hold"),
        }
    }

    fn fence(&self, space: usize, name: &ResourceName, fence: Fence) -> Option<Token> {
        let at = At { space, family: Family::Hold };
        let holder = self.reference.holder(at, name);
        let present = holder.map(|(index, part)| self.reference.shown(index, part).token);
        match fence {
            Fence::None => None,
            Fence::Present => Some(present.unwrap_or(Token(1))),
            Fence::Old => Some(self.watcher.an_old_token(present).unwrap_or(Token(1))),
        }
    }

    fn job(&mut self, act: &Act) -> JobCommand {
        const FAMILY: Family = Family::Job;
        match act {
            Act::PutJob { space, job, definition: number, stale } => {
                let job = resource(*job);
                let version = self.job_version(*space, &job) + u64::from(*stale);
                JobCommand::Put(PutJob {
                    namespace: namespace(*space),
                    job,
                    expected_version: version,
                    definition: definition(*number),
                })
            }
            Act::ClaimRun { who, job, slot, stale, ttl_ms } => {
                let (job, namespace) = (resource(*job), namespace(who.space));
                JobCommand::ClaimRun(ClaimRun {
                    request_id: self.request_id(FAMILY, &namespace, who.caller, who.request),
                    namespace,
                    job_version: self.job_version(who.space, &job).max(1) - u64::from(*stale),
                    slot: self.slot(who.space, &job, *slot),
                    owner: Owner::new(&format!("worker-{}", self.drawn)).expect("an owner"),
                    lease_id: self.draw(FAMILY, who.space, std::slice::from_ref(&job)),
                    job,
                    lease_ttl_ms: *ttl_ms,
                    labels: Labels::default(),
                })
            }
            Act::Finish { lease, succeeded, elsewhere, request } => {
                let only = [FAMILY];
                let families: &[Family] = if *elsewhere { &FAMILIES } else { &only };
                let (namespace, _, lease) = self.lease_among(families, *lease, *elsewhere);
                let request_id = self.request_id(FAMILY, &namespace, 0, *request);
                let result = if *succeeded { RunResult::Succeeded } else { RunResult::Failed };
                JobCommand::FinishRun(FinishRun { namespace, lease, result, request_id })
            }
            Act::OfJob { what, space, job, slot, request } => {
                let (job, namespace) = (resource(*job % JOBS), namespace(*space));
                let request_id = self.request_id(FAMILY, &namespace, 0, *request);
                let slot = self.slot(*space, &job, *slot);
                let reason = reason();
                match what {
                    OfJob::Pause => {
                        JobCommand::Pause(PauseJob { namespace, job, request_id, reason })
                    }
                    OfJob::Resume => {
                        JobCommand::Resume(PauseJob { namespace, job, request_id, reason })
                    }
                    OfJob::Skip => {
                        JobCommand::Skip(SlotOfJob { namespace, job, slot, request_id, reason })
                    }
                    OfJob::RunNow => {
                        JobCommand::RunNow(SlotOfJob { namespace, job, slot, request_id, reason })
                    }
                }
            }
            other => unreachable!("{other:?} is no act of a job"),
        }
    }

    fn job_version(&self, space: usize, name: &ResourceName) -> u64 {
        let space = self.reference.space(&namespace(space));
        let job = space.and_then(|space| self.reference.job_named(space, name).ok());
        job.map_or(0, |job| self.reference.jobs[job].version)
    }

    /// One that the ledger knows, or one that is due soon.
    fn slot(&self, space: usize, name: &ResourceName, number: usize) -> Slot {
        let space = self.reference.space(&namespace(space));
        let job = space.and_then(|space| self.reference.job_named(space, name).ok());
        let runs = job.map_or(&[][..], |job| &self.reference.jobs[job].runs);
        match runs.iter().rev().nth(number) {
            Some(run) => Slot(run.slot),
            None => Slot((self.scribe.wall_us() / 10_000_000 + number as u64 % 3 + 1) * 10_000),
        }
    }
}
