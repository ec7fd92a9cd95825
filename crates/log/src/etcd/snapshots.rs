//! Snapshots: chunks under a fresh id, made visible by moving the pointer.
//!
//! Until the pointer names them, chunks are nothing. An upload moves the pointer only from the value that it read
//! *before its first chunk*, so whoever moves the pointer may remove all chunks that are older than that move and
//! not named by it: no upload that they belong to can succeed any more. The bytes come compressed from the core.

use super::{
    Shared, entries,
    keys::{ChunksId, hex},
    pointer::{Pointer, Stored},
    survey::{Survey, decode_pointer},
};
use crate::{LogError, Snapshot, fit};
use bytes::{Bytes, BytesMut};
use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp};
use sereno_core::{entry::EntryHash, ids::Position};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// Bytes of one chunk: as much as may delay an append.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks read by one request.
const CHUNKS_PER_READ: u64 = 8;
/// Others can be faster, or trim under a reader, only so often.
const ATTEMPTS: usize = 5;

impl Shared {
    pub(super) async fn save_snapshot(&self, snapshot: Snapshot) -> Result<(), LogError> {
        let _one_at_a_time = self.saving.lock().await;
        for _ in 0..ATTEMPTS {
            let before = self.survey().await?;
            let compares = self.check(&before, &snapshot).await?;
            let fresh: ChunksId = rand::random();
            let stored = Stored::of(fresh, &snapshot, CHUNK_BYTES);
            self.upload(&stored, &snapshot.bytes).await?;
            let pointer = Pointer::after(before.pointer.as_ref(), stored);
            if self.move_pointer(compares, &pointer).await? {
                // What is left over is removed by the next that is saved.
                let _ = self.sweep().await;
                return Ok(());
            }
        }
        Err(LogError::Unreachable("others are saving snapshots".into()))
    }

    /// What has to hold still when the pointer moves; an error if the snapshot is not of this log.
    async fn check(&self, log: &Survey, snapshot: &Snapshot) -> Result<Vec<Compare>, LogError> {
        let newest = log.pointer.as_ref().map(|pointer| &pointer.newest.head);
        fit::unfit_snapshot(&log.head, newest, snapshot)?;
        let pointer = self.keys.pointer();
        let mut compares = vec![match &log.pointer_value {
            Some(value) => Compare::value(pointer, CompareOp::Equal, value.clone()),
            None => Compare::create_revision(pointer, CompareOp::Equal, 0),
        }];
        // The entry ties the snapshot to this log, also if the store was set back meanwhile.
        let position = snapshot.head.position;
        let slot = self.get(self.keys.slot(position), GetOptions::new()).await?;
        if let Some(kv) = slot.kvs().first() {
            if entries::decode_slot(position, kv.value())?.head != snapshot.head {
                let why = format!(
                    "the snapshot of position {position} has another head than the entry there"
                );
                return Err(LogError::Refused(why));
            }
            compares.push(Compare::value(self.keys.slot(position), CompareOp::Equal, kv.value()));
        }
        Ok(compares)
    }

    pub(super) async fn upload(&self, stored: &Stored, bytes: &Bytes) -> Result<(), LogError> {
        let begun = Instant::now();
        let mut written = 0;
        for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            tokio::time::sleep_until(begun + pace(written, self.snapshot_bytes_per_second)).await;
            let key = self.keys.chunk(&stored.id, number as u64);
            self.cluster
                .ask(|mut connection| {
                    let key = key.clone();
                    async move { connection.kv.put(key, chunk, None).await }
                })
                .await?;
            written += chunk.len() as u64;
        }
        Ok(())
    }

    /// `false`: it was moved by somebody else.
    async fn move_pointer(
        &self,
        compares: Vec<Compare>,
        pointer: &Pointer,
    ) -> Result<bool, LogError> {
        let put = TxnOp::put(self.keys.pointer(), pointer.encode(), None);
        let look = TxnOp::get(self.keys.pointer(), None);
        let transaction = Txn::new().when(compares).and_then([put]).or_else([look]);
        if self.change(transaction).await? {
            return Ok(true);
        }
        // It may have been moved by our own first copy, if its answer was lost.
        Ok(self.pointer().await?.is_some_and(|(now, _)| now.names(&pointer.newest.id)))
    }

    /// A transaction that may be sent twice: the second copy fails its compares.
    pub(super) async fn change(&self, transaction: Txn) -> Result<bool, LogError> {
        let answer = self
            .cluster
            .ask(|mut connection| {
                let transaction = transaction.clone();
                async move { connection.kv.txn(transaction).await }
            })
            .await?;
        Ok(answer.succeeded())
    }

    pub(super) async fn pointer(&self) -> Result<Option<(Pointer, Vec<u8>)>, LogError> {
        let answer = self.get(self.keys.pointer(), GetOptions::new()).await?;
        let Some(kv) = answer.kvs().first() else { return Ok(None) };
        Ok(Some((decode_pointer(kv.value())?, kv.value().to_vec())))
    }

    /// Removes the chunks that no snapshot has and none can get any more.
    async fn sweep(&self) -> Result<(), LogError> {
        let log = self.survey().await?;
        let (Some(pointer), Some(value)) = (log.pointer, log.pointer_value) else { return Ok(()) };
        let (from, end) = self.keys.all_chunks();
        let all = self.get(from, GetOptions::new().with_range(end).with_keys_only()).await?;
        let mut born: BTreeMap<&str, i64> = BTreeMap::new();
        for kv in all.kvs() {
            let Some(id) = self.keys.chunks_id(kv.key()) else { continue };
            let first = born.entry(id).or_insert(kv.create_revision());
            *first = (*first).min(kv.create_revision());
        }
        for id in unneeded(&born, &pointer, log.pointer_revision) {
            let (first, end) = self.keys.chunks_of(id);
            let delete = TxnOp::delete(first, Some(DeleteOptions::new().with_range(end)));
            let unmoved = Compare::value(self.keys.pointer(), CompareOp::Equal, value.clone());
            if !self.change(Txn::new().when([unmoved]).and_then([delete])).await? {
                break;
            }
        }
        Ok(())
    }

    pub(super) async fn snapshot_before(
        &self,
        position: Position,
    ) -> Result<Option<Snapshot>, LogError> {
        let mut vanished = None;
        for _ in 0..ATTEMPTS {
            let Some((pointer, value)) = self.pointer().await? else {
                // None yet, unless the log has lost it.
                return self.survey().await.map(|_| None);
            };
            // Chunks that are not there under a pointer that stays are damaged, and the older snapshot has to do: the
            // log is kept from there on for just that.
            let is_damaged = vanished.as_ref() == Some(&value);
            let kept = [Some(pointer.newest), pointer.older];
            let is_before = |stored: &Stored| stored.head.position <= position;
            let mut kept = kept.into_iter().flatten().filter(is_before).peekable();
            if kept.peek().is_none() {
                return Ok(None);
            }
            for stored in kept.take(if is_damaged { 2 } else { 1 }) {
                if let Some(bytes) = self.load(&stored).await? {
                    return Ok(Some(Snapshot { head: stored.head, bytes }));
                }
            }
            if is_damaged {
                break;
            }
            vanished = Some(value);
        }
        let what = "the chunks of a snapshot are not what was saved";
        Err(LogError::Damaged(what.into()))
    }

    /// `None`: its chunks are not, or no longer, what was saved.
    pub(super) async fn load(&self, stored: &Stored) -> Result<Option<Bytes>, LogError> {
        let mut bytes = BytesMut::with_capacity(usize::try_from(stored.length).unwrap_or(0));
        let mut next = 0;
        while next < stored.chunks {
            let count = CHUNKS_PER_READ.min(stored.chunks - next);
            let (first, end) = self.keys.chunks(&stored.id, next, count);
            let page = self.get(first, GetOptions::new().with_range(end)).await?;
            for (kv, number) in page.kvs().iter().zip(next..) {
                if kv.key() != self.keys.chunk(&stored.id, number).as_bytes() {
                    return Ok(None);
                }
                bytes.extend_from_slice(kv.value());
            }
            if page.kvs().len() as u64 != count {
                return Ok(None);
            }
            next += count;
        }
        let is_whole = bytes.len() as u64 == stored.length && EntryHash::of(&bytes) == stored.hash;
        Ok(is_whole.then(|| bytes.freeze()))
    }
}

/// When, from the beginning on, so many bytes may have been written.
fn pace(bytes: u64, bytes_per_second: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / bytes_per_second.max(1))
}

/// Ids of chunks that are not named and were begun before the pointer was last moved.
fn unneeded<'a>(
    born: &BTreeMap<&'a str, i64>,
    pointer: &Pointer,
    pointer_revision: i64,
) -> Vec<&'a str> {
    let named = |stored: &Stored| hex(&stored.id);
    let kept: Vec<String> =
        [Some(&pointer.newest), pointer.older.as_ref()].into_iter().flatten().map(named).collect();
    let is_unneeded =
        |id: &str, born: i64| born < pointer_revision && !kept.iter().any(|it| it == id);
    born.iter().filter(|(id, born)| is_unneeded(id, **born)).map(|(id, _)| *id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::entry::Head;

    #[test]
    fn writing_is_paced() {
        assert_eq!(pace(0, 8 << 20), Duration::ZERO);
        assert_eq!(pace(8 << 20, 8 << 20), Duration::from_secs(1));
        assert!(pace(u64::MAX, 1).as_secs() > 1_000_000);
    }

    #[test]
    fn only_chunks_that_can_never_be_named_are_removed() {
        let stored = |id: u8| Stored {
            head: Head::EMPTY,
            id: [id; 16],
            length: 0,
            chunks: 0,
            hash: EntryHash::ZERO,
        };
        let ids: Vec<String> = (1..=4).map(|id| hex(&[id; 16])).collect();
        let born = ids.iter().map(String::as_str).zip([10, 20, 30, 60]).collect();
        let pointer = Pointer { older: Some(stored(1)), newest: stored(3) };
        // 2 was replaced or given up; 4 was begun after the pointer was moved, and may still come.
        assert_eq!(unneeded(&born, &pointer, 50), [hex(&[2; 16])]);
        assert_eq!(unneeded(&born, &pointer, 20), [""; 0]);
    }
}
