//! The pointer: one record that says which snapshots are kept. What it does not name is no snapshot.

use super::keys::ChunksId;
use crate::{Snapshot, record};
use sereno_core::entry::{EntryHash, Head};

const PURPOSE: &str = "sereno log snapshots";

/// A snapshot's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) head: Head,
    pub(super) id: ChunksId,
    pub(super) length: u64,
    pub(super) chunks: u64,
    /// Of all the bytes.
    pub(super) hash: EntryHash,
}

/// The kept snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) older: Option<Stored>,
    pub(super) newest: Stored,
}

impl Stored {
    /// How `snapshot` is stored under `id`.
    pub(super) fn of(id: ChunksId, snapshot: &Snapshot, chunk_bytes: usize) -> Self {
        Self {
            head: snapshot.head,
            id,
            length: snapshot.bytes.len() as u64,
            chunks: snapshot.bytes.len().div_ceil(chunk_bytes) as u64,
            hash: EntryHash::of(&snapshot.bytes),
        }
    }

    fn encode(&self, data: &mut Vec<u8>) {
        data.extend_from_slice(&record::encode_head(&self.head));
        data.extend_from_slice(&self.id);
        data.extend_from_slice(&self.length.to_le_bytes());
        data.extend_from_slice(&self.chunks.to_le_bytes());
        data.extend_from_slice(&self.hash.0);
    }

    fn take(data: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: record::take_head(data)?,
            id: record::take(data)?,
            length: record::take_u64(data)?,
            chunks: record::take_u64(data)?,
            hash: EntryHash(record::take(data)?),
        })
    }
}

impl Pointer {
    /// The pointer after `stored` was saved where `before` was the pointer: one of the same head is replaced.
    pub(super) fn after(before: Option<&Self>, stored: Stored) -> Self {
        let older = match before {
            Some(before) if before.newest.head == stored.head => before.older,
            Some(before) => Some(before.newest),
            None => None,
        };
        Self { older, newest: stored }
    }

    /// The snapshot that can be fallen back to furthest.
    pub(super) fn oldest(&self) -> &Stored {
        self.older.as_ref().unwrap_or(&self.newest)
    }

    pub(super) fn names(&self, id: &ChunksId) -> bool {
        self.newest.id == *id || self.older.is_some_and(|older| older.id == *id)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        self.newest.encode(&mut data);
        if let Some(older) = &self.older {
            older.encode(&mut data);
        }
        record::seal(PURPOSE, data)
    }

    pub(super) fn decode(sealed: &[u8]) -> Option<Self> {
        let mut data = record::unseal(PURPOSE, sealed)?;
        let newest = Stored::take(&mut data)?;
        let older = if data.is_empty() { None } else { Some(Stored::take(&mut data)?) };
        data.is_empty().then_some(Self { older, newest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use sereno_core::ids::Position;

    fn stored(position: u64, id: u8) -> Stored {
        let head = Head { position: Position(position), ..Head::EMPTY };
        Stored::of([id; 16], &Snapshot { head, bytes: Bytes::from(vec![1; 10]) }, 4)
    }

    #[test]
    fn two_are_kept_and_one_of_the_same_head_is_replaced() {
        assert_eq!(stored(3, 1).chunks, 3);
        let one = Pointer::after(None, stored(3, 1));
        assert_eq!(one, Pointer { older: None, newest: stored(3, 1) });
        let two = Pointer::after(Some(&one), stored(5, 2));
        assert_eq!(two, Pointer { older: Some(stored(3, 1)), newest: stored(5, 2) });
        let again = Pointer::after(Some(&two), stored(5, 3));
        assert_eq!(again, Pointer { older: Some(stored(3, 1)), newest: stored(5, 3) });
        assert!(again.names(&[1; 16]) && again.names(&[3; 16]) && !again.names(&[2; 16]));
        let three = Pointer::after(Some(&again), stored(9, 4));
        assert_eq!(three.oldest(), &stored(5, 3));
        for pointer in [one, two, again, three] {
            let bytes = pointer.encode();
            assert_eq!(Pointer::decode(&bytes), Some(pointer));
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Pointer::decode(&flipped), None);
            }
        }
    }
}
