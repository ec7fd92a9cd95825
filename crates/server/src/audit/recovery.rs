//! Where the trail ends, after whatever ended the last process.
//!
//! A crash leaves at most a torn end: a line that is not whole, with nothing whole after it. Such an end is cut, with a
//! warning: a checkpoint is answered only after the disk has it, so what is torn came later, and its lines come again
//! when the node replays the log. A line with a wrong check *before* a whole one, or one that is right by itself and
//! names another line than stands before it, is damage. A power cut can leave that too, where the disk wrote a later
//! page first; but nobody can tell it from a line that was changed, so an operator has to look.
//!
//! All files are looked at, not only the one that is gone on in: a trail that goes on after a line that was changed
//! would seem whole to whoever reads its end. The older files are read once and only hashed: the 1 GiB
//! that is kept unless it is told otherwise takes two to three seconds of one slow core.

use super::{
    AuditError, Finding,
    files::{Files, TrailFile},
    line::LineHash,
    walk,
};
use sereno_api::{AuditKind, AuditLine};
use sereno_core::{
    entry::EntryHash,
    ids::{LogId, Position},
};
use std::{fs, io, path::PathBuf, time::Instant};

/// Up to where events are recorded: a position and the number of the event in its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Covered {
    pub(super) position: u64,
    pub(super) event: u64,
}

impl Covered {
    /// Everything up to and with `position`.
    pub(super) fn through(position: u64) -> Self {
        Self { position, event: u64::MAX }
    }

    /// What a line says is covered.
    pub(super) fn by(line: &AuditLine) -> Self {
        match line.event {
            Some(event) => Self { position: line.position, event },
            None => Self::through(line.position),
        }
    }
}

/// The end of the trail.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// The file to go on in, and its length; `None`: there is none yet.
    pub(super) file: Option<(PathBuf, u64)>,
    pub(super) next_seq: u64,
    pub(super) hash: LineHash,
    pub(super) log_id: Option<LogId>,
    pub(super) covered: Covered,
    /// The last entry that it names by its hash.
    pub(super) entry: Option<(Position, EntryHash)>,
}

impl Tail {
    fn empty() -> Self {
        Self {
            file: None,
            next_seq: 1,
            hash: LineHash::ZERO,
            log_id: None,
            covered: Covered::default(),
            entry: None,
        }
    }
}

/// Verifies the trail and finds its end; cuts nothing yet.
pub(super) fn recover(files: &Files) -> Result<Tail, AuditError> {
    let mut list = at("the folder", files.list())?;
    let begun = Instant::now();
    while let Some(last) = list.pop() {
        let before = full_files(&list, &last)?;
        let bytes = at(&last.name(), fs::read(&last.path))?;
        match walk(&last, &bytes, before)? {
            Some(tail) => {
                let kept = tail.file.as_ref().map_or(0, |(_, length)| *length);
                warn_of_torn_end(&last, bytes.len() as u64 - kept);
                let (files, ms) = (list.len() + 1, begun.elapsed().as_millis());
                tracing::debug!(files, ms, "the audit trail is verified");
                return Ok(tail);
            }
            // Not one whole line: the process ended right after it had begun the file.
            None => {
                warn_of_torn_end(&last, bytes.len() as u64);
                at(&last.name(), files.remove(&last))?;
            }
        }
    }
    Ok(Tail::empty())
}

fn warn_of_torn_end(file: &TrailFile, bytes: u64) {
    if bytes > 0 {
        tracing::warn!(
            file = %file.name(),
            bytes,
            "the audit trail ends in a torn line, as a crash leaves it: it is cut, and written again from the log"
        );
    }
}

fn at<T>(folder: &str, result: io::Result<T>) -> Result<T, AuditError> {
    result.map_err(|error| AuditError::Storage { folder: folder.into(), error })
}

/// Verifies the files before `last`. They are full, and their ends are not torn, for each was synced before the next
/// one began. Gives the hash that the first line of `last` has to name.
fn full_files(full: &[TrailFile], last: &TrailFile) -> Result<Option<LineHash>, AuditError> {
    let damaged = |file: &TrailFile, line, what| {
        AuditError::Damaged(Finding { file: file.name(), line, what })
    };
    let (mut before, mut due) = (None, None);
    for file in full.iter().chain([last]) {
        if let Some(due) = due.filter(|due| *due != file.first) {
            let first = file.first;
            let what = format!("begins with line {first} where {due} was due: lines are missing");
            return Err(damaged(file, 0, what));
        }
        if file != last {
            let walked = at(&file.name(), walk::whole_file(file, before))?;
            let (hash, next) = walked.map_err(|at| damaged(file, at.line, at.what))?;
            (before, due) = (hash, Some(next));
        }
    }
    Ok(before)
}

fn walk(
    file: &TrailFile,
    bytes: &[u8],
    mut before: Option<LineHash>,
) -> Result<Option<Tail>, AuditError> {
    let mut tail = Tail { next_seq: file.first, ..Tail::empty() };
    for (number, (start, line)) in lines(bytes).enumerate() {
        match fits(line, tail.next_seq, before) {
            Ok((parsed, hash)) => {
                if parsed.kind == AuditKind::Log {
                    tail.log_id = parsed.log_id.as_deref().and_then(LogId::from_hex);
                }
                if let Some(hash) = parsed.entry_hash.as_deref().and_then(EntryHash::from_hex) {
                    tail.entry = Some((Position(parsed.position), hash));
                }
                tail.file = Some((file.path.clone(), (start + line.len() + 1) as u64));
                tail.covered = Covered::by(&parsed);
                tail.next_seq += 1;
                tail.hash = hash;
                before = Some(hash);
            }
            Err(Misfit::Torn(_)) if !has_whole_line(&bytes[start + line.len() + 1..]) => break,
            Err(misfit) => {
                let what = misfit.to_string();
                return Err(AuditError::Damaged(Finding {
                    file: file.name(),
                    line: number + 1,
                    what,
                }));
            }
        }
    }
    Ok(tail.file.is_some().then_some(tail))
}

/// Whole lines with the places where they begin; what follows the last line end is no line.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| {
        let line = (start, &bytes[start..end]);
        start = end + 1;
        line
    })
}

/// Why a line is not the one that is due.
#[derive(Debug, thiserror::Error)]
pub(super) enum Misfit {
    /// Not what was written: a crash, or damage.
    #[error("{0}")]
    Torn(String),
    /// Right by itself, and in the wrong place.
    #[error("{0}")]
    Misplaced(String),
}

/// Parses a line and checks it, its number and the hash it names.
pub(super) fn fits(
    line: &[u8],
    seq: u64,
    before: Option<LineHash>,
) -> Result<(AuditLine, LineHash), Misfit> {
    let torn = || Misfit::Torn("is not what was written: its check does not fit".into());
    let hash = LineHash::of_whole(line).ok_or_else(torn)?;
    let parsed: AuditLine = serde_json::from_slice(line)
        .map_err(|error| Misfit::Misplaced(format!("is not an audit line: {error}")))?;
    if parsed.seq != seq {
        return Err(Misfit::Misplaced(format!("has number {} where {seq} was due", parsed.seq)));
    }
    if before.is_some_and(|hash| hash.to_hex() != parsed.previous) {
        return Err(Misfit::Misplaced("names another line than stands before it".into()));
    }
    Ok((parsed, hash))
}

/// A crash writes nothing whole after what it has torn.
fn has_whole_line(bytes: &[u8]) -> bool {
    lines(bytes).any(|(_, line)| LineHash::of_whole(line).is_some())
}
