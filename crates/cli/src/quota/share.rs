//! `sereno quota share`: capacity that another region may use by itself.

use super::{
    node::{self, Amount},
    quotas,
};
use crate::{failure::Failure, locks::InNamespace, output::Output, values};
use clap::{Args, Subcommand};
use sereno_client::{Client, api::Shared};

/// Lend capacity to another region, and get it back. `sereno quota get` shows what is lent.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShareArgs {
    #[command(subcommand)]
    command: ShareCommand,
}

/// What to do with shares.
#[derive(Clone, Debug, Subcommand)]
enum ShareCommand {
    Grant(GrantArgs),
    Return(ReturnArgs),
    Reclaim(ReclaimArgs),
}

/// Lend capacity to a region until it gives it back: time alone never ends it.
///
/// Then give the region's own service the same limit: sereno quota set NODE --home HOME --limit AMOUNT.
#[derive(Clone, Debug, Args)]
struct GrantArgs {
    /// How much of which node.
    #[arg(value_name = "NODE=AMOUNT", value_parser = node::amount)]
    amount: Amount,
    /// To which region.
    #[arg(long, value_name = "REGION", value_parser = values::namespace)]
    region: String,
    /// So much of it may be lent again by `reclaim`, while the region may still use it: the worst overshoot.
    #[arg(long, value_name = "AMOUNT", default_value_t = 0, value_parser = node::units)]
    overdraft_cap: u64,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// Take back what the region gives back, and what it says it uses for good.
///
/// First lower the limit in the region's own service by both: sereno quota set NODE --limit LESS --refuse-debt.
#[derive(Clone, Debug, Args)]
struct ReturnArgs {
    /// The share's id, as `grant` has told it.
    #[arg(value_name = "SHARE", value_parser = node::id)]
    share: String,
    /// So much of it is free again. It first makes up for what a reclaim has lent.
    #[arg(long, value_name = "AMOUNT", default_value_t = 0, value_parser = node::units)]
    returned: u64,
    /// So much of it the region uses for good: it is committed here in the region's name, whatever the limit.
    #[arg(long, value_name = "AMOUNT", default_value_t = 0, value_parser = node::units)]
    spent: u64,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// Lend again what a region does not give back: at most the share's overdraft cap, once.
///
/// The region may still use all of its share. What it used shows as debt when it reports.
#[derive(Clone, Debug, Args)]
struct ReclaimArgs {
    /// The share's id, as `sereno quota get` shows it.
    #[arg(value_name = "SHARE", value_parser = node::id)]
    share: String,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(client: &Client, args: ShareArgs) -> Result<u8, Failure> {
    match args.command {
        ShareCommand::Grant(args) => grant(client, args).await?,
        ShareCommand::Return(args) => give_back(client, args).await?,
        ShareCommand::Reclaim(args) => reclaim(client, args).await?,
    }
    Ok(0)
}

async fn grant(client: &Client, args: GrantArgs) -> Result<(), Failure> {
    let Amount { node, amount } = &args.amount;
    let (quotas, cap) = (quotas(client, &args.at), args.overdraft_cap);
    let granted = quotas.grant_share(&node.quota, &node.path, &args.region, *amount, cap).await?;
    args.output.answer(&args.at.locate(granted), |it| text(&it.thing))
}

async fn give_back(client: &Client, args: ReturnArgs) -> Result<(), Failure> {
    if args.returned == 0 && args.spent == 0 {
        return Err(Failure::usage("give --returned, --spent or both"));
    }
    let quotas = quotas(client, &args.at);
    let shared = quotas.return_share(&args.share, args.returned, args.spent).await?;
    args.output.answer(&args.at.locate(shared), |it| text(&it.thing))
}

async fn reclaim(client: &Client, args: ReclaimArgs) -> Result<(), Failure> {
    let quotas = quotas(client, &args.at);
    let shared = quotas.reclaim_share(&args.share, &args.reason).await?;
    args.output.answer(&args.at.locate(shared), |it| text(&it.thing))
}

fn text(share: &Shared) -> String {
    let mut text = match share.amount {
        0 => format!("share {} has ended", share.share_id),
        amount => format!(
            "share {}: the region may use {amount}, {} are kept",
            share.share_id, share.kept
        ),
    };
    if share.reclaimed && share.amount > 0 {
        text.push_str("; it is reclaimed");
    }
    if let Some(commit) = share.commit_id {
        text.push_str(&format!("; what it used for good is commit {commit}"));
    }
    text
}
