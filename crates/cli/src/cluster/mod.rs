//! `sereno cluster`: several nodes that share a log in etcd.

mod dev;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Work with a service of several nodes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ClusterCommand {
    Dev(dev::DevArgs),
}

pub(crate) fn run(args: &ClusterArgs) -> Result<u8, Failure> {
    match &args.command {
        ClusterCommand::Dev(args) => dev::run(args),
    }
}
