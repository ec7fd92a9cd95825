//! Reading lines back, for `GET /v1/audit`.

use super::files;
use sereno_api::AuditLine;
use std::{fs, path::Path};

/// Up to `limit` lines from number `from` on, or from the first one that is kept.
pub(super) fn read(folder: &Path, from: u64, limit: usize) -> Result<Vec<AuditLine>, String> {
    let files = files::list(folder).map_err(|error| error.to_string())?;
    let begin = files.partition_point(|file| file.first <= from).saturating_sub(1);
    let mut found = Vec::new();
    for file in &files[begin..] {
        let bytes = match fs::read(&file.path) {
            Ok(bytes) => bytes,
            // Removed for a newer one since it was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", file.name())),
        };
        let skip = usize::try_from(from.saturating_sub(file.first)).unwrap_or(usize::MAX);
        for (_, line) in super::recovery::lines(&bytes).skip(skip).take(limit - found.len()) {
            let line = serde_json::from_slice(line);
            found.push(line.map_err(|error| format!("{}: {error}", file.name()))?);
        }
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}
