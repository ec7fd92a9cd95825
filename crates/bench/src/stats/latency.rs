//! Latencies in a histogram whose upper bound nothing reaches.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::{fmt, time::Duration};

/// One hour, in microseconds. Slower is counted as one hour: never left out.
const HIGHEST_US: u64 = 3_600_000_000;

/// Latencies with three significant digits from 1 µs to 1 h.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

/// A histogram's figures, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Percentiles {
    /// How many were timed.
    pub count: u64,
    /// Half were faster.
    pub p50_us: u64,
    /// 95 of 100 were faster.
    pub p95_us: u64,
    /// 99 of 100 were faster.
    pub p99_us: u64,
    /// 999 of 1,000 were faster.
    pub p999_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self::with_digits(3)
    }
}

impl Latency {
    /// `digits` significant digits; two take a tenth of the memory of three.
    pub(super) fn with_digits(digits: u8) -> Self {
        // Grows to what is recorded, so that hundreds of these stay small.
        let mut histogram = Histogram::new(digits).expect("1 to 5 digits are allowed");
        histogram.auto(true);
        Self(histogram)
    }

    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).clamp(1, HIGHEST_US);
        // Not `saturating_record`: that cuts off at what the histogram has grown to so far.
        self.0.record(micros).expect("this histogram resizes itself");
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("this histogram resizes itself");
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Its figures.
    pub fn percentiles(&self) -> Percentiles {
        let at = |quantile| self.0.value_at_quantile(quantile).min(self.0.max());
        Percentiles {
            count: self.0.len(),
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.0.max(),
        }
    }
}

/// Microseconds as people read them: `950 µs`, `12.3 ms`, `4.56 s`.
pub(crate) fn human(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for micros in [self.p50_us, self.p95_us, self.p99_us, self.p999_us, self.max_us] {
            write!(f, "{:>10}", human(micros))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(micros: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        for micros in micros {
            latency.record(Duration::from_micros(micros));
        }
        latency
    }

    /// Within the three digits that are kept.
    fn near(found: u64, wanted: u64) -> bool {
        found.abs_diff(wanted) * 1_000 <= wanted
    }

    #[test]
    fn percentiles_of_a_known_series() {
        let found = of(1..=100_000).percentiles();
        assert_eq!(found.count, 100_000);
        for (found, wanted) in [
            (found.p50_us, 50_000),
            (found.p95_us, 95_000),
            (found.p99_us, 99_000),
            (found.p999_us, 99_900),
            (found.max_us, 100_000),
        ] {
            assert!(near(found, wanted), "{found} instead of {wanted}");
        }
    }

    #[test]
    fn the_slowest_are_never_left_out() {
        let mut latency = of([0]);
        latency.record(Duration::from_secs(3_599));
        latency.record(Duration::from_secs(1_000_000));
        let found = latency.percentiles();
        assert_eq!(found.count, 3);
        assert!(near(found.max_us, HIGHEST_US), "{}", found.max_us);
        assert!(found.p50_us >= 3_599_000_000);
    }

    #[test]
    fn merged_parts_are_the_whole() {
        let mut merged = of((1..50_000).step_by(2));
        merged.merge(&of((2..50_000).step_by(2)));
        merged.merge(&of([HIGHEST_US]));
        let whole = of((1..50_000).chain([HIGHEST_US]));
        assert_eq!(merged.percentiles(), whole.percentiles());
    }

    #[test]
    fn nothing_counted_is_all_zeros() {
        assert_eq!(Latency::default().percentiles(), Percentiles::default());
    }

    #[test]
    fn figures_for_people() {
        assert_eq!([human(7), human(12_340), human(1_500_000)], ["7 µs", "12.34 ms", "1.50 s"]);
    }
}
