//! The audit trail for `sereno doctor`: its own chain, against the log, and whether anything was taken away.

use super::{
    doctor::Found,
    replay::{Replay, beginning},
};
use sereno_core::{
    entry::{Body, Entry},
    ids::Position,
};
use sereno_log::{
    Read,
    sqlite::{ReadOnlyLog, open_for_examination},
};
use sereno_server::{
    Config,
    audit::{self, Comparison, Expected, Verdict},
};
use std::path::Path;

/// Where findings about the trail are.
pub(super) const PLACE: &str = "audit";

/// What the log's own examination has shown.
pub(super) struct Log<'a> {
    pub(super) data: &'a Path,
    pub(super) in_use: bool,
    /// It has entries, and they are sound.
    pub(super) can_be_replayed: bool,
    /// None is kept in the folder.
    pub(super) is_elsewhere: bool,
}

/// What there is of the trail.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Seen {
    files: usize,
    lines: u64,
    gaps: Vec<(u64, u64)>,
    compared: bool,
}

impl Seen {
    pub(super) fn text(&self) -> String {
        let compared = match self.compared {
            true => "compared with what the log still holds",
            false => "verified by themselves",
        };
        format!("audit trail: {} lines in {} files, {compared}", self.lines, self.files)
    }
}

/// Unless the service is told otherwise.
pub(super) fn files_kept() -> u64 {
    Config::default().audit_files as u64
}

/// An error says why it could not be examined.
pub(super) fn examine(log: &Log<'_>, files_kept: usize) -> Result<(Seen, Vec<Found>), String> {
    let folder = audit::folder_in(log.data);
    let verdict = audit::verify(&folder).map_err(|error| error.to_string())?;
    let mut found = Findings::default();
    found.by_itself(&verdict, files_kept);
    let mut compared = false;
    if log.in_use {
        found.in_use(&verdict, log.is_elsewhere);
    } else if verdict.findings.is_empty() && log.can_be_replayed {
        compared = true;
        match compare(log.data, &folder)? {
            Ok(comparison) => found.compared(&comparison),
            Err(what) => found.add(true, format!("cannot be compared with the log: {what}")),
        }
    } else if verdict.lines > 0 && log.is_elsewhere {
        let what = "tells of a log that is not in this folder: that is so on a node whose log is in etcd. If this node \
                    kept its log here, it was taken away";
        found.add(false, what.into());
    } else if verdict.lines > 0 && !log.can_be_replayed {
        let what = "tells of a log that is not sound: nothing was compared with it";
        found.add(true, what.into());
    }
    let (files, lines, gaps) = (verdict.files, verdict.lines, verdict.gaps);
    Ok((Seen { files, lines, gaps, compared }, found.0))
}

#[derive(Default)]
struct Findings(Vec<Found>);

impl Findings {
    fn add(&mut self, damage: bool, what: String) {
        self.0.push(Found { damage, place: PLACE.into(), what });
    }

    fn by_itself(&mut self, verdict: &Verdict, files_kept: usize) {
        for finding in &verdict.findings {
            self.add(true, finding.to_string());
        }
        let first = verdict.range.map_or(1, |(first, _)| first);
        if first > 1 {
            let by_rotation = verdict.files >= files_kept;
            let why = match by_rotation {
                true => "rotation has removed the files before it".to_string(),
                false => format!(
                    "but there are only {} files, and rotation keeps {files_kept} (--audit-files): the beginning was \
                     taken away",
                    verdict.files
                ),
            };
            self.add(!by_rotation, format!("begins with line {first}; {why}"));
        }
        if verdict.torn_bytes > 0 {
            let bytes = verdict.torn_bytes;
            self.add(
                false,
                format!("{bytes} bytes of a torn line at the end, which the next start cuts"),
            );
        }
        for (from, to) in &verdict.gaps {
            self.add(false, format!("says itself that positions {from} to {to} are missing"));
        }
    }

    fn in_use(&mut self, verdict: &Verdict, log_is_elsewhere: bool) {
        if verdict.lines == 0 {
            self.add(true, "nothing is there, though the service that runs writes one".into());
        }
        let why = match log_is_elsewhere {
            true => {
                "not compared with the log, which is not in this folder, as on a node whose log is in etcd"
            }
            false => {
                "not compared with the log, for both are being written: stop the service first"
            }
        };
        self.add(false, why.into());
    }

    fn compared(&mut self, comparison: &Comparison) {
        for finding in &comparison.findings {
            self.add(true, finding.to_string());
        }
        if comparison.unwritten > 0 {
            self.add(
                false,
                format!(
                    "ends at position {}; the last {} events are only in the log. A service that is killed, or loses \
                     its power, can leave that, and its next start writes them",
                    comparison.recorded, comparison.unwritten
                ),
            );
        }
    }
}

/// The outer error: the log cannot be read; the inner one: it cannot be replayed.
fn compare(data: &Path, folder: &Path) -> Result<Result<Comparison, String>, String> {
    let log = open_for_examination(data).map_err(|error| error.to_string())?;
    if !log.is_alone() {
        return Err("a service has started meanwhile".into());
    }
    let begins = match beginning(&log) {
        Ok(begins) => begins,
        Err(what) => return Ok(Err(what)),
    };
    let expected = match expected(&log, begins.head().position) {
        Ok(expected) => expected,
        Err(what) => return Ok(Err(what)),
    };
    let mut replay = Replay::from(&log, begins);
    let comparison =
        audit::compare(folder, expected, replay.by_ref()).map_err(|error| error.to_string())?;
    Ok(match replay.error() {
        Some(error) => Err(error.into()),
        None => Ok(comparison),
    })
}

/// How far the trail has to go.
fn expected(log: &ReadOnlyLog, after: Position) -> Result<Expected, String> {
    let snapshots = log.snapshots().map_err(|error| error.to_string())?;
    let durable = match snapshots.as_slice() {
        [] => Position(0),
        // The log begins with it: it was restored, so no service has written anything before it was there.
        [only] if only.position.next() == log.first() => Position(0),
        [.., newest] => newest.position,
    };
    let complete = ends_in_good_order(log)?;
    Ok(Expected { log_id: log.head().log_id, after, durable, complete })
}

/// A service that stops in good order resigns, and then writes its trail to the end.
fn ends_in_good_order(log: &ReadOnlyLog) -> Result<bool, String> {
    let head = log.head().position;
    if head < log.first() {
        return Ok(false);
    }
    let read = log.read(head, 1).map_err(|error| error.to_string())?;
    let Read::Entries(entries) = read else { return Ok(false) };
    let last = entries.first().map(|entry| Entry::decode(&entry.bytes));
    Ok(matches!(last, Some(Ok(entry)) if entry.body == Body::Resign))
}
