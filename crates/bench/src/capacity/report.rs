//! What `capacity` writes.

use super::{
    CapacityArgs, Did, TAKEOVER,
    bounds::{DEGRADED_MS, Long, bounds},
    fault_at,
};
use crate::{
    open::{Found, PhaseReport, Settings},
    process::Scheduled,
    report::{Bound, Machine, load, reasons, write_bounds},
    stats::{Figures, Operation, Percentiles, Point, Timeline},
    zones::Work,
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// The phases in which nothing happens.
const LONG: [&str; 2] = ["steady", "degraded"];

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
    /// What the processes did in the steady and in the degraded phase.
    pub did: [Did; 2],
    /// Commands offered to the log a second: acquires, releases, and renewals (a batch is one).
    pub commands_per_second: f64,
    /// From the kill until no second had an acquire p99 of 200 ms any more.
    pub takeover_seconds: u64,
    /// Leases that a renewal did not renew, by code.
    pub lost_leases: BTreeMap<&'static str, u64>,
    /// CPU time of the generator in the whole run, in cores.
    pub generator_cores: f64,
    /// What is asked for.
    pub bounds: Vec<Bound>,
    /// All of it.
    pub met: bool,
    /// Latency by second of intended start, warm-up included.
    pub timeline: Timeline,
}

impl CapacityReport {
    pub(super) fn new(
        machine: Machine,
        args: &CapacityArgs,
        settings: &Settings,
        found: Found,
        did: [Did; 2],
    ) -> Self {
        let points = found.timeline.points(Operation::Acquire);
        let takeover_seconds = until_calm(&points, fault_at(args.seconds).as_secs());
        let offered = settings.commands_per_second();
        let [steady, _, degraded] = found.phases.as_slice() else {
            panic!("the load has a steady phase, the takeover's and a degraded one")
        };
        let long = |number: usize, phase| long(LONG[number], phase, &did[number], args, offered);
        let lost = found.lost.values().sum();
        let bounds = bounds(&long(0, steady), &long(1, degraded), takeover_seconds, lost);
        Self {
            command: "capacity",
            machine,
            load_after: load(),
            commands_per_second: offered.round(),
            takeover_seconds,
            did,
            lost_leases: found.lost,
            generator_cores: found.generator_cores,
            met: bounds.iter().all(|bound| bound.met),
            bounds,
            phases: found.phases,
            timeline: found.timeline,
        }
    }
}

fn long<'a>(
    name: &'static str,
    phase: &'a PhaseReport,
    did: &'a Did,
    args: &CapacityArgs,
    offered: f64,
) -> Long<'a> {
    Long { name, board: &phase.operations, did, seconds: args.seconds, offered }
}

/// Seconds from the fault to the end of the last one that callers felt, within the takeover's phase and the second after it:
/// more than the phase is long where they felt it still.
fn until_calm(points: &[Point], fault: u64) -> u64 {
    let slow = |point: &&Point| point.latency.p99_us as f64 / 1e3 >= DEGRADED_MS;
    let phase = fault..=fault + TAKEOVER.as_secs();
    let last = points.iter().filter(|point| phase.contains(&point.second)).rfind(slow);
    last.map_or(0, |point| point.second + 1 - fault)
}

impl fmt::Display for CapacityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, load_after, commands_per_second, takeover_seconds, .. } = self;
        writeln!(f, "{machine}load {load_after:.2} after it")?;
        writeln!(f, "{commands_per_second} commands/s offered. Latencies in ms.\n")?;
        write_phases(f, &self.phases)?;
        writeln!(f)?;
        write_did(f, &self.did)?;
        let Self { lost_leases, generator_cores, .. } = self;
        writeln!(
            f,
            "\nFelt for {takeover_seconds} s after the kill. Leases lost: {lost_leases:?}. \
             Generator: {generator_cores:.2} cores."
        )?;
        write_bounds(f, &self.bounds)
    }
}

/// Every operation of every phase, in Markdown; and why what was refused was.
fn write_phases(f: &mut fmt::Formatter<'_>, phases: &[PhaseReport]) -> fmt::Result {
    writeln!(
        f,
        "| phase | operation | offered | done | dropped | unknown | refused | cancelled | skipped \
         | p50 | p95 | p99 | p99.9 | max |\n|---|---|{}",
        "--:|".repeat(12)
    )?;
    for PhaseReport { name, operations, .. } in phases {
        for (operation, figures) in operations.occurred() {
            write!(f, "| {name} | {} ", operation.name())?;
            write_figures(f, figures)?;
        }
    }
    writeln!(f, "\n| phase | seconds | late at sending: p50 | p99 | max |\n|---|--:|--:|--:|--:|")?;
    for PhaseReport { name, seconds, generator_lag, .. } in phases {
        let Percentiles { p50_us, p99_us, max_us, .. } = generator_lag;
        let [p50, p99, max] = [p50_us, p99_us, max_us].map(|micros| *micros as f64 / 1e3);
        writeln!(f, "| {name} | {seconds} | {p50:.2} | {p99:.2} | {max:.2} |")?;
    }
    writeln!(f)?;
    for PhaseReport { name, operations, .. } in phases {
        for reason in reasons(operations) {
            writeln!(f, "- {name}, {reason}")?;
        }
    }
    Ok(())
}

fn write_figures(f: &mut fmt::Formatter<'_>, figures: &Figures) -> fmt::Result {
    let Figures { offered, done, dropped, unknown, cancelled, skipped, .. } = figures;
    let refused = figures.refused_total();
    write!(
        f,
        "| {offered} | {done} | {dropped} | {unknown} | {refused} | {cancelled} | {skipped} "
    )?;
    let Percentiles { p50_us, p95_us, p99_us, p999_us, max_us, .. } = figures.latency.percentiles();
    for micros in [p50_us, p95_us, p99_us, p999_us, max_us] {
        write!(f, "| {:.2} ", micros as f64 / 1e3)?;
    }
    writeln!(f, "|")
}

/// What the processes did in the long phases, in Markdown.
fn write_did(f: &mut fmt::Formatter<'_>, did: &[Did; 2]) -> fmt::Result {
    writeln!(
        f,
        "| phase | processes | commands | entries | append p50 | p99 | snapshots | trims | compacted keys \
         | nodes and etcd, cores | waited for a core, s/s | generator, cores | other programs, cores | stolen, cores |\n\
         |---|{}",
        "--:|".repeat(13)
    )?;
    for (name, did) in LONG.iter().zip(did) {
        let Work { commands, entries, snapshots, trims, compacted_keys, .. } = did.work;
        let [p50, p99] =
            [did.work.append_p50_us, did.work.append_p99_us].map(|micros| micros as f64 / 1e3);
        let Did { processes, generator_cores, others_cores, machine, .. } = did;
        let (Scheduled { ran, waited }, stolen) = (did.scheduled, machine.stolen);
        writeln!(
            f,
            "| {name} | {processes} | {commands} | {entries} | {p50:.2} | {p99:.2} | {snapshots} | {trims} \
             | {compacted_keys} | {ran} | {waited} | {generator_cores} | {others_cores} | {stolen} |"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Board, Verdict};
    use std::time::Duration;

    struct Shown(Vec<PhaseReport>);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_phases(f, &self.0)
        }
    }

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
        assert_eq!(
            until_calm(&points, 15),
            11,
            "still felt when it ought to be over: more than is allowed"
        );
    }

    #[test]
    fn each_operation_of_each_phase_is_a_row_with_all_that_became_of_it() {
        let phase = |name: &str, millis| {
            let mut operations = Board::default();
            for operation in [Operation::Acquire, Operation::Release] {
                let figures = operations.of_mut(operation);
                figures.offered = 2;
                figures.count(Verdict::Done, Duration::from_millis(millis));
                figures.count(Verdict::Refused("OVERLOADED"), Duration::ZERO);
            }
            let lag = Percentiles { p99_us: 1_500, max_us: 2_500, ..Percentiles::default() };
            PhaseReport {
                name: name.into(),
                seconds: 3.0,
                factor: 1.0,
                operations,
                generator_lag: lag,
            }
        };
        let text = Shown(vec![phase("steady", 4), phase("degraded", 8)]).to_string();
        for row in [
            "| steady | acquire | 2 | 1 | 0 | 0 | 1 | 0 | 0 | 4.00 | 4.00 | 4.00 | 4.00 | 4.00 |",
            "| degraded | release | 2 | 1 | 0 | 0 | 1 | 0 | 0 | 8.00 | 8.00 | 8.00 | 8.00 | 8.00 |",
            "| degraded | 3 | 0.00 | 1.50 | 2.50 |",
            "- steady, release: OVERLOADED 1",
        ] {
            assert!(text.contains(row), "{row} in {text}");
        }
        let tables = text.lines().filter(|line| line.starts_with('|'));
        let columns: Vec<usize> = tables.map(|line| line.matches('|').count()).collect();
        assert_eq!(columns, [15, 15, 15, 15, 15, 15, 6, 6, 6, 6], "no row is torn");
    }
}
