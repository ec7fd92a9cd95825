//! Reading lines back, for `GET /v1/audit`. What is given out has been verified: its check, its number, and that it
//! names the line before it. A line of which that is not so is never given out, nor one that follows it directly.

use super::{
    files::{self, TrailFile},
    line::LineHash,
    recovery, walk,
};
use sereno_api::AuditLine;
use std::{fs, io, path::Path};

/// Up to `limit` lines from number `from` on, or from the first one that is kept. Fewer where a damaged one follows:
/// asking on from there is the error that names it.
pub(super) fn read(folder: &Path, from: u64, limit: usize) -> Result<Vec<AuditLine>, String> {
    let files = files::list(folder).map_err(|error| error.to_string())?;
    let begin = files.partition_point(|file| file.first <= from).saturating_sub(1);
    let mut found = Vec::new();
    for (index, file) in files.iter().enumerate().skip(begin) {
        let bytes = match fs::read(&file.path) {
            Ok(bytes) => bytes,
            // Removed for a newer one since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", file.name())),
        };
        let left = limit - found.len();
        match part_of(file, &bytes, index.checked_sub(1).map(|before| &files[before]), from, left) {
            (lines, None) => found.extend(lines),
            (lines, Some(_)) if !(found.is_empty() && lines.is_empty()) => {
                found.extend(lines);
                break;
            }
            (_, Some(damage)) => return Err(damage),
        }
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}

/// The lines of one file up to the first one that is damaged, and what is wrong with that.
fn part_of(
    file: &TrailFile,
    bytes: &[u8],
    previous: Option<&TrailFile>,
    from: u64,
    limit: usize,
) -> (Vec<AuditLine>, Option<String>) {
    let mut found = Vec::new();
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
            return (found, Some(format!("{} {what}", file.name())));
        }
        Some(hash) => hash,
        None => None,
    };
    for (index, line) in lines.take(limit) {
        match recovery::fits(line, file.first + index as u64, before) {
            Ok((line, hash)) => {
                found.push(line);
                before = Some(hash);
            }
            Err(misfit) => {
                return (found, Some(format!("{} line {} {misfit}", file.name(), index + 1)));
            }
        }
    }
    (found, None)
}
