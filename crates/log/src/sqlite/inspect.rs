//! A full examination for `sereno doctor`. It changes nothing.

use super::{
    database,
    examine::{self, Depth, Open},
    folder::{self, FolderLock},
    side,
};
use crate::LogError;
use sereno_core::{entry::Head, ids::Position};
use std::{fmt, path::Path};

/// What a log's folder holds, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// True if a process serves the folder now. What it has not finished can show up as notes.
    pub in_use: bool,
    /// The log's head, where it can be read.
    pub head: Option<Head>,
    /// First position that can be read.
    pub first: Position,
    /// Sound entries.
    pub entries: u64,
    /// The position that `HEAD` tells of.
    pub marked: Option<Position>,
    /// Oldest first.
    pub snapshots: Vec<SnapshotReport>,
    /// In the order they were found.
    pub findings: Vec<Finding>,
}

/// One snapshot as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The head whose state it is.
    pub head: Head,
    /// Its size.
    pub bytes: u64,
    /// Its bytes have their hash.
    pub sound: bool,
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which file, and where in it.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing that is read depends on it.
    Note,
    /// What is stored is not what was written.
    Damage,
}

impl Report {
    /// True if the log can be trusted.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(Finding::is_damage)
    }
}

impl Finding {
    pub(super) fn damage(text: &str) -> Self {
        Self::new(Severity::Damage, text)
    }

    pub(super) fn note(text: &str) -> Self {
        Self::new(Severity::Note, text)
    }

    /// `text` is "place: what".
    fn new(severity: Severity, text: &str) -> Self {
        let (place, what) = text.split_once(": ").unwrap_or(("log.db", text));
        Self { severity, place: place.into(), what: what.into() }
    }

    /// True for [`Severity::Damage`].
    pub fn is_damage(&self) -> bool {
        self.severity == Severity::Damage
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Examines the log in `dir`, also while it is served: structure, every entry with its hash and its place in the
/// chain, snapshots, `HEAD`. Damage is in the report; an error means that it could not be examined. While it runs
/// on a folder that nobody serves it holds the folder's lock, and changes no file of it. Blocks.
pub fn inspect(dir: &Path) -> Result<Report, LogError> {
    let lock = FolderLock::try_take_existing(dir)?;
    folder::refuse_half_restored(dir)?;
    let mut report = Report { in_use: lock.is_none(), ..Report::default() };
    // Before log.db: a log that is being written is never behind it.
    let slots = side::read(dir)?;
    report.marked = slots.as_ref().and_then(side::newest).map(|(_, mark)| mark.position);
    let open: Open = if report.in_use { database::open_reader } else { database::open_examiner };
    match examine::is_new(dir, &slots, open) {
        Ok(false) => {}
        Ok(true) => {
            report.findings.push(Finding::note("log.db: no log has been created here yet"));
            return Ok(report);
        }
        Err(LogError::Damaged(what)) => {
            report.findings.push(Finding::damage(&what));
            return Ok(report);
        }
        Err(error) => return Err(error),
    }
    let examined = match open(dir) {
        Ok(connection) => examine::examine(&connection, &slots, Depth::Full)?,
        Err(LogError::Damaged(what)) => {
            report.findings.push(Finding::damage(&what));
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    report.head = examined.state.map(|state| state.head);
    report.first = examined.state.map_or(Position(0), |state| state.first);
    report.entries = examined.entries;
    report.snapshots = examined.snapshots;
    report.findings = examined.findings;
    Ok(report)
}
