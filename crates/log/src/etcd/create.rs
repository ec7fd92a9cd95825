//! A new log that begins after a snapshot, as a restored one does.

use super::{
    EtcdOptions, EtcdUrl, Shared, entries,
    pointer::{Pointer, Stored},
    snapshots::CHUNK_BYTES,
};
use crate::{LogError, Snapshot};
use etcd_client::{Compare, CompareOp, Txn, TxnOp};

/// Writes a log whose head is the snapshot's and which has no entries yet. Refuses where there is a log already.
pub async fn create_from_snapshot(
    url: &EtcdUrl,
    options: EtcdOptions,
    snapshot: &Snapshot,
) -> Result<(), LogError> {
    if snapshot.head.position.0 == 0 {
        return Err(LogError::Refused("the snapshot has nothing in it".into()));
    }
    let shared = Shared::new(url, &options);
    let stored = Stored::of(rand::random(), snapshot, CHUNK_BYTES);
    shared.upload(&stored, &snapshot.bytes).await?;
    let keys = &shared.keys;
    let pointer = Pointer::after(None, stored);
    let (slots, slots_end) = keys.all_slots();
    let transaction = Txn::new()
        .when([
            Compare::create_revision(keys.head(), CompareOp::Equal, 0),
            Compare::create_revision(keys.pointer(), CompareOp::Equal, 0),
            Compare::create_revision(slots, CompareOp::Equal, 0).with_range(slots_end),
        ])
        .and_then([
            TxnOp::put(keys.head(), entries::encode_head(&snapshot.head), None),
            TxnOp::put(keys.pointer(), pointer.encode(), None),
        ]);
    let is_done = shared.change(transaction).await?
        // Or its own first copy was faster.
        || shared.pointer().await?.is_some_and(|(now, _)| now.names(&stored.id));
    if is_done {
        return Ok(());
    }
    Err(LogError::Refused(format!("there is a log already at {url}")))
}
