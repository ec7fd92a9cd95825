//! The checker that replays the log, on elections, holds and jobs.

use super::{words::*, written::Written, *};
use sereno_core::{
    command::{
        Campaign, ClaimRun, ElectionCommand, FinishRun, Hold, HoldCommand, JobCommand,
        JobDefinition, Missed, Operation, PutJob, RunResult,
    },
    ids::Slot,
    names::{Labels, Owner, RequestId, ScheduleText, Value, ZoneName},
    outcome::{Done, Outcome},
    testing,
};

fn request_id(text: &str) -> RequestId {
    RequestId::new(text).unwrap()
}

impl Written {
    /// A term, a hold of two things, a run that is claimed and finished.
    fn lawful() -> Self {
        let mut written = Self::new();
        written.scribe.run(Operation::RaiseLevel { level: 3 });
        written.campaign();
        written.hold();
        written.run_of_a_job();
        written
    }

    fn campaign(&mut self) {
        let request = "request-1";
        let operation = Campaign {
            namespace: testing::default_namespace(),
            election: testing::resource_name("a"),
            candidate: Owner::new(request).unwrap(),
            value: Value::new("v").unwrap(),
            request_id: request_id(request),
            lease_id: testing::lease_id(1),
            lease_ttl_ms: Some(10_000),
            wait_timeout_ms: 0,
            max_hold_ms: None,
            fencing: None,
            labels: Labels::default(),
        };
        let operation = Operation::Election(ElectionCommand::Campaign(operation));
        self.run(campaign(request), operation, told);
    }

    fn hold(&mut self) {
        let operation = Hold {
            namespace: testing::default_namespace(),
            resources: ["a", "b"].map(testing::resource_name).to_vec(),
            owner: Owner::new("anna").unwrap(),
            request_id: request_id("request-2"),
            lease_id: testing::lease_id(2),
            ttl_ms: 10_000,
            max_hold_ms: None,
            replaces: Vec::new(),
            labels: Labels::default(),
        };
        let op = hold_all(&["a", "b"], "anna", "request-2", &[]);
        self.run(op, Operation::Hold(HoldCommand::Hold(operation)), told);
    }

    fn run_of_a_job(&mut self) {
        let (namespace, job) = (testing::default_namespace(), testing::resource_name("a"));
        let definition = JobDefinition {
            schedule: ScheduleText::new("* * * * * *").unwrap(),
            zone: ZoneName::new("UTC").unwrap(),
            missed: Missed::Latest,
            overlap: false,
            retries: 1,
            max_run_ms: 20_000,
        };
        let put = PutJob {
            namespace: namespace.clone(),
            job: job.clone(),
            expected_version: 0,
            definition,
        };
        let op = Op::PutJob { resource: "a".into(), all: false, retries: 1 };
        self.run(op, Operation::Job(JobCommand::Put(put)), told);
        let run = ClaimRun {
            namespace: namespace.clone(),
            job,
            job_version: 1,
            slot: Slot(slot(9)),
            request_id: request_id("request-3"),
            owner: Owner::new("request-3").unwrap(),
            lease_id: testing::lease_id(3),
            lease_ttl_ms: Some(10_000),
            labels: Labels::default(),
        };
        self.run(claim(9, "request-3"), Operation::Job(JobCommand::ClaimRun(run)), told);
        let lease = testing::lease("a", 3);
        let (result, request_id) = (RunResult::Succeeded, request_id("finish-request-3"));
        let ended = FinishRun { namespace, lease: lease.clone(), result, request_id };
        let mut op = finish("request-3");
        if let Op::Finish { lease: ours, .. } = &mut op {
            ours.lease = lease.lease_id.to_hex();
        }
        self.run(op, Operation::Job(JobCommand::FinishRun(ended)), told);
    }

    fn read(&mut self, family: Family, mut heard: Heard) {
        let time = self.scribe.state.time().0;
        match &mut heard {
            Heard::Leader(it) => it.cluster_time_ms = time,
            Heard::Shelf(it) => it.cluster_time_ms = time,
            Heard::Ledger(it) => it.cluster_time_ms = time,
            other => panic!("{other:?}"),
        }
        self.call(look(family), heard);
    }
}

/// The answer that the door makes of an outcome.
fn told(outcome: &Outcome) -> Heard {
    let (revision, time) = (outcome.revision.0, outcome.time.0);
    match outcome.result.as_ref().unwrap() {
        Done::Elected(it) => {
            let Heard::Elected(mut heard) = elected(it.grant.holdings[0].1.0, revision) else {
                panic!()
            };
            heard.lease_id = it.grant.lease_id.to_hex();
            heard.final_deadline_in_ms = it.grant.final_deadline_in_ms;
            (heard.version, heard.cluster_time_ms) = (it.version, time);
            Heard::Elected(heard)
        }
        Done::Held(it) => {
            let one =
                |(name, token): &(sereno_core::names::ResourceName, sereno_core::ids::Token)| {
                    let (resource, fence_key) = (name.to_string(), format!("chaos/hold/{name}"));
                    sereno_api::HeldOne { resource, fence_key, fence: token.0 }
                };
            Heard::HeldAll(sereno_api::HeldAll {
                state: sereno_api::HoldState::Held,
                holds: it.grant.holdings.iter().map(one).collect(),
                owner: it.owner.to_string(),
                yours: it.yours,
                begun: it.begun,
                expires_at: String::new(),
                expires_in_ms: it.grant.expires_in_ms,
                final_deadline_in_ms: it.grant.final_deadline_in_ms,
                replayed: false,
                original_revision: None,
                revision,
                cluster_time_ms: time,
            })
        }
        &Done::JobPut { version } => Heard::JobPut(sereno_api::JobPut {
            job: "a".into(),
            version,
            revision,
            cluster_time_ms: time,
        }),
        Done::RunClaimed(it) => {
            let token = it.grant.holdings[0].1.0;
            let Heard::Claimed(mut heard) = claimed(9, it.attempt, token, revision) else {
                panic!()
            };
            heard.lease_id = it.grant.lease_id.to_hex();
            heard.final_deadline_in_ms = it.grant.final_deadline_in_ms;
            heard.cluster_time_ms = time;
            Heard::Claimed(heard)
        }
        Done::RunFinished(it) => {
            let Heard::Finished(mut heard) = finished(9, it.attempt, "succeeded", revision) else {
                panic!()
            };
            heard.cluster_time_ms = time;
            Heard::Finished(heard)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_that_are_the_logs_pass() {
    assert_eq!(Written::lawful().violations(), Vec::<&str>::new());
}

#[test]
fn answers_that_are_not_the_logs_are_found() {
    type Plant = fn(&mut [Call]);
    let planted: [(&str, Plant); 9] = [
        ("another term", |calls| {
            if let Heard::Elected(it) = &mut calls[0].heard {
                it.term += 1;
            }
        }),
        ("another value", |calls| {
            if let Heard::Elected(it) = &mut calls[0].heard {
                it.value = "w".into();
            }
        }),
        ("another candidate's term", |calls| calls[0].op = campaign("request-9")),
        ("one fence of two", |calls| {
            if let Heard::HeldAll(it) = &mut calls[1].heard {
                it.holds[1].fence += 1;
            }
        }),
        ("one thing of two", |calls| {
            if let Heard::HeldAll(it) = &mut calls[1].heard {
                it.holds.pop();
            }
        }),
        ("it was theirs already", |calls| {
            if let Heard::HeldAll(it) = &mut calls[1].heard {
                it.yours = true;
            }
        }),
        ("another attempt", |calls| {
            if let Heard::Claimed(it) = &mut calls[3].heard {
                it.attempt = 2;
            }
        }),
        ("another slot", |calls| calls[3].op = claim(8, "request-3")),
        ("the slot is to be tried again", |calls| {
            if let Heard::Finished(it) = &mut calls[4].heard {
                it.state = sereno_api::RunState::Retry;
            }
        }),
    ];
    for (what, plant) in planted {
        let mut written = Written::lawful();
        plant(&mut written.calls);
        assert!(!written.violations().is_empty(), "not found: {what}");
    }
}

#[test]
fn reads_that_show_another_state_than_the_logs_are_found() {
    let revision = Written::lawful().scribe.state.revision().0;
    let tokens = |written: &Written, index: usize| written.calls[index].heard.tokens()[0].1;
    let check = |family, heard: &dyn Fn(&Written) -> Heard| {
        let mut written = Written::lawful();
        let heard = heard(&written);
        written.read(family, heard);
        written.violations().len()
    };
    let leads = |version_off: u64| {
        move |written: &Written| {
            let term = tokens(written, 0);
            let mut heard = leader(Some(("request-1", term)), revision);
            if let (Heard::Leader(it), Heard::Elected(first)) =
                (&mut heard, &written.calls[0].heard)
            {
                it.leader.as_mut().unwrap().version = first.version + version_off;
            }
            heard
        }
    };
    assert_eq!(check(Family::Election, &leads(0)), 0);
    assert_eq!(check(Family::Election, &leads(1)), 1, "another version");
    assert_eq!(check(Family::Election, &|_| leader(None, revision)), 1);
    assert_eq!(check(Family::Hold, &|it| shelf(Some(("anna", tokens(it, 1))), revision)), 0);
    assert_eq!(check(Family::Hold, &|it| shelf(Some(("bert", tokens(it, 1))), revision)), 1);
    assert_eq!(check(Family::Hold, &|_| shelf(None, revision)), 1);
    let shows = |state: &'static str| {
        move |written: &Written| {
            let mut heard = ledger(9, state, "request-3", tokens(written, 3), revision);
            if let Heard::Ledger(it) = &mut heard {
                // The claim of a slot is the watermark where only the latest one counts.
                it.watermark = sereno_schedule::instant::format(slot(9));
            }
            heard
        }
    };
    assert_eq!(check(Family::Job, &shows("succeeded")), 0);
    assert_eq!(check(Family::Job, &shows("retry")), 1);
}
