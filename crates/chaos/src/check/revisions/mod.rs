//! In linear time: every answer names its revision, so it is compared with what the log decided there; and who asked
//! after an answer is decided after it.

mod commands;
mod outcomes;
mod quotas;
mod refusals;

use super::Violation;
use crate::{
    clock::Micros,
    history::{Call, Op, QuotaOp},
    truth::{QuotaView, Truth, View},
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
        let may_share = call.heard.is_look();
        if revision < last.0 || (revision == last.0 && !may_share) || time < latest {
            let message = format!("{call:?} began after {} had revision {}", last.1, last.0);
            violations.push(Violation::new("S5 (order)", message));
        }
    }
    violations
}

fn compare(call: &Call, revision: u64, truth: &Truth) -> Result<(), String> {
    match (&call.op, &call.heard) {
        (Op::Get { family, resource }, heard) if heard.is_look() => {
            let (seen, due) = (View::told(heard), truth.view(*family, resource, revision));
            is(seen.as_ref() == Some(&due), format!("{seen:?} is told, and the log has {due:?}"))
        }
        (Op::Quota(QuotaOp::Node { quota, path }), heard) => {
            let due = truth.node_view(quota, path, revision);
            let seen = QuotaView::told(heard).unwrap_or(QuotaView::Nothing);
            is(seen == due, format!("{seen:?} is told, and the log has {due:?}"))
        }
        (Op::Quota(QuotaOp::Reservation { reservation, .. }), heard) => {
            let due = truth.reservation_view(reservation, revision);
            let seen = QuotaView::told(heard).unwrap_or(QuotaView::Nothing);
            is(seen == due, format!("{seen:?} is told, and the log has {due:?}"))
        }
        // A held call that ends without a grant is told of the state at that moment.
        (op, heard) if heard.is_wait() => {
            let (family, request) = op.request();
            let waits = request.is_some_and(|request| truth.has_request(family, request));
            is(revision <= truth.revision() && waits, "nobody waits there")
        }
        (op, heard) => {
            let of = truth.at(revision).iter().filter(|it| commands::is_of(op, &it.operation));
            let errors: Vec<_> = of.map(|it| outcomes::same(heard, it)).collect();
            match errors.iter().find(|it| it.is_ok()).or(errors.first()) {
                Some(found) => found.clone(),
                None => Err("the log has decided no such thing".into()),
            }
        }
    }
}

fn is(holds: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
