//! `sereno quota explain`

use super::{
    node::{self, Node},
    quotas, refusal, reservations,
};
use crate::{
    failure::Failure,
    locks::InNamespace,
    output::{Output, human, table},
};
use clap::Args;
use sereno_client::{
    Client,
    api::{QuotaExplanation, QuotaNode, QuotaRefusal},
};

/// Say why a node does not give more: its layers, its last refusal, and who has what of it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The node: QUOTA or QUOTA/PATH.
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Node,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(client: &Client, args: ExplainArgs) -> Result<u8, Failure> {
    let Node { quota, path } = &args.node;
    let explanation = quotas(client, &args.at).explain(quota, path).await?;
    args.output.answer(&args.at.locate(explanation), |it| text(&args.node, &it.thing))?;
    Ok(0)
}

fn text(node: &Node, of: &QuotaExplanation) -> String {
    let available = of.layers.last().map_or(0, |layer| layer.available);
    let mut parts = vec![
        format!("{node}: {available} can be reserved now"),
        table(&LAYERS, &of.layers.iter().map(layer).collect::<Vec<_>>()),
    ];
    if of.layers.iter().any(|layer| layer.sweep_pending) {
        parts.push("Reservations that have ended are still counted.".into());
    }
    parts.extend(of.last_refusal.as_ref().map(refused));
    if !of.holders.is_empty() {
        let rows: Vec<_> = of.holders.iter().map(reservations::cells).collect();
        parts.push(format!("The oldest reservations:\n{}", table(&reservations::HEAD, &rows)));
    }
    if of.has_more {
        parts.push(format!("(all of them: sereno quota reservations {node})"));
    }
    parts.join("\n\n")
}

const LAYERS: [&str; 8] =
    ["LAYER", "LIMIT", "GUARANTEED", "USED", "RESERVED", "AVAILABLE", "DEBT", "WAITING"];

fn layer(node: &QuotaNode) -> Vec<String> {
    let burst = if node.burst > 0 { format!("+{}", node.burst) } else { String::new() };
    vec![
        Node::of(&node.quota, &node.path).to_string(),
        format!("{}{burst}", node.limit),
        node.effective_guaranteed.to_string(),
        node.committed.to_string(),
        node.reserved.to_string(),
        node.available.to_string(),
        node.debt.to_string(),
        node.waiters.to_string(),
    ]
}

fn refused(refusal: &QuotaRefusal) -> String {
    format!(
        "The last refusal, {} ago: {} asked for {} here (revision {})\n{}",
        human(refusal.ago_ms),
        refusal.owner,
        refusal.amount,
        refusal.revision,
        refusal::layers(&refusal.layers)
    )
}
