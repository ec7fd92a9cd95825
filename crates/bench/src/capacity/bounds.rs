//! What is asked of the two long phases, and of the takeover between them.

use super::{Did, TAKEOVER};
use crate::{
    report::Bound,
    stats::{Board, Operation},
};

/// Acquire p99 while all is well, in ms.
const STEADY_MS: f64 = 50.0;
/// With a node and a member of etcd gone.
pub(super) const DEGRADED_MS: f64 = 200.0;
/// Of the commands offered, so many are applied within the phase: some are answered just after it, and for 3 % of the
/// releases there is no lease (2 % of acquires are cancelled, 1 % of holders die).
const APPLIED: f64 = 0.97;
/// Of the releases offered, so many may find no lease to release: the 3 % of above, with room for chance.
const UNRELEASED: f64 = 0.05;
/// Refusals for which the service is to blame, or the want of room in it; the others are the load's own (a held name, a
/// wait that timed out).
const TURNED_AWAY: [&str; 6] =
    ["OVERLOADED", "UNAVAILABLE", "NOT_CONNECTED", "QUEUE_FULL", "LIMIT_REACHED", "UNRECOGNISED"];

/// A long phase: what its callers saw, and what the processes did meanwhile.
pub(super) struct Long<'a> {
    pub name: &'static str,
    pub board: &'a Board,
    pub did: &'a Did,
    pub seconds: u64,
    /// Commands a second.
    pub offered: f64,
}

/// All of them. `lost`: leases that a renewal did not renew, in the whole run.
pub(super) fn bounds(
    steady: &Long<'_>,
    degraded: &Long<'_>,
    takeover_seconds: u64,
    lost: u64,
) -> Vec<Bound> {
    let mut bounds = of_phase(steady, STEADY_MS);
    bounds.push(Bound::at_most("steady: skipped", skipped(steady.board) as f64, 0.0));
    let (takeover, limit) = (takeover_seconds as f64, TAKEOVER.as_secs_f64());
    bounds.push(Bound::at_most("takeover with its backlog, s", takeover, limit));
    bounds.extend(of_phase(degraded, DEGRADED_MS));
    bounds.push(Bound::at_most("leases lost, all phases", lost as f64, 0.0));
    bounds
}

fn of_phase(long: &Long<'_>, p99_ms: f64) -> Vec<Bound> {
    let Long { name, board, did, seconds, offered } = long;
    let p99 = board.of(Operation::Acquire).latency.percentiles().p99_us as f64 / 1e3;
    let applied = did.work.commands as f64 / (*seconds).max(1) as f64;
    let of = |what: &str| format!("{name}: {what}");
    vec![
        Bound::at_most(of("dropped or unknown"), unanswered(board) as f64, 0.0),
        Bound::at_most(of("turned away"), turned_away(board) as f64, 0.0),
        Bound::below(of("acquire p99, ms"), p99, p99_ms),
        Bound::at_least(of("commands applied a second"), applied, (offered * APPLIED).round()),
        Bound::at_least(
            of("snapshots, trims, compacted keys: the rarest"),
            did.work.rarest() as f64,
            1.0,
        ),
    ]
}

fn unanswered(board: &Board) -> u64 {
    board.occurred().map(|(_, figures)| figures.dropped + figures.unknown).sum()
}

fn turned_away(board: &Board) -> u64 {
    let refused = board.occurred().flat_map(|(_, figures)| &figures.refused);
    refused.filter(|(code, _)| TURNED_AWAY.contains(code)).map(|(_, count)| count).sum()
}

/// Calls for which the load had nothing to send, beyond the releases that it cannot have by its own design.
fn skipped(board: &Board) -> u64 {
    let of = |operation, figures: &crate::stats::Figures| match operation {
        Operation::Release => {
            figures.skipped.saturating_sub((figures.offered as f64 * UNRELEASED) as u64)
        }
        _ => figures.skipped,
    };
    board.occurred().map(|(operation, figures)| of(operation, figures)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{stats::Verdict, zones::Work};
    use std::time::Duration;

    /// A hundred acquires of so many ms, and one call more that ended otherwise.
    fn board(millis: u64, operation: Operation, other: Option<Verdict>) -> Board {
        let mut board = Board::default();
        let figures = board.of_mut(Operation::Acquire);
        figures.offered = 100;
        (0..100).for_each(|_| figures.count(Verdict::Done, Duration::from_millis(millis)));
        if let Some(verdict) = other {
            let figures = board.of_mut(operation);
            figures.offered += 1;
            figures.count(verdict, Duration::ZERO);
        }
        board
    }

    fn did(commands: u64, snapshots: u64) -> Did {
        let work = Work { commands, snapshots, trims: 2, compacted_keys: 3, ..Work::default() };
        Did { work, ..Did::default() }
    }

    fn missed(
        steady: (&Board, &Did),
        degraded: (&Board, &Did),
        felt: u64,
        lost: u64,
    ) -> Vec<String> {
        let long = |name, (board, did)| Long { name, board, did, seconds: 10, offered: 100.0 };
        let bounds = bounds(&long("steady", steady), &long("degraded", degraded), felt, lost);
        assert_eq!(bounds.len(), 13, "every one is there: {bounds:?}");
        bounds.into_iter().filter(|bound| !bound.met).map(|bound| bound.what).collect()
    }

    #[test]
    fn latency_and_the_takeover() {
        let (did, acquire) = (did(970, 1), Operation::Acquire);
        let [calm, slow, slowest] = [49, 199, 201].map(|millis| board(millis, acquire, None));
        assert!(missed((&calm, &did), (&slow, &did), 10, 0).is_empty());
        let wanted = ["steady: acquire p99, ms", "takeover with its backlog, s"];
        assert_eq!(missed((&slow, &did), (&calm, &did), 11, 0), wanted);
        assert_eq!(missed((&calm, &did), (&slowest, &did), 0, 0), ["degraded: acquire p99, ms"]);
    }

    #[test]
    fn whoever_is_not_served_counts_in_either_phase() {
        let did = did(970, 1);
        let calm = board(1, Operation::Acquire, None);
        let cases = [
            (Verdict::Dropped, "dropped or unknown"),
            (Verdict::Unknown, "dropped or unknown"),
            (Verdict::Refused("OVERLOADED"), "turned away"),
            (Verdict::Refused("UNAVAILABLE"), "turned away"),
            (Verdict::Refused("NOT_CONNECTED"), "turned away"),
        ];
        for (verdict, what) in cases {
            for operation in [Operation::Acquire, Operation::Renew, Operation::Release] {
                let found = board(1, operation, Some(verdict));
                assert_eq!(
                    missed((&found, &did), (&calm, &did), 0, 0),
                    [format!("steady: {what}")]
                );
                assert_eq!(
                    missed((&calm, &did), (&found, &did), 0, 0),
                    [format!("degraded: {what}")]
                );
            }
        }
        let locked = board(1, Operation::Acquire, Some(Verdict::Refused("LOCKED")));
        assert!(missed((&locked, &did), (&locked, &did), 0, 0).is_empty(), "the load's own");
        assert_eq!(missed((&calm, &did), (&calm, &did), 0, 1), ["leases lost, all phases"]);
    }

    #[test]
    fn a_load_that_was_not_sent_is_no_load() {
        let did = did(970, 1);
        let calm = board(1, Operation::Acquire, None);
        let renewal = board(1, Operation::Renew, Some(Verdict::Skipped));
        assert_eq!(missed((&renewal, &did), (&calm, &did), 0, 0), ["steady: skipped"]);
        let releases = |skipped| {
            let mut board = board(1, Operation::Acquire, None);
            let figures = board.of_mut(Operation::Release);
            (figures.offered, figures.skipped, figures.done) = (100, skipped, 100 - skipped);
            board
        };
        assert!(missed((&releases(5), &did), (&calm, &did), 0, 0).is_empty(), "the dead, given up");
        assert_eq!(missed((&releases(6), &did), (&calm, &did), 0, 0), ["steady: skipped"]);
    }

    #[test]
    fn what_was_not_done_is_not_met() {
        let calm = board(1, Operation::Acquire, None);
        let (all, few, idle) = (did(970, 1), did(969, 1), did(970, 0));
        assert_eq!(
            missed((&calm, &few), (&calm, &idle), 0, 0),
            [
                "steady: commands applied a second",
                "degraded: snapshots, trims, compacted keys: the rarest"
            ]
        );
        assert!(missed((&calm, &all), (&calm, &all), 0, 0).is_empty());
    }
}
