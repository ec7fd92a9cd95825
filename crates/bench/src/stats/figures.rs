//! The figures of each operation: what was offered, and what became of all of it.

use super::{Latency, Percentiles};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::{collections::BTreeMap, time::Duration};

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Acquire of a free name.
    Acquire,
    /// Acquire of a held name, waiting for it.
    AcquireWaiting,
    /// From the sending of a release to the answer of the one who waited.
    HandOver,
    /// Renew of one lease.
    Renew,
    /// Renew-many of a batch.
    RenewMany,
    /// Release.
    Release,
    /// Abandon of a wait that was given up.
    Abandon,
    /// Reserve at a node of a quota.
    Reserve,
    /// Commit of what was reserved.
    Commit,
}

impl Operation {
    /// Each, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Acquire,
        Self::AcquireWaiting,
        Self::HandOver,
        Self::Renew,
        Self::RenewMany,
        Self::Release,
        Self::Abandon,
        Self::Reserve,
        Self::Commit,
    ];

    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::AcquireWaiting => "acquireWaiting",
            Self::HandOver => "handOver",
            Self::Renew => "renew",
            Self::RenewMany => "renewMany",
            Self::Release => "release",
            Self::Abandon => "abandon",
            Self::Reserve => "reserve",
            Self::Commit => "commit",
        }
    }
}

/// What became of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Carried out.
    Done,
    /// Answered with a refusal that changed nothing, of this code.
    Refused(&'static str),
    /// Nobody knows: no answer in time, a broken connection, or an answer that says so.
    Unknown,
    /// The client gave it up on purpose.
    Cancelled,
    /// Never sent: no connection was free in time.
    Dropped,
    /// Never sent: the load had nothing to send it for (no lease to release, no free name).
    Skipped,
}

/// One operation's figures. `offered` is the sum of the others once all calls have ended.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Due by the schedule (in a closed loop: sent).
    pub offered: u64,
    /// See [`Verdict::Done`].
    pub done: u64,
    /// See [`Verdict::Dropped`].
    pub dropped: u64,
    /// See [`Verdict::Unknown`].
    pub unknown: u64,
    /// See [`Verdict::Cancelled`].
    pub cancelled: u64,
    /// See [`Verdict::Skipped`].
    pub skipped: u64,
    /// See [`Verdict::Refused`], by code.
    pub refused: BTreeMap<&'static str, u64>,
    /// Of those done, and of those unknown up to when they were given up: a stall must not look fast.
    pub latency: Latency,
}

impl Figures {
    /// Counts what became of an offered call.
    pub fn count(&mut self, verdict: Verdict, latency: Duration) {
        match verdict {
            Verdict::Done => self.done += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Refused(code) => *self.refused.entry(code).or_default() += 1,
            Verdict::Cancelled => self.cancelled += 1,
            Verdict::Dropped => self.dropped += 1,
            Verdict::Skipped => self.skipped += 1,
        }
        if matches!(verdict, Verdict::Done | Verdict::Unknown) {
            self.latency.record(latency);
        }
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.done += other.done;
        self.dropped += other.dropped;
        self.unknown += other.unknown;
        self.cancelled += other.cancelled;
        self.skipped += other.skipped;
        for (code, count) in &other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        self.latency.merge(&other.latency);
    }

    /// How many were refused, whatever the code.
    pub fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FiguresJson<'a> {
    offered: u64,
    done: u64,
    dropped: u64,
    unknown: u64,
    cancelled: u64,
    skipped: u64,
    refused: &'a BTreeMap<&'static str, u64>,
    latency: Percentiles,
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FiguresJson {
            offered: self.offered,
            done: self.done,
            dropped: self.dropped,
            unknown: self.unknown,
            cancelled: self.cancelled,
            skipped: self.skipped,
            refused: &self.refused,
            latency: self.latency.percentiles(),
        }
        .serialize(serializer)
    }
}

/// The figures of all operations. In JSON an object of those that occurred, by name.
#[derive(Clone, Debug, Default)]
pub struct Board([Figures; Operation::ALL.len()]);

impl Board {
    /// One operation's.
    pub fn of(&self, operation: Operation) -> &Figures {
        &self.0[operation as usize]
    }

    /// One operation's, to count.
    pub fn of_mut(&mut self, operation: Operation) -> &mut Figures {
        &mut self.0[operation as usize]
    }

    /// Those that occurred.
    pub fn occurred(&self) -> impl Iterator<Item = (Operation, &Figures)> {
        let all = Operation::ALL.into_iter().map(|operation| (operation, self.of(operation)));
        all.filter(|(_, figures)| figures.offered > 0)
    }

    /// What was refused, unknown or dropped: how many by operation and reason.
    pub fn not_done(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (operation, figures) in self.occurred() {
            let codes = figures.refused.iter().map(|(code, count)| (*code, *count));
            let more = [("unknown", figures.unknown), ("dropped", figures.dropped)];
            for (why, count) in codes.chain(more).filter(|(_, count)| *count > 0) {
                all.insert(format!("{}: {why}", operation.name()), count);
            }
        }
        all
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }
}

impl Serialize for Board {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (operation, figures) in self.occurred() {
            map.serialize_entry(operation.name(), figures)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let mut figures = Figures { offered: 6, ..Figures::default() };
        for verdict in [
            Verdict::Done,
            Verdict::Unknown,
            Verdict::Refused("LOCKED"),
            Verdict::Cancelled,
            Verdict::Dropped,
            Verdict::Skipped,
        ] {
            figures.count(verdict, Duration::from_micros(500));
        }
        figures
    }

    #[test]
    fn only_answers_and_silence_are_timed() {
        let figures = figures();
        assert_eq!(figures.latency.count(), 2);
        assert_eq!(figures.offered, 5 + figures.refused_total());
    }

    #[test]
    fn merging_adds_each_figure() {
        let mut merged = figures();
        let mut other = figures();
        other.count(Verdict::Refused("OVERLOADED"), Duration::ZERO);
        merged.merge(&other);
        assert_eq!((merged.offered, merged.done, merged.unknown, merged.dropped), (12, 2, 2, 2));
        assert_eq!((merged.cancelled, merged.skipped), (2, 2));
        assert_eq!(merged.refused, BTreeMap::from([("LOCKED", 2), ("OVERLOADED", 1)]));
        assert_eq!(merged.latency.count(), 4);
    }

    #[test]
    fn a_board_shows_what_occurred() {
        let mut board = Board::default();
        *board.of_mut(Operation::Acquire) = figures();
        let json = serde_json::to_value(&board).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"acquire": {
                "offered": 6, "done": 1, "dropped": 1, "unknown": 1, "cancelled": 1, "skipped": 1,
                "refused": {"LOCKED": 1},
                "latency": {"count": 2, "p50Us": 500, "p95Us": 500, "p99Us": 500, "p999Us": 500, "maxUs": 500},
            }})
        );
    }

    #[test]
    fn what_was_not_done_is_told_by_reason() {
        let mut board = Board::default();
        *board.of_mut(Operation::Release) = figures();
        let told: Vec<_> = board.not_done().into_iter().collect();
        let wanted = ["release: LOCKED", "release: dropped", "release: unknown"];
        assert_eq!(told, wanted.map(|what| (what.to_owned(), 1)));
    }

    #[test]
    fn the_order_of_reports_is_the_order_of_the_array() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, index);
        }
    }
}
