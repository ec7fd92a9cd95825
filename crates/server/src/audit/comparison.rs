//! Verifying a trail against the log: the events of a replay, made into lines again.
//!
//! What may be missing without a fault: what was removed by rotation (the first file kept says from where on it
//! records), what a `gap` line owns up to, and, after a crash, the very end: lines are written after their entries,
//! and the next start makes them good from the log. A snapshot is saved only after everything before it is durable
//! here, and a service that stops in good order writes everything first: so then nothing may be missing at the end.

use super::{
    Finding, files,
    line::{LineHash, Record, is_audited, write},
    recovery::{self, Covered},
};
use sereno_api::{AuditKind, AuditLine};
use sereno_core::ids::{LogId, Position};
use sereno_node::events::EventBatch;
use std::{collections::VecDeque, io, path::Path};

/// What the log says about how far the trail has to go.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Whose trail it is.
    pub log_id: LogId,
    /// Entries after this position are compared: those that the log still has.
    pub after: Position,
    /// Everything up to here was on the disk before the log's newest snapshot was saved.
    pub durable: Position,
    /// The last service stopped in good order: everything was written.
    pub complete: bool,
}

/// What a comparison has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What is not as it has to be.
    pub findings: Vec<Finding>,
    /// Events at the end of the log that a crash kept from being written; the next start writes them.
    pub unwritten: u64,
    /// The position up to which the trail records.
    pub recorded: u64,
}

/// Compares the trail in `folder` with `batches`: all entries with events after [`Expected::after`], in order, up to
/// the log's head.
///
/// # Errors
/// When a file cannot be read: then nothing is known about it.
pub fn compare(
    folder: &Path,
    expected: Expected,
    batches: impl IntoIterator<Item = EventBatch>,
) -> io::Result<Comparison> {
    let mut trail = Trail::read(folder, expected)?;
    let mut head = expected.after;
    for batch in batches {
        head = batch.position;
        for number in 1..=batch.events.len() {
            if is_audited(&batch.events[number - 1]) {
                trail.expect(&batch, number);
            }
        }
    }
    Ok(trail.finish(head))
}

struct Trail {
    expected: Expected,
    /// Lines of events that are still to be matched.
    lines: VecDeque<(String, usize, AuditLine)>,
    /// What the trail does not claim to have: before its first file, and in gaps.
    excused: Vec<(Covered, Covered)>,
    /// Up to where it records.
    covered: Covered,
    /// Events that are missing one after the other.
    missing: Option<Missing>,
    seen: Comparison,
}

/// A run of events that the log has and the trail has not.
struct Missing {
    events: u64,
    from: Position,
    to: Position,
}

impl Trail {
    fn read(folder: &Path, expected: Expected) -> io::Result<Self> {
        let mut trail = Self {
            expected,
            lines: VecDeque::new(),
            excused: Vec::new(),
            covered: Covered::default(),
            missing: None,
            seen: Comparison::default(),
        };
        let log_id = expected.log_id.to_hex();
        let (mut of_log, mut begun) = (false, false);
        // What was never written, or was taken away, is compared like an empty one.
        for file in files::list_if_any(folder)? {
            let bytes = file.read()?;
            for (index, (_, line)) in recovery::lines(&bytes).enumerate() {
                let parsed: AuditLine = match serde_json::from_slice(line) {
                    Ok(parsed) => parsed,
                    Err(error) => {
                        let what = format!("is not an audit line: {error}");
                        trail.found(file.name(), index + 1, what);
                        continue;
                    }
                };
                if parsed.kind == AuditKind::Log {
                    of_log = parsed.log_id.as_deref() == Some(log_id.as_str());
                    if of_log && !begun {
                        begun = true;
                        trail.excused.push((Covered::default(), Covered::through(parsed.position)));
                    }
                }
                if of_log {
                    trail.covered = trail.covered.max(Covered::by(&parsed));
                    trail.add(file.name(), index + 1, parsed);
                }
            }
        }
        Ok(trail)
    }

    fn add(&mut self, file: String, number: usize, line: AuditLine) {
        match line.gap_from {
            Some(from) => {
                let from = Covered { position: from, event: 0 };
                self.excused.push((from, Covered::through(line.position)));
            }
            None if line.event.is_some() && line.position > self.expected.after.0 => {
                self.lines.push_back((file, number, line));
            }
            None => {}
        }
    }

    fn found(&mut self, file: String, line: usize, what: String) {
        self.seen.findings.push(Finding { file, line, what });
    }

    /// The next line is that of this event; or there is a reason why there is none.
    fn expect(&mut self, batch: &EventBatch, number: usize) {
        let at = Covered { position: batch.position.0, event: number as u64 };
        while let Some((file, line, stray)) =
            self.lines.pop_front_if(|(_, _, line)| Covered::by(line) < at)
        {
            let what = format!(
                "tells of event {} at position {}, which the log does not know",
                stray.event.unwrap_or_default(),
                stray.position
            );
            self.found(file, line, what);
        }
        if let Some((file, line, found)) =
            self.lines.pop_front_if(|(_, _, line)| Covered::by(line) == at)
        {
            self.tell_missing();
            if !is_same(batch, number, &found) {
                let what = format!("is not what the log says at position {}", batch.position);
                self.found(file, line, what);
            }
            return;
        }
        if self.excused.iter().any(|&(from, to)| from <= at && at <= to) {
            return;
        }
        let is_end = self.lines.is_empty() && batch.position > self.expected.durable;
        if is_end && !self.expected.complete {
            self.seen.unwritten += 1;
            return;
        }
        let from = self.missing.as_ref().map_or(batch.position, |missing| missing.from);
        let events = self.missing.as_ref().map_or(0, |missing| missing.events) + 1;
        self.missing = Some(Missing { events, from, to: batch.position });
    }

    /// One finding for a whole run: a file that was taken away is one fault, not a hundred thousand.
    fn tell_missing(&mut self) {
        if let Some(Missing { events, from, to }) = self.missing.take() {
            let what = format!("lacks {events} events of the log, at positions {from} to {to}");
            self.found("the trail".into(), 0, what);
        }
    }

    fn finish(mut self, head: Position) -> Comparison {
        self.tell_missing();
        for (file, line, stray) in std::mem::take(&mut self.lines) {
            let what = format!(
                "is of position {}, and the log's last event is at {head}: the log has lost entries, or the \
                 line was added",
                stray.position
            );
            self.found(file, line, what);
        }
        let durable = self.expected.durable;
        self.seen.recorded = self.covered.position;
        if self.covered < Covered::through(durable.0) && durable.0 > 0 {
            let what = format!(
                "ends at position {}; everything up to {durable} was in it when the log's snapshot there was \
                 saved: lines have been removed from its end",
                self.covered.position
            );
            self.found("the trail".into(), 0, what);
        }
        self.seen
    }
}

/// The line with its own number and hash, made again from the event, says the same.
fn is_same(batch: &EventBatch, number: usize, found: &AuditLine) -> bool {
    let mut bytes = Vec::new();
    write(&mut bytes, found.seq, Record::Event(batch, number), LineHash::ZERO);
    let Ok(again) = serde_json::from_slice::<AuditLine>(&bytes) else { return false };
    let (previous, check) = (found.previous.clone(), found.check.clone());
    AuditLine { previous, check, ..again } == *found
}
