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
    /// Calls queued before the next append.
    pub intake: u64,
}
