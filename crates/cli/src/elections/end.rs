//! `sereno elections resign`, `handoff` and `force-release`: the ways to end a term from outside.

use super::Which;
use crate::{exit, failure::Failure, locks::release::check_lease_id, output::Output, values};
use clap::{ArgGroup, Args};
use sereno_client::{
    Client, Release,
    api::{ErrorCode, Reason},
};

/// Which term to resign.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResignArgs {
    #[command(flatten)]
    which: Which,
    /// The secret from the grant. Better in the environment than here, where others can read it.
    #[arg(long, env = "SERENO_LEASE_ID", hide_env_values = true, value_name = "ID")]
    lease_id: String,
    #[command(flatten)]
    output: Output,
}

/// Hand a term over to a candidate who waits.
#[derive(Clone, Debug, Args)]
pub(crate) struct HandoffArgs {
    #[command(flatten)]
    which: Which,
    /// The candidate who leads next, as `sereno elections get` shows it in the queue.
    #[arg(long, value_name = "CANDIDATE", value_parser = values::owner)]
    to: String,
    /// The secret from the grant. Better in the environment than here, where others can read it.
    #[arg(long, env = "SERENO_LEASE_ID", hide_env_values = true, value_name = "ID")]
    lease_id: String,
    #[command(flatten)]
    output: Output,
}

/// End somebody's term, in an operator's name.
///
/// The leader learns of it at its next renewal, not before: what it has under way may still reach the resources that it
/// writes to, which have to refuse it by its term. The namespace's lock delay applies.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("whose").args(["term", "whoever_leads"]).required(true))]
pub(crate) struct ForceReleaseArgs {
    #[command(flatten)]
    which: Which,
    /// The term to end, as `sereno elections get` shows it: so that nobody else's is ended.
    #[arg(long, value_name = "TERM", value_parser = values::whole)]
    term: Option<u64>,
    /// End the term of whoever leads now.
    #[arg(long)]
    whoever_leads: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    output: Output,
}

/// What became of a resignation.
#[derive(serde::Serialize)]
struct Answer {
    released: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) async fn resign(client: &Client, args: ResignArgs) -> Result<u8, Failure> {
    check_lease_id(&args.lease_id)?;
    let Which { name, at } = &args.which;
    let released = client.resign_term(at.namespace.as_deref(), name, &args.lease_id).await?;
    let answer = match released {
        Release::Now => Answer { released: true, reason: None },
        Release::Before(how) => Answer { released: false, reason: Some(how.to_string()) },
    };
    args.output.answer(&answer, |answer| match &answer.reason {
        None => format!("{name} is resigned"),
        Some(how) if how == Reason::Unknown.as_str() => format!(
            "no such term of {name} is known: there never was one, or it has ended too long ago to be remembered; \
             nothing was changed"
        ),
        Some(how) => format!("{name} was not led by this term any more ({how})"),
    })?;
    Ok(if answer.released { 0 } else { exit::FAILED })
}

pub(crate) async fn hand_off(client: &Client, args: HandoffArgs) -> Result<u8, Failure> {
    check_lease_id(&args.lease_id)?;
    let Which { name, at } = &args.which;
    let handed = client
        .hand_off_term(at.namespace.as_deref(), name, &args.lease_id, &args.to)
        .await
        .map_err(|error| {
            let nobody = "Nothing has changed. See who waits with `sereno elections get`.";
            Failure::from(error).hints(&[(ErrorCode::NotFound, nobody)])
        })?;
    args.output.answer(&handed, |handed| {
        format!("{} leads {name} now, with term {}", args.to, handed.term)
    })?;
    Ok(0)
}

pub(crate) async fn force_release(client: &Client, args: ForceReleaseArgs) -> Result<u8, Failure> {
    let Which { name, at } = &args.which;
    let namespace = at.namespace.as_deref();
    let term = match args.term {
        Some(term) => term,
        None => {
            let leader = client.get_election(namespace, name).await?.leader;
            leader.ok_or_else(|| Failure::new(format!("nobody leads {name}")))?.term
        }
    };
    let answer = client.force_resign(namespace, name, term, &args.reason).await?;
    args.output.answer(&answer, |answer| {
        format!("the term {} of {name} is ended", answer.fencing_token)
    })?;
    Ok(0)
}
