//! `sereno guard file`: a command that works on a file or a folder, behind a fence.

use super::report::{Reports, settle};
use crate::{exit, failure::Failure, values};
use clap::Args;
use sereno_guard::{FileFence, FileFenceError, FileGuard, TOKEN_MAX};
use std::{
    ffi::OsString, os::unix::process::CommandExt, path::PathBuf, process::Command, time::Duration,
};

/// Before the command runs, and after a refusal: nobody shall wait long for a service that is away.
const SETTLE_BEFORE: Duration = Duration::from_millis(300);
const SETTLE_AFTER: Duration = Duration::from_secs(2);

/// Run a command that works on a file or a folder, unless a newer owner has been there.
///
/// The highest token is kept beside it, in the folder PATH.sereno-fence. An older
/// token is refused. A newer one counts from now on, and its command runs when
/// the one of an older owner (or of the same) has ended, with all that it has
/// started. This process becomes the command, so signals and exit code are its own.
///
///   sereno lock report -- sereno guard file report.csv -- ./write-report
///
/// takes token and fence key from `sereno lock`. Every writer has to go through
/// the guard, by the same PATH. The command still has to be idempotent.
///
/// Exit code: the command's own, or
///     2  wrong usage; the command did not run, as for all below
///   117  fenced: a newer token was shown, another owner has taken over
///   118  the wait is over and an earlier command still works there
///   119  the fence could not be read or written, or is damaged
///   126  the command cannot be run
///   127  the command was not found
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FileArgs {
    #[command(flatten)]
    reports: Reports,

    /// What is protected: a file or a folder, which need not exist yet.
    path: PathBuf,

    /// The fencing token of the owner for whom the command runs.
    #[arg(long, env = "SERENO_TOKEN", value_name = "TOKEN", value_parser = values::number(1, TOKEN_MAX))]
    token: u64,

    /// The fence key that the token belongs to. Tokens of another key than those before are refused (119).
    /// [default: any]
    #[arg(long, env = "SERENO_FENCE_KEY", value_name = "KEY")]
    fence_key: Option<String>,

    /// Wait at most so long for an earlier command that works there.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    wait: Duration,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) async fn run(args: FileArgs) -> Result<u8, Failure> {
    let reporter = args.reports.reporter(&format!("file {}", args.path.display()))?;
    let mut fence = FileFence::at(&args.path).map_err(failure)?;
    if let Some(reporter) = &reporter {
        fence = fence.reporting(reporter.clone());
    }
    let key = args.fence_key.as_deref().filter(|key| !key.is_empty());
    let entered = fence.enter(args.token, key, args.wait);
    let within = if entered.is_ok() { SETTLE_BEFORE } else { SETTLE_AFTER };
    settle(reporter.as_ref(), within).await;
    match entered {
        Ok(guard) => Err(become_command(guard, &args)),
        Err(error) => Err(failure(error)),
    }
}

/// Returns only if that is impossible. What is locked stays so until the command and all it starts have ended, even if
/// they are killed.
fn become_command(guard: FileGuard, args: &FileArgs) -> Failure {
    let Some((program, arguments)) = args.command.split_first() else {
        return Failure::usage("no command");
    };
    let token = guard.token().to_string();
    if let Err(error) = guard.leave_to_exec() {
        return failure(error);
    }
    let mut command = Command::new(program);
    command.args(arguments).env("SERENO_TOKEN", token);
    if let Some(key) = &args.fence_key {
        command.env("SERENO_FENCE_KEY", key);
    }
    let error = command.exec();
    Failure::io(&format!("running {}", program.display()), &error).exit(exit::of_exec_error(&error))
}

fn failure(error: FileFenceError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        FileFenceError::Refused(_) => {
            failure.exit(exit::FENCED).hint("The command did not run. Do not repeat it with this token.")
        }
        FileFenceError::Busy { .. } => failure
            .exit(exit::GUARD_BUSY)
            .hint("The command did not run. Wait longer with --wait; older tokens are refused by now."),
        FileFenceError::OtherKey { .. } => failure
            .exit(exit::GUARD_FAILED)
            .hint("One lock for one path. If it has got another lock for good, and no owner of the old one is left, remove the .sereno-fence folder."),
        FileFenceError::Invalid(_) => failure.exit(exit::USAGE),
        FileFenceError::Damaged { .. } => failure
            .exit(exit::GUARD_FAILED)
            .hint("The highest token is not known any more. When no owner is left, remove the .sereno-fence folder."),
        _ => failure.exit(exit::GUARD_FAILED),
    }
}
