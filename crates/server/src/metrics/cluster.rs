//! What matters where several nodes share a log in etcd: links, followers, and the etcd itself.

use super::scrape::{gauge, seconds};
use crate::cluster::{Room, Seen};
use prometheus_client::registry::Registry;
use sereno_log::etcd::EtcdStatus;
use sereno_node::handle::{Role, Status};

/// On one machine there are no others and no etcd: zeros, so that an alert finds its series everywhere.
pub(super) fn encode(registry: &mut Registry, status: &Status, etcd: Option<&Seen>) {
    let status_of_none = EtcdStatus { members: Vec::new(), compaction_error: None };
    let none = Seen { status: status_of_none, room: Room::default() };
    let Seen { status: etcd, room } = etcd.unwrap_or(&none);
    let yes = |is: bool| f64::from(u8::from(is));
    let leads = matches!(status.role, Role::Leader { .. });
    for (name, help, value) in [
        (
            "peers",
            "Other nodes on the same log whose presence record is there",
            status.peers.len() as f64,
        ),
        (
            "linked",
            "1: this node leads, or has a link to the leader",
            yes(leads || status.leader_heard_ms.is_some()),
        ),
        (
            "behind_seconds",
            "How far this node's cluster time is behind the leader's",
            seconds(status.behind_ms),
        ),
        (
            "log_silent_seconds",
            "Since the log moved, as far as this node has seen",
            seconds(status.silent_ms),
        ),
        ("etcd_members", "Members of etcd that this node is told of", etcd.members.len() as f64),
        (
            "etcd_members_healthy",
            "Members of etcd that answer and report no error",
            etcd.healthy() as f64,
        ),
        ("etcd_db_bytes", "Bytes of the largest member's database file", room.db_bytes as f64),
        ("etcd_db_used_bytes", "Bytes in use in the fullest member", room.db_used_bytes as f64),
        (
            "etcd_quota_ratio",
            "How much of etcd's quota is used: above 0.8 nothing new is granted",
            room.percent as f64 / 100.0,
        ),
        ("etcd_no_space", "1: etcd takes no writes until somebody makes room", yes(room.no_space)),
        (
            "etcd_compaction_failed",
            "1: etcd's history could not be compacted the last time",
            yes(etcd.compaction_error.is_some()),
        ),
    ] {
        gauge(registry, name, help, value);
    }
}
