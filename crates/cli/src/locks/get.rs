//! `sereno locks get`

use super::InNamespace;
use crate::{
    failure::Failure,
    lock::FencingArg,
    output::{Output, human, table},
    values,
};
use clap::Args;
use sereno_client::{
    Client,
    api::{Lock, LockHolder, LockState, Waiter},
};

/// Which lock to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct GetArgs {
    /// The lock.
    #[arg(value_parser = values::resource)]
    name: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: GetArgs) -> Result<(), Failure> {
    let lock = client.get_lock(args.at.namespace.as_deref(), &args.name).await?;
    args.output.answer(&args.at.locate(lock), |located| text(&located.thing))
}

fn text(lock: &Lock) -> String {
    let mut text = match (&lock.state, &lock.holder) {
        (LockState::Held, Some(holder)) => held(lock, holder),
        (LockState::Delayed, _) => format!(
            "{} is in its lock delay for {} more: nobody is granted it until then",
            lock.fence_key,
            human(lock.lock_delay_ms.unwrap_or(0))
        ),
        _ => format!("{} is free", lock.fence_key),
    };
    if lock.waiters > 0 {
        text.push_str(&format!("\n\n{} waiting\n{}", lock.waiters, queue(&lock.queue)));
    }
    text
}

fn held(lock: &Lock, holder: &LockHolder) -> String {
    let mut lines = vec![
        format!("{} is held", lock.fence_key),
        format!("  owner       {}", holder.owner),
        format!("  token       {}", holder.fencing_token),
        format!("  fencing     {}", FencingArg::from(holder.fencing)),
        format!("  held for    {}", human(holder.held_for_ms)),
        format!("  renewed     {} ago", human(holder.renewed_ago_ms)),
        format!("  expires in  {} unless it is renewed", human(holder.expires_in_ms)),
    ];
    if let Some(end) = holder.final_deadline_in_ms {
        lines.push(format!("  ends in     {} at the latest (longest hold)", human(end)));
    }
    if !holder.caller.is_empty() {
        lines.push(format!("  caller      {}", holder.caller));
    }
    lines.push(format!("  lease hash  {} (for the secret lease id)", holder.lease_hash));
    lines.extend(holder.labels.0.iter().map(|(key, value)| format!("  label       {key}={value}")));
    lines.join("\n")
}

pub(crate) fn queue(queue: &[Waiter]) -> String {
    let cells = |waiter: &Waiter| {
        vec![
            waiter.place.to_string(),
            waiter.owner.clone(),
            human(waiter.waited_ms),
            human(waiter.wait_expires_in_ms),
        ]
    };
    let rows: Vec<_> = queue.iter().map(cells).collect();
    table(&["PLACE", "OWNER", "WAITED", "GIVES UP IN"], &rows)
}
