//! What `upkeep` writes.

use super::Size;
use crate::{
    open::Found,
    report::{Machine, load},
    stats::{Operation, Percentiles, median, ratio},
    zones::Work,
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// With upkeep by without, at most.
const RATIO_MAX: f64 = 3.0;
/// etcd's file stays below.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// With snapshots, trimming and compaction.
    pub upkeep: bool,
    /// How long it lasted.
    pub seconds: f64,
    /// From the intended start, as the generator saw it.
    pub acquire: Percentiles,
    /// Likewise.
    pub release: Percentiles,
    /// What the leader and etcd did meanwhile.
    pub work: Work,
    /// Offered and not done: how many by operation and reason.
    pub not_done: BTreeMap<String, u64>,
    /// How large etcd's database was.
    pub sizes: Vec<Size>,
    /// The machine's load at the end: over the cores, others disturb it.
    pub load: f64,
}

impl Measurement {
    pub(super) fn new(upkeep: bool, found: &Found, work: Work, sizes: Vec<Size>) -> Self {
        let measured = found.phases.first();
        let of = |operation| {
            let board = measured.map(|phase| phase.operations.of(operation));
            board.map(|figures| figures.latency.percentiles()).unwrap_or_default()
        };
        Self {
            upkeep,
            seconds: measured.map_or(0.0, |phase| phase.seconds),
            acquire: of(Operation::Acquire),
            release: of(Operation::Release),
            work,
            not_done: measured.map(|phase| phase.operations.not_done()).unwrap_or_default(),
            sizes,
            load: load(),
        }
    }

    pub(super) fn summary(&self) -> String {
        let (word, micros) = (with(self.upkeep), self.acquire.p999_us);
        format!(
            "{word} upkeep: acquire p99.9 {micros} µs, append p99.9 {} µs",
            self.work.append_p999_us
        )
    }

    fn file_bytes(&self) -> u64 {
        self.sizes.iter().map(|size| size.file_bytes).max().unwrap_or(0)
    }

    fn used_bytes(&self) -> u64 {
        self.sizes.iter().map(|size| size.used_bytes).max().unwrap_or(0)
    }
}

fn with(upkeep: bool) -> &'static str {
    if upkeep { "with" } else { "without" }
}

/// The result of `upkeep`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpkeepReport {
    /// `upkeep`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// In order.
    pub measurements: Vec<Measurement>,
    /// With the default settings, for longer.
    pub long: Option<Measurement>,
    /// Median of acquire p99.9 without upkeep.
    pub without_us: u64,
    /// Median of acquire p99.9 with it.
    pub with_us: u64,
    /// With by without.
    pub ratio: Option<f64>,
    /// The same of append p99.9, from the leader's histogram: coarse.
    pub append_ratio: Option<f64>,
    /// The largest file of etcd's in the long measurement.
    pub file_bytes: Option<u64>,
    /// The ratio is at most 3, and the file stays below 1 GiB.
    pub met: bool,
}

impl UpkeepReport {
    pub(super) fn new(
        machine: Machine,
        measurements: Vec<Measurement>,
        long: Option<Measurement>,
    ) -> Self {
        let median_of = |upkeep, figure: fn(&Measurement) -> u64| {
            median(measurements.iter().filter(|it| it.upkeep == upkeep).map(figure))
        };
        let acquire = |upkeep| median_of(upkeep, |it| it.acquire.p999_us);
        let append = |upkeep| median_of(upkeep, |it| it.work.append_p999_us);
        let (without_us, with_us) = (acquire(false), acquire(true));
        let ratio_of = |with, without| ratio(with as f64, without as f64);
        let ratio = ratio_of(with_us, without_us);
        let file_bytes = long.as_ref().map(Measurement::file_bytes);
        let met = (measurements.is_empty() || ratio.is_some_and(|ratio| ratio <= RATIO_MAX))
            && file_bytes.is_none_or(|bytes| bytes < FILE_BYTES_MAX);
        Self {
            command: "upkeep",
            machine,
            without_us,
            with_us,
            ratio,
            append_ratio: ratio_of(append(true), append(false)),
            measurements,
            long,
            file_bytes,
            met,
        }
    }
}

impl fmt::Display for UpkeepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}Latencies in ms; of acquire from the intended start.\n", self.machine)?;
        writeln!(
            f,
            "| upkeep | seconds | acquire p50 | p99 | p99.9 | append p50 | p99 | p99.9 | commands/s | snapshots \
             | trims | compacted keys | etcd's file, MiB | in use | load |"
        )?;
        writeln!(f, "|---|{}", "--:|".repeat(14))?;
        for found in self.measurements.iter().chain(&self.long) {
            write_row(f, found)?;
        }
        for found in self.measurements.iter().chain(&self.long) {
            if !found.not_done.is_empty() {
                writeln!(f, "\nNot done {} upkeep: {:?}", with(found.upkeep), found.not_done)?;
            }
        }
        let Self { without_us, with_us, ratio, append_ratio, .. } = self;
        writeln!(f, "\n| | found | wanted |\n|---|--:|--:|")?;
        if let (Some(ratio), Some(append)) = (ratio, append_ratio) {
            let what =
                format!("acquire p99.9, medians: {with_us} µs with / {without_us} µs without");
            writeln!(
                f,
                "| {what} | {ratio} | ≤ {RATIO_MAX} |\n| append p99.9 likewise | {append} | |"
            )?;
        }
        if let Some(bytes) = self.file_bytes {
            writeln!(f, "| etcd's file at most, MiB | {} | < 1024 |", bytes >> 20)?;
        }
        writeln!(f, "\n{}", if self.met { "met" } else { "**missed**" })
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, found: &Measurement) -> fmt::Result {
    let Measurement { seconds, acquire, work, load, .. } = found;
    write!(f, "| {} | {seconds} ", with(found.upkeep))?;
    let append = [work.append_p50_us, work.append_p99_us, work.append_p999_us];
    for micros in [acquire.p50_us, acquire.p99_us, acquire.p999_us].into_iter().chain(append) {
        write!(f, "| {:.1} ", micros as f64 / 1e3)?;
    }
    let per_second = work.commands as f64 / seconds.max(1e-9);
    let Work { snapshots, trims, compacted_keys, .. } = work;
    let (file, used) = (found.file_bytes() >> 20, found.used_bytes() >> 20);
    writeln!(
        f,
        "| {per_second:.0} | {snapshots} | {trims} | {compacted_keys} | {file} | {used} | {load:.1} |"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(upkeep: bool, p999_us: u64, file_bytes: u64) -> Measurement {
        Measurement {
            upkeep,
            seconds: 1.0,
            acquire: Percentiles { p999_us, ..Percentiles::default() },
            release: Percentiles::default(),
            work: Work { append_p999_us: p999_us, ..Work::default() },
            not_done: BTreeMap::new(),
            sizes: vec![Size { second: 0, file_bytes, used_bytes: 0 }],
            load: 0.0,
        }
    }

    fn report(with: u64, file_bytes: u64) -> UpkeepReport {
        let measurements =
            [(false, 10), (true, with), (true, 1_000), (false, 900), (true, 1), (false, 1)]
                .map(|(upkeep, p999)| measurement(upkeep, p999, 0));
        let machine = Machine::look();
        UpkeepReport::new(machine, measurements.into(), Some(measurement(true, 1, file_bytes)))
    }

    #[test]
    fn medians_and_the_largest_file_are_held_against_the_marks() {
        let found = report(30, FILE_BYTES_MAX - 1);
        assert_eq!((found.without_us, found.with_us, found.met), (10, 30, true));
        assert!(!report(31, 0).met && !report(30, FILE_BYTES_MAX).met);
        let text = found.to_string();
        assert!(text.contains("| 3 | ≤ 3 |") && text.contains("| 1023 | < 1024 |"), "{text}");
    }
}
