//! The command line as a whole.

use crate::{
    audit::AuditArgs,
    completions::CompletionsArgs,
    connect::Service,
    demo::WorkerArgs,
    lock::LockArgs,
    locks::LocksCommand,
    namespace::NamespaceCommand,
    offline::{BackupArgs, DoctorArgs, RestoreArgs},
    status::StatusArgs,
    token_floor::TokenFloorArgs,
};
use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// Sereno: locks with leases and fencing tokens.
#[derive(Clone, Debug, Parser)]
#[command(name = "sereno", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub service: Service,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<sereno_server::Args>),
    Lock(Box<LockArgs>),
    /// Look at locks, and end them.
    #[command(subcommand)]
    Locks(LocksCommand),
    /// Look at what namespaces allow, and change it.
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Show the audit trail.
    Audit(AuditArgs),
    /// Show the condition of the service.
    Status(StatusArgs),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    /// Raise the floor of all tokens to come.
    TokenFloor(TokenFloorArgs),
    Doctor(DoctorArgs),
    /// Play the story that the service exists for: a paused holder wakes up late, and the fence holds.
    Demo,
    /// Write a script that completes commands in a shell.
    Completions(CompletionsArgs),
    /// The process beside `lock` that holds the deadline.
    #[command(name = crate::own::WATCHDOG, hide = true)]
    Watchdog,
    /// The process that becomes the command of `lock`.
    #[command(name = crate::own::LAUNCH, hide = true)]
    Launch {
        /// The pipe on which to wait.
        pipe: i32,
        /// What to become.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// The worker of `demo` that is paused.
    #[command(name = crate::own::DEMO_WORKER, hide = true)]
    DemoWorker(WorkerArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
