//! `sereno guard`, `sereno guard-proxy`: the other half of a fencing token.

mod file;
mod proxy;
mod report;

pub(crate) use proxy::{ProxyArgs, run as run_proxy};

use crate::{failure::Failure, output::write};
use clap::{Args, Subcommand};
use sereno_guard::{POSTGRES_SQL, REDIS_SCRIPT};

/// Check fencing tokens where the protected resource is.
///
/// See also `sereno guard-proxy`, for HTTP services.
#[derive(Clone, Debug, Args)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    command: GuardCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum GuardCommand {
    File(Box<file::FileArgs>),
    /// Print the SQL that installs the fence in PostgreSQL: `sereno guard postgres-sql | psql`.
    PostgresSql,
    /// Print the Lua script that sets keys in Redis behind a fence.
    RedisScript,
}

pub(crate) async fn run(args: GuardArgs) -> Result<u8, Failure> {
    match args.command {
        GuardCommand::File(args) => file::run(*args).await,
        GuardCommand::PostgresSql => write(POSTGRES_SQL.trim_end()).map(|()| 0),
        GuardCommand::RedisScript => write(REDIS_SCRIPT.trim_end()).map(|()| 0),
    }
}
