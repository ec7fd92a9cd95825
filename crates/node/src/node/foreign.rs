//! What an operator is told when the log is not the one that this node knows: which positions, and what to do.

use crate::events::Unfit;
use sereno_core::{Misfit, entry::Head};

/// The way out where nodes share the log.
const SHARED: &str = "Nothing is served from here until somebody has looked. Stop all nodes of this log, and go on as \
                      docs/cluster.md says under \"When etcd was set back\"";

/// An append met an end of the log that this node was beyond already: its store was put back, or emptied.
pub(super) fn set_back(ours: &Head, theirs: &Head) -> String {
    let (known, now) = (ours.position, theirs.position);
    let what = if *theirs == Head::EMPTY {
        format!("the log {} is gone: this node has applied it up to position {known}", ours.log_id)
    } else if *ours != Head::EMPTY && ours.log_id != theirs.log_id {
        return another_log(ours, theirs);
    } else if now < known {
        format!(
            "the log was set back: this node has applied it up to position {known}, and it ends at position {now}. What \
             was granted in between may be granted again"
        )
    } else {
        format!(
            "the log was set back and has gone on differently: its entry {now} is not the one that this node has applied. \
             What was granted since then may be granted again"
        )
    };
    format!("{what}. {SHARED}")
}

/// What stands under the log's name now belongs to a log with another identity.
pub(super) fn another_log(ours: &Head, theirs: &Head) -> String {
    format!(
        "this is another log: this node has applied the log {} up to position {}, and what is there now is the log {}, at \
         position {}. {SHARED}",
        ours.log_id, ours.position, theirs.log_id, theirs.position
    )
}

/// An entry that this node reads does not go on from what it has applied.
pub(super) fn does_not_follow(ours: &Head, unfit: &Unfit) -> String {
    match unfit {
        Unfit::Misfit(Misfit::Chain { position, .. }) => format!(
            "the log was set back and has gone on differently, or is damaged: its entry {position} does not follow on the \
             entry {} that this node has applied. {SHARED}",
            ours.position
        ),
        unfit => unfit.to_string(),
    }
}

/// A log of one machine has moved, and not by this node.
pub(super) fn written_to(ours: &Head, theirs: &Head) -> String {
    format!(
        "the log was written by somebody else: this node has written it up to position {}, and it ends at position {}. A \
         data folder belongs to one service: see to it that no other one, and nothing that copies files, uses this one, and \
         look at it with `sereno doctor`",
        ours.position, theirs.position
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::{
        entry::EntryHash,
        ids::{Epoch, LogId, Position},
    };

    fn head(log: u8, position: u64) -> Head {
        let hash = EntryHash([position as u8; 32]);
        Head { log_id: LogId([log; 16]), position: Position(position), epoch: Epoch(1), hash }
    }

    /// Positions and a way out, in words: nothing that only a programmer can read.
    fn check(message: &str, has: &[&str]) {
        for part in has {
            assert!(message.contains(part), "{part:?} in {message}");
        }
        for debug in ["Head", "LogId(", "{", "}", "hash"] {
            assert!(!message.contains(debug), "{debug:?} in {message}");
        }
    }

    #[test]
    fn whoever_reads_it_learns_what_has_happened_and_what_to_do() {
        let (ours, way_out) = (head(7, 120), "docs/cluster.md");
        check(&set_back(&ours, &head(7, 80)), &["set back", "120", "position 80", way_out]);
        let differs = Head { hash: EntryHash::ZERO, ..ours };
        check(&set_back(&ours, &differs), &["gone on differently", "entry 120", way_out]);
        check(&set_back(&ours, &Head::EMPTY), &["is gone", "120", way_out]);
        check(&set_back(&ours, &head(8, 300)), &["another log", "120", "300", way_out]);
        check(&another_log(&ours, &head(8, 3)), &[&"07".repeat(16), &"08".repeat(16), way_out]);
        check(&written_to(&ours, &head(7, 121)), &["somebody else", "120", "121", "doctor"]);
        let (due, found) = (ours.hash, EntryHash::ZERO);
        let chain = Unfit::Misfit(Misfit::Chain { position: Position(121), due, found });
        check(&does_not_follow(&ours, &chain), &["entry 121", "entry 120", way_out]);
    }
}
