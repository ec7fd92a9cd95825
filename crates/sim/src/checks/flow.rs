//! Cluster time (DESIGN.md section 3; S8 and L1 rest on it): it runs as real time does, within what clocks may be off,
//! loses only what the clamp cuts off, and an announce adds none.

use crate::clock::Real;
use sereno_core::{
    entry::{Body, Entry},
    ids::ClusterTime,
};

/// What one entry may add to cluster time at most.
const MAX_STEP_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// When the newest entry was stamped.
    stamped_at: Real,
    /// Real and cluster time since the present leader's announce.
    reign_ns: u64,
    reign_passed_ms: u64,
}

impl Flow {
    /// An entry that was stamped at `sent_at` follows on one of this time.
    pub(crate) fn entry(&mut self, entry: &Entry, sent_at: Real, before: ClusterTime) {
        let is_announce = matches!(entry.body, Body::Announce(_));
        let passed_ms = before.until(entry.time);
        assert!(
            passed_ms == 0 || !is_announce,
            "S8: an announce adds nothing to cluster time: {passed_ms} ms at {}",
            entry.position
        );
        let gap_ns = sent_at.saturating_sub(self.stamped_at);
        self.stamped_at = sent_at;
        if is_announce {
            (self.reign_ns, self.reign_passed_ms) = (0, 0);
            return;
        }
        self.reign_ns += gap_ns.min(MAX_STEP_NS);
        self.reign_passed_ms += passed_ms;
        let (passed_ns, real_ns) = (self.reign_passed_ms * 1_000_000, self.reign_ns);
        assert!(
            passed_ns <= real_ns + real_ns / 100,
            "S8: cluster time runs no faster than real time: {passed_ns} ns in {real_ns} ns at {}",
            entry.position
        );
        assert!(
            passed_ns + real_ns / 100 + 2_000_000 >= real_ns,
            "L1: cluster time flows: {passed_ns} ns in {real_ns} ns at {}",
            entry.position
        );
    }
}
