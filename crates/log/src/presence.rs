//! Who is there: a small record of each node beside the log, rewritten each second and gone soon after its node.
//!
//! Records are hints. Nothing that must be right may rest on them: they can be old by as long as they live.

use crate::LogError;
use async_trait::async_trait;
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The records of all nodes.
#[async_trait]
pub trait Presence: Send + Sync + 'static {
    /// Writes the record of the node `id` (1 to [`NODE_ID_BYTES_MAX`] bytes). It goes by itself when it is not
    /// written for a while.
    async fn publish(&self, id: &str, record: Bytes) -> Result<(), LogError>;

    /// All records, in the order of their ids.
    async fn list(&self) -> Result<Vec<Present>, LogError>;

    /// Removes a record at once.
    async fn withdraw(&self, id: &str) -> Result<(), LogError>;
}

/// Bytes of a node's id.
pub const NODE_ID_BYTES_MAX: usize = 128;

/// A node's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// Of the node.
    pub id: String,
    /// What it wrote last.
    pub record: Bytes,
}

/// Records in memory, which stay until they are withdrawn. A clone has the same records.
#[derive(Clone, Debug, Default)]
pub struct MemoryPresence {
    records: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl MemoryPresence {
    fn records(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.records.lock().expect("no thread panicked while it held the records")
    }
}

#[async_trait]
impl Presence for MemoryPresence {
    async fn publish(&self, id: &str, record: Bytes) -> Result<(), LogError> {
        check_id(id)?;
        self.records().insert(id.into(), record);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Present>, LogError> {
        let present =
            |(id, record): (&String, &Bytes)| Present { id: id.clone(), record: record.clone() };
        Ok(self.records().iter().map(present).collect())
    }

    async fn withdraw(&self, id: &str) -> Result<(), LogError> {
        self.records().remove(id);
        Ok(())
    }
}

pub(crate) fn check_id(id: &str) -> Result<(), LogError> {
    if (1..=NODE_ID_BYTES_MAX).contains(&id.len()) {
        return Ok(());
    }
    Err(LogError::Refused(format!("a node's id has 1 to {NODE_ID_BYTES_MAX} bytes: {id:?}")))
}
