//! What a log holds, seen at one revision of the store: its head, its pointer, its first slot; and whether these
//! can be parts of one log.

use super::{Shared, entries, failure::Failure, pointer::Pointer};
use crate::LogError;
use etcd_client::{GetOptions, GetResponse, Txn, TxnOp, TxnOpResponse};
use sereno_core::{entry::Head, ids::Position};

/// A sound log at one moment.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    pub(super) head: Head,
    /// First position that can be read; one past the head where nothing can.
    pub(super) first: Position,
    pub(super) pointer: Option<Pointer>,
    /// The pointer's stored bytes, to compare with.
    pub(super) pointer_value: Option<Vec<u8>>,
    /// When the pointer was last moved.
    pub(super) pointer_revision: i64,
}

impl Shared {
    /// The newest moment.
    pub(super) async fn survey(&self) -> Result<Survey, LogError> {
        let (from, end) = self.keys.all_slots();
        let lowest = GetOptions::new().with_range(end).with_keys_only().with_limit(1);
        let [head, pointer, lowest] = self
            .get_together([
                TxnOp::get(self.keys.head(), None),
                TxnOp::get(self.keys.pointer(), None),
                TxnOp::get(from, Some(lowest)),
            ])
            .await?;

        let head = match head.kvs().first() {
            Some(kv) => Some(entries::decode_head(kv.value())?),
            None => None,
        };
        let lowest = match lowest.kvs().first() {
            Some(kv) => Some(entries::position_of(&self.keys, kv.key())?),
            None => None,
        };
        let moved = pointer.kvs().first();
        let pointer_value = moved.map(|kv| kv.value().to_vec());
        let pointer = pointer_value.as_deref().map(decode_pointer).transpose()?;
        let first = first_readable(head.as_ref(), lowest, pointer.as_ref())?;
        Ok(Survey {
            head: head.unwrap_or(Head::EMPTY),
            first,
            pointer,
            pointer_value,
            pointer_revision: moved.map_or(0, |kv| kv.mod_revision()),
        })
    }

    /// Several reads at one moment, in one request. To read later at the revision that a first answer has named would
    /// not do: whoever compacts etcd's history may have taken that one away by then.
    pub(super) async fn get_together<const N: usize>(
        &self,
        gets: [TxnOp; N],
    ) -> Result<[GetResponse; N], Failure> {
        let transaction = Txn::new().and_then(gets);
        let answer = self
            .cluster
            .ask(|mut connection| {
                let transaction = transaction.clone();
                async move { connection.kv.txn(transaction).await }
            })
            .await?;
        let got = answer.op_responses().into_iter().filter_map(|response| match response {
            TxnOpResponse::Get(got) => Some(got),
            _ => None,
        });
        let other = |_| Failure::Unknown("etcd's answer is not the one to this request".into());
        got.collect::<Vec<_>>().try_into().map_err(other)
    }

    pub(super) async fn get(
        &self,
        key: String,
        options: GetOptions,
    ) -> Result<GetResponse, Failure> {
        self.cluster
            .ask(|mut connection| {
                let (key, options) = (key.clone(), options.clone());
                async move { connection.kv.get(key, Some(options)).await }
            })
            .await
    }
}

pub(super) fn decode_pointer(value: &[u8]) -> Result<Pointer, LogError> {
    let broken = || LogError::Damaged("the pointer to the snapshots fails its check".into());
    Pointer::decode(value).ok_or_else(broken)
}

/// First position that can be read; an error if these three cannot be of one log.
fn first_readable(
    head: Option<&Head>,
    lowest: Option<Position>,
    pointer: Option<&Pointer>,
) -> Result<Position, LogError> {
    let damaged = |what: String| Err(LogError::Damaged(what));
    let Some(head) = head else {
        return match (lowest, pointer) {
            (None, None) => Ok(Position(1)),
            (Some(lowest), _) => damaged(format!("there is entry {lowest}, but no head")),
            (None, Some(_)) => damaged("there are snapshots, but no head".into()),
        };
    };
    let first = lowest.unwrap_or(head.position.next());
    if first > head.position.next() {
        return damaged(format!("entry {first} lies beyond the head, {}", head.position));
    }
    // Only what a snapshot stands for may be missing.
    let may_miss = pointer.map_or(Position(0), |pointer| pointer.oldest().head.position);
    if first > may_miss.next() {
        return damaged(format!("the entries {} to {} are missing", may_miss.next(), first.0 - 1));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::{super::pointer::Stored, *};
    use sereno_core::entry::EntryHash;

    fn head(position: u64) -> Head {
        Head { position: Position(position), ..Head::EMPTY }
    }

    fn pointer(position: u64) -> Pointer {
        let hash = EntryHash::ZERO;
        let newest = Stored { head: head(position), id: [1; 16], length: 0, chunks: 0, hash };
        Pointer { older: None, newest }
    }

    #[test]
    fn only_what_a_snapshot_stands_for_may_be_missing() {
        let first = |at: Option<u64>, lowest: Option<u64>, snapshot: Option<u64>| {
            let (head, pointer) = (at.map(head), snapshot.map(pointer));
            first_readable(head.as_ref(), lowest.map(Position), pointer.as_ref())
                .map(|it| it.0)
                .ok()
        };
        assert_eq!(first(None, None, None), Some(1), "no log yet");
        assert_eq!(first(None, Some(4), None), None);
        assert_eq!(first(None, None, Some(4)), None);
        assert_eq!(first(Some(9), Some(1), None), Some(1));
        assert_eq!(first(Some(9), Some(2), None), None);
        assert_eq!(first(Some(9), None, None), None);
        assert_eq!(first(Some(9), Some(1), Some(4)), Some(1));
        assert_eq!(first(Some(9), Some(5), Some(4)), Some(5));
        assert_eq!(first(Some(9), Some(6), Some(4)), None);
        assert_eq!(first(Some(9), None, Some(9)), Some(10), "everything trimmed");
        assert_eq!(first(Some(9), None, Some(8)), None);
        assert_eq!(first(Some(9), Some(11), Some(20)), None);
    }
}
