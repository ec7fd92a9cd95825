//! Verifying a trail against the log: the events of a replay, made into lines again.

use super::{
    Finding, files,
    line::{LineHash, Record, is_audited, write},
    recovery::{self, Covered},
};
use sereno_api::{AuditKind, AuditLine};
use sereno_core::ids::{LogId, Position};
use sereno_node::events::EventBatch;
use std::{collections::VecDeque, fs, path::Path};

/// Compares the trail in `folder` with `batches`: all entries with events of the log `log_id` after `after`, in
/// order, up to its head. Everything up to `durable` (the log's newest snapshot) has to be there; what is missing
/// after it was lost in a crash and is written at the next start.
pub fn compare(
    folder: &Path,
    log_id: LogId,
    after: Position,
    durable: Position,
    batches: impl IntoIterator<Item = EventBatch>,
) -> Vec<Finding> {
    let mut trail = match Trail::read(folder, log_id, after) {
        Ok(trail) => trail,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    let mut head = after;
    for batch in batches {
        head = batch.position;
        for number in 1..=batch.events.len() {
            if is_audited(&batch.events[number - 1]) {
                trail.expect(&batch, number, durable, &mut findings);
            }
        }
    }
    trail.expect_no_more(head, &mut findings);
    findings
}

struct Trail {
    /// Lines of events that are still to be matched.
    lines: VecDeque<(String, usize, AuditLine)>,
    /// What the trail does not claim to have: before its first file, and in gaps.
    excused: Vec<(Covered, Covered)>,
}

impl Trail {
    fn read(folder: &Path, log_id: LogId, after: Position) -> Result<Self, Finding> {
        let whole = |file: String, error: std::io::Error| Finding {
            file,
            line: 0,
            what: error.to_string(),
        };
        let files =
            files::list(folder).map_err(|error| whole(folder.display().to_string(), error))?;
        let mut trail = Self { lines: VecDeque::new(), excused: Vec::new() };
        let mut of_log = false;
        let mut seen = false;
        for file in files {
            let bytes = fs::read(&file.path).map_err(|error| whole(file.name(), error))?;
            for (index, (_, line)) in recovery::lines(&bytes).enumerate() {
                let parsed: AuditLine = serde_json::from_slice(line).map_err(|error| Finding {
                    file: file.name(),
                    line: index + 1,
                    what: format!("is not an audit line: {error}"),
                })?;
                if parsed.kind == AuditKind::Log {
                    of_log = parsed.log_id.as_deref() == Some(log_id.to_hex().as_str());
                    if of_log && !seen {
                        seen = true;
                        trail.excused.push((Covered::default(), Covered::through(parsed.position)));
                    }
                } else if of_log {
                    trail.add(file.name(), index + 1, parsed, after);
                }
            }
        }
        Ok(trail)
    }

    fn add(&mut self, file: String, number: usize, line: AuditLine, after: Position) {
        match line.gap_from {
            Some(from) => {
                let from = Covered { position: from, event: 0 };
                self.excused.push((from, Covered::through(line.position)));
            }
            None if line.event.is_some() && line.position > after.0 => {
                self.lines.push_back((file, number, line));
            }
            None => {}
        }
    }

    /// The next line is that of this event; or there is a reason why there is none.
    fn expect(
        &mut self,
        batch: &EventBatch,
        number: usize,
        durable: Position,
        findings: &mut Vec<Finding>,
    ) {
        let at = Covered { position: batch.position.0, event: number as u64 };
        while let Some((file, line, stray)) =
            self.lines.pop_front_if(|(_, _, line)| Covered::by(line) < at)
        {
            let what = format!(
                "tells of event {} at position {}, which the log does not know",
                stray.event.unwrap_or_default(),
                stray.position
            );
            findings.push(Finding { file, line, what });
        }
        match self.lines.pop_front_if(|(_, _, line)| Covered::by(line) == at) {
            Some((file, line, found)) if !is_same(batch, number, &found) => {
                let what = format!("is not what the log says at position {}", batch.position);
                findings.push(Finding { file, line, what });
            }
            Some(_) => {}
            None if self.excused.iter().any(|&(from, to)| from <= at && at <= to) => {}
            None if batch.position > durable && self.lines.is_empty() => {}
            None => findings.push(Finding {
                file: "the trail".into(),
                line: 0,
                what: format!("lacks event {number} of the log's position {}", batch.position),
            }),
        }
    }

    fn expect_no_more(self, head: Position, findings: &mut Vec<Finding>) {
        for (file, line, stray) in self.lines {
            let what = format!(
                "is of position {}, and the log's last event is at {head}: the log has lost entries, or the \
                 line was added",
                stray.position
            );
            findings.push(Finding { file, line, what });
        }
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
