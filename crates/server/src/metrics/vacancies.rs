//! Elections that had a leader and have none.

use sereno_core::{
    ids::ClusterTime,
    names::{NamespaceName, ResourceName},
};
use std::collections::{BTreeMap, BTreeSet};

/// Beyond it the oldest are forgotten.
const VACANCIES_MAX: usize = 10_000;
/// An election that nobody has led for a day is no longer in use.
const ABANDONED_MS: u64 = 24 * 3_600 * 1_000;

type Election = (NamespaceName, ResourceName);

/// Since when each has been vacant.
#[derive(Default)]
pub(super) struct Vacancies {
    since: BTreeMap<Election, ClusterTime>,
    oldest: BTreeSet<(ClusterTime, Election)>,
}

/// The vacancies that are going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vacant {
    pub(super) count: usize,
    pub(super) oldest_ms: u64,
}

impl Vacancies {
    /// Its leader is gone.
    pub(super) fn begin(&mut self, election: Election, now: ClusterTime) {
        self.end(&election);
        self.oldest.insert((now, election.clone()));
        self.since.insert(election, now);
        while self.since.len() > VACANCIES_MAX {
            self.forget_oldest();
        }
    }

    /// It is led. Since when it was not, where that is known.
    pub(super) fn end(&mut self, election: &Election) -> Option<ClusterTime> {
        let (election, since) = self.since.remove_entry(election)?;
        self.oldest.remove(&(since, election));
        Some(since)
    }

    /// What is going on now.
    pub(super) fn now(&mut self, now: ClusterTime) -> Vacant {
        let mut oldest_ms = 0;
        while let Some((since, _)) = self.oldest.first() {
            oldest_ms = since.until(now);
            if oldest_ms < ABANDONED_MS {
                break;
            }
            oldest_ms = 0;
            self.forget_oldest();
        }
        Vacant { count: self.since.len(), oldest_ms }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, election)) = self.oldest.pop_first() {
            self.since.remove(&election);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(n: usize) -> Election {
        let name = |text: &str| ResourceName::new(text).unwrap();
        (NamespaceName::new("default").unwrap(), name(&format!("e{n}")))
    }

    fn vacant(count: usize, oldest_ms: u64) -> Vacant {
        Vacant { count, oldest_ms }
    }

    #[test]
    fn it_tells_how_many_and_for_how_long() {
        let mut vacancies = Vacancies::default();
        assert_eq!(vacancies.now(ClusterTime(5)), vacant(0, 0));
        vacancies.begin(election(1), ClusterTime(10));
        vacancies.begin(election(2), ClusterTime(20));
        assert_eq!(vacancies.now(ClusterTime(50)), vacant(2, 40));
        assert_eq!(vacancies.end(&election(1)), Some(ClusterTime(10)));
        assert_eq!(vacancies.end(&election(1)), None);
        assert_eq!(vacancies.now(ClusterTime(50)), vacant(1, 30));
        assert_eq!(vacancies.now(ClusterTime(20 + ABANDONED_MS)), vacant(0, 0));
    }

    #[test]
    fn of_too_many_the_oldest_are_forgotten_and_new_ones_measured() {
        let mut vacancies = Vacancies::default();
        for n in 0..=VACANCIES_MAX {
            vacancies.begin(election(n), ClusterTime(n as u64));
        }
        assert_eq!(vacancies.end(&election(0)), None);
        let last = VACANCIES_MAX;
        assert_eq!(vacancies.now(ClusterTime(last as u64)), vacant(last, last as u64 - 1));
        assert_eq!(vacancies.end(&election(last)), Some(ClusterTime(last as u64)));
    }
}
