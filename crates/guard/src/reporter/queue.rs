//! What is still to be told, with a bound.

use crate::Refused;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

/// Of one key, at most one report in this time.
const EACH: Duration = Duration::from_secs(1);
/// Keys that wait at once.
const WAITING_MAX: usize = 1_000;
/// Namespaces and families that it was told of once.
const KNOWN_MAX: usize = 1_000;

/// One report. Without a refusal: the guard checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) key: String,
    /// The token that was refused, and the highest.
    pub(super) refusal: Option<(u64, u64)>,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Send(Report),
    /// Look again at this time.
    At(Instant),
    /// Until there is more.
    Nothing,
    /// Nobody will ever bring more.
    End,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order in which their keys came.
    waiting: VecDeque<Report>,
    /// When a key was last told, as long as it matters.
    told: BTreeMap<String, Instant>,
    known: BTreeSet<String>,
    dropped: u64,
    /// When the last handle went: what is not sent by then is forgotten.
    until: Option<Instant>,
}

impl Queue {
    /// Whether there is anything new.
    pub(super) fn checks(&mut self, key: &str) -> bool {
        let of = scope(key);
        if self.known.contains(of) || self.known.len() >= KNOWN_MAX {
            return false;
        }
        self.known.insert(of.into());
        self.push(Report { key: key.into(), refusal: None })
    }

    /// Whether there is anything new. The latest refusal of a key is the one that is told.
    pub(super) fn refused(&mut self, refused: &Refused) -> bool {
        let refusal = Some((refused.token, refused.highest));
        if let Some(waiting) = self.waiting.iter_mut().find(|report| report.key == refused.key) {
            waiting.refusal = refusal;
            return false;
        }
        self.push(Report { key: refused.key.clone(), refusal })
    }

    /// That the guard checks is then told with the next occasion.
    pub(super) fn not_taken(&mut self, report: &Report) {
        if report.refusal.is_none() {
            self.known.remove(scope(&report.key));
        }
    }

    fn push(&mut self, report: Report) -> bool {
        if self.waiting.len() >= WAITING_MAX {
            self.dropped += 1;
            return false;
        }
        self.waiting.push_back(report);
        true
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn close(&mut self, until: Instant) {
        self.until = Some(until);
    }

    pub(super) fn next(&mut self, now: Instant) -> Next {
        self.told.retain(|_, told| now < *told + EACH);
        if self.until.is_some_and(|until| self.waiting.is_empty() || now >= until) {
            return Next::End;
        }
        if let Some(due) =
            self.waiting.iter().position(|report| !self.told.contains_key(&report.key))
        {
            let report = self.waiting.remove(due).expect("it was just found");
            self.told.insert(report.key.clone(), now);
            return Next::Send(report);
        }
        let times = self.waiting.iter().filter_map(|report| self.told.get(&report.key));
        times.min().map_or(Next::Nothing, |told| Next::At(*told + EACH))
    }
}

/// `namespace/family` of a fence key.
fn scope(key: &str) -> &str {
    let ends = key.match_indices('/').nth(1).map(|(at, _)| at);
    &key[..ends.unwrap_or(key.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(key: &str, token: u64, highest: u64) -> Refused {
        Refused { key: key.into(), token, highest }
    }

    fn report(key: &str, refusal: Option<(u64, u64)>) -> Next {
        Next::Send(Report { key: key.into(), refusal })
    }

    #[test]
    fn that_a_guard_checks_is_told_once_for_a_family() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        assert!(queue.checks("a/lock/x"));
        assert!(!queue.checks("a/lock/y/z"));
        assert!(queue.checks("a/election/x"));
        assert_eq!(queue.next(now), report("a/lock/x", None));
        assert_eq!(queue.next(now), report("a/election/x", None));
        assert_eq!(queue.next(now), Next::Nothing);
        queue.not_taken(&Report { key: "a/lock/x".into(), refusal: None });
        assert!(queue.checks("a/lock/z"));
    }

    #[test]
    fn a_storm_is_one_report_a_second_with_the_latest() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        assert!(queue.refused(&refused("k", 1, 9)));
        assert_eq!(queue.next(start), report("k", Some((1, 9))));
        for token in 2..100 {
            queue.refused(&refused("k", token, 100));
        }
        assert_eq!(queue.next(start), Next::At(start + EACH));
        // Another key is not held up.
        queue.refused(&refused("l", 5, 6));
        assert_eq!(queue.next(start), report("l", Some((5, 6))));
        assert_eq!(queue.next(start + EACH), report("k", Some((99, 100))));
        assert_eq!(queue.next(start + EACH), Next::Nothing);
    }

    #[test]
    fn a_refusal_says_that_it_checks_too() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.checks("k");
        queue.refused(&refused("k", 1, 2));
        assert_eq!(queue.next(now), report("k", Some((1, 2))));
        assert_eq!(queue.next(now), Next::Nothing);
    }

    #[test]
    fn it_has_a_bound() {
        let mut queue = Queue::default();
        for number in 0..WAITING_MAX + 5 {
            queue.refused(&refused(&format!("k{number}"), 1, 2));
        }
        assert_eq!((queue.waiting.len(), queue.dropped()), (WAITING_MAX, 5));
    }

    #[test]
    fn the_end_leaves_time_for_what_waits() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.refused(&refused("k", 1, 2));
        queue.refused(&refused("l", 1, 2));
        queue.close(now + EACH);
        assert_eq!(queue.next(now), report("k", Some((1, 2))));
        assert_eq!(queue.next(now + EACH), Next::End, "too late for the other");
        assert_eq!(Queue { until: Some(now), ..Queue::default() }.next(now), Next::End);
    }
}
