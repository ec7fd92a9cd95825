//! The load of DESIGN.md section 17 on three zones: steady, and with a node and a member of etcd killed.

mod report;

pub use report::CapacityReport;

use crate::{
    error::Error,
    open::{self, Load, Phase, Settings},
    picture,
    process::{Scheduled, ServeArgs},
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

    /// Leases in one renewal. 1: single renewals, one for each lease.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
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

    /// Exit with 2 if a bound is missed.
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
    let machine = Machine::look();
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
    Ok(CapacityReport::new(machine, args, found, did))
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

/// What nodes and etcd did in one phase.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Did {
    /// Upkeep and appends.
    #[serde(flatten)]
    pub work: Work,
    /// How much of the machine all of them had, and how long they waited for it.
    pub scheduled: Scheduled,
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

async fn look(zones: &Zones) -> Result<(Moment, Scheduled), Error> {
    Ok((Moment::of(zones).await?, Scheduled::of_all(&zones.process_ids())))
}

fn since(now: (Moment, Scheduled), before: &(Moment, Scheduled), seconds: u64) -> Did {
    let scheduled = now.1.since(before.1, seconds as f64);
    Did { work: now.0.since(&before.0), scheduled }
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
