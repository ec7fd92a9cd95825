//! `sereno quota get`

use super::{
    node::{self, Node},
    quotas,
};
use crate::{
    failure::Failure,
    locks::InNamespace,
    output::{Output, human},
    wording::spelled,
};
use clap::Args;
use sereno_client::{
    Client, Quotas,
    api::{OwnerUse, QuotaNode, QuotaNodeRead, QuotaReport, Share},
};

/// Which node to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct GetArgs {
    /// The node: QUOTA or QUOTA/PATH.
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Node,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(client: &Client, args: GetArgs) -> Result<u8, Failure> {
    let read = whole(&quotas(client, &args.at), &args.node).await?;
    args.output.answer(&args.at.locate(read), |located| text(&located.thing))?;
    Ok(0)
}

/// With all owners.
async fn whole(quotas: &Quotas, node: &Node) -> Result<QuotaNodeRead, Failure> {
    let mut read = quotas.get(&node.quota, &node.path).await?;
    while let Some(cursor) = read.next_cursor.take() {
        let page = quotas.get_owners(&node.quota, &node.path, Some(&cursor)).await?;
        read.owners.extend(page.owners);
        read.next_cursor = page.next_cursor;
    }
    Ok(read)
}

fn text(read: &QuotaNodeRead) -> String {
    let node = &read.node;
    let mut lines = vec![Node::of(&node.quota, &node.path).to_string()];
    let rows = rules(node).into_iter().chain(books(node));
    lines.extend(rows.map(|(name, value)| format!("  {name:20} {value}")));
    lines.extend(read.owners.iter().map(owner));
    lines.extend(read.reports.iter().map(report));
    lines.extend(read.shares.iter().map(share));
    if node.sweep_pending {
        lines.push("  (reservations that have ended are still counted)".into());
    }
    lines.join("\n")
}

/// In the words that `set` takes.
fn rules(node: &QuotaNode) -> Vec<(&'static str, String)> {
    let guaranteed = match node.effective_guaranteed {
        all if all == node.guaranteed => all.to_string(),
        part => format!("{} ({part} count: the limit above is lower)", node.guaranteed),
    };
    let mut rows = vec![
        ("version", node.version.to_string()),
        ("limit", node.limit.to_string()),
        ("burst", node.burst.to_string()),
        ("guaranteed", guaranteed),
        ("weight", node.weight.to_string()),
        (
            "owner-reserved-max",
            node.owner_reserved_max.map_or("none".into(), |max| max.to_string()),
        ),
    ];
    if node.path.is_empty() {
        rows.push(("patience", node.patience.map_or("30s".into(), spelled)));
    }
    if let Some(home) = &node.home {
        rows.push(("home", home.clone()));
    }
    rows.push(("changed", format!("{} ago", human(node.updated_ago_ms))));
    rows
}

fn books(node: &QuotaNode) -> Vec<(&'static str, String)> {
    vec![
        ("committed", format!("{} ({} of the node itself)", node.committed, node.direct_committed)),
        ("reserved", format!("{} ({} of the node itself)", node.reserved, node.direct_reserved)),
        ("available", node.available.to_string()),
        ("debt", node.debt.to_string()),
        ("waiting", node.waiters.to_string()),
    ]
}

fn owner(owner: &OwnerUse) -> String {
    let mut text = format!("  used by {}: {}", owner.owner, owner.committed);
    for commit in &owner.commits {
        text.push_str(&format!("\n    commit {}  {} left", commit.commit_id, commit.left));
    }
    if owner.folded > 0 {
        text.push_str(&format!("\n    older commits together  {} left", owner.folded));
    }
    text
}

fn report(report: &QuotaReport) -> String {
    let drift = &report.drift;
    let done = if report.compensated { ", compensated" } else { "" };
    format!(
        "  report {} of {}, {} ago: {} seen, drift {:+}, {} in a row{done}",
        report.epoch,
        report.reporter,
        human(report.age_ms),
        drift.observed,
        drift.drift,
        drift.in_a_row
    )
}

fn share(share: &Share) -> String {
    let reclaimed = if share.reclaimed { ", reclaimed" } else { "" };
    format!(
        "  share {} of {}: {}, {} kept, overdraft cap {}{reclaimed}",
        share.share_id, share.owner, share.amount, share.kept, share.overdraft_cap
    )
}
