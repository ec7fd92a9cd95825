//! Where the outcomes of a load are written down.

use crate::stats::{Board, Latency, Operation, Timeline, Verdict};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// All figures of a load.
#[derive(Debug)]
pub(super) struct Book {
    start: Instant,
    /// Of each phase; the first is the warm-up.
    pub boards: Vec<Board>,
    pub timeline: Timeline,
    /// From the intended start to the sending, by phase: the generator's own share of each latency.
    pub lag: Vec<Latency>,
    /// Leases that a renewal did not renew, by code. Not 0: someone was told *lost*.
    pub lost: BTreeMap<&'static str, u64>,
    /// Holders that were left to die.
    pub died: u64,
}

/// When a call is due, and whose figures it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub operation: Operation,
    pub phase: usize,
    pub due: Instant,
}

impl Book {
    pub(super) fn new(start: Instant, phases: usize) -> Self {
        Self {
            start,
            boards: vec![Board::default(); phases],
            timeline: Timeline::default(),
            lag: vec![Latency::default(); phases],
            lost: BTreeMap::new(),
            died: 0,
        }
    }

    pub(super) fn offer(&mut self, mark: Mark) {
        self.boards[mark.phase].of_mut(mark.operation).offered += 1;
    }

    pub(super) fn sent(&mut self, mark: Mark, now: Instant) {
        self.lag[mark.phase].record(now.saturating_duration_since(mark.due));
    }

    pub(super) fn count(&mut self, mark: Mark, verdict: Verdict, now: Instant) {
        let latency = now.saturating_duration_since(mark.due);
        self.boards[mark.phase].of_mut(mark.operation).count(verdict, latency);
        if matches!(verdict, Verdict::Done | Verdict::Unknown) {
            let at = mark.due.saturating_duration_since(self.start);
            self.timeline.record(mark.operation, at, latency);
        }
    }

    /// Whatever was offered and has not ended when the load is over is unknown, and took at least this long.
    pub(super) fn close(&mut self, at_least: Duration) {
        for board in &mut self.boards {
            for operation in Operation::ALL {
                let figures = board.of_mut(operation);
                let ended = figures.done
                    + figures.unknown
                    + figures.refused_total()
                    + figures.cancelled
                    + figures.dropped
                    + figures.skipped;
                for _ in ended..figures.offered {
                    figures.count(Verdict::Unknown, at_least);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_counts_from_the_intended_start_and_all_that_was_offered_ends() {
        let start = Instant::now();
        let mut book = Book::new(start, 2);
        let mark = |phase, seconds| Mark {
            operation: Operation::Acquire,
            phase,
            due: start + Duration::from_secs(seconds),
        };
        for mark in [mark(0, 0), mark(1, 1), mark(1, 1), mark(1, 2)] {
            book.offer(mark);
            book.sent(mark, start + Duration::from_secs(4));
        }
        book.count(mark(0, 0), Verdict::Done, start + Duration::from_secs(4));
        book.count(mark(1, 1), Verdict::Done, start + Duration::from_secs(4));
        book.count(mark(1, 1), Verdict::Cancelled, start + Duration::from_secs(4));
        book.close(Duration::from_secs(9));
        let figures = book.boards[1].of(Operation::Acquire);
        assert_eq!((figures.offered, figures.done, figures.unknown), (3, 1, 1));
        assert_eq!(figures.latency.percentiles().p50_us / 10_000, 300, "3 s");
        let lags: Vec<u64> = book.lag.iter().map(Latency::count).collect();
        assert_eq!(lags, [1, 3], "each phase's are its own");
        assert_eq!(book.timeline.points(Operation::Acquire).len(), 2);
    }
}
