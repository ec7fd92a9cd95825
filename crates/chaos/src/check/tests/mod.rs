//! Planted wrong histories: each checker is shown to find what it is for, and to let lawful ones pass.

mod elections;
mod holds;
mod jobs;
mod log;
mod log_families;
mod log_quotas;
mod planted;
mod quota_words;
mod quotas;
mod words;
mod written;

use crate::{
    check::{intervals, leased, project, requests},
    clock::Micros,
    history::{Call, Family, Heard, History, LeaseOf, Op},
    truth::Truth,
};
use serde_json::json;
use sereno_api::{
    Abandoned, AbandonedWas, ErrorCode, Fencing, Granted, GrantedState, Holder, Lock, Problem,
    Reason, Released, Renewed,
};

/// Milliseconds, as the tests tell time.
fn ms(ms: u64) -> Micros {
    // Not at the very beginning: something may have to be before it.
    1_000_000 + ms * 1_000
}

/// A call from `start` to `end`, in milliseconds; without an end it is pending.
fn call(start: u64, end: impl Into<Option<u64>>, op: Op, heard: Heard) -> Call {
    let name = format!("{op:?}@{start}");
    let end = end.into().map(ms);
    Call { name, worker: "w".into(), node: 0, op, start: ms(start), end, heard }
}

fn acquire(request: &str) -> Op {
    let (resource, request) = ("a".into(), request.into());
    Op::Acquire { resource, request, wait_ms: 0, ttl_ms: 10_000 }
}

fn lease(request: &str) -> LeaseOf {
    lease_in(Family::Lock, request)
}

fn lease_in(family: Family, request: &str) -> LeaseOf {
    LeaseOf { family, resource: "a".into(), lease: request.into(), request: request.into() }
}

fn get() -> Op {
    look(Family::Lock)
}

fn look(family: Family) -> Op {
    Op::Get { family, resource: "a".into() }
}

fn abandon(family: Family, request: &str) -> Op {
    Op::Abandon { family, resource: "a".into(), request: request.into() }
}

fn force(family: Family, token: u64) -> Op {
    Op::Force { family, resource: "a".into(), token, request: format!("force-{token}") }
}

fn unknown() -> Heard {
    Heard::Nothing { sent: true }
}

fn granted(token: u64, revision: u64) -> Heard {
    Heard::Granted(Granted {
        state: GrantedState::Granted,
        resource: "a".into(),
        fence_key: "chaos/lock/a".into(),
        lease_id: format!("lease-{token}"),
        fencing_token: token,
        fencing: Fencing::BestEffort,
        expires_at: String::new(),
        expires_in_ms: 10_000,
        final_deadline_in_ms: None,
        replayed: false,
        original_revision: None,
        revision,
        cluster_time_ms: revision,
    })
}

fn renewed(token: u64, revision: u64) -> Heard {
    Heard::Renewed(Renewed {
        fencing_token: token,
        expires_at: String::new(),
        expires_in_ms: 10_000,
        final_deadline_in_ms: None,
        clipped: false,
        revision,
        cluster_time_ms: revision,
    })
}

fn released(released: bool, revision: u64) -> Heard {
    let reason = (!released).then_some(Reason::Expired);
    Heard::Released(Released { released, reason, revision, cluster_time_ms: revision })
}

fn abandoned(was: AbandonedWas, revision: u64) -> Heard {
    let (reason, code) = (None, None);
    Heard::Abandoned(Abandoned { was, reason, code, revision, cluster_time_ms: revision })
}

fn problem(code: ErrorCode, revision: u64) -> Problem {
    let mut problem = Problem::new(code, "planted");
    problem.revision = Some(revision);
    problem.cluster_time_ms = Some(revision);
    problem
}

fn refused(code: ErrorCode, revision: u64) -> Heard {
    Heard::Problem(Box::new(problem(code, revision)))
}

fn locked(owner: &str, token: u64, revision: u64) -> Heard {
    refused_for(ErrorCode::Locked, owner, token, revision)
}

/// Refused because of somebody else.
fn refused_for(code: ErrorCode, owner: &str, token: u64, revision: u64) -> Heard {
    let mut problem = problem(code, revision);
    let (owner, fencing_token) = (owner.to_owned(), token);
    problem.holder = Some(Holder { owner, fencing_token, held_for_ms: 0, expires_in_ms: 0 });
    Heard::Problem(Box::new(problem))
}

/// The counterexample for what these calls say of the name `a`, if there is one.
fn linearized(family: Family, calls: &[Call]) -> Result<(), String> {
    let mut places = project::by_place(calls);
    let mut projection = places.remove(&(family, "a")).expect("calls are about it");
    let operations = projection.operations();
    assert_eq!(projection.contradictions, Vec::<String>::new());
    leased::explain(operations).map_err(|example| example.to_string())
}

/// What those are told who rely on a lease by their own clocks.
fn relied_on(calls: Vec<Call>) -> Vec<&'static str> {
    let found = intervals::check(&History { calls, guards: Vec::new() });
    found.into_iter().map(|it| it.promise).collect()
}

/// Requests that hold nothing any more, and hold.
fn dead_requests(calls: &[Call]) -> usize {
    requests::check(calls, &Truth::default()).len()
}

/// What a read says: nobody, or owner and token.
fn read(holder: Option<(&str, u64)>, revision: u64) -> Heard {
    let mut lock = json!({
        "state": "free", "resource": "a", "fenceKey": "k", "waiters": 0, "queue": [],
        "revision": revision, "clusterTimeMs": revision, "ageMs": 0,
    });
    if let Some((owner, token)) = holder {
        lock["state"] = "held".into();
        lock["holder"] = json!({
            "owner": owner, "fencingToken": token, "leaseHash": "00", "fencing": "bestEffort",
            "heldForMs": 0, "renewedAgoMs": 0, "expiresInMs": 0,
        });
    }
    Heard::Read(serde_json::from_value::<Lock>(lock).expect("the interface's own words"))
}
