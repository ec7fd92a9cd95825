//! S5 and S7 by request: a wait that is over is never granted, and what was told as not applied is not in the log. And
//! no client is told that it made a mistake, for they make none.

use super::Violation;
use crate::{
    clock::Micros,
    history::{Call, Heard, Op},
    truth::Truth,
};
use sereno_api::{AbandonedWas, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// When a request was told that it is over, and with what.
#[derive(Clone, Debug)]
struct Over {
    told: Micros,
    revision: u64,
    #[expect(dead_code, reason = "it is printed")]
    by: String,
}

/// All checks of this kind.
pub(super) fn check(calls: &[Call], truth: &Truth) -> Vec<Violation> {
    let mut over: BTreeMap<&str, Over> = BTreeMap::new();
    for call in calls {
        let (Some(told), Some((request, by))) = (call.end, over_by(call)) else { continue };
        let Some((revision, _)) = call.heard.decided() else { continue };
        let new = Over { told, revision, by };
        let known = over.entry(request).or_insert_with(|| new.clone());
        if new.told < known.told {
            *known = new;
        }
    }
    let mut violations: Vec<_> = calls.iter().flat_map(|call| granted_late(call, &over)).collect();
    violations.extend(over.iter().filter_map(|(request, over)| {
        let granted = truth.granted_at(request).filter(|&revision| revision > over.revision)?;
        let message = format!("{request} is granted at {granted} in the log: {over:?}");
        Some(Violation::new("S7", message))
    }));
    violations.extend(not_applied(calls, truth));
    violations.extend(calls.iter().filter_map(blamed));
    violations
}

/// Clients send only what the interface allows: nobody may be told otherwise.
fn blamed(call: &Call) -> Option<Violation> {
    let Heard::Problem(problem) = &call.heard else { return None };
    let is_blame = (400..500).contains(&problem.status) && ![409, 429].contains(&problem.status);
    is_blame.then(|| {
        Violation::new("a lawful call is none of its caller's mistakes", format!("{call:?}"))
    })
}

/// The request that this answer ends, if it ends one that holds nothing.
fn over_by(call: &Call) -> Option<(&str, String)> {
    match (&call.op, &call.heard) {
        (Op::Acquire { request, .. }, Heard::Problem(problem)) => {
            let dead = [ErrorCode::WaitTimeout, ErrorCode::Abandoned, ErrorCode::Locked];
            let is_dead = dead.contains(&problem.code);
            is_dead.then(|| (request.as_str(), problem.code.to_string()))
        }
        (Op::Abandon { request, .. }, Heard::Abandoned(abandoned)) => {
            let held = [AbandonedWas::Granted, AbandonedWas::Ended].contains(&abandoned.was);
            (!held).then(|| (request.as_str(), format!("abandoned: {:?}", abandoned.was)))
        }
        _ => None,
    }
}

/// A request that is over is seen to be granted, by a call that began after that.
fn granted_late(call: &Call, over: &BTreeMap<&str, Over>) -> Option<Violation> {
    let request = match (&call.op, &call.heard) {
        (Op::Acquire { request, .. }, Heard::Granted(_)) => request,
        (Op::Get { .. }, Heard::Read(lock)) => &lock.holder.as_ref()?.owner,
        (_, Heard::Problem(problem)) => &problem.holder.as_ref()?.owner,
        _ => return None,
    };
    let over = over.get(request.as_str()).filter(|over| over.told < call.start)?;
    let message = format!("{request} was over ({over:?}) and holds: {call:?}");
    Some(Violation::new("S7", message))
}

/// Requests of which every attempt was told that it certainly did nothing.
fn not_applied(calls: &[Call], truth: &Truth) -> Vec<Violation> {
    let mut refused = BTreeMap::new();
    for call in calls {
        if let Op::Acquire { request, .. } = &call.op {
            let all = refused.entry(request.as_str()).or_insert(true);
            *all &= call.heard.is_refused_outside_the_log();
        }
    }
    let refused: BTreeSet<_> = refused.into_iter().filter(|(_, all)| *all).collect();
    let applied = refused.into_iter().filter(|(request, _)| truth.has_request(request));
    let message = |(request, _)| format!("{request} was told as not applied and is in the log");
    applied.map(message).map(|it| Violation::new("S5", it)).collect()
}
