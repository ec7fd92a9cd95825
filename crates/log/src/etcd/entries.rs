//! Entries in their slots. Nothing leaves here whose bytes do not have their hash.
//!
//! ```text
//! slot = the head after the entry, sealed (80) | the entry's bytes
//! ```

use super::{Shared, failure::Failure, keys::Keys};
use crate::{LogError, Read, record};
use bytes::Bytes;
use etcd_client::{GetOptions, GetResponse};
use sereno_core::{
    entry::{EntryHash, Head, SealedEntry},
    ids::Position,
    limits,
};
use std::sync::atomic::Ordering;

const HEAD_PURPOSE: &str = "sereno log head";
const SLOT_PURPOSE: &str = "sereno log entry";
const SEALED_BYTES: usize = record::HEAD_BYTES + record::CHECK_BYTES;

/// What one request should bring.
const PAGE_BYTES: usize = 4 << 20;
/// Entries in one request, at most.
const PAGE_ENTRIES_MAX: usize = 1_000;
/// So many of the largest fit into an answer.
const PAGE_ENTRIES_SAFE: usize = PAGE_BYTES / limits::ENTRY_BYTES_MAX;

pub(super) fn encode_head(head: &Head) -> Vec<u8> {
    record::seal(HEAD_PURPOSE, record::encode_head(head).to_vec())
}

pub(super) fn decode_head(value: &[u8]) -> Result<Head, LogError> {
    record::unseal(HEAD_PURPOSE, value)
        .and_then(|mut data| record::take_head(&mut data))
        .ok_or_else(|| LogError::Damaged("the head fails its check".into()))
}

pub(super) fn encode_slot(entry: &SealedEntry) -> Vec<u8> {
    let mut value = record::seal(SLOT_PURPOSE, record::encode_head(&entry.head).to_vec());
    value.extend_from_slice(&entry.bytes);
    value
}

/// The entry that stands at `position`.
pub(super) fn decode_slot(position: Position, value: &[u8]) -> Result<SealedEntry, LogError> {
    let damaged = |what: &str| LogError::Damaged(format!("entry {position}: {what}"));
    let (sealed, bytes) =
        value.split_at_checked(SEALED_BYTES).ok_or_else(|| damaged("it is cut short"))?;
    let head = record::unseal(SLOT_PURPOSE, sealed)
        .and_then(|mut data| record::take_head(&mut data))
        .ok_or_else(|| damaged("its head fails the check"))?;
    if head.position != position {
        return Err(damaged(&format!("what stands there is entry {}", head.position)));
    }
    if EntryHash::of(bytes) != head.hash {
        return Err(damaged("its bytes do not have its hash"));
    }
    Ok(SealedEntry { head, bytes: Bytes::copy_from_slice(bytes) })
}

/// The position that a slot's key names.
pub(super) fn position_of(keys: &Keys, key: &[u8]) -> Result<Position, LogError> {
    keys.position(key).ok_or_else(|| {
        LogError::Damaged(format!("{:?} is no slot's key", String::from_utf8_lossy(key)))
    })
}

impl Shared {
    pub(super) async fn head(&self) -> Result<Head, LogError> {
        let answer = self.get(self.keys.head(), GetOptions::new()).await?;
        match answer.kvs().first() {
            Some(kv) => decode_head(kv.value()),
            // An empty log, or one that has lost its head: the survey tells.
            None => Ok(self.survey().await?.head),
        }
    }

    pub(super) async fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        /// The log may be trimmed, or grow, between two looks at it.
        const LOOKS: usize = 5;
        for _ in 0..LOOKS {
            let entries = self.read_entries(from, bytes_max).await?;
            if !entries.is_empty() {
                return Ok(Read::Entries(entries));
            }
            if from > self.head().await?.position {
                return Ok(Read::Entries(Vec::new()));
            }
            let first = self.survey().await?.first;
            if from < first {
                return Ok(Read::Trimmed { first });
            }
        }
        Err(missing(from))
    }

    /// As many as fit; none if there is none at exactly `from`.
    async fn read_entries(
        &self,
        from: Position,
        bytes_max: usize,
    ) -> Result<Vec<SealedEntry>, LogError> {
        let mut entries = Vec::new();
        let mut room = bytes_max;
        let mut safely = false;
        loop {
            let next = Position(from.0.saturating_add(entries.len() as u64));
            let typical = self.entry_bytes.load(Ordering::Relaxed);
            let count = if safely { PAGE_ENTRIES_SAFE } else { page_entries(room, typical) };
            let (first, end) = self.keys.slots(next, count as u64);
            let page = match self.get(first, GetOptions::new().with_range(end)).await {
                Err(Failure::TooMuch(_)) if !safely => {
                    safely = true;
                    continue;
                }
                page => page?,
            };
            let found = self.take_page(next, &page)?;
            let is_last = found.len() < count;
            for entry in found {
                if entry.bytes.len() > room && !entries.is_empty() {
                    return Ok(entries);
                }
                room = room.saturating_sub(entry.bytes.len());
                entries.push(entry);
            }
            if is_last || room == 0 {
                return Ok(entries);
            }
        }
    }

    /// The entries of one answer; none if the first is not there.
    fn take_page(&self, from: Position, page: &GetResponse) -> Result<Vec<SealedEntry>, LogError> {
        let mut entries = Vec::with_capacity(page.kvs().len());
        let mut bytes = 0;
        for kv in page.kvs() {
            let position = position_of(&self.keys, kv.key())?;
            let expected = Position(from.0 + entries.len() as u64);
            if position != expected {
                if entries.is_empty() {
                    return Ok(entries);
                }
                return Err(missing(expected));
            }
            let entry = decode_slot(position, kv.value())?;
            bytes += entry.bytes.len();
            entries.push(entry);
        }
        if let Some(typical) = bytes.checked_div(entries.len()) {
            self.entry_bytes.store(typical, Ordering::Relaxed);
        }
        Ok(entries)
    }
}

fn missing(position: Position) -> LogError {
    LogError::Damaged(format!("entry {position}: it is missing"))
}

/// How many entries to ask for when there is room for so many bytes and one has about `typical`.
fn page_entries(room: usize, typical: usize) -> usize {
    let wanted = room.min(PAGE_BYTES) / typical.max(256);
    wanted.clamp(1, PAGE_ENTRIES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::ids::{Epoch, LogId};

    fn entry() -> SealedEntry {
        let bytes = Bytes::from_static(b"an entry");
        let hash = EntryHash::of(&bytes);
        let head = Head { log_id: LogId([1; 16]), position: Position(7), epoch: Epoch(3), hash };
        SealedEntry { head, bytes }
    }

    #[test]
    fn every_flipped_bit_of_a_slot_is_found() {
        let entry = entry();
        let value = encode_slot(&entry);
        assert_eq!(decode_slot(Position(7), &value), Ok(entry));
        assert!(decode_slot(Position(8), &value).is_err(), "another's slot");
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_slot(Position(7), &flipped).is_err(), "bit {bit}");
        }
        for length in 0..value.len() {
            assert!(decode_slot(Position(7), &value[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_head_is_one_text_of_bytes() {
        let head = entry().head;
        assert_eq!(decode_head(&encode_head(&head)), Ok(head));
        assert_eq!(encode_head(&head), encode_head(&head));
        assert!(decode_head(&encode_slot(&entry())).is_err());
    }

    #[test]
    fn pages_are_as_large_as_their_entries_allow() {
        assert_eq!(page_entries(usize::MAX, 0), PAGE_ENTRIES_MAX);
        assert_eq!(page_entries(0, 1_000), 1);
        assert_eq!(page_entries(1 << 20, 1 << 10), 1_000);
        assert_eq!(page_entries(usize::MAX, limits::ENTRY_BYTES_MAX), PAGE_ENTRIES_SAFE);
        const { assert!(PAGE_ENTRIES_SAFE > 1) };
    }
}
