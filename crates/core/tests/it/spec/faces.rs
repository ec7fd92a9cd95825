//! The words about elections, holds, jobs and guards. Slots are told as seconds after the script's first wall clock.
//!
//! ```text
//! campaign e id:1 by:c1 value:v ttl:10s wait:5s    renew-term e #1    proclaim e #1 value:w v:3 id:2
//! resign-term e #1       handoff e #1 to:c2 id:3        force-resign e T1 id:9
//! hold a,b by:o id:1 ttl:10m hold:1h replaces:c=T1,d       begin a by:o fence:T1 ttl:1h id:2
//! renew-hold a by:o fence:T1 ttl:5m id:3      release-hold a by:o fence:T1 id:4     force-drop a T1 id:9
//! hold-policy shop v:1 perOwner:2 cooldown:1m …
//! job j v:0 every:daily missed:all overlap:allow retries:2 maxRun:1h       claim j v:1 slot:60s id:1 by:w1 ttl:10s
//! renew-run j #1    finish j #1 succeeded id:2     pause j id:5     resume j id:6    skip j slot:60s id:7
//! run-now j slot:5s id:8      force-run j T1 id:9      show j       report a family:lock token:T1 highest:T2 by:g id:1
//! ```

use super::{
    line::{Line, owner, parse_ms, policy, resources},
    script::World,
};
use sereno_core::{
    command::{
        BeginHold, Campaign, ClaimRun, ElectionCommand, Family, FinishRun, ForceRelease, Handoff,
        Hold, HoldCommand, HoldRef, JobCommand, JobDefinition, Missed, Operation, PauseJob,
        Proclaim, PutHoldPolicy, PutJob, PutNamespace, Release, ReleaseHold, Renew, RenewHold,
        ReportGuard, RunResult, SlotOfJob,
    },
    ids::Slot,
    limits,
    names::{NamespaceName, Owner, Reason, ResourceName, ScheduleText, Value, ZoneName},
    policy::HoldPolicy,
    testing::TOKEN_CLOCK_US,
};

/// Where a script's slots count from.
pub(super) const SLOT_ZERO_MS: u64 = TOKEN_CLOCK_US / 1_000;

fn name(line: &Line) -> ResourceName {
    ResourceName::new(line.word(1)).expect("a name")
}

fn reason(line: &Line) -> Reason {
    Reason::new(line.get("reason").unwrap_or("why")).expect("a reason")
}

fn slot(line: &Line) -> Slot {
    Slot(SLOT_ZERO_MS + parse_ms(line.get("slot").expect("slot:…")))
}

pub(super) fn family(word: &str) -> Family {
    match word {
        "lock" => Family::Lock,
        "election" => Family::Election,
        "job" => Family::Job,
        "hold" => Family::Hold,
        "quota" => Family::Quota,
        "admin" => Family::Admin,
        other => panic!("family:{other}"),
    }
}

impl World {
    /// What a line about another family than locks asks for.
    pub(super) fn face_operation(&mut self, line: &Line) -> Operation {
        match line.word(0) {
            "campaign" | "renew-term" | "proclaim" | "resign-term" | "handoff" | "force-resign" => {
                Operation::Election(self.election(line))
            }
            "hold" | "begin" | "renew-hold" | "release-hold" | "force-drop" | "hold-policy" => {
                Operation::Hold(self.hold(line))
            }
            "report" => Operation::ReportGuard(self.report(line)),
            _ => match self.quota(line) {
                Some(command) => Operation::Quota(command),
                None => Operation::Job(self.job(line)),
            },
        }
    }

    fn force(&self, line: &Line) -> ForceRelease {
        ForceRelease {
            namespace: line.namespace(),
            resource: name(line),
            token: self.names.token_named(line.word(2)),
            request_id: line.request_id(),
            reason: reason(line),
        }
    }

    fn election(&mut self, line: &Line) -> ElectionCommand {
        let namespace = line.namespace();
        let value = || Value::new(line.get("value").unwrap_or("")).expect("a value");
        match line.word(0) {
            "campaign" => ElectionCommand::Campaign(Campaign {
                namespace,
                election: name(line),
                candidate: owner(line),
                value: value(),
                request_id: line.request_id(),
                lease_id: self.draw(line),
                lease_ttl_ms: line.ms("ttl"),
                wait_timeout_ms: line.ms("wait").unwrap_or(0),
                max_hold_ms: line.ms("hold"),
                fencing: line.fencing(),
                labels: line.labels(),
            }),
            "renew-term" => {
                let lease = self.lease(line.word(1), line.word(2));
                ElectionCommand::Renew(Renew { namespace, lease, lease_ttl_ms: line.ms("ttl") })
            }
            "proclaim" => ElectionCommand::Proclaim(Proclaim {
                namespace,
                lease: self.lease(line.word(1), line.word(2)),
                value: value(),
                version: line.number("v"),
                request_id: line.request_id(),
            }),
            "resign-term" => {
                let lease = self.lease(line.word(1), line.word(2));
                ElectionCommand::Resign(Release { namespace, lease })
            }
            "handoff" => ElectionCommand::Handoff(Handoff {
                namespace,
                lease: self.lease(line.word(1), line.word(2)),
                to: Owner::new(line.get("to").expect("to:…")).expect("an owner"),
                request_id: line.request_id(),
            }),
            _ => ElectionCommand::ForceRelease(self.force(line)),
        }
    }

    fn hold_ref(&self, line: &Line) -> HoldRef {
        let fence = line.get("fence").map(|fence| self.names.token_named(fence));
        HoldRef { resource: name(line), fence }
    }

    fn hold(&mut self, line: &Line) -> HoldCommand {
        let namespace = line.namespace();
        match line.word(0) {
            "hold" => {
                let replaced = line.get("replaces").unwrap_or("").split_terminator(',');
                let one = |text: &str| {
                    let (resource, fence) = text.split_once('=').unwrap_or((text, ""));
                    let fence = (!fence.is_empty()).then(|| self.names.token_named(fence));
                    HoldRef { resource: ResourceName::new(resource).expect("a name"), fence }
                };
                let replaces = replaced.map(one).collect();
                HoldCommand::Hold(Hold {
                    namespace,
                    resources: resources(line.word(1)),
                    owner: owner(line),
                    request_id: line.request_id(),
                    lease_id: self.draw(line),
                    ttl_ms: line.ms("ttl").unwrap_or(600_000),
                    max_hold_ms: line.ms("hold"),
                    replaces,
                    labels: line.labels(),
                })
            }
            "begin" => HoldCommand::Begin(BeginHold {
                namespace,
                hold: self.hold_ref(line),
                owner: owner(line),
                ttl_ms: line.ms("ttl").unwrap_or(1_200_000),
                request_id: line.request_id(),
            }),
            "renew-hold" => HoldCommand::Renew(RenewHold {
                namespace,
                hold: self.hold_ref(line),
                owner: owner(line),
                ttl_ms: line.ms("ttl"),
                request_id: line.request_id(),
            }),
            "release-hold" => HoldCommand::Release(ReleaseHold {
                namespace,
                hold: self.hold_ref(line),
                owner: owner(line),
                request_id: line.request_id(),
            }),
            "hold-policy" => {
                let namespace = NamespaceName::new(line.word(1)).expect("a namespace");
                let (expected_version, policy) = (line.number("v").expect("v:…"), policy(line));
                let put = PutNamespace { namespace, expected_version, policy };
                let holds = HoldPolicy {
                    per_owner: line.number("perOwner"),
                    cooldown_ms: line.ms("cooldown").unwrap_or(0),
                };
                HoldCommand::PutPolicy(PutHoldPolicy { put, holds })
            }
            _ => HoldCommand::ForceRelease(self.force(line)),
        }
    }

    fn job(&mut self, line: &Line) -> JobCommand {
        let namespace = line.namespace();
        match line.word(0) {
            "job" => JobCommand::Put(PutJob {
                namespace,
                job: name(line),
                expected_version: line.number("v").expect("v:…"),
                definition: definition(line),
            }),
            "claim" => JobCommand::ClaimRun(ClaimRun {
                namespace,
                job: name(line),
                job_version: line.number("v").unwrap_or(1),
                slot: slot(line),
                request_id: line.request_id(),
                owner: owner(line),
                lease_id: self.draw(line),
                lease_ttl_ms: line.ms("ttl"),
                labels: line.labels(),
            }),
            "renew-run" => {
                let lease = self.lease(line.word(1), line.word(2));
                JobCommand::RenewRun(Renew { namespace, lease, lease_ttl_ms: line.ms("ttl") })
            }
            "finish" => JobCommand::FinishRun(FinishRun {
                namespace,
                lease: self.lease(line.word(1), line.word(2)),
                result: match line.word(3) {
                    "succeeded" => RunResult::Succeeded,
                    "failed" => RunResult::Failed,
                    other => panic!("no such result: {other}"),
                },
                request_id: line.request_id(),
            }),
            word @ ("pause" | "resume") => {
                let (job, request_id, reason) = (name(line), line.request_id(), reason(line));
                let op = PauseJob { namespace, job, request_id, reason };
                if word == "pause" { JobCommand::Pause(op) } else { JobCommand::Resume(op) }
            }
            word @ ("skip" | "run-now") => {
                let (job, request_id, reason) = (name(line), line.request_id(), reason(line));
                let op = SlotOfJob { namespace, job, slot: slot(line), request_id, reason };
                if word == "skip" { JobCommand::Skip(op) } else { JobCommand::RunNow(op) }
            }
            "force-run" => JobCommand::ForceRelease(self.force(line)),
            other => panic!("no such word: {other}"),
        }
    }

    fn report(&self, line: &Line) -> ReportGuard {
        let token = |key| line.get(key).map(|token| self.names.token_named(token));
        ReportGuard {
            namespace: line.namespace(),
            family: family(line.get("family").unwrap_or("lock")),
            resource: name(line),
            guard: owner(line),
            token: token("token"),
            highest: token("highest"),
            request_id: line.request_id(),
        }
    }

    /// A job's record in few words.
    pub(super) fn show_job(&mut self, line: &Line) -> String {
        let view = self.scribe.state.job_view(&line.namespace(), &name(line));
        let Some(job) = view.expect("a namespace") else { return "no such job".into() };
        let after = |slot: Slot| match slot.0.checked_sub(SLOT_ZERO_MS) {
            Some(ms) => super::print::ms(ms),
            None => format!("-{}", super::print::ms(SLOT_ZERO_MS - slot.0)),
        };
        let paused = if job.paused { ", paused" } else { "" };
        let mut said =
            format!("version {}, watermark {}{paused}", job.version, after(job.watermark));
        for run in &job.runs {
            let last = run.last.as_ref().map_or(String::new(), |last| {
                let end = last.end.map_or("", |end| end.as_str());
                format!(" by {} {}{}{end}", last.owner, self.names.token(last.token), sep(end))
            });
            let state = format!("{:?}", run.state).to_lowercase();
            said += &format!("\n    {} {state}, attempt {}{last}", after(run.slot), run.attempt);
        }
        said
    }
}

fn sep(text: &str) -> &'static str {
    if text.is_empty() { "" } else { ", " }
}

fn definition(line: &Line) -> JobDefinition {
    JobDefinition {
        schedule: ScheduleText::new(line.get("every").unwrap_or("daily")).expect("a schedule"),
        zone: ZoneName::new("UTC").expect("a zone"),
        missed: match line.get("missed").unwrap_or("latest") {
            "skip" => Missed::Skip,
            "latest" => Missed::Latest,
            "all" => Missed::All,
            other => panic!("missed:{other}"),
        },
        overlap: line.get("overlap") == Some("allow"),
        retries: line.number("retries").map_or(0, |n| u32::try_from(n).expect("a small number")),
        max_run_ms: line.ms("maxRun").unwrap_or(limits::TTL_MS_MAX),
    }
}
