//! `sereno status`: the condition of the node that answers.

use crate::{
    connect::Service,
    exit,
    failure::Failure,
    output::{Output, human, table},
    pause,
};
use clap::Args;
use sereno_client::api::{Leader, Peer, Role, Status};

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
            _ if status.role == Role::Leader => "this node".into(),
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
    rows.extend(status.region.clone().map(|region| ("region", region)));
    rows.extend(cluster(status));
    if status.paused_ms > 0 {
        let until = pause::until(status.paused_ms);
        rows.push(("paused", format!("after a restore nothing is granted {until}")));
    }
    if status.trim_held {
        rows.push(("trim", "held: a rehearsal differed twice; see docs/operating.md".into()));
    }
    let mut lines: Vec<_> =
        rows.into_iter().map(|(name, value)| format!("{name:13} {value}")).collect();
    lines.extend(nodes(status));
    lines.join("\n")
}

/// A node whose record did not change for so long is late: it is written each second.
const LATE_MS: u64 = 5_000;

/// All nodes that share the log, as the one that answers sees them.
fn nodes(status: &Status) -> Option<String> {
    // Not by its id: another process may lead with the same.
    let own_address = status.leader.as_ref().filter(|_| status.role == Role::Leader);
    let own = Peer {
        node_id: status.node_id.clone(),
        address: own_address.map_or("(answers)".into(), |it| it.address.clone()),
        version: status.version.clone(),
        level_max: status.level_max,
        position: status.position,
        leader_heard_ms: status.leader_heard_ms,
        silent_ms: 0,
        gone: false,
        twin: status.twin.clone(),
    };
    if status.peers.is_empty() && own.twin.is_none() {
        return None;
    }
    let own_row = (&own, own_state(status));
    let others = status.peers.iter().map(|peer| (peer, state(status, peer)));
    let mut all: Vec<_> = std::iter::once(own_row).chain(others).collect();
    all.sort_by(|(a, _), (b, _)| a.node_id.cmp(&b.node_id));
    let row = |(peer, state): (&Peer, String)| {
        let behind = status.position.saturating_sub(peer.position);
        vec![
            peer.node_id.clone(),
            peer.address.clone(),
            peer.version.clone(),
            peer.level_max.to_string(),
            if peer.gone { "-".into() } else { behind.to_string() },
            state + &twin(peer),
        ]
    };
    let rows: Vec<_> = all.into_iter().map(row).collect();
    let head = ["NODE", "ADDRESS", "VERSION", "LEVEL", "BEHIND", "STATE"];
    Some(format!("\n{}", table(&head, &rows)))
}

fn own_state(status: &Status) -> String {
    match status.role {
        Role::Leader => "leads; this node answers".into(),
        Role::Follower => format!("{}; this node answers", follows(status.leader_heard_ms)),
        role => format!("{role}; this node answers"),
    }
}

fn state(status: &Status, peer: &Peer) -> String {
    let is_it = |it: &Leader| it.node_id == peer.node_id && it.address == peer.address;
    let leads = status.leader.as_ref().is_some_and(is_it);
    match peer.silent_ms {
        ms if peer.gone => format!("gone, last seen {} ago", human(ms)),
        ms if ms > LATE_MS => format!("silent for {}", human(ms)),
        _ if leads => "leads".into(),
        _ => follows(peer.leader_heard_ms),
    }
}

fn follows(leader_heard_ms: Option<u64>) -> String {
    match leader_heard_ms {
        Some(ms) => format!("follows, heard of the leader {} ago", human(ms)),
        None => "follows, has no link to the leader".into(),
    }
}

fn twin(peer: &Peer) -> String {
    let told = peer.twin.as_ref().filter(|_| !peer.gone);
    told.map_or(String::new(), |address| {
        format!("; TWO PROCESSES HAVE THIS ID, another one is at {address}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(node_id: &str, silent_ms: u64) -> Peer {
        Peer {
            node_id: node_id.into(),
            address: format!("http://{node_id}:7480"),
            version: "1.0.0".into(),
            level_max: 4,
            position: 95,
            leader_heard_ms: Some(200),
            silent_ms,
            gone: false,
            twin: None,
        }
    }

    fn status() -> Status {
        let leader = Leader { node_id: "b".into(), address: "http://b:7480".into(), epoch: 7 };
        Status {
            node_id: "a".into(),
            version: "1.0.0".into(),
            role: Role::Follower,
            epoch: None,
            ready: true,
            not_ready: None,
            log_id: "00".into(),
            position: 100,
            revision: 9,
            cluster_time_ms: 0,
            level: 4,
            level_max: 4,
            region: None,
            leases: 0,
            waiters: 0,
            reply_records: 0,
            sweep_due: 0,
            sweep_oldest_ms: 0,
            snapshot_position: None,
            snapshot_age_ms: None,
            log_bytes_since_snapshot: 0,
            paused_ms: 0,
            trim_held: false,
            intake: 0,
            leader: Some(leader),
            leader_heard_ms: Some(300),
            behind_ms: 0,
            silent_ms: 0,
            twin: None,
            peers: Vec::new(),
            etcd: None,
        }
    }

    #[test]
    fn a_node_that_is_alone_has_no_table() {
        assert_eq!(nodes(&status()), None);
    }

    #[test]
    fn the_table_has_all_that_were_seen_and_what_they_do() {
        let gone = Peer { gone: true, ..peer("d", 3_900_000) };
        let peers = vec![peer("b", 400), peer("c", 7_000), gone];
        let text = nodes(&Status { peers, ..status() }).expect("there are others");
        let lines: Vec<_> = text.trim().lines().collect();
        let [head, a, b, c, d] = lines[..] else { panic!("{text}") };
        assert!(head.starts_with("NODE  ADDRESS"), "{text}");
        assert!(
            a.ends_with("0       follows, heard of the leader 0.3s ago; this node answers"),
            "{text}"
        );
        assert!(b.contains("http://b:7480") && b.ends_with("5       leads"), "{text}");
        assert!(c.ends_with("silent for 7.0s"), "{text}");
        assert!(d.ends_with("-       gone, last seen 1h05m ago"), "{text}");
    }

    #[test]
    fn two_processes_with_one_id_are_shown_wherever_one_asks() {
        let twin = Some("http://x:7480".to_string());
        let is_shown = |status: &Status, node: &str| {
            let text = nodes(status).expect("there is more than one");
            let line = text.lines().find(|line| line.starts_with(node)).expect("it has a line");
            assert!(
                line.ends_with("TWO PROCESSES HAVE THIS ID, another one is at http://x:7480"),
                "{text}"
            );
        };
        is_shown(&Status { twin: twin.clone(), ..status() }, "a ");
        // The other one of them leads: neither is taken for it.
        let leader = Leader { node_id: "a".into(), address: "http://x:7480".into(), epoch: 7 };
        let led = Status { leader: Some(leader), twin: twin.clone(), ..status() };
        let text = nodes(&led).expect("there is more than one");
        assert!(text.contains("(answers)") && !text.contains("leads"), "{text}");
        assert_eq!(
            cluster(&led)[0].1,
            "a at http://x:7480, epoch 7 (heard of 0.3s ago, 0.0s behind)"
        );
        is_shown(&Status { peers: vec![Peer { twin, ..peer("b", 0) }], ..status() }, "b ");
    }
}
