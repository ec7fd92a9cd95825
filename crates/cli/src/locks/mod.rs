//! `sereno locks`: look at locks, and end them.

mod force_release;
pub(crate) mod get;
mod ls;
pub(crate) mod release;
mod watch;

use crate::{connect::Service, failure::Failure, values};
use clap::{Args, Subcommand};
use sereno_client::api::DEFAULT_NAMESPACE;

/// Look at locks, and end them.
#[derive(Clone, Debug, Args)]
pub(crate) struct LocksArgs {
    #[command(flatten)]
    service: Service,
    #[command(subcommand)]
    command: LocksCommand,
}

/// What to do with locks.
#[derive(Clone, Debug, Subcommand)]
enum LocksCommand {
    /// List held locks, oldest grant first.
    Ls(ls::LsArgs),
    /// Show one lock: its holder and its queue.
    Get(get::GetArgs),
    /// Release a lease by its secret id.
    Release(release::ReleaseArgs),
    ForceRelease(force_release::ForceReleaseArgs),
    Watch(watch::WatchArgs),
}

/// Where the locks, or whatever it is about, live.
#[derive(Clone, Debug, Args)]
pub(crate) struct InNamespace {
    /// The namespace. [default: default]
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    pub namespace: Option<String>,
}

/// What the service says of one thing, with where it lives.
#[derive(serde::Serialize)]
pub(crate) struct Located<T> {
    pub namespace: String,
    #[serde(flatten)]
    pub thing: T,
}

impl InNamespace {
    pub(crate) fn locate<T>(&self, thing: T) -> Located<T> {
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).into();
        Located { namespace, thing }
    }
}

pub(crate) async fn run(LocksArgs { service, command }: LocksArgs) -> Result<u8, Failure> {
    let client = service.client()?;
    match command {
        LocksCommand::Ls(args) => ls::run(&client, args).await?,
        LocksCommand::Get(args) => get::run(&client, args).await?,
        LocksCommand::Release(args) => return release::run(&client, args).await,
        LocksCommand::ForceRelease(args) => force_release::run(&client, args).await?,
        LocksCommand::Watch(args) => watch::run(&client, args).await?,
    }
    Ok(0)
}
