//! When calls are due. Fixed before the first is sent: no answer, however late, moves the next call.

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::{iter::Peekable, time::Duration};

/// How calls are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Even,
    /// As independent callers come: in clumps (a Poisson process).
    Random,
}

/// Due times of one operation in one phase, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    per_second: f64,
    start: Duration,
    end: Duration,
    arrivals: Arrivals,
    rng: SmallRng,
    /// Seconds since `start`.
    offset: f64,
    count: u64,
    last: f64,
}

impl Schedule {
    /// `per_second` calls from `start` to before `end`.
    pub fn new(
        per_second: f64,
        start: Duration,
        end: Duration,
        arrivals: Arrivals,
        seed: u64,
    ) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        // Operations of the same rate must not come at the same moments.
        let offset = rng.random::<f64>() / per_second;
        Self { per_second, start, end, arrivals, rng, offset, count: 0, last: 0.0 }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.per_second <= 0.0 {
            return None;
        }
        let seconds = match self.arrivals {
            // From the count, so that rounding does not add up.
            Arrivals::Even => self.offset + self.count as f64 / self.per_second,
            Arrivals::Random => {
                self.last += -(1.0 - self.rng.random::<f64>()).ln() / self.per_second;
                self.last
            }
        };
        self.count += 1;
        let due = self.start + Duration::from_secs_f64(seconds);
        (due < self.end).then_some(due)
    }
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An acquire, contended or not.
    Acquire,
    /// A release.
    Release,
    /// A renewal: of one lease or of a batch.
    Renew,
}

/// One call to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Since the beginning of the load.
    pub at: Duration,
    /// What.
    pub kind: Kind,
    /// In which phase; 0 is the warm-up.
    pub phase: usize,
}

/// Calls a second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Of acquires.
    pub acquires: f64,
    /// Of releases.
    pub releases: f64,
    /// Of renewals, a batch being one.
    pub renewals: f64,
}

/// All schedules of all phases, as one.
#[derive(Debug)]
pub struct Agenda(Vec<(Kind, usize, Peekable<Schedule>)>);

impl Agenda {
    /// `phases`: each one's length, and by how much it multiplies acquires and releases. Renewals follow from the
    /// leases that are held, so no phase multiplies them.
    pub fn new(rates: Rates, phases: &[(Duration, f64)], arrivals: Arrivals, seed: u64) -> Self {
        let mut schedules = Vec::new();
        let mut start = Duration::ZERO;
        for (phase, &(length, factor)) in phases.iter().enumerate() {
            let end = start + length;
            for (kind, rate) in [
                (Kind::Acquire, rates.acquires * factor),
                (Kind::Release, rates.releases * factor),
                (Kind::Renew, rates.renewals),
            ] {
                let seed = seed.wrapping_add(schedules.len() as u64);
                let schedule = Schedule::new(rate, start, end, arrivals, seed);
                schedules.push((kind, phase, schedule.peekable()));
            }
            start = end;
        }
        Self(schedules)
    }
}

impl Iterator for Agenda {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let due =
            |(_, _, schedule): &mut (Kind, usize, Peekable<Schedule>)| schedule.peek().copied();
        let next = self.0.iter_mut().filter_map(|slot| due(slot).map(|at| (at, slot)));
        let (at, (kind, phase, schedule)) = next.min_by_key(|(at, _)| *at)?;
        schedule.next();
        Some(Due { at, kind: *kind, phase: *phase })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn schedule(arrivals: Arrivals, per_second: f64, seed: u64) -> Vec<Duration> {
        Schedule::new(per_second, SECOND, SECOND * 11, arrivals, seed).collect()
    }

    #[test]
    fn an_even_schedule_has_its_rate_and_equal_gaps() {
        let due = schedule(Arrivals::Even, 3_000.0, 1);
        assert_eq!(due.len(), 30_000);
        assert!(due[0] >= SECOND && due[29_999] < SECOND * 11);
        for pair in due.windows(2) {
            let gap = (pair[1] - pair[0]).as_nanos();
            assert!((333_332..=333_335).contains(&gap), "{gap} ns");
        }
    }

    #[test]
    fn a_random_schedule_has_its_rate_and_unequal_gaps() {
        let due = schedule(Arrivals::Random, 3_000.0, 1);
        assert!(due.len().abs_diff(30_000) < 1_000, "{}", due.len());
        assert!(due.is_sorted());
        let long = due.windows(2).filter(|pair| pair[1] - pair[0] > SECOND / 1_000).count();
        assert!(long.abs_diff(due.len() / 20) < due.len() / 100, "e^-3 of the gaps: {long}");
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        for arrivals in [Arrivals::Even, Arrivals::Random] {
            assert_eq!(schedule(arrivals, 100.0, 5), schedule(arrivals, 100.0, 5));
            assert_ne!(schedule(arrivals, 100.0, 5), schedule(arrivals, 100.0, 6));
        }
    }

    #[test]
    fn an_agenda_goes_through_its_phases_in_order() {
        let rates = Rates { acquires: 100.0, releases: 50.0, renewals: 10.0 };
        let phases = [(SECOND, 1.0), (SECOND * 2, 2.0)];
        let all: Vec<Due> = Agenda::new(rates, &phases, Arrivals::Even, 1).collect();
        assert!(all.is_sorted_by_key(|due| due.at));
        let count =
            |kind, phase| all.iter().filter(|due| due.kind == kind && due.phase == phase).count();
        assert_eq!([count(Kind::Acquire, 0), count(Kind::Acquire, 1)], [100, 400]);
        assert_eq!([count(Kind::Release, 0), count(Kind::Release, 1)], [50, 200]);
        assert_eq!([count(Kind::Renew, 0), count(Kind::Renew, 1)], [10, 20], "not multiplied");
    }

    #[test]
    fn no_rate_no_calls() {
        let rates = Rates { acquires: 0.0, releases: 0.0, renewals: 0.0 };
        assert_eq!(Agenda::new(rates, &[(SECOND, 1.0)], Arrivals::Even, 1).count(), 0);
    }
}
