//! `sereno jobs put`

use super::InNamespace;
use crate::{failure::Failure, job::DefinitionArgs, output::Output, values};
use clap::Args;
use sereno_client::{Client, api::ErrorCode};

/// Create a job, or replace its definition.
///
/// Replicas that run follow it. One that is started later with other words puts its own: the last word counts. Where
/// schedule or zone change, slots before now that nobody has claimed count as finished.
#[derive(Clone, Debug, Args)]
pub(crate) struct PutArgs {
    /// The job.
    #[arg(value_parser = values::job)]
    name: String,
    #[command(flatten)]
    definition: DefinitionArgs,
    /// Only if it has this version; 0: only if there is none. [default: whatever there is]
    #[arg(long, value_name = "VERSION", value_parser = values::whole)]
    expected_version: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: PutArgs) -> Result<(), Failure> {
    let namespace = args.at.namespace.as_deref();
    let definition = args.definition.definition();
    definition
        .parse()
        .map_err(|error| Failure::usage(crate::job::in_options(&error.to_string())))?;
    let version = match args.expected_version {
        Some(version) => version,
        None => present_version(client, namespace, &args.name).await?,
    };
    let answer = client.put_job(namespace, &args.name, version, &definition).await?;
    args.output
        .answer(&answer, |answer| format!("{} has version {} now", answer.job, answer.version))
}

async fn present_version(
    client: &Client,
    namespace: Option<&str>,
    name: &str,
) -> Result<u64, Failure> {
    match client.get_job(namespace, name).await {
        Ok(job) => Ok(job.version),
        Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
