//! In linear time: every answer names its revision, so it is compared with what the log decided there; and who asked
//! after an answer is decided after it.

use super::Violation;
use crate::{
    clock::Micros,
    history::{Call, Heard, LeaseOf, Op},
    truth::{Decided, Truth},
};
use sereno_api::Problem;
use sereno_core::{
    command::{LeaseRef, Operation},
    outcome::{AbandonedWas, Detail, Done, Refusal, Renewed},
};

/// The violations, and how many answers were compared.
pub(super) fn check(calls: &[Call], truth: &Truth) -> (Vec<Violation>, usize) {
    let mut violations = order(calls);
    let mut compared = 0;
    for call in calls {
        if let Some((revision, _)) = call.heard.decided() {
            compared += 1;
            if let Err(why) = compare(call, revision, truth) {
                let log = truth.at(revision);
                let message = format!("{why}: {call:?}; revision {revision} of the log: {log:?}");
                violations.push(Violation::new("S5, S6", message));
            }
        }
    }
    (violations, compared)
}

/// What is asked for after an answer came has a later revision, and no earlier cluster time.
fn order(calls: &[Call]) -> Vec<Violation> {
    let mut ends: Vec<(Micros, u64, u64, &str)> = Vec::new();
    for call in calls {
        if let (Some(end), Some((revision, time))) = (call.end, call.heard.decided()) {
            ends.push((end, revision, time, &call.name));
        }
    }
    ends.sort_unstable();
    let mut ended = ends.into_iter().peekable();
    let (mut last, mut latest) = ((0, ""), 0);
    let mut violations = Vec::new();
    for call in calls {
        while let Some((_, revision, time, name)) = ended.next_if(|(end, ..)| *end < call.start) {
            last = last.max((revision, name));
            latest = latest.max(time);
        }
        let Some((revision, time)) = call.heard.decided() else { continue };
        let may_share = matches!(call.heard, Heard::Read(_) | Heard::Waiting(_));
        if revision < last.0 || (revision == last.0 && !may_share) || time < latest {
            let message = format!("{call:?} began after {} had revision {}", last.1, last.0);
            violations.push(Violation::new("S5 (order)", message));
        }
    }
    violations
}

fn compare(call: &Call, revision: u64, truth: &Truth) -> Result<(), String> {
    match (&call.op, &call.heard) {
        (Op::Get { resource }, Heard::Read(lock)) => {
            let seen = lock.holder.as_ref().map(|it| (it.owner.clone(), it.fencing_token));
            let due = truth.holder(resource, revision).cloned();
            is(seen == due, format!("the holder is {due:?}"))
        }
        // A held call that ends without a grant is told of the state at that moment.
        (Op::Acquire { request, .. }, Heard::Waiting(_)) => {
            is(revision <= truth.revision() && truth.has_request(request), "nobody waits there")
        }
        _ => {
            let decided = truth.at(revision).iter().filter(|it| is_of(&call.op, &it.operation));
            let mut errors = decided.map(|it| same(call, it));
            match errors.find_map(Result::ok) {
                Some(()) => Ok(()),
                None => Err("the log has decided no such thing".into()),
            }
        }
    }
}

fn is(holds: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

fn is_lease(ours: &LeaseOf, logged: &LeaseRef) -> bool {
    ours.resource == logged.resource.as_str() && ours.lease == logged.lease_id.to_hex()
}

/// Whether the log's command is that of this call.
fn is_of(op: &Op, logged: &Operation) -> bool {
    match (op, logged) {
        (Op::Acquire { resource, request, .. }, Operation::Acquire(it)) => {
            it.resource.as_str() == resource && it.request_id.as_str() == request
        }
        (Op::Renew(lease), Operation::Renew(it)) => is_lease(lease, &it.lease),
        (Op::RenewMany { leases }, Operation::RenewMany(it)) => {
            leases.len() == it.leases.len()
                && leases.iter().zip(&it.leases).all(|(ours, logged)| is_lease(ours, logged))
        }
        (Op::Release(lease), Operation::Release(it)) => is_lease(lease, &it.lease),
        (Op::Abandon { request, .. }, Operation::Abandon(it)) => it.request_id.as_str() == request,
        (Op::Force { token, request, .. }, Operation::ForceRelease(it)) => {
            it.token.0 == *token && it.request_id.as_str() == request
        }
        _ => false,
    }
}

/// Whether the answer says what the log has decided.
fn same(call: &Call, decided: &Decided) -> Result<(), String> {
    let outcome = &decided.outcome;
    let time = call.heard.decided().map(|(_, time)| time);
    is(time == Some(outcome.time.0), "another cluster time")?;
    match (&call.heard, &outcome.result) {
        (Heard::Granted(it), Ok(Done::Granted(grant))) => {
            let (_, token) = &grant.holdings[0];
            let replayed = outcome.replayed.map(|revision| revision.0);
            is(
                it.fencing_token == token.0
                    && it.lease_id == grant.lease_id.to_hex()
                    && it.expires_in_ms == grant.expires_in_ms
                    && it.original_revision == replayed
                    && it.replayed == replayed.is_some(),
                "another grant",
            )
        }
        (Heard::Renewed(it), Ok(Done::Renewed(renewed))) => {
            let same = it.fencing_token == renewed.token.0;
            is(same && it.expires_in_ms == renewed.expires_in_ms, "another renewal")
        }
        (Heard::RenewedMany(it), Ok(Done::RenewedMany(results))) => {
            let same = it.results.len() == results.len();
            let mut pairs = it.results.iter().zip(results);
            is(same && pairs.all(|(told, logged)| is_result(told, logged)), "other renewals")
        }
        (Heard::Released(it), Ok(Done::Released { already })) => {
            is(it.released == already.is_none(), "another release")
        }
        (Heard::Abandoned(it), Ok(Done::Abandoned { was })) => {
            is(format!("{:?}", it.was) == was_word(was), "another abandon")
        }
        (Heard::Forced(it), Ok(Done::ForceReleased { token })) => {
            is(it.fencing_token == token.0, "another forced release")
        }
        (Heard::Problem(problem), Err(refusal)) => refused(problem, refusal),
        _ => Err("another outcome".into()),
    }
}

fn is_result(told: &sereno_api::RenewResult, logged: &Result<Renewed, Refusal>) -> bool {
    match (told.ok, logged) {
        (true, Ok(renewed)) => told.expires_in_ms == Some(renewed.expires_in_ms),
        (false, Err(refusal)) => {
            told.code.is_some_and(|code| format!("{code:?}") == format!("{:?}", refusal.code))
        }
        _ => false,
    }
}

/// Door and core name their variants alike.
fn was_word(was: &AbandonedWas) -> String {
    let word = format!("{was:?}");
    word.split('(').next().unwrap_or_default().to_owned()
}

fn refused(problem: &Problem, refusal: &Refusal) -> Result<(), String> {
    is(format!("{:?}", problem.code) == format!("{:?}", refusal.code), "another code")?;
    match &refusal.detail {
        Detail::Locked(in_the_way) => {
            let holder = in_the_way.first().and_then(|it| it.holder.as_ref());
            let due = holder.map(|it| (it.owner.as_str(), it.token.0));
            let told = problem.holder.as_ref().map(|it| (it.owner.as_str(), it.fencing_token));
            is(told == due, "another holder")
        }
        Detail::Ended { token, .. } => is(problem.fencing_token == Some(token.0), "another token"),
        _ => Ok(()),
    }
}
