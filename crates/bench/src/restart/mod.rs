//! How long a standby needs that comes back with nothing: of its state, its folder, or its trail.

mod report;

pub use report::{Restart, RestartReport, When};

use crate::{
    error::Error,
    fill::{Fill, fill},
    open::{self, Load, Phase, Settings},
    process::{Scheduled, ServeArgs},
    report::{Machine, Output, load},
    target::{ask_json, is_ready},
    zones::{NODES, Scrape, Zones},
};
use sereno_api::{Lock, Millis, Status};
use std::time::{Duration, Instant};

/// Of the load's names and arrivals.
const SEED: u64 = 1;
/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(10);
/// Before the next snapshot is due.
const JUST_BEFORE: Duration = Duration::from_secs(5);
/// Of the bytes that make one due.
const NEARLY: f64 = 0.95;
/// As the server has it.
const SNAPSHOT_BYTES: u64 = 256 << 20;
/// Longest to wait for a snapshot.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time from starting a standby whose folder was taken away until it is ready and answers a consistent read.
///
/// Starts three members of etcd (Debian: etcd-server, etcd-client) and three nodes, and writes a log through them. A
/// standby comes back three times: with the whole log to replay and no snapshot; halfway between two snapshots,
/// under load; and just before the next snapshot, under load, when there is most to replay.
#[derive(Clone, Debug, clap::Args)]
pub struct RestartArgs {
    /// Commands in the log: half of them acquires.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT")]
    pub commands: usize,

    /// How often snapshots are taken in the second and the third case.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub snapshot_every: Millis,

    /// Acquires a second, and as many releases, in the second and the third case.
    #[arg(long, default_value_t = 2_000.0, value_name = "RATE")]
    pub acquires: f64,

    /// Exit with 2 if it takes longer than 10 s.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result (text: Markdown).
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `sereno-bench restart`
///
/// # Errors
/// A process does not come up, or no snapshot is taken.
pub async fn run(args: &RestartArgs) -> Result<RestartReport, Error> {
    let size = size(args.commands);
    size.check()?;
    if Duration::from_millis(args.snapshot_every.0) < 4 * JUST_BEFORE {
        return Err(Error::Usage("--snapshot-every must be at least 20s".into()));
    }
    let machine = Machine::look_with(SEED);
    let never = ["--snapshot-every", "24h", "--snapshot-bytes", "1000GiB"].map(str::to_owned);
    let mut zones = Zones::start(&args.serve_args, &never).await?;
    let began = Instant::now();
    fill(zones.node(zones.leader().await?).address, size).await?;
    let fill_seconds = began.elapsed().as_secs_f64();
    let commands = commands(&zones).await?;
    eprintln!("{commands} commands in {fill_seconds:.0} s");
    let mut restarts = vec![bring_back(&mut zones, When::WholeLog).await?];
    take_snapshot(&mut zones).await?;
    let every = ["--snapshot-every".to_owned(), args.snapshot_every.to_string()];
    zones.start_nodes(&every).await?;
    restarts.extend(under_load(args, &mut zones).await?);
    Ok(RestartReport::new(machine, commands, fill_seconds, restarts))
}

/// What comes to about so many commands.
fn size(commands: usize) -> Fill {
    let active = commands / 50;
    Fill { resources: commands / 10, active, requests: commands.saturating_add(active) / 2 }
}

/// All that the nodes have appended.
async fn commands(zones: &Zones) -> Result<u64, Error> {
    let mut commands = 0.0;
    for number in 0..NODES {
        let scrape = Scrape::of(zones.node(number).address).await?;
        commands += scrape.value("sereno_batch_commands_sum", "");
    }
    Ok(commands as u64)
}

async fn take_snapshot(zones: &mut Zones) -> Result<(), Error> {
    zones.start_nodes(&["--snapshot-every".to_owned(), "3s".to_owned()]).await?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        for number in 0..NODES {
            if zones.node(number).status().await?.snapshot_age_ms.is_some() {
                return Ok(());
            }
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Err(Error::Service { call: "snapshot".into(), why: format!("none in {PATIENCE:?}") })
}

async fn under_load(args: &RestartArgs, zones: &mut Zones) -> Result<Vec<Restart>, Error> {
    let (begun, every) = (Instant::now(), Duration::from_millis(args.snapshot_every.0));
    let settings = load_settings(args);
    let leader = zones.node(zones.leader().await?).address;
    let restarts = async {
        until_due(zones, begun + every / 2, 0.5).await?;
        let halfway = bring_back(zones, When::Halfway).await?;
        until_due(zones, begun + every - JUST_BEFORE, NEARLY).await?;
        Ok(vec![halfway, bring_back(zones, When::JustBefore).await?])
    };
    tokio::select! {
        restarts = restarts => restarts,
        found = open::measure(Load::new(&settings, vec![leader])) => {
            found?;
            Err(Error::Service { call: "load".into(), why: "it ended before the restarts".into() })
        }
    }
}

/// As many leases and names as the log has: by default those of DESIGN.md section 17.
fn load_settings(args: &RestartArgs) -> Settings {
    let length = 2 * Duration::from_millis(args.snapshot_every.0);
    let size = size(args.commands);
    Settings {
        acquires: args.acquires,
        active: size.active,
        resources: u32::try_from(size.resources).unwrap_or(u32::MAX),
        phase: vec![Phase { name: "load".into(), length, factor: 1.0 }],
        seed: SEED,
        ..Settings::default()
    }
}

/// Until this moment, or until so much of the log that makes a snapshot due is there.
async fn until_due(zones: &Zones, at: Instant, share: f64) -> Result<(), Error> {
    let enough = (SNAPSHOT_BYTES as f64 * share) as u64;
    while Instant::now() < at && zones.status().await?.log_bytes_since_snapshot < enough {
        tokio::time::sleep(BETWEEN * 20).await;
    }
    Ok(())
}

/// Kills a standby, takes its folder away, and starts it again.
async fn bring_back(zones: &mut Zones, when: When) -> Result<Restart, Error> {
    let standby = zones.standby().await?;
    zones.kill(standby);
    zones.wipe(standby)?;
    let begun = Instant::now();
    zones.restart(standby).await?;
    let address = zones.node(standby).address;
    while !is_ready(address).await {
        tokio::time::sleep(BETWEEN).await;
    }
    let ready = begun.elapsed();
    let _: Lock = ask_json(address, "GET", "/v1/locks/restart/any", b"").await?;
    let answered = begun.elapsed();
    let status = zones.node(standby).status().await?;
    let process = zones.node(standby).child.id();
    let scheduled = Scheduled::of_all(&[process]).since(Scheduled::default(), 1.0);
    let restart = Restart::new(when, [ready, answered], &status, scheduled);
    eprintln!("{restart:?}");
    Ok(restart)
}

impl Restart {
    fn new(
        when: When,
        [ready, answered]: [Duration; 2],
        status: &Status,
        scheduled: Scheduled,
    ) -> Self {
        Self {
            when,
            ready_ms: ready.as_millis() as u64,
            answered_ms: answered.as_millis() as u64,
            replayed_bytes: status.log_bytes_since_snapshot,
            reply_records: status.reply_records,
            leases: status.leases,
            scheduled,
            load: load(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn the_load_is_that_of_the_design_and_grows_with_the_log() {
        let of = |line: &str| {
            let command = RestartArgs::augment_args(clap::Command::new("restart"));
            let matches = command.try_get_matches_from(line.split(' ')).unwrap();
            load_settings(&RestartArgs::from_arg_matches(&matches).unwrap())
        };
        let (full, small) = (of("restart"), of("restart --commands 10000"));
        assert_eq!((full.active, full.resources), (20_000, 100_000));
        assert_eq!((small.active, small.resources), (200, 1_000));
        small.check().unwrap();
    }

    #[test]
    fn a_log_has_as_many_commands_as_asked_for() {
        for commands in [100_000, 1_000_000] {
            let size = size(commands);
            size.check().unwrap();
            // Each request is acquired, and released unless it stays.
            assert_eq!(size.requests * 2 - size.active, commands);
        }
        assert!(super::size(1_000).check().is_err());
    }
}
