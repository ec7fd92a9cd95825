//! What a count would come to if it was reported and compensated: the service's rules, worked out beside it, for a look
//! that writes nothing.

use crate::quota::node::Node;
use sereno_client::api::QuotaNodeRead;

/// What one count comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weighed {
    /// What of the difference reservations in flight may be.
    pub explained: u64,
    /// The rest.
    pub drift: i64,
    /// By so much it would be changed.
    pub change: i64,
    /// It takes another count that says the same.
    pub waits_for_another: bool,
}

/// Counts so far, the deepest nodes first: what is changed below a node explains what differs at it.
#[derive(Debug, Default)]
pub(super) struct Weighing {
    changes: Vec<(Node, i64)>,
}

impl Weighing {
    /// `before`: what the report just before this one came to, where two have to agree.
    pub(super) fn weigh(
        &mut self,
        read: &QuotaNodeRead,
        observed: u64,
        before: Option<i64>,
    ) -> Weighed {
        let node = &read.node;
        let at = Node::of(&node.quota, &node.path);
        let then = node.committed;
        let (explained, drift) = drift_of(observed, then, then, node.reserved);
        let now = then.saturating_add_signed(self.below(&at));
        let (_, left) = drift_of(observed, then, now, node.reserved);
        let left = smaller(left, drift);
        let change = before.map_or(left, |before| smaller(left, before));
        self.changes.push((at, change));
        Weighed { explained, drift, change, waits_for_another: left != 0 && change == 0 }
    }

    /// What is changed below this node.
    fn below(&self, top: &Node) -> i64 {
        let is_below = |node: &Node| node != top && node.layers().contains(top);
        self.changes.iter().filter(|(node, _)| is_below(node)).map(|(_, change)| change).sum()
    }
}

/// What the report before this one came to; 0: there is none.
pub(super) fn drift_before(read: &QuotaNodeRead, reporter: &str, epoch: u64) -> i64 {
    let last = read.reports.iter().find(|last| last.reporter == reporter);
    last.filter(|last| last.epoch + 1 == epoch).map_or(0, |last| last.drift.drift)
}

/// What two figures have in common: nothing where their signs differ.
fn smaller(one: i64, other: i64) -> i64 {
    match one.signum() == other.signum() {
        true => one.signum() * one.abs().min(other.abs()),
        false => 0,
    }
}

/// What of a difference is explained, and the rest: as the service reckons.
fn drift_of(observed: u64, then: u64, now: u64, reserved: u64) -> (u64, i64) {
    let (more, less) = (observed.saturating_sub(then), then.saturating_sub(observed));
    let since = (now.saturating_sub(then), then.saturating_sub(now));
    let explained = more.min(reserved + since.0) + less.min(since.1);
    let rest = i64::try_from(more + less - explained).unwrap_or(i64::MAX);
    (explained, if less > 0 { -rest } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(path: &str, committed: u64, reserved: u64, last: Option<(u64, i64)>) -> QuotaNodeRead {
        let node = json!({
            "quota": "gpu", "path": path, "limit": 64, "burst": 0, "guaranteed": 0, "weight": 1, "version": 1,
            "updatedAgoMs": 0, "updatedInRevision": 1, "committed": committed, "reserved": reserved,
            "directCommitted": 0, "directReserved": 0, "available": 0, "debt": 0, "effectiveGuaranteed": 0,
            "waiters": 0, "sweepPending": false,
        });
        let report = |(epoch, drift): (u64, i64)| {
            json!({"reporter": "csv", "epoch": epoch, "ageMs": 1, "compensated": false, "drift": {
                "observed": 0, "committedThen": 0, "explained": 0, "drift": drift, "inARow": 1,
            }})
        };
        let reports: Vec<_> = last.map(report).into_iter().collect();
        let read = json!({
            "node": node, "owners": [], "reports": reports, "shares": [], "revision": 1, "clusterTimeMs": 1,
            "ageMs": 0,
        });
        serde_json::from_value(read).unwrap()
    }

    fn at_once(read: &QuotaNodeRead, observed: u64) -> Weighed {
        Weighing::default().weigh(read, observed, None)
    }

    #[test]
    fn what_is_in_flight_explains_more_use_and_not_less() {
        let read = read("", 10, 5, None);
        let of = |observed| {
            let it = at_once(&read, observed);
            (it.explained, it.drift, it.change)
        };
        assert_eq!(of(10), (0, 0, 0));
        assert_eq!(of(15), (5, 0, 0));
        assert_eq!(of(17), (5, 2, 2));
        assert_eq!(of(7), (0, -3, -3));
    }

    #[test]
    fn two_reports_in_a_row_have_to_agree() {
        for (last, epoch, change) in [
            (None, 1, 0),
            (Some((1, 3)), 2, 3),
            (Some((1, 9)), 2, 4),
            (Some((1, -3)), 2, 0),
            (Some((1, 3)), 5, 0),
        ] {
            let read = read("", 10, 0, last);
            let before = drift_before(&read, "csv", epoch);
            let it = Weighing::default().weigh(&read, 14, Some(before));
            assert_eq!((it.drift, it.change), (4, change), "{last:?} {epoch}");
            assert_eq!(it.waits_for_another, change == 0);
        }
        assert_eq!(drift_before(&read("", 10, 0, Some((1, 3))), "somebody else", 2), 0);
    }

    #[test]
    fn what_is_set_right_below_is_not_set_right_again_above() {
        let mut weighing = Weighing::default();
        assert_eq!(weighing.weigh(&read("acme", 4, 0, None), 7, None).change, 3);
        let root = weighing.weigh(&read("", 10, 0, None), 14, None);
        assert_eq!((root.drift, root.change), (4, 1));
        // Below is not above, nor beside.
        assert_eq!(weighing.weigh(&read("acme/vision", 2, 0, None), 3, None).change, 1);
        assert_eq!(weighing.weigh(&read("acmeco", 2, 0, None), 3, None).change, 1);
    }
}
