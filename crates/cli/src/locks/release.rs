//! `sereno locks release`

use super::InNamespace;
use crate::{exit, failure::Failure, output::Output, values};
use clap::Args;
use sereno_client::{Client, Release, api::Reason};
use sereno_core::ids::LeaseId;

/// Which lease to release.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The lock.
    #[arg(value_parser = values::resource)]
    name: String,
    /// The secret from the grant. Better in the environment than here, where others can read it.
    #[arg(long, env = "SERENO_LEASE_ID", hide_env_values = true, value_name = "ID")]
    lease_id: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// What became of it.
#[derive(serde::Serialize)]
struct Answer {
    released: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) async fn run(client: &Client, args: ReleaseArgs) -> Result<u8, Failure> {
    check_lease_id(&args.lease_id)?;
    let namespace = args.at.namespace.as_deref();
    let answer = match client.release_lease(namespace, &args.name, &args.lease_id).await? {
        Release::Now => Answer { released: true, reason: None },
        Release::Before(how) => Answer { released: false, reason: Some(how.to_string()) },
    };
    args.output.answer(&answer, |answer| match &answer.reason {
        None => format!("{} is released", args.name),
        Some(how) if how == Reason::Unknown.as_str() => format!(
            "no such lease of {} is known: it was never granted, or has ended too long ago to be remembered; nothing \
             was changed",
            args.name
        ),
        Some(how) => format!("{} was not held by this lease any more ({how})", args.name),
    })?;
    Ok(if answer.released { 0 } else { exit::FAILED })
}

/// Looked at when it is used and not while parsing, for an error there repeats the value, and it is a secret.
pub(crate) fn check_lease_id(lease_id: &str) -> Result<(), Failure> {
    match LeaseId::from_hex(lease_id) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(
            "--lease-id: must be the leaseId of a grant: 32 hexadecimal digits in lower case",
        )),
    }
}
