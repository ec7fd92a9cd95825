//! Latency over time: one small histogram for each operation and second of *intended* start.

use super::{Latency, Operation, Percentiles};
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

/// Latencies by the second in which a call should have started.
#[derive(Clone, Debug, Default)]
pub struct Timeline(BTreeMap<(Operation, u64), Latency>);

/// One second of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Since the load began, warm-up included.
    pub second: u64,
    /// Of the calls that should have started then.
    #[serde(flatten)]
    pub latency: Percentiles,
}

impl Timeline {
    /// Counts a call that should have started `at` after the beginning.
    pub fn record(&mut self, operation: Operation, at: Duration, latency: Duration) {
        let slot = self.0.entry((operation, at.as_secs()));
        slot.or_insert_with(|| Latency::with_digits(2)).record(latency);
    }

    /// One operation's seconds, in order.
    pub fn points(&self, operation: Operation) -> Vec<Point> {
        let seconds = self.0.range((operation, 0)..=(operation, u64::MAX));
        seconds
            .map(|((_, second), latency)| Point { second: *second, latency: latency.percentiles() })
            .collect()
    }
}

impl Serialize for Timeline {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = Operation::ALL.into_iter().map(|operation| (operation, self.points(operation)));
        serializer.collect_map(
            all.filter(|(_, points)| !points.is_empty())
                .map(|(operation, points)| (operation.name(), points)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_belongs_to_the_second_it_should_have_started_in() {
        let mut timeline = Timeline::default();
        timeline.record(Operation::Acquire, Duration::from_millis(1_999), Duration::from_secs(8));
        timeline.record(
            Operation::Acquire,
            Duration::from_millis(2_000),
            Duration::from_micros(200),
        );
        timeline.record(Operation::Release, Duration::ZERO, Duration::from_millis(1));
        let points = timeline.points(Operation::Acquire);
        assert_eq!(points.iter().map(|point| point.second).collect::<Vec<_>>(), [1, 2]);
        assert!(points[0].latency.max_us >= 7_900_000);
        let json = serde_json::to_value(&timeline).unwrap();
        assert_eq!(json["acquire"][1]["second"], 2);
        assert_eq!(json["acquire"][1]["p50Us"], 200);
        assert_eq!(json["renew"], serde_json::Value::Null);
    }
}
