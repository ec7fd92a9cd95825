//! Answers about quotas, in the interface's own words.

use super::*;
use crate::history::{Answer, NodeRules, QuotaOp, ReservationOf};
use serde_json::Value;
use sereno_api::{OnExpiry, QuotaItem};

/// The tree of one node: at most 5 of it.
pub(super) const SOLO: &str = "solo-1";

/// The answer to `op` with this body.
pub(super) fn heard(op: &Op, status: u16, mut body: Value, revision: u64) -> Heard {
    body["revision"] = revision.into();
    body["clusterTimeMs"] = revision.into();
    body["replayed"] = body.get("originalRevision").is_some().into();
    Heard::of(op, &Answer::Response { status, body }).expect("the interface's own words")
}

pub(super) fn item(quota: &str, path: &str, amount: u64) -> QuotaItem {
    QuotaItem { quota: quota.into(), path: path.into(), amount }
}

/// Puts a limit, long before everything.
pub(super) fn limit(quota: &str, path: &str, limit: u64) -> Call {
    let (quota, path) = (quota.to_owned(), path.to_owned());
    let (burst, guaranteed, weight, owner_reserved_max) = (0, 0, 1, None);
    let node = NodeRules {
        quota: quota.clone(),
        path: path.clone(),
        limit,
        burst,
        guaranteed,
        weight,
        owner_reserved_max,
    };
    let request = format!("put-{quota}/{path}");
    let op = Op::Quota(QuotaOp::PutLimit { node, expected_version: 0, request });
    let body = json!({"quota": quota, "path": path, "version": 1, "debt": 0});
    let heard = heard(&op, 200, body, 1);
    call(0, 1, op, heard)
}

pub(super) fn reserve_of(request: &str, items: Vec<QuotaItem>, on_expiry: OnExpiry) -> Op {
    Op::Quota(QuotaOp::Reserve {
        owner: "w".into(),
        items,
        request: request.into(),
        wait_ms: 0,
        ttl_ms: 10_000,
        on_expiry,
        priority: 0,
    })
}

/// Of the solo tree.
pub(super) fn reserve(request: &str, amount: u64) -> Op {
    reserve_of(request, vec![item(SOLO, "", amount)], OnExpiry::Release)
}

/// What it is called, by the request that asked for it.
pub(super) fn name(request: &str) -> String {
    let digits = request.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{digits:0<32}")
}

/// What is reserved of each node, for 10 s from then on; `free`: at every layer.
pub(super) fn reserved_of(
    op: &Op,
    request: &str,
    fence: u64,
    items: &[QuotaItem],
    free: u64,
) -> Heard {
    let item = |it: &QuotaItem| json!({"quota": it.quota, "path": it.path, "amount": it.amount, "available": [free]});
    let items: Vec<_> = items.iter().map(item).collect();
    let body = json!({
        "state": "reserved", "reservationId": name(request), "fenceKey": "k", "fence": fence,
        "items": items, "clipped": false, "expiresAt": "", "expiresInMs": 10_000,
        "finalDeadlineInMs": 100_000,
    });
    heard(op, 200, body, fence)
}

/// A reservation of the solo tree that is told of as it should be.
pub(super) fn reserves(at: u64, request: &str, fence: u64, amount: u64, free: u64) -> Call {
    let op = reserve(request, amount);
    let heard = reserved_of(&op, request, fence, &[item(SOLO, "", amount)], free);
    call(at, at + 5, op, heard)
}

pub(super) fn of(asked: &str, request: &str) -> ReservationOf {
    let (reservation, fence) = (name(asked), None);
    ReservationOf { reservation, fence, request: request.into(), asked: asked.into() }
}

pub(super) fn release(asked: &str) -> Op {
    Op::Quota(QuotaOp::Release { of: of(asked, &format!("release-{asked}")) })
}

pub(super) fn releases(at: u64, asked: &str, amount: u64) -> Call {
    let op = release(asked);
    let body = json!({"released": true, "items": [item(SOLO, "", amount)]});
    let heard = heard(&op, 200, body, at);
    call(at, at + 5, op, heard)
}

pub(super) fn commit(asked: &str, request: &str, items: Option<u64>, is_final: bool) -> Op {
    let items = items.map(|amount| vec![item(SOLO, "", amount)]);
    Op::Quota(QuotaOp::Commit { of: of(asked, request), items, is_final, readmits: true })
}

/// So much is used, so much stays reserved.
pub(super) fn committed(op: &Op, asked: &str, commit: u64, taken: u64, left: u64) -> Heard {
    let some = |amount| match amount {
        0 => Vec::new(),
        amount => vec![item(SOLO, "", amount)],
    };
    let body = json!({
        "commitId": commit, "reservationId": name(asked), "taken": some(taken), "returned": [],
        "left": some(left),
    });
    heard(op, 200, body, commit)
}

pub(super) fn commits(at: u64, asked: &str, commit_id: u64, taken: u64) -> Call {
    let op = commit(asked, &format!("commit-{commit_id}"), None, true);
    let heard = committed(&op, asked, commit_id, taken, 0);
    call(at, at + 5, op, heard)
}

/// It came late: it is used as a new one.
pub(super) fn readmitted(op: &Op, asked: &str, commit: u64, taken: u64) -> Heard {
    let body = json!({
        "commitId": commit, "reservationId": name("new"), "taken": [item(SOLO, "", taken)],
        "returned": [], "left": [], "readmits": name(asked),
    });
    heard(op, 200, body, commit)
}

pub(super) fn give_back(commit: u64, request: &str, amount: u64) -> Op {
    let (owner, item, request) = ("w".into(), item(SOLO, "", amount), request.into());
    Op::Quota(QuotaOp::Return { commit, owner, item, request })
}

pub(super) fn gives_back(at: u64, commit: u64, request: &str, amount: u64, left: u64) -> Call {
    let op = give_back(commit, request, amount);
    let heard = heard(&op, 200, json!({"commitId": commit, "amount": amount, "left": left}), at);
    call(at, at + 5, op, heard)
}

/// A return of more than the commit has.
pub(super) fn refuses(at: u64, commit: u64, amount: u64, has: u64) -> Call {
    let mut problem = problem(ErrorCode::ExceedsReservation, at);
    let (quota, path, owner) = (SOLO.into(), String::new(), "w".into());
    problem.excess = Some(sereno_api::QuotaExcess { quota, path, owner, has, asked: amount });
    let op = give_back(commit, &format!("too-much-{at}"), amount);
    call(at, at + 2, op, Heard::Problem(Box::new(problem)))
}

/// A read of a node.
pub(super) fn shows(at: u64, (quota, path): (&str, &str), committed: u64, reserved: u64) -> Call {
    let op = Op::Quota(QuotaOp::Node { quota: quota.into(), path: path.into() });
    let node = json!({
        "quota": quota, "path": path, "limit": 5, "burst": 0, "guaranteed": 0, "weight": 1,
        "version": 1, "updatedAgoMs": 0, "updatedInRevision": 1, "committed": committed,
        "reserved": reserved, "directCommitted": committed, "directReserved": reserved,
        "available": 0, "debt": 0, "effectiveGuaranteed": 0, "waiters": 0, "sweepPending": false,
    });
    let body = json!({"node": node, "owners": [], "reports": [], "shares": [], "ageMs": 0});
    let heard = heard(&op, 200, body, at);
    call(at, at + 2, op, heard)
}

/// So much is used, and so much more did not go in.
pub(super) fn exhausted(at: u64, op: Op, committed: u64, reserved: u64, asked: u64) -> Call {
    let mut problem = problem(ErrorCode::QuotaExhausted, at);
    problem.layers.push(sereno_api::QuotaLayer {
        quota: SOLO.into(),
        path: String::new(),
        limit: 5,
        burst: 0,
        committed,
        reserved,
        available: 0,
        asked,
        shortfall: 1,
        version: 1,
        kind: sereno_api::Shortage::Limit,
    });
    call(at, at + 5, op, Heard::Problem(Box::new(problem)))
}
