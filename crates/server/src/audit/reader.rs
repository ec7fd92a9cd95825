//! Reading lines back, for `GET /v1/audit` and `GET /v1/quota-ledger`. What is given out has been verified: its check,
//! its number, and that it names the line before it. A line of which that is not so is never given out, nor one that
//! follows it directly.

use super::{
    files::{self, TrailFile},
    line::LineHash,
    recovery, walk,
};
use sereno_api::AuditLine;
use std::{fs, io, path::Path};

/// Where a visit has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// There are no more lines.
    AtTheEnd,
    /// After the line that was enough, or after as many as were allowed.
    Before,
    /// The next line is damaged: how.
    Damaged(String),
}

/// Up to `limit` lines from number `from` on, or from the first one that is kept. Fewer where a damaged one follows:
/// asking on from there is the error that names it.
pub(super) fn read(folder: &Path, from: u64, limit: usize) -> Result<Vec<AuditLine>, String> {
    let mut found = Vec::new();
    let ended = visit(folder, from, limit, |line| {
        found.push(line);
        true
    })?;
    match ended {
        Ended::Damaged(damage) if found.is_empty() => Err(damage),
        _ => Ok(found),
    }
}

/// Goes over up to `limit` lines from number `from` on, or from the first one that is kept, while `each` wants more.
pub(super) fn visit(
    folder: &Path,
    from: u64,
    limit: usize,
    mut each: impl FnMut(AuditLine) -> bool,
) -> Result<Ended, String> {
    let files = files::list(folder).map_err(|error| error.to_string())?;
    let begin = files.partition_point(|file| file.first <= from).saturating_sub(1);
    let mut left = limit;
    for (index, file) in files.iter().enumerate().skip(begin) {
        if left == 0 {
            return Ok(Ended::Before);
        }
        let bytes = match fs::read(&file.path) {
            Ok(bytes) => bytes,
            // Removed for a newer one since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", file.name())),
        };
        let previous = index.checked_sub(1).map(|before| &files[before]);
        match part_of(file, &bytes, previous, from, &mut left, &mut each) {
            Ended::AtTheEnd => {}
            ended => return Ok(ended),
        }
    }
    Ok(Ended::AtTheEnd)
}

/// The lines of one file.
fn part_of(
    file: &TrailFile,
    bytes: &[u8],
    previous: Option<&TrailFile>,
    from: u64,
    left: &mut usize,
    each: &mut impl FnMut(AuditLine) -> bool,
) -> Ended {
    let skip = usize::try_from(from.saturating_sub(file.first)).unwrap_or(usize::MAX);
    let mut lines = recovery::lines(bytes).map(|(_, line)| line).enumerate();
    // Of the lines that are skipped only the last one matters: the first one given out names it.
    let before = match skip.checked_sub(1) {
        Some(last) => lines.nth(last).map(|(_, line)| LineHash::of_whole(line)),
        None => previous.and_then(|file| Some(LineHash::of_whole(&walk::last_line(file).ok()??))),
    };
    let mut before = match before {
        Some(None) => {
            let what = "the line before the one asked for is not what was written";
            return Ended::Damaged(format!("{} {what}", file.name()));
        }
        Some(hash) => hash,
        None => None,
    };
    for (index, line) in lines {
        if *left == 0 {
            return Ended::Before;
        }
        match recovery::fits(line, file.first + index as u64, before) {
            Ok((line, hash)) => {
                before = Some(hash);
                *left -= 1;
                if !each(line) {
                    return Ended::Before;
                }
            }
            Err(misfit) => {
                return Ended::Damaged(format!("{} line {} {misfit}", file.name(), index + 1));
            }
        }
    }
    Ended::AtTheEnd
}
