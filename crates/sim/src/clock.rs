//! Clocks. *Real* time is what the simulator counts, in nanoseconds from 0; nobody simulated sees it.

use crate::random::Random;
use sereno_node::clock::{Mono, Now};

/// Real time, in nanoseconds.
pub(crate) type Real = u64;

/// The wall clock at real time 0: some day in 2026, in microseconds since 1970.
const EPOCH_US: u64 = 1_780_000_000_000_000;
/// Any two clocks agree in rate within 1 % (S8): each is within half of that.
const RATE_OFF_PPM: u64 = 4_900;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000 * MS;

/// What a wall clock that is right shows.
pub(crate) fn wall_us(real: Real) -> u64 {
    EPOCH_US + real / 1_000
}

/// One machine's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Microseconds of its monotonic clock in a second.
    rate_ppm: u64,
    real_base: Real,
    mono_base: u64,
    pub(crate) wall_offset_us: i64,
}

impl Clock {
    pub(crate) fn new(random: &mut Random, now: Real) -> Self {
        Self {
            rate_ppm: 1_000_000 - RATE_OFF_PPM + random.between(0, 2 * RATE_OFF_PPM),
            real_base: now,
            mono_base: random.between(S, 1_000 * S),
            wall_offset_us: 0,
        }
    }

    /// A process that starts anew counts from anywhere.
    pub(crate) fn restart(&mut self, random: &mut Random, now: Real) {
        (self.real_base, self.mono_base) = (now, random.between(S, 1_000 * S));
    }

    pub(crate) fn mono(&self, real: Real) -> Mono {
        let passed = u128::from(real.saturating_sub(self.real_base));
        Mono(self.mono_base + (passed * u128::from(self.rate_ppm) / 1_000_000) as u64)
    }

    /// The first real moment at which its monotonic clock shows at least this.
    pub(crate) fn real(&self, mono: Mono) -> Real {
        let passed = u128::from(mono.0.saturating_sub(self.mono_base));
        let real = (passed * 1_000_000).div_ceil(u128::from(self.rate_ppm));
        self.real_base.saturating_add(u64::try_from(real).unwrap_or(u64::MAX))
    }

    pub(crate) fn now(&self, real: Real) -> Now {
        let wall_us = wall_us(real).saturating_add_signed(self.wall_offset_us);
        Now { mono: self.mono(real), wall_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_reached_and_not_before() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            let clock = Clock::new(&mut random, 77);
            let wanted = Mono(clock.mono(77).0 + random.between(0, 100 * S));
            let real = clock.real(wanted);
            assert!(clock.mono(real) >= wanted);
            assert!(real == 77 || clock.mono(real - 1) < wanted);
        }
    }
}
