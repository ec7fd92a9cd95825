//! Looking for lines about quotas, for `GET /v1/quota-ledger`. One call looks at a bounded number of lines; the page
//! says where to go on.

use super::{
    files::{self, TrailFile},
    reader::{Ended, visit},
};
use crate::time::rfc3339;
use sereno_api::{AuditLine, LedgerEntry, LedgerPage};
use sereno_core::limits::PAGE_EXAMINED_MAX;
use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

/// Times come from the leader's wall clock: after a takeover they may be behind those before it, by a minute at most.
const SLACK_MS: u64 = 120_000;
/// So far into a file is looked for its first time: checkpoints have none.
const UNDATED_MAX: usize = 1_000;

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// In this namespace.
    pub(crate) namespace: String,
    /// About this quota.
    pub(crate) quota: Option<String>,
    /// About this node, or one below it.
    pub(crate) path: Option<String>,
    /// Of this owner.
    pub(crate) owner: Option<String>,
    /// Not before this time, in milliseconds since 1970.
    pub(crate) since_ms: Option<u64>,
    /// Before this time.
    pub(crate) until_ms: Option<u64>,
    /// From the line with this number on.
    pub(crate) from: u64,
    /// So many at most.
    pub(crate) limit: usize,
}

/// Looks for it in `folder`.
///
/// # Errors
/// When a file cannot be read, or the very first line is damaged.
pub(super) fn search(folder: &Path, search: &Search) -> Result<LedgerPage, String> {
    let since = search.since_ms.map(rfc3339);
    let until = search.until_ms.map(rfc3339);
    let end = search.until_ms.map(|until| rfc3339(until.saturating_add(SLACK_MS)));
    let from = match search.since_ms {
        Some(since) => begin(folder, search.from, since)?,
        None => search.from,
    };
    let mut page = LedgerPage { lines: Vec::new(), next_from: from, complete: false };
    let (mut examined, mut is_over) = (0, false);
    let ended = visit(folder, from, PAGE_EXAMINED_MAX, |line| {
        let is_after = |bound: &Option<String>| {
            let time = line.time.as_deref();
            time.is_some_and(|time| bound.as_deref().is_some_and(|bound| time >= bound))
        };
        if is_after(&end) {
            is_over = true;
            return false;
        }
        examined += 1;
        page.next_from = line.seq + 1;
        let is_in_time = (since.is_none() || is_after(&since)) && !is_after(&until);
        if is_in_time && search.is_for(&line) {
            page.lines.push(line);
        }
        page.lines.len() < search.limit
    })?;
    match ended {
        Ended::Damaged(damage) if examined == 0 => return Err(damage),
        Ended::Damaged(_) => {}
        Ended::AtTheEnd => page.complete = true,
        Ended::Before => page.complete = is_over,
    }
    Ok(page)
}

impl Search {
    fn is_for(&self, line: &AuditLine) -> bool {
        let Some(entry) = &line.quota else { return false };
        line.namespace.as_deref() == Some(&self.namespace)
            && (self.owner.is_none() || line.owner == self.owner)
            && self.is_about(entry)
    }

    fn is_about(&self, entry: &LedgerEntry) -> bool {
        if self.quota.is_none() && self.path.is_none() {
            return true;
        }
        let lines = entry.lines.iter().map(|line| (&line.quota, &line.path));
        let node = entry.node.iter().map(|node| (&node.quota, &node.path));
        lines.chain(node).any(|(quota, path)| {
            self.quota.as_ref().is_none_or(|only| only == quota)
                && self.path.as_deref().is_none_or(|above| is_within(path, above))
        })
    }
}

fn is_within(path: &str, above: &str) -> bool {
    match path.strip_prefix(above) {
        Some(rest) => above.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// The number of a line from which on nothing is missed that is not older than `since_ms`: that of the last file that
/// begins before.
fn begin(folder: &Path, from: u64, since_ms: u64) -> Result<u64, String> {
    let files = files::list(folder).map_err(|error| error.to_string())?;
    let since = rfc3339(since_ms.saturating_sub(SLACK_MS));
    let is_before = |file: &&TrailFile| first_time(file).is_some_and(|time| time < since);
    let last = files.iter().rev().find(is_before);
    Ok(last.map_or(from, |file| from.max(file.first)))
}

/// The time of the first line in a file that has one; `None` where none has, or it cannot be read: whoever reads it
/// all will say so.
fn first_time(file: &TrailFile) -> Option<String> {
    let lines = BufReader::new(File::open(&file.path).ok()?).lines().take(UNDATED_MAX);
    lines.map_while(Result::ok).find_map(|line| serde_json::from_str::<AuditLine>(&line).ok()?.time)
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn a_path_is_within_itself_and_those_above_it() {
        for above in ["", "acme", "acme/vision"] {
            assert!(is_within("acme/vision", above), "{above}");
        }
        for other in ["acm", "acme/vis", "acme/vision/anna", "vision"] {
            assert!(!is_within("acme/vision", other), "{other}");
        }
        assert!(is_within("", "") && !is_within("", "acme"));
    }
}
