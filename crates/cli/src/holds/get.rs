//! `sereno holds get`

use crate::{
    failure::Failure,
    locks::InNamespace,
    output::{Output, human},
    values,
};
use clap::Args;
use sereno_client::{
    Client,
    api::{Hold, HoldHolder},
};

/// Which hold to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct GetArgs {
    /// The resource.
    #[arg(value_parser = values::resource)]
    name: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: GetArgs) -> Result<u8, Failure> {
    let hold = client.get_hold(args.at.namespace.as_deref(), &args.name).await?;
    args.output.answer(&args.at.locate(hold), |located| text(&located.thing))?;
    Ok(0)
}

fn text(hold: &Hold) -> String {
    match &hold.holder {
        Some(holder) => held(hold, holder),
        None => format!("{} is free", hold.fence_key),
    }
}

fn held(hold: &Hold, holder: &HoldHolder) -> String {
    let until = if holder.begun { "for the payment" } else { "unless it is renewed" };
    let mut lines = vec![
        format!("{} is held", hold.fence_key),
        format!("  owner       {}", holder.owner),
        format!("  fence       {}", holder.fence),
        format!("  payment     {}", if holder.begun { "begun" } else { "not begun" }),
        format!("  held for    {}", human(holder.held_for_ms)),
        format!("  renewed     {} ago", human(holder.renewed_ago_ms)),
        format!("  expires in  {} {until}", human(holder.expires_in_ms)),
    ];
    if let Some(end) = holder.final_deadline_in_ms {
        lines.push(format!("  ends in     {} at the latest (longest hold)", human(end)));
    }
    if !holder.caller.is_empty() {
        lines.push(format!("  caller      {}", holder.caller));
    }
    lines.push(format!("  lease hash  {}", holder.lease_hash));
    lines.extend(holder.labels.0.iter().map(|(key, value)| format!("  label       {key}={value}")));
    lines.join("\n")
}
