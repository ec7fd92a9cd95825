//! `GET /v1/status`.

use super::{
    Door,
    answer::{Answer, ok},
    openapi::PlainProblems,
    problem::Refused,
    query::Params,
};
use crate::cluster::Seen;
use axum::extract::State;
use hyper::Uri;
use sereno_api::{Etcd, EtcdMember, Leader, Peer, Role, Status};
use sereno_log::etcd::MemberStatus;
use sereno_node::handle;
use std::sync::Arc;

/// This node's condition, as it is: at most a tenth of a second old, and confirmed by nobody.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "getStatus", tag = "operations",
    responses((status = 200, description = "The node's condition.", body = Status), PlainProblems)
)]
pub(super) async fn get_status(
    State(door): State<Arc<Door>>,
    uri: Uri,
) -> Result<Answer<Status>, Refused> {
    Params::parse(uri.query(), &[])?;
    let status = door.node.status().borrow().clone();
    let (role, epoch) = match status.role {
        handle::Role::Follower => (Role::Follower, None),
        handle::Role::Leader { epoch } => (Role::Leader, Some(epoch.0)),
        handle::Role::Suspect => (Role::Suspect, None),
        handle::Role::Stopped => (Role::Stopped, None),
    };
    Ok(ok(Status {
        node_id: status.node_id,
        version: env!("CARGO_PKG_VERSION").into(),
        role,
        epoch,
        ready: status.not_ready.is_none(),
        not_ready: status.not_ready,
        log_id: status.log_id.to_hex(),
        position: status.position.0,
        revision: status.revision.0,
        cluster_time_ms: status.time.0,
        level: status.level,
        level_max: status.level_max,
        region: status.region.map(|region| region.to_string()),
        leases: status.leases,
        waiters: status.waiters,
        reply_records: status.reply_records,
        sweep_due: status.sweep_due,
        sweep_oldest_ms: status.sweep_oldest_ms,
        snapshot_position: status.snapshot.map(|position| position.0),
        snapshot_age_ms: status.snapshot_age_ms,
        log_bytes_since_snapshot: status.log_bytes_since_snapshot,
        paused_ms: status.paused_ms,
        trim_held: status.trim_held,
        intake: status.intake,
        leader: status.leader.map(|leader| Leader {
            node_id: leader.node_id,
            address: leader.address,
            epoch: leader.epoch.0,
        }),
        leader_heard_ms: status.leader_heard_ms,
        behind_ms: status.behind_ms,
        silent_ms: status.silent_ms,
        twin: status.twin,
        peers: status.peers.into_iter().map(peer).collect(),
        etcd: door.reach.storage.etcd().as_ref().map(etcd_view),
    }))
}

fn peer(peer: handle::Peer) -> Peer {
    Peer {
        node_id: peer.node_id,
        address: peer.address,
        version: peer.version,
        level_max: peer.level_max,
        position: peer.position.0,
        leader_heard_ms: peer.leader_heard_ms,
        silent_ms: peer.silent_ms,
        gone: peer.gone,
        twin: peer.twin,
    }
}

fn etcd_view(Seen { status, room }: &Seen) -> Etcd {
    let member = |member: &MemberStatus| {
        let address = member.address.clone();
        match &member.health {
            Err(fault) => EtcdMember {
                address,
                fault: Some(fault.clone()),
                version: String::new(),
                leads: false,
                db_bytes: 0,
                db_used_bytes: 0,
            },
            Ok(health) => EtcdMember {
                address,
                fault: (!health.errors.is_empty()).then(|| health.errors.join("; ")),
                version: health.version.clone(),
                leads: health.leads,
                db_bytes: health.db_bytes,
                db_used_bytes: health.db_used_bytes,
            },
        }
    };
    Etcd {
        quota_percent: room.percent,
        no_space: room.no_space,
        compaction_error: status.compaction_error.clone(),
        members: status.members.iter().map(member).collect(),
    }
}
