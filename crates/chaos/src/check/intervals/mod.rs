//! S1, S2 and L4 as clients see them: no two hold a lock, lead, keep the same thing or run a job at the same time by their
//! own clocks, and tokens rise.

mod belief;

use super::Violation;
use crate::{clock::Micros, history::History};
use belief::{Belief, Beliefs, beliefs};
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

/// All checks of this kind.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let beliefs = beliefs(&history.calls);
    let mut places: BTreeMap<&str, Vec<Interval>> = BTreeMap::new();
    for ((place, who), belief) in &beliefs {
        places.entry(place).or_default().extend(belief.interval(who));
    }
    for held in &history.guards {
        let who = format!("guard with {}", held.token);
        let interval = Interval { who, token: held.token, since: held.since, until: held.until };
        places.entry(&held.place).or_default().push(interval);
    }
    let mut violations: Vec<_> =
        places.into_iter().flat_map(|(place, intervals)| overlaps(place, intervals)).collect();
    violations.extend(tokens_rise(&beliefs));
    violations
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

fn overlaps(place: &str, mut intervals: Vec<Interval>) -> Vec<Violation> {
    intervals.sort_by_key(|interval| (interval.since, interval.until));
    let mut violations = Vec::new();
    let mut last: Option<&Interval> = None;
    for interval in &intervals {
        if let Some(last) = last.filter(|last| last.token != interval.token) {
            if interval.since < last.until {
                let message =
                    format!("{place}: two hold it at the same time: {last:?}, {interval:?}");
                violations.push(Violation::new("S1, L4", message));
            }
            if interval.token < last.token {
                let message = format!("{place}: tokens rise: {last:?} before {interval:?}");
                violations.push(Violation::new("S2", message));
            }
        }
        last = Some(last.filter(|last| last.until > interval.until).unwrap_or(interval));
    }
    violations
}

/// Over all names: what was asked for after an answer has a larger token than that answer.
fn tokens_rise(beliefs: &Beliefs) -> Vec<Violation> {
    let mut by_start: Vec<_> = beliefs
        .iter()
        .filter(|(_, belief)| belief.token > 0)
        // Of a hold that was only told of as one that its owner had, nobody knows when it was asked for.
        .filter_map(|((_, who), belief)| Some((belief.asked?, who, belief)))
        .collect();
    by_start.sort_by_key(|(asked, ..)| *asked);
    let told = |belief: &Belief| belief.acknowledged.iter().map(|&(told, _)| told).min();
    let mut by_end: Vec<_> = beliefs
        .iter()
        .filter_map(|((_, who), belief)| Some((told(belief)?, belief.token, who)))
        .collect();
    by_end.sort_unstable();
    let (mut ended, mut largest) = (by_end.into_iter().peekable(), (0, ""));
    let mut violations = Vec::new();
    for (asked, who, belief) in by_start {
        while let Some((_, token, before)) = ended.next_if(|(told, ..)| *told < asked) {
            largest = largest.max((token, before));
        }
        if belief.token <= largest.0 {
            let message =
                format!("{who} has {} after {} had {}", belief.token, largest.1, largest.0);
            violations.push(Violation::new("S2", message));
        }
    }
    violations
}
