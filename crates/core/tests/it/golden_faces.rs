//! The part of the golden life that level 3 has added: elections, holds, jobs, a guard's report.

use sereno_core::{
    command::{
        BeginHold, Campaign, ClaimRun, ElectionCommand, Family, FinishRun, ForceRelease, Handoff,
        Hold, HoldCommand, HoldRef, JobCommand, JobDefinition, LeaseRef, Missed, Operation,
        PauseJob, Proclaim, PutHoldPolicy, PutJob, PutNamespace, Release, ReleaseHold, Renew,
        RenewHold, ReportGuard, RunResult, SlotOfJob,
    },
    ids::{Slot, Token},
    names::{
        Labels, NamespaceName, Owner, Reason, RequestId, ResourceName, ScheduleText, Value,
        ZoneName,
    },
    policy::{HoldPolicy, Policy},
    testing::{Scribe, default_namespace, lease_id, resource_name},
};

fn request(n: u64) -> RequestId {
    RequestId::new(&format!("face-request-{n}")).expect("an id")
}

fn owner(text: &str) -> Owner {
    Owner::new(text).expect("an owner")
}

fn reason() -> Reason {
    Reason::new("an operator wants it").expect("a reason")
}

fn lease_ref(resource: &ResourceName, n: u64) -> LeaseRef {
    LeaseRef { resource: resource.clone(), lease_id: lease_id(n) }
}

/// Lives through every command of level 3, and leaves a leader with a waiter, holds, a cool-down and runs.
pub(super) fn live(scribe: &mut Scribe) {
    elections(scribe);
    holds(scribe);
    jobs(scribe);
    scribe.run(Operation::ReportGuard(ReportGuard {
        namespace: default_namespace(),
        family: Family::Lock,
        resource: resource_name("orders/42"),
        guard: owner("ledger"),
        token: Some(Token(5)),
        highest: Some(Token(7)),
        request_id: request(90),
    }));
}

fn elections(scribe: &mut Scribe) {
    let (namespace, election) = (default_namespace(), resource_name("nodes/leader"));
    let campaign = |n: u64, candidate: &str, wait_timeout_ms| {
        Operation::Election(ElectionCommand::Campaign(Campaign {
            namespace: default_namespace(),
            election: resource_name("nodes/leader"),
            candidate: owner(candidate),
            value: Value::new("http://10.0.0.1:7480/ \u{e4}").expect("a value"),
            request_id: request(n),
            lease_id: lease_id(100 + n),
            lease_ttl_ms: Some(20_000),
            wait_timeout_ms,
            max_hold_ms: Some(3_600_000),
            fencing: None,
            labels: Labels::default(),
        }))
    };
    let of = |n: u64| lease_ref(&election, 100 + n);
    let renew = Renew { namespace: namespace.clone(), lease: of(1), lease_ttl_ms: None };
    let proclaim = Proclaim {
        namespace: namespace.clone(),
        lease: of(1),
        value: Value::new("elsewhere").expect("a value"),
        version: None,
        request_id: request(4),
    };
    let (to, request_id) = (owner("n3"), request(5));
    let handoff = Handoff { namespace: namespace.clone(), lease: of(1), to, request_id };
    scribe.batch(
        10,
        vec![
            campaign(1, "n1", 0),
            campaign(2, "n2", 60_000),
            campaign(3, "n3", 60_000),
            Operation::Election(ElectionCommand::Renew(renew)),
            Operation::Election(ElectionCommand::Proclaim(proclaim)),
            Operation::Election(ElectionCommand::Handoff(handoff)),
        ],
    );
    let resign = Release { namespace: namespace.clone(), lease: of(3) };
    let force = ForceRelease {
        namespace,
        resource: election,
        token: Token(1),
        request_id: request(6),
        reason: reason(),
    };
    scribe.batch(
        10,
        vec![
            Operation::Election(ElectionCommand::Resign(resign)),
            Operation::Election(ElectionCommand::ForceRelease(force)),
            campaign(7, "n1", 60_000),
        ],
    );
}

fn holds(scribe: &mut Scribe) {
    let shop = || NamespaceName::new("shoes").expect("a name");
    let put = PutNamespace { namespace: shop(), expected_version: 0, policy: Policy::default() };
    let holds = HoldPolicy { per_owner: Some(3), cooldown_ms: 30_000 };
    let hold = |n: u64, names: &[&str], replaces: Vec<HoldRef>| {
        Operation::Hold(HoldCommand::Hold(Hold {
            namespace: shop(),
            resources: names.iter().map(|name| resource_name(name)).collect(),
            owner: owner("anna"),
            request_id: request(n),
            lease_id: lease_id(100 + n),
            ttl_ms: 60_000,
            max_hold_ms: None,
            replaces,
            labels: Labels::default(),
        }))
    };
    let named = |name: &str| HoldRef { resource: resource_name(name), fence: None };
    let renew = RenewHold {
        namespace: shop(),
        hold: named("boot"),
        owner: owner("anna"),
        ttl_ms: Some(60_000),
        request_id: request(14),
    };
    let begin = BeginHold {
        namespace: shop(),
        hold: named("boot"),
        owner: owner("anna"),
        ttl_ms: 120_000,
        request_id: request(15),
    };
    let release = ReleaseHold {
        namespace: shop(),
        hold: named("sock"),
        owner: owner("anna"),
        request_id: request(16),
    };
    let force = ForceRelease {
        namespace: shop(),
        resource: resource_name("boot"),
        token: Token(1),
        request_id: request(17),
        reason: reason(),
    };
    scribe.batch(
        10,
        vec![
            Operation::Hold(HoldCommand::PutPolicy(PutHoldPolicy { put, holds })),
            hold(11, &["shoe/42", "sock"], Vec::new()),
            hold(12, &["boot"], vec![named("shoe/42")]),
            hold(13, &["boot"], Vec::new()),
            Operation::Hold(HoldCommand::Renew(renew)),
            Operation::Hold(HoldCommand::Begin(begin)),
            Operation::Hold(HoldCommand::Release(release)),
            Operation::Hold(HoldCommand::ForceRelease(force)),
        ],
    );
}

fn jobs(scribe: &mut Scribe) {
    let job = resource_name("settlement");
    let now = scribe.wall_us() / 1_000;
    let definition = JobDefinition {
        schedule: ScheduleText::new("0 2 * * *").expect("a schedule"),
        zone: ZoneName::new("Europe/Madrid").expect("a zone"),
        missed: Missed::All,
        overlap: true,
        retries: 3,
        max_run_ms: 60_000,
    };
    let claim = |n: u64, slot: u64| {
        Operation::Job(JobCommand::ClaimRun(ClaimRun {
            namespace: default_namespace(),
            job: resource_name("settlement"),
            job_version: 1,
            slot: Slot(now + slot),
            request_id: request(n),
            owner: owner("replica"),
            lease_id: lease_id(100 + n),
            lease_ttl_ms: Some(30_000),
            labels: Labels::default(),
        }))
    };
    let namespace = default_namespace;
    let renew = Renew { namespace: namespace(), lease: lease_ref(&job, 121), lease_ttl_ms: None };
    let finish = FinishRun {
        namespace: namespace(),
        lease: lease_ref(&job, 121),
        result: RunResult::Failed,
        request_id: request(24),
    };
    let pause = |n| PauseJob {
        namespace: namespace(),
        job: resource_name("settlement"),
        request_id: request(n),
        reason: reason(),
    };
    let slot = |n, slot| SlotOfJob {
        namespace: namespace(),
        job: resource_name("settlement"),
        slot: Slot(now + slot),
        request_id: request(n),
        reason: reason(),
    };
    let force = ForceRelease {
        namespace: namespace(),
        resource: job.clone(),
        token: Token(1),
        request_id: request(29),
        reason: reason(),
    };
    let put = PutJob { namespace: namespace(), job, expected_version: 0, definition };
    let ops = [
        JobCommand::RenewRun(renew),
        JobCommand::FinishRun(finish),
        JobCommand::Pause(pause(25)),
        JobCommand::Resume(pause(26)),
        JobCommand::Skip(slot(27, 3_000)),
        JobCommand::RunNow(slot(28, 4_000)),
        JobCommand::ForceRelease(force),
    ];
    let first = [Operation::Job(JobCommand::Put(put)), claim(21, 1_000), claim(22, 2_000)];
    let others = ops.into_iter().map(Operation::Job);
    scribe.batch(10, first.into_iter().chain(others).chain([claim(23, 4_000)]).collect());
}
