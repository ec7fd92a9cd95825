//! `sereno quota tree`

use super::{
    node::{self, Node},
    quotas,
};
use crate::{
    failure::Failure,
    locks::{InNamespace, Located},
    output::{Output, table},
};
use clap::Args;
use sereno_client::{Client, ListNodes, Quotas, api::QuotaNode};

/// Which nodes to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct TreeArgs {
    /// Only this node and what is below it. [default: all quotas]
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Option<Node>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

const PAGE_ROWS: usize = 1_000;

pub(super) async fn run(client: &Client, args: TreeArgs) -> Result<u8, Failure> {
    let quotas = quotas(client, &args.at);
    let nodes = match &args.node {
        Some(node) => below(&quotas, node).await?,
        None => all(&quotas).await?,
    };
    let rows: Vec<_> = nodes.into_iter().map(|node| args.at.locate(node)).collect();
    args.output.answer(&rows, |rows| text(rows))?;
    Ok(0)
}

async fn all(quotas: &Quotas) -> Result<Vec<QuotaNode>, Failure> {
    let mut nodes = Vec::new();
    for root in pages(quotas, ListNodes::default()).await? {
        nodes.extend(below(quotas, &Node::of(&root.quota, "")).await?);
    }
    Ok(nodes)
}

/// A node, and what is below it, in the order of paths.
async fn below(quotas: &Quotas, node: &Node) -> Result<Vec<QuotaNode>, Failure> {
    let Node { quota, path } = node;
    let list =
        ListNodes { quota: Some(quota.clone()), prefix: path.clone(), ..ListNodes::default() };
    let mut nodes = pages(quotas, list).await?;
    nodes.retain(|node| is_within(&node.path, path));
    if nodes.is_empty() {
        // It says that there is no such node.
        quotas.get(quota, path).await?;
    }
    nodes.sort_by(|one, other| segments(&one.path).cmp(segments(&other.path)));
    Ok(nodes)
}

async fn pages(quotas: &Quotas, mut list: ListNodes) -> Result<Vec<QuotaNode>, Failure> {
    list.limit = Some(PAGE_ROWS);
    let mut nodes = Vec::new();
    loop {
        let page = quotas.list(&list).await?;
        nodes.extend(page.nodes);
        match page.next_cursor {
            Some(cursor) => list.cursor = Some(cursor),
            None => return Ok(nodes),
        }
    }
}

/// `acmeco` begins like `acme`, and is not below it.
fn is_within(path: &str, top: &str) -> bool {
    match path.strip_prefix(top) {
        Some(rest) => top.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

fn text(rows: &[Located<QuotaNode>]) -> String {
    let or_dash = |amount: u64| if amount == 0 { "-".into() } else { amount.to_string() };
    let cells = |Located { thing: node, .. }: &Located<QuotaNode>| {
        let depth = segments(&node.path).count();
        let name = segments(&node.path).last().unwrap_or(&node.quota);
        vec![
            format!("{}{name}", "  ".repeat(depth)),
            node.limit.to_string(),
            or_dash(node.burst),
            or_dash(node.guaranteed),
            node.weight.to_string(),
            node.committed.to_string(),
            node.reserved.to_string(),
            node.available.to_string(),
            or_dash(node.debt),
            or_dash(node.waiters),
            node.home.clone().unwrap_or_default(),
        ]
    };
    let head = [
        "NODE",
        "LIMIT",
        "BURST",
        "GUARANTEED",
        "WEIGHT",
        "USED",
        "RESERVED",
        "AVAILABLE",
        "DEBT",
        "WAITING",
        "HOME",
    ];
    table(&head, &rows.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_alike_is_not_below() {
        for (path, top, within) in [
            ("acme", "acme", true),
            ("acme/vision", "acme", true),
            ("acmeco", "acme", false),
            ("bolt", "", true),
            ("", "", true),
            ("", "acme", false),
        ] {
            assert_eq!(is_within(path, top), within, "{path} in {top}");
        }
    }
}
