//! What a running snapshot costs callers: the same load without and with one, in alternation.

use crate::{
    error::Error,
    fill::{Fill, fill},
    open::{self, Found, Load, Phase, Settings},
    process::{Engine, ServeArgs, Served},
    report::{Machine, Output},
    stats::{Operation, Percentiles, median, ratio},
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt, path::Path, time::Duration};

const POLL: Duration = Duration::from_millis(200);
const BOUND: f64 = 2.0;

/// The same load without and with a snapshot running: acquire p99.9 of both, and their ratio.
///
/// Fills a durable server to the size given, then starts it on these data without snapshots and with one a second
/// (so nearly always one is running), puts the same open-loop load on each, and does so in alternation. The ratio
/// is that of the medians.
#[derive(Clone, Debug, clap::Args)]
pub struct SnapshotImpactArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub fill: Fill,

    /// Acquires a second, and as many releases.
    #[arg(long, default_value_t = 2_000.0, value_name = "RATE")]
    pub acquires: f64,

    /// How long each measurement lasts.
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,

    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,

    /// Decides names and arrivals.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Exit with 2 if p99.9 is more than twice as high with a snapshot running.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// With snapshots.
    pub snapshots: bool,
    /// How many were saved meanwhile.
    pub saved: usize,
    /// From the intended start.
    pub acquire: Percentiles,
    /// From the intended start.
    pub release: Percentiles,
    /// Offered and not done: how many by operation and reason.
    pub not_done: BTreeMap<String, u64>,
}

/// The result of `snapshot-impact`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotImpactReport {
    /// `snapshot-impact`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// In order.
    pub measurements: Vec<Measurement>,
    /// Median of acquire p99.9 without snapshots.
    pub without_us: u64,
    /// Median of acquire p99.9 with snapshots.
    pub with_us: u64,
    /// With by without.
    pub ratio: Option<f64>,
    /// At most 2.
    pub met: bool,
}

/// `sereno-bench snapshot-impact`
///
/// # Errors
/// The server does not come up or does not answer, or took a snapshot when it should not, or none when it should.
pub async fn run(args: &SnapshotImpactArgs) -> Result<SnapshotImpactReport, Error> {
    args.fill.check()?;
    let machine = Machine::look_with(args.seed);
    let folder = args.serve_args.folder()?;
    let served = start(args, folder.path(), false).await?;
    fill(served.address, args.fill).await?;
    served.child.stop()?;
    let mut measurements = Vec::new();
    for round in 0..args.rounds {
        // Whoever comes second finds more in the state: take turns.
        let first = round % 2 == 1;
        for snapshots in [first, !first] {
            let measurement = measure(args, folder.path(), snapshots).await?;
            let (word, micros) = (with(snapshots), measurement.acquire.p999_us);
            eprintln!("round {}: {word} snapshots: acquire p99.9 {micros} µs", round + 1);
            measurements.push(measurement);
        }
    }
    let of = |snapshots| {
        let of = measurements.iter().filter(move |found| found.snapshots == snapshots);
        median(of.map(|found| found.acquire.p999_us))
    };
    let (without_us, with_us) = (of(false), of(true));
    let ratio = ratio(with_us as f64, without_us as f64);
    let met = ratio.is_some_and(|ratio| ratio <= BOUND);
    let command = "snapshot-impact";
    Ok(SnapshotImpactReport { command, machine, measurements, without_us, with_us, ratio, met })
}

async fn start(args: &SnapshotImpactArgs, folder: &Path, snapshots: bool) -> Result<Served, Error> {
    let every = if snapshots { "1s" } else { "24h" };
    let flags = ["--snapshot-every", every, "--snapshot-bytes", "1000GiB"].map(str::to_owned);
    args.serve_args.serve(Engine::Sqlite, folder, &flags).await
}

async fn measure(
    args: &SnapshotImpactArgs,
    folder: &Path,
    snapshots: bool,
) -> Result<Measurement, Error> {
    let served = start(args, folder, snapshots).await?;
    let settings = settings(args);
    let load = open::measure(Load::new(&settings, vec![served.address]));
    let mut positions = Vec::new();
    let found = tokio::select! {
        found = load => found?,
        error = watch(&served, &mut positions) => return Err(error),
    };
    served.child.stop()?;
    let measurement = Measurement::new(snapshots, positions.len().saturating_sub(1), &found);
    if snapshots != (measurement.saved > 0) {
        let why =
            format!("{} snapshots were saved in a run {} them", measurement.saved, with(snapshots));
        return Err(Error::Service { call: "snapshots".into(), why });
    }
    Ok(measurement)
}

/// Notes each position at which a snapshot is seen, until the server fails to answer.
async fn watch(served: &Served, positions: &mut Vec<Option<u64>>) -> Error {
    loop {
        match served.status().await {
            Ok(status) if positions.last() != Some(&status.snapshot_position) => {
                positions.push(status.snapshot_position);
            }
            Ok(_) => {}
            Err(error) => return error,
        }
        tokio::time::sleep(POLL).await;
    }
}

fn settings(args: &SnapshotImpactArgs) -> Settings {
    let length = Duration::from_secs(args.seconds);
    Settings {
        acquires: args.acquires,
        active: 0,
        contended: 0.0,
        cancelled: 0.0,
        dying: 0.0,
        seed: args.seed,
        namespace: crate::fill::NAMESPACE.into(),
        phase: vec![Phase { name: "measured".into(), length, factor: 1.0 }],
        ..Settings::default()
    }
}

fn with(snapshots: bool) -> &'static str {
    if snapshots { "with" } else { "without" }
}

impl Measurement {
    fn new(snapshots: bool, saved: usize, found: &Found) -> Self {
        let mut measurement = Self {
            snapshots,
            saved,
            acquire: Percentiles::default(),
            release: Percentiles::default(),
            not_done: BTreeMap::new(),
        };
        for phase in &found.phases {
            let of = |operation| phase.operations.of(operation);
            measurement.acquire = of(Operation::Acquire).latency.percentiles();
            measurement.release = of(Operation::Release).latency.percentiles();
            measurement.not_done.extend(phase.operations.not_done());
        }
        measurement
    }
}

impl fmt::Display for SnapshotImpactReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\nLatencies of acquire and release from the intended start.\n",
            self.machine
        )?;
        writeln!(
            f,
            "{:<11}{:<9}{:>50}",
            "snapshots", "", "p50       p95       p99     p99.9       max"
        )?;
        for found in &self.measurements {
            let (word, saved) = (with(found.snapshots), found.saved);
            writeln!(f, "{word:<7} {saved:>3} acquire {}", found.acquire)?;
            writeln!(f, "{:<11} release {}", "", found.release)?;
            if !found.not_done.is_empty() {
                writeln!(f, "{:<11} not done: {:?}", "", found.not_done)?;
            }
        }
        let Self { without_us, with_us, .. } = self;
        let (ratio, verdict) =
            (self.ratio.unwrap_or_default(), if self.met { "met" } else { "missed" });
        writeln!(
            f,
            "\nmedian of acquire p99.9: {without_us} µs without, {with_us} µs with: {ratio} times (at most 2: {verdict})"
        )
    }
}
