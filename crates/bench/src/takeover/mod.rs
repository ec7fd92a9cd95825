//! How long the service is away when its leader is killed, or stopped and resumed: promise L2, on real processes.

mod client;
mod pause;
mod report;

pub use pause::Resumed;
pub use report::TakeoverReport;

use crate::{
    error::Error,
    process::ServeArgs,
    report::{Machine, Output},
    zones::Zones,
};
use client::Client;
use sereno_api::Millis;
use std::time::Duration;

/// The time from killing the leader (SIGKILL) until another node grants a lock, again and again.
///
/// Starts three members of etcd (Debian: etcd-server, etcd-client) and three nodes. After each kill all other nodes are
/// asked in turn, each time for another lock; then the killed node is started again and awaited. With --pause the
/// leader is stopped (SIGSTOP) instead, for that long, and resumed: then it is also told whether an acknowledged grant
/// was lost, whether anybody held what somebody else held, and how long the old leader took to step down.
#[derive(Clone, Debug, clap::Args)]
pub struct TakeoverArgs {
    /// How often. [default: 50, with --pause 10]
    #[arg(long, value_name = "COUNT")]
    pub tries: Option<usize>,

    /// Stop the leader for this long and resume it, instead of killing it.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "10s")]
    pub pause: Option<Millis>,

    /// Exit with 2 if one takes longer than 3 s, or a promise was broken.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `sereno-bench takeover`
///
/// # Errors
/// A process does not come up, or nobody takes over.
pub async fn run(args: &TakeoverArgs) -> Result<TakeoverReport, Error> {
    let machine = Machine::look();
    let mut zones = Zones::start(&args.serve_args, &[]).await?;
    let mut client = Client::default();
    let (mut away_ms, mut resumed) = (Vec::new(), Vec::new());
    let tries = args.tries.unwrap_or(if args.pause.is_some() { 10 } else { 50 });
    for number in 0..tries {
        let leader = zones.leader().await?;
        if let Some(pause) = args.pause {
            let length = Duration::from_millis(pause.0);
            let (away, found) = pause::try_once(&zones, leader, length, &mut client).await?;
            eprintln!("try {}: away for {away} ms, {found:?}", number + 1);
            away_ms.push(away);
            resumed.push(found);
        } else {
            zones.kill(leader);
            let (away, _) = client.until_granted(&zones.addresses()).await?;
            away_ms.push(away);
            zones.restart(leader).await?;
        }
        zones.all_serve().await?;
    }
    Ok(TakeoverReport::new(machine, away_ms, resumed))
}
