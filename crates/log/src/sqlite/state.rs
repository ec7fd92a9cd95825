//! The one row that says where the log stands. It changes in the same transaction as the entries it speaks of.

use super::failure::Doing;
use crate::{LogError, record};
use rusqlite::Connection;
use sereno_core::{entry::Head, ids::Position};

const PURPOSE: &str = "sereno log state";

/// Head, beginning, and age of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogState {
    /// Compared, as a value, by every append.
    pub(super) head: Head,
    /// First position that can be read; one past the head where nothing can.
    pub(super) first: Position,
    /// Transactions that changed what the log says: see [`super::side`].
    pub(super) changes: u64,
    /// Ids of the snapshots that are kept, the older first; 0 for none. A page of zeros reads as an empty table:
    /// so it is said here what must be in it.
    pub(super) snapshots: [i64; 2],
}

impl LogState {
    /// Of a log that was just created.
    pub(super) const NEW: Self =
        Self { head: Head::EMPTY, first: Position(1), changes: 0, snapshots: [0; 2] };

    /// One change later.
    pub(super) fn changed(self) -> Self {
        Self { changes: self.changes + 1, ..self }
    }

    fn encode(&self) -> Vec<u8> {
        let mut data = record::encode_head(&self.head).to_vec();
        data.extend_from_slice(&self.first.0.to_le_bytes());
        data.extend_from_slice(&self.changes.to_le_bytes());
        self.snapshots.iter().for_each(|id| data.extend_from_slice(&id.to_le_bytes()));
        record::seal(PURPOSE, data)
    }

    fn decode(sealed: &[u8]) -> Option<Self> {
        let mut data = record::unseal(PURPOSE, sealed)?;
        Some(Self {
            head: record::take_head(&mut data)?,
            first: Position(record::take_u64(&mut data)?),
            changes: record::take_u64(&mut data)?,
            snapshots: [record::take_i64(&mut data)?, record::take_i64(&mut data)?],
        })
    }

    /// As the current transaction sees it.
    pub(super) fn load(connection: &Connection) -> Result<Self, LogError> {
        let doing = "reading the log's state";
        let mut select =
            connection.prepare_cached("SELECT record FROM state WHERE id = 0").doing(doing)?;
        let sealed: Vec<u8> = select.query_row([], |row| row.get(0)).doing(doing)?;
        Self::decode(&sealed)
            .ok_or_else(|| LogError::Damaged("log.db, table state: the check fails".into()))
    }

    /// Part of the current transaction.
    pub(super) fn store(&self, connection: &Connection) -> Result<(), LogError> {
        let doing = "writing the log's state";
        let mut update =
            connection.prepare_cached("UPDATE state SET record = ?1 WHERE id = 0").doing(doing)?;
        let rows = update.execute([self.encode()]).doing(doing)?;
        if rows == 1 { Ok(()) } else { Err(LogError::Damaged("table state: no row 0".into())) }
    }
}
