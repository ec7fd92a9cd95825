//! Section 7: while a node's state and its log disagree, nothing is trimmed on any node.

use sereno_core::State;

/// A node trims, on this state.
pub(crate) fn trims(node: usize, state: &State) {
    assert!(!state.is_trim_held(), "kept: n{node} trims a log that is to be kept whole");
}

/// Two replays have differed on some node, and all else has been well for a while.
pub(crate) fn is_told(log: &State) {
    assert!(
        log.is_trim_held(),
        "kept: all are told to trim nothing where a node disagrees with its log"
    );
}
