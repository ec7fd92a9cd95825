//! S5 and S7 by request: a wait that is over is never granted, and what was told as not applied is not in the log. And
//! no client is told that it made a mistake, for they make none.

use super::Violation;
use crate::{
    clock::Micros,
    history::{Call, Family, Heard, Op, QuotaOp},
    truth::Truth,
};
use sereno_api::{AbandonedWas, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// A request that asks for a lease or a reservation.
type Asked<'a> = (Family, &'a str);

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
    let mut over: BTreeMap<Asked<'_>, Over> = BTreeMap::new();
    for call in calls {
        let (Some(told), Some((request, by))) = (call.end, over_by(call)) else { continue };
        let Some((revision, _)) = call.heard.decided() else { continue };
        let new = Over { told, revision, by };
        let known = over.entry(request).or_insert_with(|| new.clone());
        if new.told < known.told {
            *known = new;
        }
    }
    let owners = owners(calls);
    let late = calls.iter().flat_map(|call| granted_late(call, &over, &owners));
    let mut violations: Vec<_> = late.collect();
    violations.extend(over.iter().filter_map(|((family, request), over)| {
        let granted = truth.granted_at(*family, request);
        let granted = granted.filter(|&revision| revision > over.revision)?;
        let message = format!("{request} is granted at {granted} in the log: {over:?}");
        Some(Violation::new("S7", message))
    }));
    violations.extend(not_applied(calls, truth));
    violations.extend(calls.iter().filter_map(blamed));
    violations
}

/// Clients send only what the interface allows: nobody may be told otherwise. Whether an heir still waits they cannot know,
/// nor whether a reservation that they look at has ended, or whether a node's tree is there already.
fn blamed(call: &Call) -> Option<Violation> {
    let Heard::Problem(problem) = &call.heard else { return None };
    let is_blame = (400..500).contains(&problem.status) && ![409, 429].contains(&problem.status);
    let may_be_gone = match &call.op {
        Op::Handoff { .. } => true,
        Op::Quota(op) => matches!(
            op,
            QuotaOp::Node { .. } | QuotaOp::Reservation { .. } | QuotaOp::Release { .. }
        ),
        _ => false,
    };
    let is_gone = may_be_gone && problem.code == ErrorCode::NotFound;
    (is_blame && !is_gone).then(|| {
        Violation::new("a lawful call is none of its caller's mistakes", format!("{call:?}"))
    })
}

/// Refusals of such a request that are for good.
const DEAD: [ErrorCode; 9] = [
    ErrorCode::WaitTimeout,
    ErrorCode::Abandoned,
    ErrorCode::Locked,
    ErrorCode::Taken,
    ErrorCode::RunClaimed,
    ErrorCode::RunFinished,
    ErrorCode::RunPaused,
    ErrorCode::RetriesExhausted,
    ErrorCode::QuotaExhausted,
];

/// The request that this answer ends, if it ends one that holds nothing.
fn over_by(call: &Call) -> Option<(Asked<'_>, String)> {
    match (&call.op, &call.heard) {
        (Op::Abandon { family, request, .. }, Heard::Abandoned(abandoned)) => {
            let held = [AbandonedWas::Granted, AbandonedWas::Ended].contains(&abandoned.was);
            (!held)
                .then(|| ((*family, request.as_str()), format!("abandoned: {:?}", abandoned.was)))
        }
        (op, Heard::Problem(problem)) if op.asks() => {
            let (family, request) = op.request();
            let is_dead = DEAD.contains(&problem.code);
            request.filter(|_| is_dead).map(|request| ((family, request), problem.code.to_string()))
        }
        _ => None,
    }
}

/// By which request a holder of that name asked. `None`: by several, one after the other; holds have owners of their own.
fn owners(calls: &[Call]) -> BTreeMap<Asked<'_>, Option<&str>> {
    let mut owners = BTreeMap::new();
    for call in calls {
        let (owner, request) = match &call.op {
            Op::Acquire { request, .. } | Op::Claim { request, .. } => (request, request),
            Op::Campaign { candidate, request, .. } => (candidate, request),
            _ => continue,
        };
        let (family, _) = call.op.request();
        let known = owners.entry((family, owner.as_str())).or_insert(Some(request.as_str()));
        *known = known.filter(|known| *known == request.as_str());
    }
    owners
}

/// A request that is over is seen to be granted, by a call that began after that.
fn granted_late(
    call: &Call,
    over: &BTreeMap<Asked<'_>, Over>,
    owners: &BTreeMap<Asked<'_>, Option<&str>>,
) -> Vec<Violation> {
    let (family, own) = call.op.request();
    let is_granted = call.op.asks() && !call.heard.tokens().is_empty();
    let own = own.filter(|_| is_granted);
    let seen = |(family, name): (Family, &str)| {
        let (owner, _) = call.heard.holder(name)?;
        owners.get(&(family, owner)).copied().flatten()
    };
    let seen: BTreeSet<_> = call.op.places().into_iter().filter_map(seen).chain(own).collect();
    let late = seen.into_iter().filter_map(|request| {
        let over = over.get(&(family, request)).filter(|over| over.told < call.start)?;
        Some(format!("{request} was over ({over:?}) and holds: {call:?}"))
    });
    late.map(|message| Violation::new("S7", message)).collect()
}

/// Requests of which every attempt was told that it certainly did nothing.
fn not_applied(calls: &[Call], truth: &Truth) -> Vec<Violation> {
    let mut refused = BTreeMap::new();
    for call in calls.iter().filter(|call| call.op.asks()) {
        if let (family, Some(request)) = call.op.request() {
            let all = refused.entry((family, request)).or_insert(true);
            *all &= call.heard.is_refused_outside_the_log();
        }
    }
    let refused: BTreeSet<_> = refused.into_iter().filter(|(_, all)| *all).collect();
    let is_there = |((family, request), _): &(Asked<'_>, bool)| truth.has_request(*family, request);
    let message = |((_, request), _): (Asked<'_>, bool)| {
        format!("{request} was told as not applied and is in the log")
    };
    refused.into_iter().filter(is_there).map(message).map(|it| Violation::new("S5", it)).collect()
}
