//! The command line as a whole.

use crate::{connect::Service, lock::LockArgs};
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
    Lock(Box<LockArgs>),
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
}
