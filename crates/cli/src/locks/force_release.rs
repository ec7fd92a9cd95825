//! `sereno locks force-release`

use super::InNamespace;
use crate::{failure::Failure, output::Output, values};
use clap::{ArgGroup, Args};
use sereno_client::{Client, api::LockState};

/// End somebody's lease, in an operator's name.
///
/// The holder learns of it at its next renewal, not before: what it has under way may still reach the protected
/// resource, which has to refuse it by its token. The namespace's lock delay applies.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("whose").args(["token", "whoever_holds_it"]).required(true))]
pub(crate) struct ForceReleaseArgs {
    /// The lock.
    #[arg(value_parser = values::resource)]
    name: String,
    /// The token of the lease to end, as `sereno locks get` shows it: so that nobody else's is ended.
    #[arg(long, value_name = "TOKEN", value_parser = values::whole)]
    token: Option<u64>,
    /// End the lease of whoever holds it now.
    #[arg(long)]
    whoever_holds_it: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: ForceReleaseArgs) -> Result<(), Failure> {
    let namespace = args.at.namespace.as_deref();
    let token = match args.token {
        Some(token) => token,
        None => present_token(client, namespace, &args.name).await?,
    };
    let answer = client.force_release(namespace, &args.name, token, &args.reason).await?;
    args.output.answer(&answer, |answer| {
        format!("the lease of {} with token {} is ended", args.name, answer.fencing_token)
    })
}

async fn present_token(
    client: &Client,
    namespace: Option<&str>,
    name: &str,
) -> Result<u64, Failure> {
    let lock = client.get_lock(namespace, name).await?;
    match (lock.state, lock.holder) {
        (LockState::Held, Some(holder)) => Ok(holder.fencing_token),
        _ => Err(Failure::new(format!("nobody holds {name}"))),
    }
}
