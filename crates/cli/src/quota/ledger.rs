//! `sereno quota ledger`

use super::{
    node::{self, Node},
    quotas,
};
use crate::{failure::Failure, locks::InNamespace, output::Output, values};
use clap::Args;
use sereno_client::{
    Client, LedgerFilter,
    api::{AuditLine, LedgerEntry, LedgerLayer, LedgerLine},
};

/// Show the ledger: every change of the books, with the sums before and after.
///
/// It is read from the audit trail of the node that answers, so it goes back as far as that does.
#[derive(Clone, Debug, Args)]
pub(crate) struct LedgerArgs {
    /// Only of this node and what is below it. [default: of all]
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Option<Node>,
    /// Only of this owner.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// Only from this instant on, such as 2026-03-29T01:00:00Z.
    #[arg(long, value_name = "INSTANT", value_parser = values::slot)]
    since: Option<String>,
    /// Only up to this instant.
    #[arg(long, value_name = "INSTANT", value_parser = values::slot)]
    until: Option<String>,
    /// Only from this line of the audit trail on.
    #[arg(long, value_name = "NUMBER", value_parser = values::whole)]
    from: Option<u64>,
    /// So many lines at most. [default: all there are]
    #[arg(long, value_name = "COUNT", value_parser = values::count(u64::MAX))]
    limit: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

const PAGE_ROWS: usize = 1_000;

pub(super) async fn run(client: &Client, args: LedgerArgs) -> Result<u8, Failure> {
    let quotas = quotas(client, &args.at);
    let (quota, path) = match args.node {
        Some(Node { quota, path }) => (Some(quota), Some(path)),
        None => (None, None),
    };
    let mut filter = LedgerFilter {
        quota,
        path,
        owner: args.owner,
        since: args.since,
        until: args.until,
        from: args.from,
        limit: None,
    };
    let mut left = usize::try_from(args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    while left > 0 {
        filter.limit = Some(left.min(PAGE_ROWS));
        let page = quotas.ledger(&filter).await?;
        left -= page.lines.len().min(left);
        for line in &page.lines {
            args.output.line(line, text)?;
        }
        if page.complete {
            break;
        }
        filter.from = Some(page.next_from);
    }
    Ok(0)
}

fn text(line: &AuditLine) -> String {
    let mut text = format!(
        "{:24}  r{:<8}",
        line.time.as_deref().unwrap_or("-"),
        line.revision.unwrap_or_default()
    );
    let mut add = |word: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {word}{value}"));
        }
    };
    let entry = line.quota.as_deref();
    add("", entry.map(|entry| format!("{:13}", entry.change.to_string())));
    add("", line.owner.clone());
    if let Some(entry) = entry {
        details(entry, &mut add);
    }
    add("caller=", line.caller.clone());
    add("reason=", line.reason.as_ref().map(|reason| format!("{reason:?}")));
    for books in entry.map_or(&[][..], |entry| &entry.lines) {
        text.push_str(&format!("\n{}", sums(books)));
    }
    text
}

fn details(entry: &LedgerEntry, add: &mut impl FnMut(&str, Option<String>)) {
    let node = entry.node.as_ref().map(|node| Node::of(&node.quota, &node.path).to_string());
    add("", node);
    add("limit=", entry.limits.as_ref().map(|limits| limits.limit.to_string()));
    add("version=", entry.limits.as_ref().map(|limits| limits.version.to_string()));
    add("reservation=", entry.reservation_id.clone());
    add("commit=", entry.commit_id.map(|commit| commit.to_string()));
    add("readmits=", entry.readmits.clone());
    add("", (entry.is_final == Some(false)).then(|| "in part".into()));
    add("", entry.by_expiry.then(|| "by expiry".into()));
    add("waited=", entry.waited_ms.map(crate::output::human));
    add("reporter=", entry.reporter.clone());
    add("epoch=", entry.epoch.map(|epoch| epoch.to_string()));
    add("drift=", entry.drift.as_ref().map(|drift| format!("{:+}", drift.drift)));
    add("share=", entry.share_id.clone());
    add("lent=", entry.lent.map(|lent| lent.to_string()));
}

/// One row for each layer: what changed there.
fn sums(line: &LedgerLine) -> String {
    let layers = Node::of(&line.quota, &line.path).layers();
    let row = |(layer, sums): (&Node, &LedgerLayer)| {
        let moved = |[before, after]: [u64; 2]| match before == after {
            true => before.to_string(),
            false => format!("{before} -> {after}"),
        };
        let (layer, committed) = (layer.to_string(), moved(sums.committed));
        format!("    {layer:32}  used {committed:16}  reserved {}", moved(sums.reserved))
    };
    layers.iter().zip(&line.layers).map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_shows_the_sums_of_every_layer() {
        let line = json!({
            "seq": 7, "position": 12, "kind": "quotaChanged", "revision": 3, "time": "2026-12-01T10:00:00Z",
            "owner": "w1", "previous": "00", "check": "11",
            "quota": {"change": "committed", "reservationId": "ab", "commitId": 9, "final": false, "lines": [
                {"quota": "gpu", "path": "acme", "layers": [
                    {"committed": [0, 4], "reserved": [6, 2]}, {"committed": [0, 4], "reserved": [4, 0]},
                ]},
            ]},
        });
        let text = text(&serde_json::from_value(line).unwrap());
        let rows: Vec<_> = text.lines().collect();
        for part in ["r3", "committed", "w1", "reservation=ab", "commit=9", "in part"] {
            assert!(rows[0].contains(part), "{part}: {text}");
        }
        assert!(rows[1].contains("gpu ") && rows[1].ends_with("reserved 6 -> 2"), "{text}");
        assert!(rows[2].contains("gpu/acme ") && rows[2].contains("used 0 -> 4"), "{text}");
    }
}
