//! `sereno elections`: look at elections, follow them, and end terms.

mod end;
mod get;
mod ls;
mod observe;

use crate::{connect::Service, failure::Failure, locks::InNamespace, values};
use clap::{Args, Subcommand};
use sereno_client::api::ErrorCode;

/// Look at elections, follow them, and end terms.
#[derive(Clone, Debug, Args)]
pub(crate) struct ElectionsArgs {
    #[command(flatten)]
    service: Service,
    #[command(subcommand)]
    command: ElectionsCommand,
}

/// What to do with elections.
#[derive(Clone, Debug, Subcommand)]
enum ElectionsCommand {
    /// List elections that have a leader, the oldest term first.
    Ls(ls::LsArgs),
    /// Show one election: its leader and its queue.
    Get(get::GetArgs),
    Observe(observe::ObserveArgs),
    /// Resign a term by its secret id.
    Resign(end::ResignArgs),
    Handoff(end::HandoffArgs),
    ForceRelease(end::ForceReleaseArgs),
}

/// Which election.
#[derive(Clone, Debug, Args)]
pub(crate) struct Which {
    /// The election.
    #[arg(value_parser = values::resource)]
    name: String,
    #[command(flatten)]
    at: InNamespace,
}

/// What helps with elections where something else helps with locks.
pub(crate) const HINTS: [(ErrorCode, &str); 2] = [
    (ErrorCode::Locked, "Wait with --wait, or look at the leader with `sereno elections get`."),
    (
        ErrorCode::NotHolder,
        "Read the present term with `sereno elections get`: somebody else may lead by now.",
    ),
];

pub(crate) async fn run(ElectionsArgs { service, command }: ElectionsArgs) -> Result<u8, Failure> {
    let client = service.client()?;
    let done = match command {
        ElectionsCommand::Ls(args) => ls::run(&client, args).await,
        ElectionsCommand::Get(args) => get::run(&client, args).await,
        ElectionsCommand::Observe(args) => observe::run(&client, args).await,
        ElectionsCommand::Resign(args) => end::resign(&client, args).await,
        ElectionsCommand::Handoff(args) => end::hand_off(&client, args).await,
        ElectionsCommand::ForceRelease(args) => end::force_release(&client, args).await,
    };
    done.map_err(|failure| failure.hints(&HINTS))
}
