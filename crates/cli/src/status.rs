//! `sereno status`: the condition of the node that answers.

use crate::{
    connect::Service,
    exit,
    failure::Failure,
    output::{Output, human},
    pause,
};
use clap::Args;
use sereno_client::api::Status;

/// How to show it. Exits with 1 if the node does not serve.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    service: Service,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: StatusArgs) -> Result<u8, Failure> {
    let status = args.service.client()?.status().await?;
    args.output.answer(&status, text)?;
    Ok(if status.ready { 0 } else { exit::FAILED })
}

fn text(status: &Status) -> String {
    let serves = match &status.not_ready {
        None => "yes".to_string(),
        Some(why) => format!("no: {why}"),
    };
    let snapshot = match (status.snapshot_position, status.snapshot_age_ms) {
        (None, _) => "none yet".to_string(),
        (Some(position), None) => format!("at position {position}"),
        (Some(position), Some(age)) => format!("at position {position}, {} ago", human(age)),
    };
    let mut rows = vec![
        ("node", format!("{} ({}, version {})", status.node_id, status.role, status.version)),
        ("serves", serves),
        ("log", status.log_id.clone()),
        (
            "position",
            format!("{} (revision {}, level {})", status.position, status.revision, status.level),
        ),
        ("cluster time", human(status.cluster_time_ms)),
        ("leases", status.leases.to_string()),
        ("waiters", status.waiters.to_string()),
        ("remembered", format!("{} requests", status.reply_records)),
        ("sweep", format!("{} due, oldest {}", status.sweep_due, human(status.sweep_oldest_ms))),
        ("snapshot", format!("{snapshot}; {} bytes of log since", status.log_bytes_since_snapshot)),
        ("intake", format!("{} calls", status.intake)),
    ];
    if status.paused_ms > 0 {
        let until = pause::until(status.paused_ms);
        rows.push(("paused", format!("after a restore nothing is granted {until}")));
    }
    if status.trim_held {
        rows.push(("trim", "held: a rehearsal differed twice; see docs/operating.md".into()));
    }
    let lines: Vec<_> =
        rows.into_iter().map(|(name, value)| format!("{name:13} {value}")).collect();
    lines.join("\n")
}
