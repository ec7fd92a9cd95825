//! `sereno jobs force-release`

use super::InNamespace;
use crate::{failure::Failure, output::Output, values};
use clap::Args;
use sereno_client::Client;

/// End an attempt, in an operator's name.
///
/// Its replica learns of it at its next renewal, not before: what it has under way may still reach the protected
/// resource, which has to refuse it by its token. The slot may be claimed again, within the retries.
#[derive(Clone, Debug, Args)]
pub(crate) struct ForceReleaseArgs {
    /// The job.
    #[arg(value_parser = values::job)]
    name: String,
    /// The token of the attempt to end, as `sereno jobs get` shows it.
    #[arg(long, value_name = "TOKEN", value_parser = values::whole)]
    token: u64,
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
    let answer = client.force_release_run(namespace, &args.name, args.token, &args.reason).await?;
    args.output.answer(&answer, |answer| {
        format!("the attempt of {} with token {} is ended", args.name, answer.fencing_token)
    })
}
