//! What upkeep costs callers: the same load on three zones without and with snapshots, trimming and compaction, in
//! alternation; and how large etcd's database becomes with it.

mod report;
mod watch;

pub use report::{Measurement, UpkeepReport};
pub use watch::Size;

use crate::{
    error::Error,
    fill::put_namespace,
    open::{self, Load, Phase, Settings},
    process::ServeArgs,
    report::{Machine, Output},
    zones::{Work, Zones},
};
use sereno_api::{Millis, Policy};
use std::time::Duration;
use tokio::sync::oneshot;

/// The load of DESIGN.md section 17 on three zones, without and with the upkeep of the log: acquire p99.9 of both, and
/// their ratio; then the size of etcd's database over a longer time.
///
/// Starts three members of etcd (Debian: etcd-server, etcd-client) and three nodes. In alternation the nodes run
/// without snapshots, trimming and compaction, and with all three far more often than by default; the ratio is that
/// of the medians. Then they run for --minutes with the defaults, and the largest file of etcd's counts.
#[derive(Clone, Debug, clap::Args)]
pub struct UpkeepArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub settings: Settings,

    /// How long each measurement lasts, after its warm-up.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,

    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,

    /// With upkeep: a snapshot and a trim this often, and etcd's history is this long.
    #[arg(long, default_value = "20s", value_name = "DURATION")]
    pub every: Millis,

    /// How long the size of etcd's database is watched with the default settings; 0: not at all.
    #[arg(long, default_value_t = 30)]
    pub minutes: u64,

    /// Exit with 2 if p99.9 is more than three times as high with upkeep, or etcd's database reaches 1 GiB.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result (text: Markdown).
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `sereno-bench upkeep`
///
/// # Errors
/// A process does not come up, or there was upkeep when there should be none, or none when there should be some.
pub async fn run(args: &UpkeepArgs) -> Result<UpkeepReport, Error> {
    args.settings.check()?;
    if !args.settings.phase.is_empty() {
        return Err(Error::Usage(
            "--phase: the phases are those of --seconds and --minutes".into(),
        ));
    }
    let machine = Machine::look_with(args.settings.seed);
    let mut zones = Zones::start_etcd(&args.serve_args)?;
    let mut measurements = Vec::new();
    for round in 0..args.rounds {
        // Whoever comes second finds more in the log: take turns.
        let first = round % 2 == 1;
        for upkeep in [first, !first] {
            zones.start_nodes(&flags(args, upkeep)).await?;
            let found = measure(args, &zones, upkeep, Duration::from_secs(args.seconds)).await?;
            eprintln!("round {}: {}", round + 1, found.summary());
            check_work(upkeep, &found.work)?;
            measurements.push(found);
        }
    }
    let mut long = None;
    if args.minutes > 0 {
        zones.start_nodes(&[]).await?;
        long = Some(measure(args, &zones, true, Duration::from_secs(args.minutes * 60)).await?);
    }
    Ok(UpkeepReport::new(machine, measurements, long))
}

fn flags(args: &UpkeepArgs, upkeep: bool) -> Vec<String> {
    let every = args.every.to_string();
    let words = if upkeep {
        vec!["--snapshot-every", &every, "--etcd-history", &every]
    } else {
        vec!["--snapshot-every", "24h", "--snapshot-bytes", "1000GiB", "--etcd-compact=false"]
    };
    words.into_iter().map(str::to_owned).collect()
}

async fn measure(
    args: &UpkeepArgs,
    zones: &Zones,
    upkeep: bool,
    length: Duration,
) -> Result<Measurement, Error> {
    let phase = Phase { name: "measured".into(), length, factor: 1.0 };
    let address = zones.node(zones.leader().await?).address;
    // Names that the last measurement left held are nobody's here.
    let namespace = format!("upkeep-{:08x}", rand::random::<u32>());
    put_namespace(address, &namespace, Policy::default()).await?;
    let settings = Settings { phase: vec![phase], namespace, ..args.settings.clone() };
    let (started, start) = oneshot::channel();
    let load =
        open::measure(Load { started: Some(started), ..Load::new(&settings, vec![address]) });
    let warm_up = Duration::from_millis(settings.warm_up.0);
    let (found, watched) = tokio::join!(load, watch::over(zones, start, warm_up, length));
    let (found, (work, sizes)) = (found?, watched?);
    Ok(Measurement::new(upkeep, &found, work, sizes))
}

fn check_work(upkeep: bool, work: &Work) -> Result<(), Error> {
    let is_right = if upkeep { work.is_complete() } else { work.is_nothing() };
    if is_right {
        return Ok(());
    }
    let why = format!("with upkeep: {upkeep}, and this was seen: {work:?}");
    Err(Error::Service { call: "upkeep".into(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_has_to_have_the_upkeep_that_it_is_about() {
        let some = Work { snapshots: 3, trims: 1, compacted_keys: 9, ..Work::default() };
        assert!(check_work(true, &some).is_ok() && check_work(false, &Work::default()).is_ok());
        for partly in [
            Work { snapshots: 0, ..some.clone() },
            Work { trims: 0, ..some.clone() },
            Work { compacted_keys: 0, ..some.clone() },
        ] {
            assert!(check_work(true, &partly).is_err());
        }
        assert!(check_work(false, &some).is_err());
    }
}
