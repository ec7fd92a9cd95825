//! The append: one transaction, and what its answer means.

use super::{Shared, entries, failure::Failure, pointer::Pointer, survey::decode_pointer};
use crate::{Append, Conflict, LogError, Slot, fit};
use etcd_client::{Compare, CompareOp, GetResponse, Txn, TxnOp, TxnOpResponse, TxnResponse};
use sereno_core::{
    entry::{EntryHash, Head, SealedEntry},
    ids::Position,
    limits,
};
use std::sync::atomic::Ordering;

/// What a failed compare saw, as stored.
#[derive(Debug, Default)]
struct Seen {
    head: Option<Vec<u8>>,
    slot: Option<Vec<u8>>,
    pointer: Option<Vec<u8>>,
}

impl Shared {
    pub(super) async fn append(&self, expected: Head, entry: SealedEntry) -> Append {
        if let Some(why) = fit::misfit(&expected, &entry) {
            return Append::NotAppended(why);
        }
        if entry.bytes.len() > limits::ENTRY_BYTES_MAX {
            let (bytes, max) = (entry.bytes.len(), limits::ENTRY_BYTES_MAX);
            return Append::NotAppended(format!("the entry has {bytes} bytes, the most is {max}"));
        }
        let transaction = self.transaction(&expected, &entry);
        let mut passed_over = Vec::new();
        for member in self.cluster.in_order() {
            let send = |mut connection: super::cluster::Connection| {
                let transaction = transaction.clone();
                async move { connection.kv.txn(transaction).await }
            };
            // Another member is asked only while it is certain that none has got it.
            match self.cluster.attempt(member, send).await {
                Ok(answer) => return self.answered(&expected, &entry, &answer),
                Err(Failure::NotHere(why)) => passed_over.push(why),
                Err(Failure::Refused(why)) => return Append::NotAppended(why),
                Err(Failure::NoSpace(why)) => return self.look(&expected, &entry, why).await,
                Err(Failure::Unknown(why) | Failure::TooMuch(why)) => return Append::Unknown(why),
            }
        }
        Append::NotAppended(passed_over.join("; "))
    }

    /// Compares the head's value; of a log that is to begin, that there is nothing yet. The compares are made in
    /// this order, and the first that fails ends them: a log that exists is never searched through.
    fn transaction(&self, expected: &Head, entry: &SealedEntry) -> Txn {
        let keys = &self.keys;
        let (slot, (slots, slots_end)) = (keys.slot(entry.head.position), keys.all_slots());
        let compares = if *expected == Head::EMPTY {
            vec![
                Compare::create_revision(keys.head(), CompareOp::Equal, 0),
                Compare::create_revision(keys.pointer(), CompareOp::Equal, 0),
                Compare::create_revision(slots, CompareOp::Equal, 0).with_range(slots_end),
            ]
        } else {
            vec![Compare::value(keys.head(), CompareOp::Equal, entries::encode_head(expected))]
        };
        let puts = vec![
            TxnOp::put(keys.head(), entries::encode_head(&entry.head), None),
            TxnOp::put(slot.clone(), entries::encode_slot(entry), None),
        ];
        let looks = [keys.head(), slot, keys.pointer()].map(|key| TxnOp::get(key, None));
        Txn::new().when(compares).and_then(puts).or_else(looks)
    }

    fn answered(&self, expected: &Head, entry: &SealedEntry, answer: &TxnResponse) -> Append {
        if answer.succeeded() {
            if let Some(header) = answer.header() {
                self.revision.store(header.revision(), Ordering::Relaxed);
            }
            self.publish(entry.head.position);
            return Append::Committed;
        }
        let value = |response: &TxnOpResponse| match response {
            TxnOpResponse::Get(get) => get.kvs().first().map(|kv| kv.value().to_vec()),
            _ => None,
        };
        let [head, slot, pointer] = &answer.op_responses()[..] else {
            return Append::Unknown("etcd's answer is not the one to this request".into());
        };
        let seen = Seen { head: value(head), slot: value(slot), pointer: value(pointer) };
        match seen.tell(entry.head.position) {
            // Nothing but a head that is not there can be equal and fail the compare.
            Ok(Conflict { head, .. }) if head == *expected => self
                .damaged(LogError::Damaged("there are entries or snapshots, but no head".into())),
            Ok(conflict) => Append::Conflict(conflict),
            Err(damage) => self.damaged(damage),
        }
    }

    /// The compare has failed, so the entry was not appended; to what, nobody can say.
    fn damaged(&self, damage: LogError) -> Append {
        self.note_damage(&damage);
        Append::NotAppended(damage.to_string())
    }

    /// Whether an append landed that met the end of etcd's space. It has been answered, so it is decided.
    async fn look(&self, expected: &Head, entry: &SealedEntry, why: String) -> Append {
        let seen = match self.see(entry.head.position).await {
            Ok(seen) => seen,
            Err(failure) => return Append::Unknown(format!("{why}; {}", LogError::from(failure))),
        };
        match seen.tell(entry.head.position) {
            Ok(Conflict { slot: Slot::Entry(hash), .. }) if hash == entry.head.hash => {
                self.publish(entry.head.position);
                Append::Committed
            }
            Ok(Conflict { head, .. }) if head == *expected => Append::NotAppended(why),
            Ok(conflict) => Append::Conflict(conflict),
            Err(damage) => {
                self.note_damage(&damage);
                Append::Unknown(damage.to_string())
            }
        }
    }

    async fn see(&self, position: Position) -> Result<Seen, Failure> {
        let first = |answer: GetResponse| answer.kvs().first().map(|kv| kv.value().to_vec());
        let looks = [self.keys.head(), self.keys.slot(position), self.keys.pointer()];
        let looks = looks.map(|key| TxnOp::get(key, None));
        let [head, slot, pointer] = self.get_together(looks).await?;
        Ok(Seen { head: first(head), slot: first(slot), pointer: first(pointer) })
    }
}

impl Seen {
    /// The head, and what stands at `position`; an error if these cannot be of one log.
    fn tell(&self, position: Position) -> Result<Conflict, LogError> {
        let head = self.head.as_deref().map_or(Ok(Head::EMPTY), entries::decode_head)?;
        let slot = match &self.slot {
            Some(value) => Slot::Entry(self.hash_at(position, &head, value)?),
            None if position > head.position => Slot::Empty,
            None => {
                let pointer = self.pointer.as_deref().map(decode_pointer).transpose()?;
                trimmed(position, pointer.as_ref())?
            }
        };
        Ok(Conflict { head, slot })
    }

    fn hash_at(
        &self,
        position: Position,
        head: &Head,
        value: &[u8],
    ) -> Result<EntryHash, LogError> {
        if position > head.position {
            let what = format!("entry {position}: it lies beyond the head, {}", head.position);
            return Err(LogError::Damaged(what));
        }
        Ok(entries::decode_slot(position, value)?.head.hash)
    }
}

/// An entry that is not there was trimmed, if a snapshot stands for it.
fn trimmed(position: Position, pointer: Option<&Pointer>) -> Result<Slot, LogError> {
    match pointer {
        Some(pointer) if position <= pointer.oldest().head.position => Ok(Slot::Trimmed),
        _ => Err(LogError::Damaged(format!("entry {position}: it is missing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pointer::Stored, *};
    use bytes::Bytes;

    fn entry(position: u64) -> SealedEntry {
        let bytes = Bytes::from(vec![position as u8; 20]);
        let hash = EntryHash::of(&bytes);
        SealedEntry { head: Head { position: Position(position), hash, ..Head::EMPTY }, bytes }
    }

    fn seen(head: Option<u64>, slot: Option<u64>, snapshot: Option<u64>) -> Seen {
        let pointer = |position| {
            let newest = Stored {
                head: entry(position).head,
                id: [1; 16],
                length: 0,
                chunks: 0,
                hash: EntryHash::ZERO,
            };
            Pointer { older: None, newest }.encode()
        };
        Seen {
            head: head.map(|position| entries::encode_head(&entry(position).head)),
            slot: slot.map(|position| entries::encode_slot(&entry(position))),
            pointer: snapshot.map(pointer),
        }
    }

    #[test]
    fn a_failed_compare_tells_head_and_slot() {
        let told = |seen: Seen| seen.tell(Position(5)).map(|it| (it.head.position.0, it.slot)).ok();
        let own = Slot::Entry(entry(5).head.hash);
        assert_eq!(told(seen(Some(9), Some(5), None)), Some((9, own)));
        assert_eq!(told(seen(Some(5), Some(5), None)), Some((5, own)));
        assert_eq!(told(seen(Some(3), None, None)), Some((3, Slot::Empty)));
        assert_eq!(told(seen(None, None, None)), Some((0, Slot::Empty)));
        assert_eq!(told(seen(Some(9), None, Some(5))), Some((9, Slot::Trimmed)));
        assert_eq!(told(seen(Some(9), None, Some(4))), None, "no snapshot stands for it");
        assert_eq!(told(seen(Some(9), None, None)), None);
        assert_eq!(told(seen(Some(4), Some(5), None)), None, "beyond the head");
        assert_eq!(told(seen(Some(9), Some(6), None)), None, "another's slot");
        let mut flipped = seen(Some(9), Some(5), None);
        flipped.slot.as_mut().expect("there is one")[90] ^= 1;
        assert_eq!(told(flipped), None);
    }
}
