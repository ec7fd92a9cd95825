//! Verifying a trail by itself: every line, its number, the chain from file to file, and that the books of quotas go on
//! from line to line.

use super::{books::Books, files, line::LineHash, recovery};
use sereno_api::AuditKind;
use std::{fmt, io, path::Path};

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// The line in it, from 1; 0: the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{} {}", self.file, self.what),
            line => write!(f, "{} line {line} {}", self.file, self.what),
        }
    }
}

/// What a verification has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Files looked at.
    pub files: usize,
    /// Whole lines.
    pub lines: u64,
    /// Number of the first and the last line.
    pub range: Option<(u64, u64)>,
    /// Positions that the trail itself says are missing, from and to.
    pub gaps: Vec<(u64, u64)>,
    /// Bytes after the last line end: a torn tail, which the next start cuts.
    pub torn_bytes: u64,
    /// What is damaged. Empty: the trail is whole.
    pub findings: Vec<Finding>,
}

/// Verifies all files in `folder`. One that is not there is an empty trail.
///
/// # Errors
/// When a file cannot be read: then nothing is known about it.
pub fn verify(folder: &Path) -> io::Result<Verdict> {
    let mut verdict = Verdict::default();
    let files = files::list_if_any(folder)?;
    let mut books = Books::default();
    let mut before = None;
    let mut due = None;
    for (index, file) in files.iter().enumerate() {
        verdict.files += 1;
        let bytes = file.read()?;
        let mut finding = |line, what| {
            verdict.findings.push(Finding { file: file.name(), line, what });
        };
        if due.is_some_and(|due| due != file.first) {
            finding(0, format!("begins with line {}; a file is missing before it", file.first));
            books.forget();
        }
        let mut seq = file.first;
        for (number, (_, line)) in recovery::lines(&bytes).enumerate() {
            match recovery::fits(line, seq, before) {
                Ok((parsed, hash)) => {
                    before = Some(hash);
                    if let Err(what) = books.take(&parsed) {
                        finding(number + 1, what);
                    }
                    let first = verdict.range.map_or(seq, |(first, _)| first);
                    verdict.range = Some((first, seq));
                    if let (AuditKind::Gap, Some(from)) = (parsed.kind, parsed.gap_from) {
                        verdict.gaps.push((from, parsed.position));
                    }
                }
                Err(misfit) => {
                    finding(number + 1, misfit.to_string());
                    books.forget();
                    before = LineHash::of_whole(line);
                }
            }
            verdict.lines += 1;
            seq += 1;
        }
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let torn = bytes.len() - whole;
        if torn > 0 && index + 1 < files.len() {
            verdict.findings.push(Finding {
                file: file.name(),
                line: 0,
                what: format!("ends with {torn} bytes that are no line"),
            });
        } else {
            verdict.torn_bytes = torn as u64;
        }
        due = Some(seq);
    }
    Ok(verdict)
}
