//! `sereno quota rm`

use super::{
    node::{self, Node},
    quotas,
};
use crate::{failure::Failure, locks::InNamespace, output::Output, values};
use clap::Args;
use sereno_client::Client;

/// Which node to remove.
#[derive(Clone, Debug, Args)]
pub(crate) struct RmArgs {
    /// The node; none may be below it.
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Node,
    /// Remove it only if it still has this version. [default: the version of now]
    #[arg(long, value_name = "VERSION", value_parser = values::whole)]
    expected_version: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(client: &Client, args: RmArgs) -> Result<u8, Failure> {
    let (quotas, node) = (quotas(client, &args.at), &args.node);
    let version = match args.expected_version {
        Some(version) => version,
        None => quotas.get(&node.quota, &node.path).await?.node.version,
    };
    let removed = quotas.remove_node(&node.quota, &node.path, version).await?;
    args.output.answer(&removed, |_| format!("{node} is removed"))?;
    Ok(0)
}
