//! `sereno holds`: look at holds, and act for their owners.

mod act;
mod force_release;
mod get;
mod ls;

use crate::{connect::Service, failure::Failure};
use clap::{Args, Subcommand};
use sereno_client::api::ErrorCode;

/// Look at holds, and act for their owners.
#[derive(Clone, Debug, Args)]
pub(crate) struct HoldsArgs {
    #[command(flatten)]
    service: Service,
    #[command(subcommand)]
    command: HoldsCommand,
}

/// What to do with holds.
#[derive(Clone, Debug, Subcommand)]
enum HoldsCommand {
    /// List what is held, by name.
    Ls(ls::LsArgs),
    /// Show who has one resource.
    Get(get::GetArgs),
    Begin(act::BeginArgs),
    /// Renew a hold.
    Renew(act::RenewArgs),
    /// Let a hold go.
    Release(act::ReleaseArgs),
    ForceRelease(force_release::ForceReleaseArgs),
}

/// What helps with holds where something else helps with locks.
pub(crate) const HINTS: [(ErrorCode, &str); 2] = [
    (ErrorCode::Taken, "Offer something else, or look who has it with `sereno holds get`."),
    (
        ErrorCode::NotHolder,
        "See who has it, and with which fence, with `sereno holds get`. Once payment has begun only the fence lets it go.",
    ),
];

pub(crate) async fn run(HoldsArgs { service, command }: HoldsArgs) -> Result<u8, Failure> {
    let client = service.client()?;
    let done = match command {
        HoldsCommand::Ls(args) => ls::run(&client, args).await,
        HoldsCommand::Get(args) => get::run(&client, args).await,
        HoldsCommand::Begin(args) => act::begin(&client, args).await,
        HoldsCommand::Renew(args) => act::renew(&client, args).await,
        HoldsCommand::Release(args) => act::release(&client, args).await,
        HoldsCommand::ForceRelease(args) => force_release::run(&client, args).await,
    };
    done.map_err(|failure| failure.hints(&HINTS))
}
