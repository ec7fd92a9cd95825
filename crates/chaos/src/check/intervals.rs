//! S1, S2 and L4 as clients see them: no two hold a lock at the same time by their own clocks, and tokens rise.

use super::Violation;
use crate::{
    clock::Micros,
    history::{Call, Heard, History, LeaseOf, Op},
};
use std::collections::BTreeMap;

/// Somebody relied on a lease.
#[derive(Clone, Debug)]
struct Interval {
    #[expect(dead_code, reason = "it is printed")]
    who: String,
    token: u64,
    since: Micros,
    until: Micros,
}

/// What one client knows of its own lease.
#[derive(Debug, Default)]
struct Belief {
    token: u64,
    resource: String,
    asked: Micros,
    /// (told at, relied on until), of each acknowledged grant and renewal.
    acknowledged: Vec<(Micros, Micros)>,
    /// When its owner, or an operator, let go.
    ends: Vec<Micros>,
}

/// All checks of this kind.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let beliefs = beliefs(&history.calls);
    let mut locks: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    for (who, belief) in &beliefs {
        locks.entry(belief.resource.clone()).or_default().extend(belief.interval(who));
    }
    for held in &history.guards {
        let who = format!("guard with {}", held.token);
        let interval = Interval { who, token: held.token, since: held.since, until: held.until };
        locks.entry(held.resource.clone()).or_default().push(interval);
    }
    let mut violations: Vec<_> =
        locks.into_iter().flat_map(|(lock, intervals)| overlaps(&lock, intervals)).collect();
    violations.extend(tokens_rise(&beliefs));
    violations
}

/// A holder's own deadline, as the SDK counts it: from when it sent the call, less 1 % and 20 ms.
fn relied_on(call: &Call, expires_in_ms: u64) -> Micros {
    call.start + (expires_in_ms * 990).saturating_sub(20_000)
}

fn beliefs(calls: &[Call]) -> BTreeMap<&str, Belief> {
    let mut beliefs: BTreeMap<&str, Belief> = BTreeMap::new();
    let mut forced: BTreeMap<u64, Micros> = BTreeMap::new();
    for call in calls {
        let told = call.end.unwrap_or(Micros::MAX);
        match (&call.op, &call.heard) {
            (Op::Acquire { resource, request, .. }, heard) => {
                let belief = beliefs.entry(request).or_default();
                if belief.resource.is_empty() {
                    belief.resource = resource.clone();
                    belief.asked = call.start;
                }
                if let Heard::Granted(grant) = heard {
                    belief.token = grant.fencing_token;
                    belief.acknowledged.push((told, relied_on(call, grant.expires_in_ms)));
                }
            }
            (Op::Renew(lease), Heard::Renewed(renewed)) => {
                let belief = beliefs.entry(&lease.request).or_default();
                belief.acknowledged.push((told, relied_on(call, renewed.expires_in_ms)));
            }
            (Op::RenewMany { leases }, Heard::RenewedMany(many)) => {
                for (lease, result) in leases.iter().zip(&many.results).filter(|(_, it)| it.ok) {
                    let until = relied_on(call, result.expires_in_ms.unwrap_or_default());
                    beliefs.entry(&lease.request).or_default().acknowledged.push((told, until));
                }
            }
            (Op::Release(LeaseOf { request, .. }) | Op::Abandon { request, .. }, _) => {
                beliefs.entry(request).or_default().ends.push(call.start);
            }
            (Op::Force { token, .. }, _) => {
                forced.entry(*token).or_insert(call.start);
            }
            _ => {}
        }
    }
    for belief in beliefs.values_mut() {
        belief.ends.extend(forced.get(&belief.token));
    }
    beliefs
}

impl Belief {
    /// `None`: it was never told of a grant, or too late to rely on it.
    fn interval(&self, who: &str) -> Option<Interval> {
        let mut acknowledged = self.acknowledged.clone();
        acknowledged.sort_unstable();
        let &(since, mut until) = acknowledged.first()?;
        for &(told, later) in &acknowledged[1..] {
            // Whoever is told after its own deadline has stopped, for good.
            if told < until {
                until = until.max(later);
            }
        }
        let until = self.ends.iter().copied().fold(until, Micros::min);
        let interval = Interval { who: who.into(), token: self.token, since, until };
        (self.token > 0 && since < until).then_some(interval)
    }
}

fn overlaps(lock: &str, mut intervals: Vec<Interval>) -> Vec<Violation> {
    intervals.sort_by_key(|interval| (interval.since, interval.until));
    let mut violations = Vec::new();
    let mut last: Option<&Interval> = None;
    for interval in &intervals {
        if let Some(last) = last.filter(|last| last.token != interval.token) {
            if interval.since < last.until {
                let message =
                    format!("{lock}: two hold it at the same time: {last:?}, {interval:?}");
                violations.push(Violation::new("S1, L4", message));
            }
            if interval.token < last.token {
                let message = format!("{lock}: tokens rise: {last:?} before {interval:?}");
                violations.push(Violation::new("S2", message));
            }
        }
        last = Some(last.filter(|last| last.until > interval.until).unwrap_or(interval));
    }
    violations
}

/// Over all locks: what was asked for after an answer has a larger token than that answer.
fn tokens_rise(beliefs: &BTreeMap<&str, Belief>) -> Vec<Violation> {
    let told = |belief: &Belief| belief.acknowledged.iter().map(|&(told, _)| told).min();
    let granted: Vec<_> = beliefs
        .iter()
        .filter(|(_, belief)| belief.token > 0)
        .filter_map(|(who, belief)| told(belief).map(|told| (who, belief, told)))
        .collect();
    let mut by_start: Vec<_> = granted.iter().collect();
    by_start.sort_by_key(|(_, belief, _)| belief.asked);
    let mut by_end: Vec<_> = granted.iter().collect();
    by_end.sort_by_key(|(_, _, told)| *told);
    let (mut ended, mut largest) = (by_end.into_iter().peekable(), (0, ""));
    let mut violations = Vec::new();
    for (who, belief, _) in by_start {
        while let Some((before, it, _)) = ended.next_if(|(_, _, told)| *told < belief.asked) {
            largest = largest.max((it.token, *before));
        }
        if belief.token <= largest.0 {
            let message =
                format!("{who} has {} after {} had {}", belief.token, largest.1, largest.0);
            violations.push(Violation::new("S2", message));
        }
    }
    violations
}
