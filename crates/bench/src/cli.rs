//! The command line.

use crate::{
    capacity::{self, CapacityArgs},
    closed::{self, ClosedArgs},
    error::Error,
    memory::{self, MemoryArgs},
    open::{self, OpenArgs},
    peers::{self, PeersArgs},
    report::print,
    restart::{self, RestartArgs},
    snapshot_impact::{self, SnapshotImpactArgs},
    takeover::{self, TakeoverArgs},
    upkeep::{self, UpkeepArgs},
};
use clap::{Parser, Subcommand};

/// Puts load on Sereno and on its peers, and tells what became of it.
///
/// Figures come from one machine, which the generator shares with what it measures. Each report therefore names
/// the cores, the load before the run and the CPU time spent on both sides. Exit code 0: done; 1: the run failed;
/// 2: a bound asked for with --check was missed.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    /// What to measure.
    #[command(subcommand)]
    pub command: Command,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[allow(missing_docs)]
    Open(Box<OpenArgs>),
    #[allow(missing_docs)]
    Closed(ClosedArgs),
    #[allow(missing_docs)]
    Peers(PeersArgs),
    #[allow(missing_docs)]
    SnapshotImpact(SnapshotImpactArgs),
    #[allow(missing_docs)]
    Memory(MemoryArgs),
    #[allow(missing_docs)]
    Takeover(TakeoverArgs),
    #[allow(missing_docs)]
    Upkeep(Box<UpkeepArgs>),
    #[allow(missing_docs)]
    Restart(RestartArgs),
    #[allow(missing_docs)]
    Capacity(CapacityArgs),
}

/// Carries a command out and writes its result; false: a bound was missed.
///
/// # Errors
/// The run failed.
pub async fn run(cli: &Cli) -> Result<bool, Error> {
    match &cli.command {
        Command::Open(args) => {
            let report = open::run(args).await?;
            print(&report, args.output)?;
            Ok(true)
        }
        Command::Closed(args) => {
            let report = closed::run(args).await?;
            print(&report, args.output)?;
            Ok(true)
        }
        Command::Peers(args) => {
            let report = peers::run(args).await?;
            print(&report, args.output)?;
            Ok(report.is_met() || !args.check)
        }
        Command::SnapshotImpact(args) => {
            let report = snapshot_impact::run(args).await?;
            print(&report, args.output)?;
            Ok(report.met || !args.check)
        }
        Command::Takeover(args) => {
            let report = takeover::run(args).await?;
            print(&report, args.output)?;
            Ok(report.met || !args.check)
        }
        Command::Upkeep(args) => {
            let report = upkeep::run(args).await?;
            print(&report, args.output)?;
            Ok(report.met || !args.check)
        }
        Command::Restart(args) => {
            let report = restart::run(args).await?;
            print(&report, args.output)?;
            Ok(report.met || !args.check)
        }
        Command::Capacity(args) => {
            let report = capacity::run(args).await?;
            print(&report, args.output)?;
            Ok(report.met || !args.check)
        }
        Command::Memory(args) => {
            let report = memory::run(args).await?;
            print(&report, args.output)?;
            Ok(report.met || !args.check)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        let Command::Takeover(args) = parse("bench takeover --pause --check").unwrap().command
        else {
            panic!("takeover")
        };
        assert_eq!(args.pause, Some(sereno_api::Millis(10_000)));
        let Command::Open(args) =
            parse("bench open --server http://a:1,http://b:2").unwrap().command
        else {
            panic!("open")
        };
        assert_eq!(args.server, ["http://a:1", "http://b:2"]);
        assert!(parse("bench open").is_err() && parse("bench peers --peers etcd").is_err());
    }
}
