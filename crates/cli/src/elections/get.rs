//! `sereno elections get`

use super::Which;
use crate::{
    failure::Failure,
    lock::FencingArg,
    locks::get::queue,
    output::{Output, human},
};
use clap::Args;
use sereno_client::{
    Client,
    api::{Election, ElectionState, TermHolder},
};

/// Which election to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: GetArgs) -> Result<u8, Failure> {
    let Which { name, at } = args.which;
    let election = client.get_election(at.namespace.as_deref(), &name).await?;
    args.output.answer(&at.locate(election), |located| text(&located.thing))?;
    Ok(0)
}

fn text(election: &Election) -> String {
    let mut text = match (&election.state, &election.leader) {
        (ElectionState::Leading, Some(leader)) => leading(election, leader),
        (ElectionState::Delayed, _) => format!(
            "{} is in its lock delay for {} more: nobody is elected until then",
            election.fence_key,
            human(election.lock_delay_ms.unwrap_or(0))
        ),
        _ => format!("{} is vacant", election.fence_key),
    };
    if election.waiters > 0 {
        text.push_str(&format!("\n\n{} waiting\n{}", election.waiters, queue(&election.queue)));
    }
    text
}

fn leading(election: &Election, leader: &TermHolder) -> String {
    let mut lines = vec![
        format!("{} is led", election.fence_key),
        format!("  leader      {}", leader.candidate),
        format!("  term        {}", leader.term),
        format!("  value       {}", leader.value),
        format!("  version     {}", leader.version),
        format!("  fencing     {}", FencingArg::from(leader.fencing)),
        format!("  leads for   {}", human(leader.led_for_ms)),
        format!("  renewed     {} ago", human(leader.renewed_ago_ms)),
        format!("  expires in  {} unless it is renewed", human(leader.expires_in_ms)),
    ];
    if let Some(end) = leader.final_deadline_in_ms {
        lines.push(format!("  ends in     {} at the latest (longest hold)", human(end)));
    }
    if !leader.caller.is_empty() {
        lines.push(format!("  caller      {}", leader.caller));
    }
    lines.push(format!("  lease hash  {} (for the secret lease id)", leader.lease_hash));
    lines.extend(leader.labels.0.iter().map(|(key, value)| format!("  label       {key}={value}")));
    lines.join("\n")
}
