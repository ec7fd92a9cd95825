//! `sereno jobs`: look at scheduled jobs and their ledgers, and steer them.

mod change;
mod force_release;
mod get;
mod ls;
mod put;

use crate::{connect::Service, failure::Failure, values};
use clap::{Args, Subcommand};
use sereno_client::api::{DEFAULT_NAMESPACE, ErrorCode};

/// Look at scheduled jobs, and steer them.
#[derive(Clone, Debug, Args)]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    service: Service,
    #[command(subcommand)]
    command: JobsCommand,
}

/// What to do with jobs.
#[derive(Clone, Debug, Subcommand)]
enum JobsCommand {
    /// List jobs, by name.
    Ls(ls::LsArgs),
    /// Show one job: its definition and its ledger.
    Get(get::GetArgs),
    Put(put::PutArgs),
    /// Let nothing of the job be claimed until it is resumed. Runs under way go on.
    Pause(change::ChangeArgs),
    /// Let a paused job go on.
    Resume(change::ChangeArgs),
    Skip(change::SkipArgs),
    /// Ask for an extra run at this moment, by whichever replica claims it first.
    RunNow(change::ChangeArgs),
    ForceRelease(force_release::ForceReleaseArgs),
}

/// Where the jobs live.
#[derive(Clone, Debug, Args)]
pub(crate) struct InNamespace {
    /// The namespace. [default: default]
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    pub namespace: Option<String>,
}

/// What the service says of one job, with where it lives.
#[derive(serde::Serialize)]
struct Located<T> {
    namespace: String,
    #[serde(flatten)]
    job: T,
}

impl InNamespace {
    fn locate<T>(&self, job: T) -> Located<T> {
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).into();
        Located { namespace, job }
    }
}

pub(crate) async fn run(JobsArgs { service, command }: JobsArgs) -> Result<u8, Failure> {
    let client = service.client()?;
    let done = match command {
        JobsCommand::Ls(args) => ls::run(&client, args).await,
        JobsCommand::Get(args) => get::run(&client, args).await,
        JobsCommand::Put(args) => put::run(&client, args).await,
        JobsCommand::Pause(args) => change::pause(&client, args).await,
        JobsCommand::Resume(args) => change::resume(&client, args).await,
        JobsCommand::Skip(args) => change::skip(&client, args).await,
        JobsCommand::RunNow(args) => change::run_now(&client, args).await,
        JobsCommand::ForceRelease(args) => force_release::run(&client, args).await,
    };
    done.map(|()| 0).map_err(with_hint)
}

/// Of jobs; the general hints speak of locks.
fn with_hint(failure: Failure) -> Failure {
    match failure.problem.as_ref().map(|problem| problem.code) {
        Some(ErrorCode::NotFound) => failure
            .hint("List jobs with `sereno jobs ls`, and namespaces with `sereno namespace ls`."),
        Some(ErrorCode::NotHolder | ErrorCode::RunClaimed | ErrorCode::RunFinished) => failure
            .hint("Look at its runs with `sereno jobs get`: they may have gone on meanwhile."),
        _ => failure,
    }
}
