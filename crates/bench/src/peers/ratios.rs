//! The one by the other, round by round: both were measured minutes apart on the same machine, so a ratio of two figures of
//! one round says more than one of two medians.

use super::{Wait, rounds::Peer, table::Row};
use crate::{
    report::Bound,
    stats::{median_f64, ratio},
};
use serde::Serialize;

/// Who is held against whom.
const PAIRS: [(Peer, Peer); 5] = [
    (Peer::Sqlite, Peer::Redis),
    (Peer::Sqlite, Peer::Memory),
    (Peer::Zones, Peer::EtcdShared),
    (Peer::Zones, Peer::EtcdPerLock),
    (Peer::Quota, Peer::PostgresQuota),
];

/// Cycles of the one by those of the other, with so many clients: at least.
const AT_LEAST: [(Peer, Peer, usize, f64); 7] = [
    (Peer::Sqlite, Peer::Redis, 64, 0.333),
    (Peer::Sqlite, Peer::Redis, 256, 0.25),
    (Peer::Sqlite, Peer::Memory, 64, 0.6),
    (Peer::Sqlite, Peer::Memory, 256, 0.6),
    (Peer::Zones, Peer::EtcdShared, 256, 3.0),
    (Peer::Zones, Peer::EtcdPerLock, 256, 8.0),
    (Peer::Quota, Peer::PostgresQuota, 256, 5.0),
];

/// Acquire p99 of the one by that of the other: at most a third.
const P99_AT_MOST: [(Peer, Peer, usize, f64); 2] =
    [(Peer::Zones, Peer::EtcdShared, 256, 0.333), (Peer::Zones, Peer::EtcdPerLock, 256, 0.333)];

/// Ratios of the rounds, and the middle one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Paired {
    /// In the order of the rounds; without those in which there was nothing to divide by.
    pub rounds: Vec<f64>,
    /// The middle one; of an even number the one that is worse for the first of the two. Absent without rounds.
    pub median: Option<f64>,
}

impl Paired {
    fn new(above: &[f64], below: &[f64], worse: Worse) -> Self {
        let rounds: Vec<f64> =
            above.iter().zip(below).filter_map(|(above, below)| ratio(*above, *below)).collect();
        // The lower one of two; turned round, the upper one.
        let median = match worse {
            Worse::Lower => median_f64(rounds.iter().copied()),
            Worse::Higher => -median_f64(rounds.iter().map(|ratio| -ratio)),
        };
        Self { median: (!rounds.is_empty()).then_some(median), rounds }
    }
}

/// Which of two ratios is worse.
#[derive(Clone, Copy)]
enum Worse {
    Lower,
    Higher,
}

/// One pair with one number of clients.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ratio {
    /// Whose figures are divided.
    pub above: Peer,
    /// By whose.
    pub below: Peer,
    /// With so many clients.
    pub clients: usize,
    /// Cycles a second: over 1, the first is faster.
    pub cycles: Paired,
    /// Of acquire, or of reserve: below 1, the first is faster.
    pub p99: Paired,
}

/// One pair, and what those who wait feel.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitRatio {
    /// Whose figures are divided.
    pub above: Peer,
    /// By whose.
    pub below: Peer,
    /// How many waited for the one name; absent: recovery from a dead holder.
    pub waiters: Option<usize>,
    /// Below 1, the first is faster.
    pub p50: Option<f64>,
    /// Below 1, the first is faster.
    pub p99: Option<f64>,
}

/// Of every pair that was measured, with every number of clients.
pub(super) fn of_rows(rows: &[Row]) -> Vec<Ratio> {
    let find = |peer, clients| rows.iter().find(|row| row.peer == peer && row.clients == clients);
    let mut ratios = Vec::new();
    for (above, below) in PAIRS {
        for row in rows.iter().filter(|row| row.peer == above) {
            let Some(other) = find(below, row.clients) else { continue };
            let cycles = Paired::new(&row.rounds, &other.rounds, Worse::Lower);
            let (p99, other_p99) = (as_floats(&row.p99_rounds_us), as_floats(&other.p99_rounds_us));
            let p99 = Paired::new(&p99, &other_p99, Worse::Higher);
            ratios.push(Ratio { above, below, clients: row.clients, cycles, p99 });
        }
    }
    ratios
}

fn as_floats(micros: &[u64]) -> Vec<f64> {
    micros.iter().map(|micros| *micros as f64).collect()
}

/// Likewise of hand-overs and recoveries, which are measured once.
pub(super) fn of_waits(waits: &[Wait]) -> Vec<WaitRatio> {
    let mut ratios = Vec::new();
    for (above, below) in PAIRS {
        for wait in waits.iter().filter(|wait| wait.peer == above) {
            let other = |it: &&Wait| it.peer == below && it.waiters == wait.waiters;
            let Some(other) = waits.iter().find(other) else { continue };
            let of = |mine, theirs| ratio(mine as f64, theirs as f64);
            ratios.push(WaitRatio {
                above,
                below,
                waiters: wait.waiters,
                p50: of(wait.latency.p50_us, other.latency.p50_us),
                p99: of(wait.latency.p99_us, other.latency.p99_us),
            });
        }
    }
    ratios
}

/// Held against the medians of the rounds' ratios; where the numbers of clients allow it.
pub(super) fn bounds(ratios: &[Ratio], rows: &[Row]) -> Vec<Bound> {
    let find = |above, below, clients| {
        let is_it = |it: &&Ratio| (it.above, it.below, it.clients) == (above, below, clients);
        ratios.iter().find(is_it)
    };
    let what = |it: &Ratio, figure: &str| {
        let (above, below) = (it.above.title(), it.below.title());
        format!("{above} / {below}, {} clients, {figure}", it.clients)
    };
    let mut bounds = Vec::new();
    for (above, below, clients, wanted) in AT_LEAST {
        let Some(it) = find(above, below, clients) else { continue };
        let found = it.cycles.median.unwrap_or(0.0);
        bounds.push(Bound::at_least(what(it, "cycles/s"), found, wanted));
    }
    for (above, below, clients, wanted) in P99_AT_MOST {
        let Some(it) = find(above, below, clients) else { continue };
        let found = it.p99.median.unwrap_or(f64::MAX);
        bounds.push(Bound::at_most(what(it, "acquire p99"), found, wanted));
    }
    if let Some(row) = rows.iter().find(|row| row.peer == Peer::Sqlite && row.clients == 1) {
        let slowest = row.calls.both().map(|call| call.p99_us).into_iter().max().unwrap_or(0);
        let what = format!("{}, 1 client, p99 in ms", Peer::Sqlite.title());
        bounds.push(Bound::below(what, slowest as f64 / 1e3, 5.0));
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{peers::Calls, stats::Percentiles};

    /// One peer with so many clients: cycles a second, and acquire p99, of each round.
    fn row(peer: Peer, clients: usize, rounds: &[(u64, u64)]) -> Row {
        Row {
            peer,
            clients,
            cycles_per_second: 0.0,
            rounds: rounds.iter().map(|(cycles, _)| *cycles as f64).collect(),
            p99_rounds_us: rounds.iter().map(|(_, p99)| *p99).collect(),
            calls: Calls::of(peer, [Percentiles::default(); 2]),
            not_done: 0,
            server_us_per_call: 0.0,
            generator_us_per_call: 0.0,
        }
    }

    fn near(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-9)
    }

    #[test]
    fn figures_of_one_round_are_divided_and_then_the_middle_one_is_taken() {
        // The machine was slow in the second round, for both of them.
        let rows = [
            row(Peer::Zones, 256, &[(900, 10), (300, 60), (800, 20)]),
            row(Peer::EtcdShared, 256, &[(300, 40), (50, 100), (200, 40)]),
        ];
        let ratios = of_rows(&rows);
        assert_eq!(ratios.len(), 1);
        assert!(near(ratios[0].cycles.median, 4.0), "3, 6 and 4: {ratios:?}");
        assert!(near(ratios[0].p99.median, 0.5), "0.25, 0.6 and 0.5: {ratios:?}");
        let bounds = bounds(&ratios, &rows);
        let found: Vec<(f64, bool)> = bounds.iter().map(|it| (it.found, it.met)).collect();
        assert_eq!(found, [(4.0, true), (0.5, false)]);
    }

    #[test]
    fn of_two_rounds_the_worse_one_counts() {
        let of = |worse| Paired::new(&[1.0, 3.0], &[1.0, 1.0], worse).median;
        assert!(near(of(Worse::Lower), 1.0) && near(of(Worse::Higher), 3.0));
        let none = Paired::new(&[1.0], &[0.0], Worse::Lower);
        assert_eq!(none, Paired::default(), "nothing to divide by");
    }

    #[test]
    fn every_number_of_clients_has_its_ratios() {
        let rows: Vec<Row> = [1, 16, 64, 256]
            .into_iter()
            .flat_map(|clients| Peer::ALL.map(|peer| row(peer, clients, &[(10, 10)])))
            .collect();
        let ratios = of_rows(&rows);
        assert_eq!(ratios.len(), 4 * PAIRS.len());
        for (above, below) in PAIRS {
            let of = ratios.iter().filter(|it| (it.above, it.below) == (above, below));
            assert_eq!(of.map(|it| it.clients).collect::<Vec<_>>(), [1, 16, 64, 256]);
        }
    }

    /// What is promised of each peer, and by how much: nothing of it may be taken away unseen.
    #[test]
    fn each_bound_is_there_and_is_missed_by_a_little() {
        let held = |zones: (u64, u64), sqlite: u64, slowest_us: u64, quota: u64| {
            let mut rows: Vec<Row> = Vec::new();
            for clients in [64, 256] {
                rows.push(row(Peer::Zones, clients, &[zones]));
                rows.push(row(Peer::EtcdShared, clients, &[(1_000, 3_000)]));
                rows.push(row(Peer::EtcdPerLock, clients, &[(375, 3_000)]));
                rows.push(row(Peer::Sqlite, clients, &[(sqlite, 1)]));
                rows.push(row(Peer::Memory, clients, &[(1_000, 1)]));
                rows.push(row(Peer::Redis, clients, &[(1_800, 1)]));
                rows.push(row(Peer::Quota, clients, &[(quota, 1)]));
                rows.push(row(Peer::PostgresQuota, clients, &[(1_000, 1)]));
            }
            let mut alone = row(Peer::Sqlite, 1, &[(1, 1)]);
            let slowest = Percentiles { p99_us: slowest_us, ..Percentiles::default() };
            alone.calls = Calls::of(Peer::Sqlite, [Percentiles::default(), slowest]);
            rows.push(alone);
            bounds(&of_rows(&rows), &rows)
        };
        let all = held((3_000, 999), 600, 4_999, 5_000);
        let told: Vec<String> =
            all.iter().map(|it| format!("{}: {} {}", it.what, it.wanted, it.met)).collect();
        assert_eq!(
            told,
            [
                "Sereno, sqlite / Redis, appendfsync always, 64 clients, cycles/s: ≥ 0.333 true",
                "Sereno, sqlite / Redis, appendfsync always, 256 clients, cycles/s: ≥ 0.25 true",
                "Sereno, sqlite / Sereno, memory log, 64 clients, cycles/s: ≥ 0.6 true",
                "Sereno, sqlite / Sereno, memory log, 256 clients, cycles/s: ≥ 0.6 true",
                "Sereno, etcd / etcd lock, shared lease, 256 clients, cycles/s: ≥ 3 true",
                "Sereno, etcd / etcd lock, lease per lock, 256 clients, cycles/s: ≥ 8 true",
                "Sereno quota, sqlite / PostgreSQL, conditional update, 256 clients, cycles/s: ≥ 5 true",
                "Sereno, etcd / etcd lock, shared lease, 256 clients, acquire p99: ≤ 0.333 true",
                "Sereno, etcd / etcd lock, lease per lock, 256 clients, acquire p99: ≤ 0.333 true",
                "Sereno, sqlite, 1 client, p99 in ms: < 5 true",
            ]
        );
        let missed = held((2_990, 1_010), 449, 5_000, 4_999);
        assert!(missed.iter().all(|bound| !bound.met), "{missed:?}");
    }

    #[test]
    fn those_who_wait_are_compared_by_how_many_they_are() {
        let wait = |peer, waiters, p50_us, p99_us| {
            let latency = Percentiles { p50_us, p99_us, ..Percentiles::default() };
            Wait { peer, waiters, latency }
        };
        let ratios = of_waits(&[
            wait(Peer::Zones, Some(100), 4_200, 6_000),
            wait(Peer::EtcdShared, Some(100), 2_100, 8_000),
            wait(Peer::Zones, None, 9, 10),
            wait(Peer::EtcdShared, None, 450, 500),
            wait(Peer::Zones, Some(1), 1, 1),
        ]);
        let found: Vec<_> = ratios.iter().map(|it| (it.waiters, it.p50, it.p99)).collect();
        assert_eq!(
            found,
            [(Some(100), Some(2.0), Some(0.75)), (None, Some(0.02), Some(0.02))],
            "one waiter has no counterpart"
        );
    }
}
