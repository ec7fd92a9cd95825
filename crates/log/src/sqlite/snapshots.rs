//! Snapshots: rows of chunks, made visible by one row of `snapshots` that is inserted last.
//!
//! Chunks are committed one by one between appends, so that saving a large snapshot never stops the log. Until
//! the last transaction nothing refers to them; what a crash leaves behind is swept away.

use super::{database::CHUNK_BITS, failure::Doing, state::LogState};
use crate::{LogError, Snapshot, record};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};
use sereno_core::entry::{EntryHash, Head};

const PURPOSE: &str = "sereno log snapshot";

/// What a row of `snapshots` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) id: i64,
    pub(super) head: Head,
    pub(super) length: u64,
    pub(super) chunks: u64,
    /// Of all the bytes.
    pub(super) hash: EntryHash,
}

impl Stored {
    /// How `snapshot` is stored under `id`.
    pub(super) fn of(id: i64, snapshot: &Snapshot, chunk_bytes: usize) -> Self {
        Self {
            id,
            head: snapshot.head,
            length: snapshot.bytes.len() as u64,
            chunks: snapshot.bytes.len().div_ceil(chunk_bytes) as u64,
            hash: EntryHash::of(&snapshot.bytes),
        }
    }

    fn key(&self, chunk: u64) -> i64 {
        assert!(chunk < 1 << CHUNK_BITS, "a snapshot has too many chunks");
        (self.id << CHUNK_BITS) | chunk as i64
    }

    fn encode(&self) -> Vec<u8> {
        let mut data = record::encode_head(&self.head).to_vec();
        data.extend_from_slice(&self.id.to_le_bytes());
        data.extend_from_slice(&self.length.to_le_bytes());
        data.extend_from_slice(&self.chunks.to_le_bytes());
        data.extend_from_slice(&self.hash.0);
        record::seal(PURPOSE, data)
    }

    fn decode(sealed: &[u8]) -> Option<Self> {
        let mut data = record::unseal(PURPOSE, sealed)?;
        Some(Self {
            head: record::take_head(&mut data)?,
            id: record::take_i64(&mut data)?,
            length: record::take_u64(&mut data)?,
            chunks: record::take_u64(&mut data)?,
            hash: EntryHash(record::take(&mut data)?),
        })
    }

    fn damaged(&self, what: &str) -> LogError {
        LogError::Damaged(format!("log.db, snapshot of position {}: {what}", self.head.position))
    }

    /// Calls `visit` with each chunk and returns only if all of them together are what was saved.
    fn each_chunk(
        &self,
        connection: &Connection,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<(), LogError> {
        let doing = "reading a snapshot";
        let mut select =
            connection.prepare_cached("SELECT bytes FROM chunks WHERE key = ?1").doing(doing)?;
        let mut hasher = blake3::Hasher::new();
        for chunk in 0..self.chunks {
            let mut rows = select.query([self.key(chunk)]).doing(doing)?;
            let row = rows.next().doing(doing)?;
            let row = row.ok_or_else(|| self.damaged(&format!("chunk {chunk} is missing")))?;
            let bytes = row.get_ref(0).doing(doing)?.as_blob();
            let bytes = bytes.map_err(|_| self.damaged(&format!("chunk {chunk} is no blob")))?;
            hasher.update(bytes);
            visit(bytes);
        }
        if hasher.count() != self.length || hasher.finalize().as_bytes() != &self.hash.0 {
            return Err(self.damaged("its bytes do not have its hash"));
        }
        Ok(())
    }

    /// Reads it all to see whether it is sound.
    pub(super) fn check(&self, connection: &Connection) -> Result<(), LogError> {
        self.each_chunk(connection, |_| ())
    }

    /// The whole snapshot, verified.
    pub(super) fn load(&self, connection: &Connection) -> Result<Snapshot, LogError> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or(0));
        self.each_chunk(connection, |chunk| bytes.extend_from_slice(chunk))?;
        Ok(Snapshot { head: self.head, bytes: Bytes::from(bytes) })
    }

    /// Part of the current transaction.
    pub(super) fn insert_chunk(
        &self,
        connection: &Connection,
        chunk: u64,
        bytes: &[u8],
    ) -> Result<(), LogError> {
        let doing = "writing a snapshot";
        let mut insert = connection
            .prepare_cached("INSERT INTO chunks (key, bytes) VALUES (?1, ?2)")
            .doing(doing)?;
        insert.execute((self.key(chunk), bytes)).doing(doing)?;
        Ok(())
    }

    /// Makes it the newest, and forgets those beyond the one before, and the one of the same position that it
    /// replaces. Returns the state that says so. Part of the current transaction.
    pub(super) fn publish(
        &self,
        connection: &Connection,
        state: LogState,
    ) -> Result<LogState, LogError> {
        let doing = "publishing a snapshot";
        let mut kept = list(connection, &state)?;
        kept.retain(|stored| stored.head.position < self.head.position);
        let older = kept.pop().map_or(0, |stored| stored.id);
        connection.execute("DELETE FROM snapshots WHERE id <> ?1", [older]).doing(doing)?;
        connection
            .execute("INSERT INTO snapshots (id, record) VALUES (?1, ?2)", (self.id, self.encode()))
            .doing(doing)?;
        Ok(LogState { snapshots: [older, self.id], ..state })
    }
}

/// The two or fewer that are kept, oldest first.
pub(super) fn list(connection: &Connection, state: &LogState) -> Result<Vec<Stored>, LogError> {
    let doing = "listing snapshots";
    let mut select =
        connection.prepare_cached("SELECT id, record FROM snapshots ORDER BY id").doing(doing)?;
    let mut rows = select.query([]).doing(doing)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().doing(doing)? {
        let id: i64 = row.get(0).doing(doing)?;
        let record: Vec<u8> = row.get(1).doing(doing)?;
        match Stored::decode(&record) {
            Some(stored) if stored.id == id => all.push(stored),
            _ => {
                let what = format!("log.db, snapshot number {id}: the check of its row fails");
                return Err(LogError::Damaged(what));
            }
        }
    }
    let found = all.iter().map(|stored| stored.id);
    if !found.eq(state.snapshots.into_iter().filter(|id| *id != 0)) {
        return Err(LogError::Damaged(format!(
            "log.db, snapshots: there are {}, not the ones of the log's state",
            all.len()
        )));
    }
    Ok(all)
}

/// An id that no snapshot and no chunk has.
pub(super) fn unused_id(connection: &Connection) -> Result<i64, LogError> {
    let doing = "looking for a snapshot id";
    let max = |sql: &str| {
        let max: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).doing(doing)?;
        Ok::<_, LogError>(max.unwrap_or(0))
    };
    let snapshot = max("SELECT max(id) FROM snapshots")?;
    let chunk = max("SELECT max(key) FROM chunks")? >> CHUNK_BITS;
    Ok(snapshot.max(chunk) + 1)
}

/// Deletes some chunks of snapshots that are not kept; `false` when there are none left. Part of the current
/// transaction; never while a snapshot is being saved.
pub(super) fn sweep(connection: &Connection, chunks_max: u32) -> Result<bool, LogError> {
    let doing = "sweeping old snapshots";
    let mut select = connection
        .prepare_cached(
            "SELECT key FROM chunks WHERE key >> ?1 NOT IN (SELECT id FROM snapshots) LIMIT 1",
        )
        .doing(doing)?;
    let Some(key) =
        select.query_row([CHUNK_BITS], |row| row.get::<_, i64>(0)).optional().doing(doing)?
    else {
        return Ok(false);
    };
    let last_of_snapshot = key | ((1 << CHUNK_BITS) - 1);
    let last = key.saturating_add(i64::from(chunks_max) - 1).min(last_of_snapshot);
    let mut delete =
        connection.prepare_cached("DELETE FROM chunks WHERE key BETWEEN ?1 AND ?2").doing(doing)?;
    delete.execute([key, last]).doing(doing)?;
    Ok(true)
}
