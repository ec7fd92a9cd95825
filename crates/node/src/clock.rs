//! Clocks as data: time is passed in, and cluster time is made of it (DESIGN.md sections 3 and 4).

use sereno_core::{
    ids::ClusterTime,
    limits,
    planted::{self, Planted},
};

/// Nanoseconds of this process's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(pub u64);

impl Mono {
    /// This moment plus `ms`.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }

    /// Nanoseconds since `earlier`; 0 if that lies ahead.
    pub fn since_ns(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The moment of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock: everything is measured by this.
    pub mono: Mono,
    /// The wall clock in microseconds since 1970: read for an announce, and for a slot that may come too early.
    pub wall_us: u64,
}

/// The leader's stamp: cluster time of its last entry, when it stamped it, and what is left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClusterClock {
    time: ClusterTime,
    stamped_at: Mono,
    /// Below a millisecond. Without it time would stop under load, for an append takes 0.2 ms.
    carry_ns: u64,
}

impl ClusterClock {
    /// Starts with an announce, which carries the time of the entry before it.
    pub(crate) fn at_announce(time: ClusterTime, now: Mono) -> Self {
        Self { time, stamped_at: now, carry_ns: 0 }
    }

    /// The stamp of an entry made now. What exceeds `MAX_STEP` is lost, never caught up.
    pub(crate) fn stamp(self, now: Mono) -> Self {
        let elapsed_ns = now.since_ns(self.stamped_at) + self.carry_ns;
        let elapsed_ms = elapsed_ns / 1_000_000;
        if elapsed_ms > limits::MAX_STEP_MS && !planted::has(Planted::ClampRemoved) {
            let time = self.time.plus(limits::MAX_STEP_MS);
            if planted::has(Planted::ClampCaughtUp) {
                let cut_ns = (elapsed_ms - limits::MAX_STEP_MS) * 1_000_000;
                return Self { time, stamped_at: Mono(now.0 - cut_ns), carry_ns: 0 };
            }
            return Self { time, stamped_at: now, carry_ns: 0 };
        }
        if planted::has(Planted::MillisecondsRoundedUp) {
            let time = self.time.plus(elapsed_ns.div_ceil(1_000_000).min(limits::MAX_STEP_MS));
            return Self { time, stamped_at: now, carry_ns: 0 };
        }
        if planted::has(Planted::MillisecondsTruncated) {
            return Self { time: self.time.plus(elapsed_ms), stamped_at: now, carry_ns: 0 };
        }
        let time = self.time.plus(elapsed_ms);
        Self { time, stamped_at: now, carry_ns: elapsed_ns % 1_000_000 }
    }

    pub(crate) fn stamped_at(self) -> Mono {
        self.stamped_at
    }

    pub(crate) fn time(self) -> ClusterTime {
        self.time
    }

    /// When a stamp would reach `deadline`, however far that is.
    pub(crate) fn reaches(self, deadline: ClusterTime) -> Mono {
        let left_ns = self.time.until(deadline).saturating_mul(1_000_000);
        Mono(self.stamped_at.0.saturating_add(left_ns.saturating_sub(self.carry_ns)))
    }
}

/// The leader's wall clock, read once at its announce and carried on by its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenClock {
    base_us: u64,
    base: Mono,
}

impl TokenClock {
    pub(crate) fn new(base_us: u64, now: Mono) -> Self {
        Self { base_us, base: now }
    }

    pub(crate) fn at(self, now: Mono) -> u64 {
        self.base_us + now.since_ns(self.base) / 1_000
    }
}

/// Why a node with this wall clock must not lead.
pub(crate) fn wall_clock_fault(wall_us: u64) -> Option<String> {
    let sound = limits::WALL_US_MIN..=limits::WALL_US_MAX;
    if sound.contains(&wall_us) {
        return None;
    }
    let side = if wall_us < limits::WALL_US_MIN { "before 2025" } else { "after 2100" };
    Some(format!(
        "this machine's wall clock is {side}: tokens made from it would be wrong. Set the clock"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_at_one_under_load() {
        for step_ns in [1_000, 200_000, 333_333, 499_999, 999_999, 1_000_001, 7_777_777] {
            let mut clock = ClusterClock::at_announce(ClusterTime(5), Mono(0));
            let mut now = 0;
            while now < 10_000_000_000 {
                now += step_ns;
                clock = clock.stamp(Mono(now));
            }
            assert_eq!(clock.time(), ClusterTime(5 + now / 1_000_000), "step {step_ns} ns");
        }
    }

    #[test]
    fn a_gap_adds_one_step_and_is_not_caught_up() {
        let clock = ClusterClock::at_announce(ClusterTime(0), Mono(0));
        let clock = clock.stamp(Mono::default().plus_ms(60_000));
        assert_eq!(clock.time(), ClusterTime(1_000));
        assert_eq!(clock.stamp(Mono::default().plus_ms(60_100)).time(), ClusterTime(1_100));
    }

    #[test]
    fn the_moment_of_a_deadline_is_exact() {
        let clock = ClusterClock::at_announce(ClusterTime(0), Mono(0)).stamp(Mono(700_000));
        let at = clock.reaches(ClusterTime(3));
        assert_eq!(clock.stamp(at).time(), ClusterTime(3));
        assert_eq!(clock.stamp(Mono(at.0 - 1)).time(), ClusterTime(2));
    }

    #[test]
    fn wall_clocks_out_of_range_do_not_lead() {
        assert!(wall_clock_fault(0).unwrap().contains("before 2025"));
        assert!(wall_clock_fault(u64::MAX).unwrap().contains("after 2100"));
        assert_eq!(wall_clock_fault(1_790_000_000_000_000), None);
    }
}
