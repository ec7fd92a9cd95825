//! The load of DESIGN.md section 17 on three zones: steady, and with a node and a member of etcd killed.

mod bounds;
mod report;

pub use report::CapacityReport;

use crate::{
    error::Error,
    open::{self, Load, Phase, Settings},
    picture,
    process::{Busy, Cpu, Scheduled, ServeArgs},
    report::{Machine, Output},
    zones::{Moment, Work, Zones},
};
use sereno_api::Millis;
use std::{
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

const WARM_UP: Duration = Duration::from_secs(10);
/// The takeover and the backlog it leaves: told apart.
const TAKEOVER: Duration = Duration::from_secs(10);
/// Its phase begins so much earlier: what was due in the steady phase is answered by then.
const BEFORE: Duration = Duration::from_secs(1);
/// Nobody is turned away while nobody leads: each caller has a connection of its own, and waits.
const CONNECTIONS: usize = 8_192;
const PATIENCE: Millis = Millis(15_000);

/// The load of DESIGN.md section 17 on three nodes and three members of etcd: steady, then with the leader and the
/// member that leads etcd killed at the same moment, while snapshots, trimming and compaction go on.
///
/// Needs Debian's etcd-server and etcd-client. All callers ask the leader; when it does not answer they repeat the same
/// request at another node, as the SDK does. Three phases: steady; takeover (until 10 s after the kill, with the backlog);
/// degraded.
#[derive(Clone, Debug, clap::Args)]
pub struct CapacityArgs {
    /// Acquires a second, and as many releases.
    #[arg(long, default_value_t = 2_000.0, value_name = "RATE")]
    pub acquires: f64,

    /// Names that are used.
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    pub resources: u32,

    /// Leases held all the time, each renewed every 10 s.
    #[arg(long, default_value_t = 20_000, value_name = "COUNT")]
    pub active: usize,

    /// Leases in one renewal. 1: each renewal is a command of its own, and with the rest they are about 6,000 a second.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub renew_batch: usize,

    /// How long the steady and the degraded phase last, each.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,

    /// How often a snapshot, a trim and a compaction come.
    #[arg(long, default_value = "20s", value_name = "DURATION")]
    pub every: Millis,

    /// Decides names, shares and arrivals.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Draw latency over time into this SVG file, the faults marked.
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,

    /// Exit with 2 if a bound is missed. A phase shorter than --every has no snapshot, which misses one.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `sereno-bench capacity`
///
/// # Errors
/// A process does not come up, or an option is wrong.
pub async fn run(args: &CapacityArgs) -> Result<CapacityReport, Error> {
    let settings = settings(args);
    settings.check()?;
    let machine = Machine::look_with(args.seed);
    let every = args.every.to_string();
    let flags = ["--snapshot-every", &every, "--etcd-history", &every].map(str::to_owned);
    let mut zones = Zones::start(&args.serve_args, &flags).await?;
    let addresses = leader_first(&zones).await?;
    let (started, start) = oneshot::channel();
    let load = open::measure(Load { started: Some(started), ..Load::new(&settings, addresses) });
    let (found, did) = tokio::join!(load, go_through(&mut zones, start, args.seconds));
    let (found, did) = (found?, did?);
    if let Some(path) = &args.picture {
        picture::draw(path, &found.timeline, &marks(args.seconds))?;
    }
    Ok(CapacityReport::new(machine, args, &settings, found, did))
}

fn settings(args: &CapacityArgs) -> Settings {
    let phase = |name: &str, length| Phase { name: name.into(), length, factor: 1.0 };
    let length = Duration::from_secs(args.seconds);
    Settings {
        acquires: args.acquires,
        resources: args.resources,
        active: args.active,
        renew_batch: args.renew_batch,
        seed: args.seed,
        warm_up: Millis(WARM_UP.as_millis() as u64),
        phase: vec![
            phase("steady", length),
            phase("takeover", BEFORE + TAKEOVER),
            phase("degraded", length),
        ],
        connections: CONNECTIONS,
        drop_after: PATIENCE,
        timeout: PATIENCE,
        ..Settings::default()
    }
}

async fn leader_first(zones: &Zones) -> Result<Vec<SocketAddr>, Error> {
    let leader = zones.node(zones.leader().await?).address;
    let mut addresses = zones.addresses();
    addresses.sort_by_key(|address| *address != leader);
    Ok(addresses)
}

/// When the fault is, since the warm-up began.
fn fault_at(seconds: u64) -> Duration {
    WARM_UP + Duration::from_secs(seconds) + BEFORE
}

/// What the processes and the machine did in one phase.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Did {
    /// Upkeep and appends.
    #[serde(flatten)]
    pub work: Work,
    /// Nodes and members of etcd that ran.
    pub processes: usize,
    /// How many cores they had, and how long their threads waited for one: for each other's, the generator's, or that of
    /// another program.
    pub scheduled: Scheduled,
    /// CPU time of the generator, in cores.
    pub generator_cores: f64,
    /// All programs of this machine.
    pub machine: Busy,
    /// What other programs had, in cores.
    pub others_cores: f64,
}

/// Kills at the right moment; tells what was done in the steady and in the degraded phase.
async fn go_through(
    zones: &mut Zones,
    start: oneshot::Receiver<Instant>,
    seconds: u64,
) -> Result<[Did; 2], Error> {
    let Ok(start) = start.await else { return Ok(Default::default()) }; // The load tells why.
    let until = |at: Duration| tokio::time::sleep_until((start + at).into());
    let fault = fault_at(seconds);
    let leader = zones.leader().await?;
    until(WARM_UP).await;
    let before = look(zones).await?;
    until(fault - BEFORE).await;
    let steady = since(look(zones).await?, &before, seconds);
    until(fault).await;
    zones.kill_etcd_leader().await?;
    zones.kill(leader);
    until(fault + TAKEOVER).await;
    let before = look(zones).await?;
    until(fault + TAKEOVER + Duration::from_secs(seconds)).await;
    Ok([steady, since(look(zones).await?, &before, seconds)])
}

/// All counters at one moment.
struct Look {
    moment: Moment,
    processes: usize,
    scheduled: Scheduled,
    generator: Cpu,
    machine: Busy,
}

async fn look(zones: &Zones) -> Result<Look, Error> {
    let processes = zones.process_ids();
    Ok(Look {
        moment: Moment::of(zones).await?,
        processes: processes.len(),
        scheduled: Scheduled::of_all(&processes),
        generator: Cpu::own()?,
        machine: Busy::now(),
    })
}

fn since(now: Look, before: &Look, seconds: u64) -> Did {
    let scheduled = now.scheduled.since(before.scheduled, seconds as f64);
    let machine = now.machine.since(before.machine, Duration::from_secs(seconds));
    let generator = now.generator.since(before.generator).total().as_secs_f64();
    let generator_cores = round(generator / seconds.max(1) as f64);
    Did {
        work: now.moment.since(&before.moment),
        processes: now.processes,
        scheduled,
        generator_cores,
        machine,
        others_cores: round((machine.ran - scheduled.ran - generator_cores).max(0.0)),
    }
}

/// To two decimals.
fn round(cores: f64) -> f64 {
    (cores * 100.0).round() / 100.0
}

/// For the picture.
fn marks(seconds: u64) -> Vec<(u64, String)> {
    let fault = fault_at(seconds).as_secs();
    [
        (0, "warm-up"),
        (WARM_UP.as_secs(), "steady"),
        (fault, "leader and one etcd member killed"),
        (fault + TAKEOVER.as_secs(), "degraded"),
    ]
    .map(|(second, name)| (second, name.to_owned()))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn the_default_is_the_load_of_the_design() {
        let command = CapacityArgs::augment_args(clap::Command::new("capacity"));
        let matches = command.try_get_matches_from(["capacity"]).unwrap();
        let settings = settings(&CapacityArgs::from_arg_matches(&matches).unwrap());
        settings.check().unwrap();
        assert_eq!(settings.commands_per_second().round() as u64, 6_000);
    }

    #[test]
    fn what_is_nobodys_is_the_other_programs() {
        let at = |moment: f64, generator| Look {
            moment: Moment::default(),
            processes: 6,
            scheduled: Scheduled { ran: moment * 0.5, waited: moment * 2.0 },
            generator: Cpu { user: Duration::from_millis(generator), system: Duration::ZERO },
            machine: Busy { ran: moment * 1.9, stolen: 0.0 },
        };
        let did = since(at(20.0, 9_000), &at(10.0, 5_000), 10);
        let found = [did.scheduled.ran, did.generator_cores, did.machine.ran, did.others_cores];
        assert_eq!(format!("{found:?}"), "[0.5, 0.4, 1.9, 1.0]");
        let coarse = since(at(20.0, 90_000), &at(10.0, 5_000), 10);
        assert!(coarse.others_cores.abs() < 1e-9, "clocks of different grain: never below nothing");
    }
}
