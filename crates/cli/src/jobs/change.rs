//! `sereno jobs pause`, `resume`, `skip`, `run-now`

use super::InNamespace;
use crate::{failure::Failure, output::Output, values};
use clap::Args;
use sereno_client::{Client, api::JobChanged};

/// Which job, and why.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// The job.
    #[arg(value_parser = values::job)]
    name: String,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// Leave one slot out: it counts as finished. Not while an attempt on it is under way.
#[derive(Clone, Debug, Args)]
pub(crate) struct SkipArgs {
    /// The slot, as `sereno jobs get` shows it.
    #[arg(long, value_name = "INSTANT", value_parser = values::slot)]
    slot: String,
    #[command(flatten)]
    change: ChangeArgs,
}

impl ChangeArgs {
    fn namespace(&self) -> Option<&str> {
        self.at.namespace.as_deref()
    }

    fn tell(
        &self,
        answer: &JobChanged,
        text: impl FnOnce(&JobChanged) -> String,
    ) -> Result<(), Failure> {
        self.output.answer(answer, text)
    }
}

pub(crate) async fn pause(client: &Client, args: ChangeArgs) -> Result<(), Failure> {
    let answer = client.pause_job(args.namespace(), &args.name, &args.reason).await?;
    args.tell(&answer, |answer| format!("{} is paused", answer.job))
}

pub(crate) async fn resume(client: &Client, args: ChangeArgs) -> Result<(), Failure> {
    let answer = client.resume_job(args.namespace(), &args.name, &args.reason).await?;
    args.tell(&answer, |answer| format!("{} goes on", answer.job))
}

pub(crate) async fn skip(client: &Client, args: SkipArgs) -> Result<(), Failure> {
    let SkipArgs { slot, change } = args;
    let answer = client.skip_slot(change.namespace(), &change.name, &slot, &change.reason).await?;
    change.tell(&answer, |answer| format!("slot {slot} of {} is left out", answer.job))
}

/// For an extra slot at this moment.
pub(crate) async fn run_now(client: &Client, args: ChangeArgs) -> Result<(), Failure> {
    let answer = client.run_job_now(args.namespace(), &args.name, &args.reason).await?;
    args.tell(&answer, |answer| {
        let slot = answer.slot.as_deref().unwrap_or("now");
        let paused = if answer.paused { "; it is paused, so not before it is resumed" } else { "" };
        format!("{} has an extra slot, {slot}, for any replica to claim{paused}", answer.job)
    })
}
