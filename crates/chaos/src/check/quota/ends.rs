//! S10 by what clients are told: a reservation ends once, nothing is done with it afterwards, and no commit gives back more
//! than it has used.

use super::known::{Amounts, Known, Node, Reservation, Write, amounts};
use crate::{
    check::Violation,
    history::{Call, Heard, QuotaHeard, QuotaOp},
};
use sereno_api::{Committed, Settlement};
use std::collections::BTreeMap;

/// All checks of this kind.
pub(super) fn check(known: &Known<'_>) -> Vec<Violation> {
    let mut violations: Vec<_> = known.reservations.values().flat_map(of_one).collect();
    violations.extend(names(known));
    violations.extend(returns(known));
    violations
}

fn readmits(write: &Write<'_>) -> bool {
    matches!(write.told(), Some(QuotaHeard::Committed(it)) if it.readmits.is_some())
}

fn of_one(of: &Reservation<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    // Late, it is committed once; and then it had not ended otherwise.
    let over: Vec<_> = of.writes.iter().filter(|write| write.ends() || readmits(write)).collect();
    if over.len() > 1 {
        let message = format!("{} has ended {} times: {over:?}", of.asked, over.len());
        violations.push(Violation::new("S10", message));
    }
    let told = over.iter().filter_map(|write| write.done).min_by_key(|(at, _)| *at);
    let Some((told, by)) = told else { return violations };
    let after = of.calls.iter().filter(|call| call.start > told && shows_it_alive(call));
    violations.extend(after.map(|call| {
        let message = format!("{} had ended, and lives: {by:?}, then {call:?}", of.asked);
        Violation::new("S10", message)
    }));
    violations
}

/// It was held, or became used, when this was decided.
fn shows_it_alive(call: &Call) -> bool {
    match &call.heard {
        Heard::Quota(QuotaHeard::Reserved(it)) => it.expires_in_ms > 0,
        Heard::Quota(QuotaHeard::Committed(it)) => !it.replayed,
        Heard::Quota(QuotaHeard::Released(it)) => it.released && !it.replayed,
        Heard::Quota(QuotaHeard::Settled(it)) => !it.replayed,
        Heard::Quota(QuotaHeard::Reservation(_) | QuotaHeard::Waiting(_)) => true,
        _ => false,
    }
}

/// Whatever names one thing names it alone.
fn names(known: &Known<'_>) -> Vec<Violation> {
    let (mut seen, mut violations) = (BTreeMap::new(), Vec::new());
    let mut one = |name: String, of: &str| {
        let of = of.to_owned();
        let before = seen.entry(name.clone()).or_insert_with(|| of.clone());
        if *before != of {
            let message = format!("{name} is of {before} and of {of}");
            violations.push(Violation::new("S10", message));
        }
    };
    for of in known.reservations.values() {
        if let Some((_, call)) = of.granted
            && let Heard::Quota(QuotaHeard::Reserved(it)) = &call.heard
        {
            one(format!("reservation {}", it.reservation_id), of.asked);
        }
        for write in &of.writes {
            let request = write.op.and_then(QuotaOp::request).unwrap_or_default();
            match write.told() {
                Some(QuotaHeard::Committed(it)) => one(format!("commit {}", it.commit_id), request),
                Some(QuotaHeard::Settled(it)) => {
                    it.commit_id.into_iter().for_each(|id| one(format!("commit {id}"), request));
                }
                _ => {}
            }
        }
    }
    violations
}

/// What each commit has used, as its answer says.
pub(super) fn commits<'a>(of: &Reservation<'a>) -> Vec<(u64, Amounts<'a>)> {
    let taken = |write: &Write<'a>| match write.told()? {
        QuotaHeard::Committed(Committed { commit_id, taken, .. }) => {
            Some((*commit_id, amounts(taken)))
        }
        // All that was left of it, which only the log tells exactly: at most what was asked for or resized to.
        QuotaHeard::Settled(it) if it.settlement == Settlement::Commit => {
            Some((it.commit_id?, most(of)))
        }
        _ => None,
    };
    of.writes.iter().filter_map(taken).collect()
}

/// The most that a reservation has ever had at each node.
pub(super) fn most<'a>(of: &Reservation<'a>) -> Amounts<'a> {
    let mut most = of.items.clone();
    for write in of.writes.iter().filter(|write| write.may_be_done()) {
        if let Some(QuotaOp::Resize { items, .. }) = write.op {
            for (node, amount) in amounts(items) {
                let known = most.entry(node).or_default();
                *known = amount.max(*known);
            }
        }
    }
    most
}

fn returns(known: &Known<'_>) -> Vec<Violation> {
    let mut used: BTreeMap<(u64, Node<'_>), u64> = BTreeMap::new();
    for (commit, taken) in known.reservations.values().flat_map(commits) {
        for (node, amount) in taken {
            *used.entry((commit, node)).or_default() += amount;
        }
    }
    let (mut back, mut violations) = (BTreeMap::new(), Vec::new());
    for it in known.returns.values().filter(|it| it.write.done.is_some()) {
        let key = (it.commit, it.node);
        *back.entry(key).or_insert(0) += it.amount;
        let has = used.get(&key).copied().unwrap_or(0);
        if back[&key] > has {
            let message = format!("{key:?} used {has}, and {} are given back: {it:?}", back[&key]);
            violations.push(Violation::new("returns", message));
        }
        if let Some(QuotaHeard::Returned(told)) = it.write.told()
            && told.left + it.amount > has
        {
            let message = format!("{key:?} used {has}, and after a return has {told:?}");
            violations.push(Violation::new("returns", message));
        }
    }
    violations
}
