//! `sereno audit`: the audit trail of a running service.

use crate::{connect::Service, failure::Failure, output::Output, values};
use clap::Args;
use sereno_client::api::{AuditLine, LedgerEntry};
use std::time::Duration;

/// Which lines to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    service: Service,
    /// The number of the first line.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = values::whole)]
    from: u64,
    /// So many lines at most. [default: all there are]
    #[arg(long, value_name = "COUNT", value_parser = values::count(u64::MAX))]
    limit: Option<u64>,
    /// Go on with lines as they are written; ends with Ctrl-C.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    output: Output,
}

const PAGE_ROWS: usize = 1_000;
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: AuditArgs) -> Result<u8, Failure> {
    let client = args.service.client()?;
    let mut from = args.from;
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut left = usize::try_from(limit).unwrap_or(usize::MAX);
    while left > 0 {
        let page = client.audit(from, Some(left.min(PAGE_ROWS))).await?;
        left -= page.lines.len();
        for line in &page.lines {
            args.output.line(line, text)?;
        }
        match (page.lines.is_empty(), args.follow) {
            (true, false) => break,
            (true, true) => tokio::time::sleep(LOOK_EVERY).await,
            (false, _) => from = page.next_from,
        }
    }
    Ok(0)
}

fn text(line: &AuditLine) -> String {
    let mut text = format!(
        "{:>8}  {:24}  {:13}",
        line.seq,
        line.time.as_deref().unwrap_or("-"),
        line.kind.to_string()
    );
    let mut add = |word: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {word}{value}"));
        }
    };
    add("", line.fence_key.clone().or_else(|| line.namespace.clone()));
    add("token=", line.fencing_token.map(|token| token.to_string()));
    add("owner=", line.owner.clone());
    add("caller=", line.caller.clone());
    add("end=", line.end.map(|end| end.to_string()));
    add("held=", line.held_ms.map(crate::output::human));
    add("waited=", line.waited_ms.map(crate::output::human));
    add("code=", line.code.map(|code| code.to_string()));
    add("version=", line.version.map(|version| version.to_string()));
    add("floor=", line.floor.map(|floor| floor.to_string()));
    add("level=", line.level.map(|level| level.to_string()));
    add("region=", line.region.clone());
    add("", line.quota.as_deref().map(books));
    add("reason=", line.reason.as_ref().map(|reason| format!("{reason:?}")));
    add("log=", line.log_id.clone());
    let gap = line.gap_from.map(|from| format!("{from} to {}", line.position));
    add("missing: positions ", gap);
    text
}

/// What has changed at each node itself; `sereno quota ledger` shows the layers above it, too.
fn books(entry: &LedgerEntry) -> String {
    let mut text = entry.change.to_string();
    if let Some(node) = &entry.node {
        text.push_str(&format!(" {}", named(&node.quota, &node.path)));
    }
    for line in &entry.lines {
        text.push_str(&format!(" {}", named(&line.quota, &line.path)));
        let Some(own) = line.layers.last() else { continue };
        for (word, [before, after]) in [("used", own.committed), ("reserved", own.reserved)] {
            if before != after {
                text.push_str(&format!(" {word} {before}>{after}"));
            }
        }
    }
    text
}

fn named(quota: &str, path: &str) -> String {
    match path {
        "" => quota.into(),
        path => format!("{quota}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(kind: &str, field: &str, value: Value) -> String {
        let mut line = json!({
            "seq": 7, "position": 12, "kind": kind, "revision": 3, "previous": "00", "check": "11",
        });
        line[field] = value;
        text(&serde_json::from_value(line).unwrap())
    }

    #[test]
    fn a_gap_says_from_where_to_where_and_a_level_which() {
        let gap = told("gap", "gapFrom", json!(4));
        assert!(gap.ends_with("missing: positions 4 to 12"), "{gap}");
        let raised = told("levelRaised", "level", json!(4));
        assert!(raised.ends_with("level=4"), "{raised}");
    }

    #[test]
    fn a_change_of_a_quota_says_what_has_changed_where() {
        let layers = json!([{"committed": [0, 0], "reserved": [1, 3]}, {"committed": [2, 2], "reserved": [0, 2]}]);
        let lines = json!([{"quota": "gpu", "path": "acme", "layers": layers}]);
        let reserved = told("quotaChanged", "quota", json!({"change": "reserved", "lines": lines}));
        assert!(reserved.ends_with("  reserved gpu/acme reserved 0>2"), "{reserved}");
        let node = json!({"quota": "gpu", "path": ""});
        let put = told("quotaChanged", "quota", json!({"change": "limitPut", "node": node}));
        assert!(put.ends_with("  limitPut gpu"), "{put}");
        let moved = told("homePut", "region", json!("eu"));
        assert!(moved.ends_with("region=eu"), "{moved}");
    }
}
