//! What `peers` writes: medians of the rounds, and ratios.

use super::{
    PeersArgs, Wait,
    ratios::{Paired, Ratio, WaitRatio, bounds, of_rows, of_waits},
    rounds::{Peer, Sample},
};
use crate::{
    report::{Bound, CpuPerCall, Machine, write_bounds},
    stats::{Operation, Percentiles, median, median_f64},
};
use serde::Serialize;
use std::fmt;

/// Medians of one peer with one number of clients.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Which.
    pub peer: Peer,
    /// How many clients.
    pub clients: usize,
    /// Median of the rounds.
    pub cycles_per_second: f64,
    /// Of each round, in order.
    pub rounds: Vec<f64>,
    /// P99 of acquire, or of reserve, of each round, in order.
    pub p99_rounds_us: Vec<u64>,
    /// Medians of each figure.
    #[serde(flatten)]
    pub calls: Calls,
    /// Sent and not done, over all rounds. Not 0: look into it before using the rest.
    pub not_done: u64,
    /// CPU time of the server by call: median of the rounds.
    pub server_us_per_call: f64,
    /// CPU time of this program by call: median of the rounds.
    pub generator_us_per_call: f64,
}

/// The two calls of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Calls {
    /// On a lock.
    Lock {
        /// The first one.
        acquire: Percentiles,
        /// The second one.
        release: Percentiles,
    },
    /// At a node of a quota.
    Quota {
        /// The first one.
        reserve: Percentiles,
        /// The second one.
        commit: Percentiles,
    },
}

impl Calls {
    /// In their order.
    pub(super) fn of(peer: Peer, [first, second]: [Percentiles; 2]) -> Self {
        match peer.is_quota() {
            true => Self::Quota { reserve: first, commit: second },
            false => Self::Lock { acquire: first, release: second },
        }
    }

    /// In their order.
    pub fn both(self) -> [Percentiles; 2] {
        match self {
            Self::Lock { acquire, release } => [acquire, release],
            Self::Quota { reserve, commit } => [reserve, commit],
        }
    }
}

/// The result of `peers`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeersReport {
    /// `peers`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// Rounds that the medians are of.
    pub rounds: usize,
    /// By number of clients and peer.
    pub rows: Vec<Row>,
    /// Hand-overs and recoveries.
    pub waits: Vec<Wait>,
    /// Of each pair with each number of clients.
    pub ratios: Vec<Ratio>,
    /// Of hand-overs and recoveries.
    pub wait_ratios: Vec<WaitRatio>,
    /// Where the numbers of clients allow a comparison.
    pub bounds: Vec<Bound>,
}

impl PeersReport {
    pub(super) fn new(
        machine: Machine,
        args: &PeersArgs,
        samples: &[Sample],
        waits: Vec<Wait>,
    ) -> Self {
        let mut rows = Vec::new();
        for &clients in &args.clients {
            for &peer in &args.peers {
                let of: Vec<&Sample> = samples
                    .iter()
                    .filter(|sample| sample.peer == peer && sample.clients == clients)
                    .collect();
                rows.push(Row::new(peer, clients, &of));
            }
        }
        let ratios = of_rows(&rows);
        Self {
            command: "peers",
            machine,
            rounds: args.rounds,
            bounds: bounds(&ratios, &rows),
            rows,
            wait_ratios: of_waits(&waits),
            waits,
            ratios,
        }
    }

    /// All bounds are met.
    pub fn is_met(&self) -> bool {
        self.bounds.iter().all(|bound| bound.met)
    }
}

impl Row {
    fn new(peer: Peer, clients: usize, samples: &[&Sample]) -> Self {
        let rounds: Vec<f64> =
            samples.iter().map(|sample| sample.measured.cycles_per_second().round()).collect();
        let per_call = |cpu: CpuPerCall| cpu.user_us + cpu.system_us;
        let (first, second) = peer.operations();
        Self {
            peer,
            clients,
            cycles_per_second: median_f64(rounds.iter().copied()),
            rounds,
            p99_rounds_us: samples
                .iter()
                .map(|sample| sample.measured.board.of(first).latency.percentiles().p99_us)
                .collect(),
            calls: Calls::of(peer, [percentiles(samples, first), percentiles(samples, second)]),
            not_done: samples
                .iter()
                .flat_map(|sample| sample.measured.board.occurred())
                .map(|(_, figures)| figures.offered - figures.done)
                .sum(),
            server_us_per_call: median_f64(
                samples.iter().filter_map(|sample| sample.measured.server_cpu).map(per_call),
            ),
            generator_us_per_call: median_f64(
                samples.iter().map(|sample| per_call(sample.measured.generator_cpu)),
            ),
        }
    }
}

fn percentiles(samples: &[&Sample], operation: Operation) -> Percentiles {
    let each: Vec<Percentiles> = samples
        .iter()
        .map(|sample| sample.measured.board.of(operation).latency.percentiles())
        .collect();
    let of = |figure: fn(&Percentiles) -> u64| median(each.iter().map(figure));
    Percentiles {
        count: of(|found| found.count),
        p50_us: of(|found| found.p50_us),
        p95_us: of(|found| found.p95_us),
        p99_us: of(|found| found.p99_us),
        p999_us: of(|found| found.p999_us),
        max_us: of(|found| found.max_us),
    }
}

impl fmt::Display for PeersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}Medians of {} rounds. Latencies in ms.\n", self.machine, self.rounds)?;
        let of = |is_quota| self.rows.iter().filter(move |row| row.peer.is_quota() == is_quota);
        write_rows(f, of(false), ["acquire", "release"])?;
        write_rows(f, of(true), ["reserve", "commit"])?;
        write_ratios(f, &self.ratios)?;
        write_waits(f, &self.waits)?;
        write_wait_ratios(f, &self.wait_ratios)?;
        write_bounds(f, &self.bounds)?;
        for row in self.rows.iter().filter(|row| row.not_done > 0) {
            let Row { peer, clients, not_done, .. } = row;
            writeln!(f, "\n{}, {clients} clients: {not_done} calls were not done.", peer.title())?;
        }
        Ok(())
    }
}

fn write_rows<'a>(
    f: &mut fmt::Formatter<'_>,
    rows: impl Iterator<Item = &'a Row>,
    [first, second]: [&str; 2],
) -> fmt::Result {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    writeln!(
        f,
        "| clients | | cycles/s | {first} p50 | p99 | {second} p50 | p99 | server µs/call | generator µs/call |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        let Row { clients, cycles_per_second, server_us_per_call, .. } = row;
        write!(f, "| {clients} | {} | {cycles_per_second:.0} ", row.peer.title())?;
        for micros in row.calls.both().into_iter().flat_map(|call| [call.p50_us, call.p99_us]) {
            write!(f, "| {:.2} ", micros as f64 / 1e3)?;
        }
        writeln!(f, "| {server_us_per_call:.1} | {:.1} |", row.generator_us_per_call)?;
    }
    writeln!(f)
}

fn write_ratios(f: &mut fmt::Formatter<'_>, ratios: &[Ratio]) -> fmt::Result {
    if ratios.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "Ratios of the figures of one round; the median of these is held against the bounds.\n\n\
         | clients | | cycles/s, median | each round | p99 of acquire or reserve, median | each round |\n\
         |--:|---|--:|---|--:|---|"
    )?;
    for Ratio { above, below, clients, cycles, p99 } in ratios {
        write!(f, "| {clients} | {} / {} ", above.title(), below.title())?;
        write_paired(f, cycles)?;
        write_paired(f, p99)?;
        writeln!(f, "|")?;
    }
    Ok(())
}

fn write_paired(f: &mut fmt::Formatter<'_>, Paired { rounds, median }: &Paired) -> fmt::Result {
    let each: Vec<String> = rounds.iter().map(f64::to_string).collect();
    write!(f, "| {} | {} ", told(*median), each.join(", "))
}

fn told(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "none".into(), |ratio| ratio.to_string())
}

/// What was waited for.
fn awaited(waiters: Option<usize>) -> String {
    match waiters {
        Some(waiters) => format!("released, {waiters} waiting"),
        None => "holder dead, beyond its TTL".into(),
    }
}

fn write_wait_ratios(f: &mut fmt::Formatter<'_>, ratios: &[WaitRatio]) -> fmt::Result {
    if ratios.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n| until the next one has it | | p50 | p99 |\n|---|---|--:|--:|")?;
    for WaitRatio { above, below, waiters, p50, p99 } in ratios {
        let (what, above, below) = (awaited(*waiters), above.title(), below.title());
        writeln!(f, "| {what} | {above} / {below} | {} | {} |", told(*p50), told(*p99))?;
    }
    Ok(())
}

fn write_waits(f: &mut fmt::Formatter<'_>, waits: &[Wait]) -> fmt::Result {
    if waits.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n| until the next one has it | | timed | p50 | p95 | p99 | max |")?;
    writeln!(f, "|---|---|--:|--:|--:|--:|--:|")?;
    for Wait { peer, waiters, latency } in waits {
        write!(f, "| {} | {} | {} ", awaited(*waiters), peer.title(), latency.count)?;
        for micros in [latency.p50_us, latency.p95_us, latency.p99_us, latency.max_us] {
            write!(f, "| {:.2} ", micros as f64 / 1e3)?;
        }
        writeln!(f, "|")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        closed::Measured,
        stats::{Board, Verdict},
    };
    use clap::{Args as _, FromArgMatches as _};
    use std::time::Duration;

    fn sample(peer: Peer, clients: usize, cycles: u64) -> Sample {
        let mut board = Board::default();
        let (first, second) = peer.operations();
        for operation in [first, second] {
            let figures = board.of_mut(operation);
            figures.offered = 1;
            figures.count(Verdict::Done, Duration::from_micros(cycles));
        }
        let (window, cpu) = (Duration::from_secs(1), CpuPerCall::default());
        let measured = Measured { cycles, board, window, server_cpu: None, generator_cpu: cpu };
        Sample { peer, clients, measured }
    }

    fn report(samples: &[Sample], waits: Vec<Wait>) -> PeersReport {
        let command = super::super::PeersArgs::augment_args(clap::Command::new("peers"));
        let matches = command.try_get_matches_from(["peers", "--clients", "64"]).unwrap();
        let args = super::super::PeersArgs::from_arg_matches(&matches).unwrap();
        PeersReport::new(Machine::look_with(args.seed), &args, samples, waits)
    }

    #[test]
    fn medians_and_ratios_of_the_rounds_are_both_told() {
        let mut samples = Vec::new();
        for (sqlite, memory, redis) in [(100, 150, 300), (1, 150, 300), (120, 100, 9_000)] {
            samples.push(sample(Peer::Sqlite, 64, sqlite));
            samples.push(sample(Peer::Memory, 64, memory));
            samples.push(sample(Peer::Redis, 64, redis));
            samples.push(sample(Peer::Quota, 64, 8 * sqlite));
            samples.push(sample(Peer::PostgresQuota, 64, sqlite));
        }
        let wait = |peer, p50_us| {
            let latency = Percentiles { p50_us, p99_us: p50_us, ..Percentiles::default() };
            Wait { peer, waiters: Some(7), latency }
        };
        let waits = vec![wait(Peer::Zones, 3_000), wait(Peer::EtcdShared, 2_000)];
        let report = report(&samples, waits);
        assert!((report.rows[0].cycles_per_second - 100.0).abs() < 1e-9);
        assert_eq!(report.rows[0].calls.both()[0].p50_us, 100);
        assert_eq!(report.rows[0].p99_rounds_us, [100, 1, 120]);
        assert_eq!(report.bounds.len(), 2);
        assert!(!report.is_met(), "0.333, 0.003 and 0.013 times Redis");
        let text = report.to_string();
        for row in [
            "| 64 | Sereno, sqlite / Redis, appendfsync always | 0.013 | 0.333, 0.003, 0.013 ",
            "| 64 | Sereno, sqlite / Sereno, memory log | 0.667 | 0.667, 0.007, 1.2 |",
            "| 64 | Sereno quota, sqlite | 800 | 0.80 | 0.80 | 0.80 |",
            "| clients | | cycles/s | reserve p50 | p99 | commit p50 |",
            "| 64 | Sereno quota, sqlite / PostgreSQL, conditional update | 8 | 8, 8, 8 |",
            "| released, 7 waiting | Sereno, etcd / etcd lock, shared lease | 1.5 | 1.5 |",
        ] {
            assert!(text.contains(row), "{row} in {text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        let row = json["rows"].as_array().unwrap().iter().find(|row| row["peer"] == "sereno-quota");
        assert_eq!(row.unwrap()["reserve"]["p50Us"], 800, "{json}");
        assert!(row.unwrap()["acquire"].is_null(), "{json}");
    }
}
