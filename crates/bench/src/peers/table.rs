//! What `peers` writes: medians, and the ratios that were asked for.

use super::{
    PeersArgs, Wait,
    rounds::{Peer, Sample},
};
use crate::{
    report::{Bound, CpuPerCall, Machine, write_bounds},
    stats::{Operation, Percentiles, median, median_f64, ratio},
};
use serde::Serialize;
use std::fmt;

/// Cycles of the one by those of the other, with so many clients: at least.
const AT_LEAST: [(Peer, Peer, usize, f64); 6] = [
    (Peer::Sqlite, Peer::Redis, 64, 0.333),
    (Peer::Sqlite, Peer::Redis, 256, 0.25),
    (Peer::Sqlite, Peer::Memory, 64, 0.6),
    (Peer::Sqlite, Peer::Memory, 256, 0.6),
    (Peer::Zones, Peer::EtcdShared, 256, 3.0),
    (Peer::Zones, Peer::EtcdPerLock, 256, 8.0),
];

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
    /// Medians of each figure.
    pub acquire: Percentiles,
    /// Medians of each figure.
    pub release: Percentiles,
    /// Sent and not done, over all rounds. Not 0: look into it before using the rest.
    pub not_done: u64,
    /// CPU time of the server by call: median of the rounds.
    pub server_us_per_call: f64,
    /// CPU time of this program by call: median of the rounds.
    pub generator_us_per_call: f64,
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
        let bounds = bounds(&rows);
        Self { command: "peers", machine, rounds: args.rounds, rows, waits, bounds }
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
        Self {
            peer,
            clients,
            cycles_per_second: median_f64(rounds.iter().copied()),
            rounds,
            acquire: percentiles(samples, Operation::Acquire),
            release: percentiles(samples, Operation::Release),
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

fn bounds(rows: &[Row]) -> Vec<Bound> {
    let find = |peer, clients| rows.iter().find(|row| row.peer == peer && row.clients == clients);
    let mut bounds = Vec::new();
    for (above, below, clients, wanted) in AT_LEAST {
        let (Some(above), Some(below)) = (find(above, clients), find(below, clients)) else {
            continue;
        };
        let Some(found) = ratio(above.cycles_per_second, below.cycles_per_second) else { continue };
        let (above, below) = (above.peer.title(), below.peer.title());
        let what = format!("{above} / {below}, {clients} clients");
        bounds.push(Bound::at_least(what, found, wanted));
    }
    for below in [Peer::EtcdShared, Peer::EtcdPerLock] {
        let (Some(zones), Some(row)) = (find(Peer::Zones, 256), find(below, 256)) else { continue };
        let found = ratio(zones.acquire.p99_us as f64, row.acquire.p99_us as f64);
        let what = format!("{} / {}, 256 clients, acquire p99", zones.peer.title(), below.title());
        bounds.extend(found.map(|found| Bound::at_most(what, found, 0.333)));
    }
    if let Some(row) = find(Peer::Sqlite, 1) {
        let slowest = row.acquire.p99_us.max(row.release.p99_us);
        let what = format!("{}, 1 client, p99 in ms", Peer::Sqlite.title());
        bounds.push(Bound::below(what, slowest as f64 / 1e3, 5.0));
    }
    bounds
}

impl fmt::Display for PeersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}Medians of {} rounds. Latencies in ms.\n", self.machine, self.rounds)?;
        writeln!(
            f,
            "| clients | | cycles/s | acquire p50 | p99 | release p50 | p99 | server µs/call | generator µs/call |"
        )?;
        writeln!(f, "|--:|---|--:|--:|--:|--:|--:|--:|--:|")?;
        for row in &self.rows {
            let Row { clients, cycles_per_second, server_us_per_call, .. } = row;
            write!(f, "| {clients} | {} | {cycles_per_second:.0} ", row.peer.title())?;
            let (acquire, release) = (row.acquire, row.release);
            for micros in [acquire.p50_us, acquire.p99_us, release.p50_us, release.p99_us] {
                write!(f, "| {:.2} ", micros as f64 / 1e3)?;
            }
            writeln!(f, "| {server_us_per_call:.1} | {:.1} |", row.generator_us_per_call)?;
        }
        write_waits(f, &self.waits)?;
        write_bounds(f, &self.bounds)?;
        for row in self.rows.iter().filter(|row| row.not_done > 0) {
            let Row { peer, clients, not_done, .. } = row;
            writeln!(f, "\n{}, {clients} clients: {not_done} calls were not done.", peer.title())?;
        }
        Ok(())
    }
}

fn write_waits(f: &mut fmt::Formatter<'_>, waits: &[Wait]) -> fmt::Result {
    if waits.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n| until the next one has it | | timed | p50 | p95 | p99 | max |")?;
    writeln!(f, "|---|---|--:|--:|--:|--:|--:|")?;
    for Wait { peer, waiters, latency } in waits {
        let what = match waiters {
            Some(waiters) => format!("released, {waiters} waiting"),
            None => "holder dead, beyond its TTL".into(),
        };
        write!(f, "| {what} | {} | {} ", peer.title(), latency.count)?;
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
    use std::time::Duration;

    fn sample(peer: Peer, clients: usize, cycles: u64) -> Sample {
        let mut board = Board::default();
        for operation in [Operation::Acquire, Operation::Release] {
            let figures = board.of_mut(operation);
            figures.offered = 1;
            figures.count(Verdict::Done, Duration::from_micros(cycles));
        }
        let (window, cpu) = (Duration::from_secs(1), CpuPerCall::default());
        let measured = Measured { cycles, board, window, server_cpu: None, generator_cpu: cpu };
        Sample { peer, clients, measured }
    }

    #[test]
    fn bounds_are_held_against_medians() {
        let mut samples = Vec::new();
        for (sqlite, memory, redis) in [(100, 150, 300), (1, 150, 300), (120, 100, 9_000)] {
            samples.push(sample(Peer::Sqlite, 64, sqlite));
            samples.push(sample(Peer::Memory, 64, memory));
            samples.push(sample(Peer::Redis, 64, redis));
        }
        let of = |peer| {
            let of: Vec<&Sample> = samples.iter().filter(|sample| sample.peer == peer).collect();
            Row::new(peer, 64, &of)
        };
        let rows: Vec<Row> = Peer::ALL[..3].iter().copied().map(of).collect();
        assert!((rows[0].cycles_per_second - 100.0).abs() < 1e-9);
        assert_eq!(rows[0].acquire.p50_us, 100);
        let bounds = bounds(&rows);
        assert_eq!(bounds.iter().map(|bound| bound.met).collect::<Vec<_>>(), [true, true]);
        assert!(bounds[0].what.contains("Redis") && (bounds[0].found - 0.333).abs() < 1e-9);
    }
}
