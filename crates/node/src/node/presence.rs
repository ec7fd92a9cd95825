//! What a node tells of itself beside the log.

use borsh::{BorshDeserialize, BorshSerialize};
use sereno_core::limits;

/// What a node tells of itself beside the log. Nodes of several versions read it: a new field goes to the end, and an
/// older version reads the front.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Presence {
    /// Its id.
    pub node_id: String,
    /// Of this start of its process.
    pub start: u64,
    /// Where other nodes and clients reach it.
    pub address: String,
    /// Of its program.
    pub version: String,
    /// The highest level that it understands.
    pub level_max: u32,
    /// Its wall clock in microseconds since 1970.
    pub wall_us: u64,
    /// Milliseconds since it last heard of the leader over its link; `None`: it leads, or has no link.
    pub leader_heard_ms: Option<u64>,
    /// Position up to which it has applied the log.
    pub applied: u64,
    /// Its state and its log disagree, twice: nothing may be trimmed anywhere.
    pub distrusts: bool,
    /// Counts its records, so that others see it change.
    pub beat: u64,
    /// Position of the newest snapshot that it knows of.
    pub snapshot: Option<u64>,
    /// The address of another process that has this node's id, while it is there. Comes after all else: a record without
    /// it is whole.
    #[borsh(skip)]
    pub twin: Option<String>,
}

impl Presence {
    /// The record's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        borsh::to_vec(&(self, &self.twin)).expect("memory takes all")
    }

    /// Reads a record, also one of a newer version. `None`: it is no record of a node.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        // Anybody who can write to etcd can write one: figures that no clock shows must not reach the arithmetic.
        let is_sound = |record: &Self| record.wall_us <= limits::WALL_US_MAX;
        let mut record = Self::deserialize(&mut bytes).ok().filter(is_sound)?;
        record.twin = Option::deserialize(&mut bytes).unwrap_or_default();
        Some(record)
    }
}
