//! `sereno status`: the condition of the node that answers.

use crate::{
    connect::Service,
    exit,
    failure::Failure,
    output::{Output, human},
    pause,
};
use clap::Args;
use sereno_client::api::{Leader, Status};

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

/// What matters where several nodes share the log.
fn cluster(status: &Status) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(leader) = &status.leader {
        let heard = match status.leader_heard_ms {
            _ if leader.node_id == status.node_id => "this node".into(),
            Some(ms) => format!("heard of {} ago, {} behind", human(ms), human(status.behind_ms)),
            None => "not reached".into(),
        };
        let Leader { node_id, address, epoch } = leader;
        rows.push(("leader", format!("{node_id} at {address}, epoch {epoch} ({heard})")));
    } else {
        rows.push((
            "leader",
            format!("none; the log has been silent for {}", human(status.silent_ms)),
        ));
    }
    for peer in &status.peers {
        let link = match peer.leader_heard_ms {
            Some(ms) => format!("heard of the leader {} ago", human(ms)),
            None if status.leader.as_ref().is_some_and(|it| it.node_id == peer.node_id) => {
                "leads".into()
            }
            None => "has no link to the leader".into(),
        };
        rows.push((
            "peer",
            format!(
                "{} at {} (version {}, level {}), position {}, {link}, seen {} ago",
                peer.node_id,
                peer.address,
                peer.version,
                peer.level_max,
                peer.position,
                human(peer.silent_ms)
            ),
        ));
    }
    let Some(etcd) = &status.etcd else { return rows };
    let space = if etcd.no_space { "; NO SPACE: it takes no writes" } else { "" };
    rows.push(("etcd", format!("{} % of its quota used{space}", etcd.quota_percent)));
    if let Some(why) = &etcd.compaction_error {
        rows.push(("etcd", format!("its history was not compacted: {why}")));
    }
    for member in &etcd.members {
        let leads = if member.leads { ", leads" } else { "" };
        let what = match &member.fault {
            Some(fault) => fault.clone(),
            None => format!(
                "version {}{leads}, {} bytes ({} in use)",
                member.version, member.db_bytes, member.db_used_bytes
            ),
        };
        rows.push(("etcd member", format!("{}: {what}", member.address)));
    }
    rows
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
        ("position", format!("{} (revision {})", status.position, status.revision)),
        ("level", format!("{} (this node understands up to {})", status.level, status.level_max)),
        ("cluster time", human(status.cluster_time_ms)),
        ("leases", status.leases.to_string()),
        ("waiters", status.waiters.to_string()),
        ("remembered", format!("{} requests", status.reply_records)),
        ("sweep", format!("{} due, oldest {}", status.sweep_due, human(status.sweep_oldest_ms))),
        ("snapshot", format!("{snapshot}; {} bytes of log since", status.log_bytes_since_snapshot)),
        ("intake", format!("{} calls", status.intake)),
    ];
    rows.extend(cluster(status));
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
