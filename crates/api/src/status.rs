//! `GET /v1/status`.

use crate::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// What a node is doing.
    Role {
        /// Following the log.
        Follower = "follower",
        /// Leading.
        Leader = "leader",
        /// Its state and a rehearsal differed; it answers nothing.
        Suspect = "suspect",
        /// Stopping, or stopped.
        Stopped = "stopped",
    }
}

/// A node's condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Status {
    /// This node's id.
    pub node_id: String,
    /// The service's version.
    pub version: String,
    /// What it does.
    pub role: Role,
    /// Of a leader: the position of its announce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub epoch: Option<u64>,
    /// It serves.
    pub ready: bool,
    /// Else why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub not_ready: Option<String>,
    /// The log: 32 hexadecimal digits.
    pub log_id: String,
    /// Last applied position.
    pub position: u64,
    /// Its revision.
    pub revision: u64,
    /// Its cluster time.
    pub cluster_time_ms: u64,
    /// The level in force.
    pub level: u32,
    /// The highest level that this node understands.
    pub level_max: u32,
    /// Where the service runs; absent: nobody has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub region: Option<String>,
    /// Active leases of all namespaces.
    pub leases: u64,
    /// Waiting requests of all namespaces.
    pub waiters: u64,
    /// Remembered requests of all namespaces.
    pub reply_records: u64,
    /// Objects due and not swept yet.
    pub sweep_due: u64,
    /// How long the oldest of them has been due.
    pub sweep_oldest_ms: u64,
    /// Position of the newest snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub snapshot_position: Option<u64>,
    /// How long ago it was saved, where this process saved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub snapshot_age_ms: Option<u64>,
    /// Bytes of log since then.
    pub log_bytes_since_snapshot: u64,
    /// Granting is paused (after a restore) for so long.
    pub paused_ms: u64,
    /// Trimming is held: a rehearsal differed twice.
    pub trim_held: bool,
    /// Calls queued before the next append, or passed to the leader.
    pub intake: u64,
    /// Whom the log names as leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub leader: Option<Leader>,
    /// Of a node that follows: since it heard of the leader over its link; absent without a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub leader_heard_ms: Option<u64>,
    /// Of a node that follows: how far its cluster time is behind what the leader last told.
    pub behind_ms: u64,
    /// Since the log moved, as far as this node has seen.
    pub silent_ms: u64,
    /// Where another process with this node's id is, while there is one: one of the two needs another `--node-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub twin: Option<String>,
    /// The other nodes on the same log, and those that were there within the last day, as far as the process that answers
    /// has seen.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// The etcd that keeps the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub etcd: Option<Etcd>,
}

/// A leader as the log names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Leader {
    /// Its id.
    pub node_id: String,
    /// Where it can be reached.
    pub address: String,
    /// The position of its announce.
    pub epoch: u64,
}

/// Another node, as its presence record tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Peer {
    /// Its id.
    pub node_id: String,
    /// Where it can be reached.
    pub address: String,
    /// Of its program.
    pub version: String,
    /// The highest level that it understands.
    pub level_max: u32,
    /// Up to where it had applied the log.
    pub position: u64,
    /// Since it heard of the leader over its link; absent where it leads, or has no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub leader_heard_ms: Option<u64>,
    /// Since its record changed: it is written each second.
    pub silent_ms: u64,
    /// Its record is not there any more: it was stopped, or has been silent for over ten seconds.
    #[serde(default)]
    pub gone: bool,
    /// Where another process with its id is: one of the two needs another `--node-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub twin: Option<String>,
}

/// The etcd that keeps the log, asked each few seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Etcd {
    /// How much of its quota is used, in percent: above 80 nothing new is granted. While none of its members answers,
    /// this and `noSpace` are what was known before.
    pub quota_percent: u64,
    /// It takes no writes until somebody makes room and disarms its alarm.
    pub no_space: bool,
    /// Why its history could not be compacted, the last time that was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub compaction_error: Option<String>,
    /// Its members, in the order of `--log`.
    pub members: Vec<EtcdMember>,
}

/// One member of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EtcdMember {
    /// `host:port`.
    pub address: String,
    /// What is wrong with it; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fault: Option<String>,
    /// Its version; empty if it does not answer.
    pub version: String,
    /// It leads etcd.
    pub leads: bool,
    /// Bytes of its database's file.
    pub db_bytes: u64,
    /// Bytes of it in use.
    pub db_used_bytes: u64,
}
