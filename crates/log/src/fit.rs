//! What every engine refuses before it looks at its store: an entry that cannot follow the head that its own
//! caller names, and a snapshot of something else.

use crate::{LogError, Snapshot};
use sereno_core::entry::{EntryHash, Head, SealedEntry};

/// Why `entry` cannot stand after `expected`, whatever the log holds. A caller that sends such a thing has a
/// defect, or a bit has flipped since the entry was sealed: stored, it could never be read again.
pub(crate) fn misfit(expected: &Head, entry: &SealedEntry) -> Option<String> {
    let head = &entry.head;
    if head.position != expected.position.next() {
        return Some(format!(
            "the entry for position {} cannot follow position {}",
            head.position, expected.position
        ));
    }
    if *expected != Head::EMPTY && head.log_id != expected.log_id {
        return Some(format!(
            "the entry is meant for log {}, the head is of log {}",
            head.log_id, expected.log_id
        ));
    }
    if EntryHash::of(&entry.bytes) != head.hash {
        return Some(format!("the bytes of entry {} do not have its hash", head.position));
    }
    None
}

/// Why `snapshot` cannot be saved into a log with this head whose newest snapshot is `latest`. The caller
/// still has to compare it with the entry at its position, if that is there.
pub(crate) fn unfit_snapshot(
    log: &Head,
    latest: Option<&Head>,
    snapshot: &Snapshot,
) -> Result<(), LogError> {
    let head = &snapshot.head;
    let refuse = |why: String| {
        Err(LogError::Refused(format!("the snapshot of position {} {why}", head.position)))
    };
    if head.position > log.position || *log == Head::EMPTY {
        return refuse(format!("lies beyond the head, {}", log.position));
    }
    if head.position.0 == 0 {
        return refuse("has nothing in it".into());
    }
    if head.log_id != log.log_id {
        return refuse(format!("is of log {}, not of {}", head.log_id, log.log_id));
    }
    if head.position == log.position && head != log {
        return refuse("has another head than the log there".into());
    }
    match latest {
        Some(latest) if head.position < latest.position => {
            refuse(format!("is older than the latest, {}", latest.position))
        }
        Some(latest) if head.position == latest.position && head != latest => {
            refuse("has another head than the one saved for that position".into())
        }
        _ => Ok(()),
    }
}
