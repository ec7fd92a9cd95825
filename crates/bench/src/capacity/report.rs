//! What `capacity` writes.

use super::{CapacityArgs, Did, TAKEOVER, fault_at};
use crate::{
    open::{Found, PhaseReport},
    process::Scheduled,
    report::{Bound, Machine, write_board, write_bounds},
    stats::{Board, Operation, Percentiles, Point, Timeline},
    zones::Work,
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Acquire p99 while all is well, in ms.
const STEADY_MS: f64 = 50.0;
/// With a node and a member of etcd gone.
const DEGRADED_MS: f64 = 200.0;

/// The result of `capacity`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReport {
    /// `capacity`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// The machine's load at the end.
    pub load_after: f64,
    /// Steady, takeover, degraded.
    pub phases: Vec<PhaseReport>,
    /// What nodes and etcd did in the steady and in the degraded phase.
    pub did: [Did; 2],
    /// Commits offered a second: acquires, releases and renewed leases.
    pub commits_per_second: f64,
    /// From the kill until no second had an acquire p99 of 200 ms any more.
    pub takeover_seconds: u64,
    /// Leases that a renewal did not renew, by code.
    pub lost_leases: BTreeMap<&'static str, u64>,
    /// From the intended start to the sending: how late the generator itself was.
    pub generator_lag: Percentiles,
    /// CPU time of the generator, in cores.
    pub generator_cores: f64,
    /// What is asked for.
    pub bounds: Vec<Bound>,
    /// All of it.
    pub met: bool,
    /// Latency by second of intended start, warm-up included.
    pub timeline: Timeline,
}

impl CapacityReport {
    pub(super) fn new(machine: Machine, args: &CapacityArgs, found: Found, did: [Did; 2]) -> Self {
        let points = found.timeline.points(Operation::Acquire);
        let takeover_seconds = until_calm(&points, fault_at(args.seconds).as_secs());
        let board = |index: usize| found.phases.get(index).map(|phase| &phase.operations);
        let bounds = bounds(board(0), board(2), takeover_seconds);
        Self {
            command: "capacity",
            machine,
            load_after: Machine::look().load_before,
            commits_per_second: (2.0 * args.acquires + args.active as f64 / 10.0).round(),
            takeover_seconds,
            did,
            lost_leases: found.lost,
            generator_lag: found.lag,
            generator_cores: found.generator_cores,
            met: bounds.iter().all(|bound| bound.met),
            bounds,
            phases: found.phases,
            timeline: found.timeline,
        }
    }
}

/// Seconds from the fault to the end of the last one, within the takeover's phase, that callers felt.
fn until_calm(points: &[Point], fault: u64) -> u64 {
    let slow = |point: &&Point| point.latency.p99_us as f64 / 1e3 >= DEGRADED_MS;
    let phase = fault..fault + TAKEOVER.as_secs();
    let last = points.iter().filter(|point| phase.contains(&point.second)).rfind(slow);
    last.map_or(0, |point| point.second + 1 - fault)
}

fn bounds(steady: Option<&Board>, degraded: Option<&Board>, takeover_seconds: u64) -> Vec<Bound> {
    let (Some(steady), Some(degraded)) = (steady, degraded) else { return Vec::new() };
    let p99 =
        |board: &Board| board.of(Operation::Acquire).latency.percentiles().p99_us as f64 / 1e3;
    let sum = |board: &Board| {
        board.occurred().map(|(_, figures)| figures.dropped + figures.unknown).sum::<u64>() as f64
    };
    vec![
        Bound::at_most("steady: dropped or unknown", sum(steady), 0.0),
        Bound::below("steady: acquire p99, ms", p99(steady), STEADY_MS),
        Bound::at_most(
            "takeover with its backlog, s",
            takeover_seconds as f64,
            TAKEOVER.as_secs_f64(),
        ),
        Bound::at_most("degraded: dropped or unknown", sum(degraded), 0.0),
        Bound::below("degraded: acquire p99, ms", p99(degraded), DEGRADED_MS),
    ]
}

impl fmt::Display for CapacityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, load_after, commits_per_second, takeover_seconds, .. } = self;
        writeln!(
            f,
            "{machine}load {load_after:.2} after it; {commits_per_second} commits/s offered"
        )?;
        for PhaseReport { name, seconds, operations, .. } in &self.phases {
            writeln!(f, "\n{name}: {seconds} s")?;
            write_board(f, operations)?;
        }
        writeln!(
            f,
            "\nfelt for {takeover_seconds} s after the kill; leases lost {:?}",
            self.lost_leases
        )?;
        for (name, Did { work, scheduled }) in ["steady", "degraded"].iter().zip(&self.did) {
            let Work { snapshots, trims, compacted_keys, commands, entries, .. } = work;
            writeln!(
                f,
                "{name}: {commands} commands in {entries} entries; {snapshots} snapshots, {trims} trims, \
                 {compacted_keys} keys compacted; append p50 {} µs, p99 {} µs",
                work.append_p50_us, work.append_p99_us
            )?;
            let Scheduled { ran, waited } = scheduled;
            writeln!(
                f,
                "{name}: nodes and etcd ran on {ran} cores; their threads waited {waited} s a second for one"
            )?;
        }
        let lag = self.generator_lag;
        writeln!(
            f,
            "generator: {:.2} cores; how late it sent: p50 {} µs, p99 {} µs, max {} µs",
            self.generator_cores, lag.p50_us, lag.p99_us, lag.max_us
        )?;
        write_bounds(f, &self.bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Verdict;
    use std::time::Duration;

    #[test]
    fn the_takeover_ends_with_the_last_second_that_was_slow() {
        let mut timeline = Timeline::default();
        let slow = [3, 10, 11, 13, 25];
        for second in 0..30 {
            let millis = if slow.contains(&second) { 300 } else { 10 };
            timeline.record(
                Operation::Acquire,
                Duration::from_secs(second),
                Duration::from_millis(millis),
            );
        }
        let points = timeline.points(Operation::Acquire);
        assert_eq!(until_calm(&points, 10), 4, "neither before the fault nor long after it");
        assert_eq!(until_calm(&points, 14), 0);
    }

    #[test]
    fn each_phase_has_its_own_bound() {
        let board = |millis, verdict| {
            let mut board = Board::default();
            let figures = board.of_mut(Operation::Acquire);
            figures.offered = 2;
            figures.count(Verdict::Done, Duration::from_millis(millis));
            figures.count(verdict, Duration::from_millis(millis));
            board
        };
        let met = |steady: &Board, degraded: &Board, seconds| -> Vec<bool> {
            bounds(Some(steady), Some(degraded), seconds).iter().map(|bound| bound.met).collect()
        };
        let (calm, slow) = (board(49, Verdict::Done), board(199, Verdict::Done));
        assert_eq!(met(&calm, &slow, 10), [true; 5]);
        assert_eq!(met(&slow, &calm, 11), [true, false, false, true, true]);
        assert!(!met(&board(1, Verdict::Dropped), &board(201, Verdict::Unknown), 0)[0]);
    }
}
