//! How the engines store a head: its 64 bytes, sealed with a check, so that a flipped bit in it is found.
//!
//! ```text
//! head   = log id (16) | position (u64) | epoch (u64) | hash (32)         numbers little-endian
//! sealed = data | first 16 bytes of BLAKE3(purpose, data)
//! ```
//!
//! An entry's hash covers its bytes, but nothing covers the head beside them: without the check a flipped epoch
//! would be read as if it were true. The purpose keeps a record of one kind from passing for another.

use sereno_core::{
    entry::{EntryHash, Head},
    ids::{Epoch, LogId, Position},
};

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 64;
/// Bytes that a seal adds.
pub(crate) const CHECK_BYTES: usize = 16;

/// A head's bytes.
pub(crate) fn encode_head(head: &Head) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[..16].copy_from_slice(&head.log_id.0);
    bytes[16..24].copy_from_slice(&head.position.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&head.epoch.0.to_le_bytes());
    bytes[32..].copy_from_slice(&head.hash.0);
    bytes
}

/// What [`encode_head`] wrote; `None` if it is cut short. Takes it from the front of `bytes`.
pub(crate) fn take_head(bytes: &mut &[u8]) -> Option<Head> {
    Some(Head {
        log_id: LogId(take(bytes)?),
        position: Position(take_u64(bytes)?),
        epoch: Epoch(take_u64(bytes)?),
        hash: EntryHash(take(bytes)?),
    })
}

/// The next `N` bytes.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

/// The next number.
pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

/// The next number that may be negative.
pub(crate) fn take_i64(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(i64::from_le_bytes)
}

/// Adds the check.
pub(crate) fn seal(purpose: &str, mut data: Vec<u8>) -> Vec<u8> {
    let check = check(purpose, &data);
    data.extend_from_slice(&check);
    data
}

/// The data that was sealed for this purpose; `None` if it is anything else.
pub(crate) fn unseal<'a>(purpose: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
    let (data, stored) = sealed.split_last_chunk::<CHECK_BYTES>()?;
    (check(purpose, data) == *stored).then_some(data)
}

fn check(purpose: &str, data: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(purpose.as_bytes());
    hasher.update(data);
    *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_breaks_the_seal() {
        let head = Head {
            log_id: LogId([7; 16]),
            position: Position(3),
            epoch: Epoch(1),
            hash: EntryHash([9; 32]),
        };
        let sealed = seal("test", encode_head(&head).to_vec());
        let mut data = unseal("test", &sealed).expect("it is sound");
        assert_eq!(take_head(&mut data), Some(head));
        assert_eq!(unseal("other", &sealed), None);
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal("test", &flipped), None, "bit {bit}");
        }
    }
}
