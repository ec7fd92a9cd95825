//! Answers about elections, holds and jobs, in the interface's own words.

use super::*;
use crate::history::Answer;
use serde_json::Value;

/// The answer to `op` with this body, decided at `revision`.
fn heard(op: &Op, status: u16, mut body: Value, revision: u64) -> Heard {
    body["revision"] = revision.into();
    body["clusterTimeMs"] = revision.into();
    Heard::of(op, &Answer::Response { status, body }).expect("the interface's own words")
}

pub(super) fn campaign(request: &str) -> Op {
    campaign_as(request, request)
}

pub(super) fn campaign_as(candidate: &str, request: &str) -> Op {
    Op::Campaign {
        resource: "a".into(),
        candidate: candidate.into(),
        value: "v".into(),
        request: request.into(),
        wait_ms: 0,
        ttl_ms: 10_000,
    }
}

pub(super) fn elected(term: u64, revision: u64) -> Heard {
    let body = json!({
        "state": "leading", "election": "a", "fenceKey": "chaos/election/a",
        "leaseId": format!("lease-{term}"), "term": term, "value": "v", "version": 1,
        "fencing": "bestEffort", "expiresAt": "", "expiresInMs": 10_000, "replayed": false,
    });
    heard(&campaign("any"), 200, body, revision)
}

pub(super) fn handoff(request: &str, to: &str) -> Op {
    let lease = lease_in(Family::Election, request);
    Op::Handoff { lease, to: to.into(), request: format!("handoff-{request}") }
}

pub(super) fn handed_off(term: u64, revision: u64) -> Heard {
    heard(&handoff("any", "any"), 200, json!({"term": term, "replayed": false}), revision)
}

pub(super) fn proclaim(request: &str) -> Op {
    let lease = lease_in(Family::Election, request);
    Op::Proclaim { lease, value: "w".into(), request: format!("proclaim-{request}") }
}

pub(super) fn proclaimed(version: u64, revision: u64) -> Heard {
    heard(&proclaim("any"), 200, json!({"version": version, "replayed": false}), revision)
}

/// What a read of an election says: nobody, or candidate and term.
pub(super) fn leader(leader: Option<(&str, u64)>, revision: u64) -> Heard {
    let mut body = json!({
        "state": "vacant", "election": "a", "fenceKey": "k", "waiters": 0, "queue": [], "ageMs": 0,
    });
    if let Some((candidate, term)) = leader {
        body["state"] = "leading".into();
        body["leader"] = json!({
            "candidate": candidate, "term": term, "value": "v", "version": 1, "leaseHash": "00",
            "fencing": "bestEffort", "ledForMs": 0, "renewedAgoMs": 0, "expiresInMs": 0,
        });
    }
    heard(&look(Family::Election), 200, body, revision)
}

pub(super) fn hold(owner: &str, request: &str) -> Op {
    hold_instead(owner, request, &[])
}

/// Of the thing `a`, instead of these.
pub(super) fn hold_instead(owner: &str, request: &str, replaces: &[(&str, u64)]) -> Op {
    hold_all(&["a"], owner, request, replaces)
}

pub(super) fn hold_all(
    things: &[&str],
    owner: &str,
    request: &str,
    replaces: &[(&str, u64)],
) -> Op {
    Op::Hold {
        resources: things.iter().map(ToString::to_string).collect(),
        owner: owner.into(),
        replaces: replaces.iter().map(|&(name, fence)| (name.to_owned(), fence)).collect(),
        request: request.into(),
        ttl_ms: 10_000,
    }
}

/// Of one thing.
pub(super) fn held(thing: &str, owner: &str, fence: u64, yours: bool, revision: u64) -> Heard {
    let body = json!({
        "state": "held", "resource": thing, "owner": owner, "fenceKey": "k", "fence": fence,
        "yours": yours, "begun": false, "expiresAt": "", "expiresInMs": 10_000, "replayed": false,
    });
    heard(&hold(owner, "any"), 200, body, revision)
}

fn hold_of(owner: &str, fence: Option<u64>, request: &str) -> crate::history::HoldOf {
    let (resource, owner, request) = ("a".into(), owner.into(), request.into());
    crate::history::HoldOf { resource, owner, fence, request }
}

pub(super) fn renew_hold(owner: &str, fence: u64, request: &str) -> Op {
    Op::RenewHold(hold_of(owner, Some(fence), request))
}

pub(super) fn extended(fence: u64, revision: u64) -> Heard {
    let body = json!({
        "resource": "a", "fence": fence, "begun": false, "clipped": false, "expiresAt": "",
        "expiresInMs": 10_000, "replayed": false,
    });
    heard(&renew_hold("any", fence, "any"), 200, body, revision)
}

pub(super) fn release_hold(owner: &str, fence: Option<u64>, request: &str) -> Op {
    Op::ReleaseHold(hold_of(owner, fence, request))
}

pub(super) fn hold_released(released: bool, replayed: bool, revision: u64) -> Heard {
    let body = json!({"released": released, "replayed": replayed});
    heard(&release_hold("any", None, "any"), 200, body, revision)
}

/// What a read of a thing says: free, or owner and fence.
pub(super) fn shelf(holder: Option<(&str, u64)>, revision: u64) -> Heard {
    let mut body = json!({"state": "free", "resource": "a", "fenceKey": "k", "ageMs": 0});
    if let Some((owner, fence)) = holder {
        body["state"] = "held".into();
        body["holder"] = json!({
            "owner": owner, "fence": fence, "begun": false, "leaseHash": "00", "heldForMs": 0,
            "renewedAgoMs": 0, "expiresInMs": 0,
        });
    }
    heard(&look(Family::Hold), 200, body, revision)
}

/// 2026-01-01, in milliseconds, and a slot each second from then on.
pub(super) fn slot(number: u64) -> u64 {
    1_767_225_600_000 + number * 1_000
}

fn slot_text(number: u64) -> String {
    sereno_schedule::instant::format(slot(number))
}

pub(super) fn claim(number: u64, request: &str) -> Op {
    let (resource, request) = ("a".into(), request.into());
    Op::Claim { resource, version: 1, slot: slot(number), request, ttl_ms: 10_000 }
}

pub(super) fn claimed(number: u64, attempt: u32, token: u64, revision: u64) -> Heard {
    let body = json!({
        "state": "claimed", "job": "a", "slot": slot_text(number), "attempt": attempt,
        "fenceKey": "chaos/job/a", "leaseId": format!("lease-{token}"), "fencingToken": token,
        "expiresAt": "", "expiresInMs": 10_000, "replayed": false,
    });
    heard(&claim(number, "any"), 200, body, revision)
}

pub(super) fn finish(request: &str) -> Op {
    let lease = lease_in(Family::Job, request);
    Op::Finish { lease, succeeded: true, request: format!("finish-{request}") }
}

pub(super) fn finished(number: u64, attempt: u32, state: &str, revision: u64) -> Heard {
    let body = json!({
        "job": "a", "slot": slot_text(number), "attempt": attempt, "state": state,
        "replayed": false,
    });
    heard(&finish("any"), 200, body, revision)
}

/// What a read of a job says: one slot, its state, and who has it by which token.
pub(super) fn ledger(number: u64, state: &str, owner: &str, token: u64, revision: u64) -> Heard {
    let run = json!({
        "slot": slot_text(number), "state": state, "attempt": 1, "owner": owner,
        "fencingToken": token,
    });
    let body = json!({
        "job": "a", "version": 1, "schedule": "* * * * * *", "zone": "UTC", "missed": "latest",
        "overlap": "forbid", "retries": 1, "maxRun": "20s", "paused": false,
        "watermark": slot_text(0), "runs": [run], "ageMs": 0,
    });
    heard(&look(Family::Job), 200, body, revision)
}
