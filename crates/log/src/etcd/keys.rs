//! Where things are in etcd.
//!
//! ```text
//! PREFIX/@head                     the head: every append compares its value
//! PREFIX/@slot/0000000000000001    an entry: the head after it, sealed, and its bytes
//! PREFIX/@snapshots                the pointer: which snapshots are kept
//! PREFIX/@chunk/ID/00000000        a piece of a snapshot
//! PREFIX/@node/ID                  a node's presence record
//! ```
//!
//! A prefix cannot contain `@`, so the keys of `a/b` are in no range of `a`. Positions have a fixed width: keys
//! are ordered as positions are.

use sereno_core::ids::Position;

/// An id of a snapshot's chunks, drawn at random for each upload.
pub(super) type ChunksId = [u8; 16];

/// A key, or the first of a range and the first beyond it.
pub(super) type Range = (String, String);

#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    pub(super) fn head(&self) -> String {
        format!("{}/@head", self.prefix)
    }

    pub(super) fn pointer(&self) -> String {
        format!("{}/@snapshots", self.prefix)
    }

    pub(super) fn slot(&self, position: Position) -> String {
        format!("{}/@slot/{:016x}", self.prefix, position.0)
    }

    pub(super) fn all_slots(&self) -> Range {
        self.below("slot")
    }

    /// `count` slots from `first` on.
    pub(super) fn slots(&self, first: Position, count: u64) -> Range {
        let end = match first.0.checked_add(count) {
            Some(end) => self.slot(Position(end)),
            None => self.all_slots().1,
        };
        (self.slot(first), end)
    }

    /// The position that a slot's key names.
    pub(super) fn position(&self, key: &[u8]) -> Option<Position> {
        let digits = std::str::from_utf8(key).ok()?.strip_prefix(&self.all_slots().0)?;
        let is_canonical = digits.len() == 16 && !digits.contains('+');
        is_canonical.then(|| u64::from_str_radix(digits, 16).ok().map(Position))?
    }

    pub(super) fn all_chunks(&self) -> Range {
        self.below("chunk")
    }

    pub(super) fn chunk(&self, id: &ChunksId, number: u64) -> String {
        format!("{}/@chunk/{}/{number:08x}", self.prefix, hex(id))
    }

    /// `count` chunks from number `first` on.
    pub(super) fn chunks(&self, id: &ChunksId, first: u64, count: u64) -> Range {
        (self.chunk(id, first), self.chunk(id, first + count))
    }

    /// All chunks of an id given in hexadecimal.
    pub(super) fn chunks_of(&self, id: &str) -> Range {
        (format!("{}/@chunk/{id}/", self.prefix), format!("{}/@chunk/{id}0", self.prefix))
    }

    /// The id, in hexadecimal, that a chunk's key names.
    pub(super) fn chunks_id<'a>(&self, key: &'a [u8]) -> Option<&'a str> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.all_chunks().0)?;
        rest.split_once('/').map(|(id, _number)| id)
    }

    pub(super) fn node(&self, id: &str) -> String {
        format!("{}/@node/{id}", self.prefix)
    }

    pub(super) fn all_nodes(&self) -> Range {
        self.below("node")
    }

    /// The node that a key names.
    pub(super) fn node_id<'a>(&self, key: &'a [u8]) -> Option<&'a str> {
        std::str::from_utf8(key).ok()?.strip_prefix(&self.all_nodes().0)
    }

    /// `0` is the byte after `/`.
    fn below(&self, kind: &str) -> Range {
        (format!("{}/@{kind}/", self.prefix), format!("{}/@{kind}0", self.prefix))
    }
}

pub(super) fn hex(id: &ChunksId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_ordered_as_positions_are() {
        let keys = Keys::new("a");
        let positions = [0, 1, 9, 10, 15, 16, 255, 1 << 32, u64::MAX - 1, u64::MAX];
        let slots = positions.map(|position| keys.slot(Position(position)));
        assert!(slots.is_sorted());
        let (first, end) = keys.all_slots();
        for (slot, position) in slots.iter().zip(positions) {
            assert!(*slot > first && *slot < end);
            assert_eq!(keys.position(slot.as_bytes()), Some(Position(position)));
        }
        assert_eq!(keys.slots(Position(3), 4), (keys.slot(Position(3)), keys.slot(Position(7))));
        assert_eq!(keys.slots(Position(u64::MAX), 4), (keys.slot(Position(u64::MAX)), end));
        for other in
            ["a/@slot/1", "a/@slot/+000000000000001", "a/@head", "b/@slot/0000000000000001"]
        {
            assert_eq!(keys.position(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_keys_of_one_prefix_are_in_no_range_of_another() {
        let outer = Keys::new("a");
        for other in ["a/b", "ab", "a/slot", "a0", "b"].map(Keys::new) {
            let id = [7; 16];
            let theirs = [
                other.head(),
                other.pointer(),
                other.slot(Position(1)),
                other.chunk(&id, 0),
                other.node("n"),
            ];
            for (first, end) in [outer.all_slots(), outer.all_chunks(), outer.all_nodes()] {
                assert!(theirs.iter().all(|key| *key < first || *key >= end));
            }
        }
    }

    #[test]
    fn chunks_are_found_by_their_id() {
        let keys = Keys::new("a/b");
        let id = [0xab; 16];
        let key = keys.chunk(&id, 17);
        assert_eq!(keys.chunks_id(key.as_bytes()), Some(hex(&id).as_str()));
        let (first, end) = keys.chunks_of(&hex(&id));
        assert!(key >= first && key < end);
        assert!(keys.chunks(&id, 17, 1).1 > key);
        assert_eq!(keys.node_id(keys.node("n-1").as_bytes()), Some("n-1"));
    }
}
