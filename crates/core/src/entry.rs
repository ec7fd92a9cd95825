//! Entries of the log: their fields, their binary form, and the chain of hashes that ties them together.
//!
//! ```text
//! bytes  = magic "SE" | schema version (u8) | borsh(Entry)
//! hash   = BLAKE3(bytes)            and bytes contain the hash of the entry before
//! head   = (log id, position, epoch, hash) after the entry
//! ```

use crate::{
    command::Command,
    ids::{self, ClusterTime, Epoch, LogId, Position},
};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use std::fmt;

/// The only schema version so far. A node that meets another one stops; it never skips.
pub const SCHEMA_VERSION: u8 = 1;
const MAGIC: &[u8; 2] = b"SE";

/// BLAKE3 of an entry's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct EntryHash(pub [u8; 32]);

impl EntryHash {
    /// What stands before the first entry.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads what [`Self::to_hex`] writes; `None` for anything else.
    pub fn from_hex(text: &str) -> Option<Self> {
        ids::from_hex(text).map(Self)
    }
}

impl fmt::Debug for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..16])
    }
}

/// Where the log ends: the value that every append compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Head {
    /// Drawn by the log's first announce.
    pub log_id: LogId,
    /// Position of the last entry.
    pub position: Position,
    /// Position of the last announce.
    pub epoch: Epoch,
    /// Hash of the last entry's bytes.
    pub hash: EntryHash,
}

impl Head {
    /// Before the first entry of any log. A first announce is appended after exactly this.
    pub const EMPTY: Self = Self {
        log_id: LogId([0; 16]),
        position: Position(0),
        epoch: Epoch(0),
        hash: EntryHash::ZERO,
    };
}

/// Who wrote an entry: a node, in one particular start of its process.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Writer {
    /// The node's configured id.
    pub node_id: String,
    /// Drawn at each start: a restarted process is another writer.
    pub start: u64,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Entry {
    /// One more than the entry before.
    pub position: Position,
    /// The writer's epoch; of an announce its own position.
    pub epoch: Epoch,
    /// Who wrote it.
    pub writer: Writer,
    /// Stamped by the leader: the entry before plus elapsed monotonic time, at most 1 s more.
    pub time: ClusterTime,
    /// The leader's wall clock in microseconds, read once at its announce and carried on monotonically.
    pub token_clock_us: u64,
    /// Hash of the entry before.
    pub previous: EntryHash,
    /// What it says.
    pub body: Body,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Body {
    /// The writer leads from here on.
    Announce(Announce),
    /// The leader stops; whoever sees this may announce at once.
    Resign,
    /// Commands in order; none in a heartbeat.
    Batch(Vec<Command>),
}

/// A claim to lead. It acts only once its writer has applied it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Announce {
    /// Where the leader can be reached by other nodes and clients.
    pub address: String,
    /// Only in the very first entry of a log.
    pub genesis: Option<Genesis>,
}

/// What the first announce fixes for the whole log.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Genesis {
    /// The log's identity, drawn at random.
    pub log_id: LogId,
    /// Shortest TTL of namespaces that set none: 1 s where there is no takeover, else 5 s.
    pub min_ttl_ms: u64,
}

/// An entry in its binary form, with the head that it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedEntry {
    /// The head after this entry.
    pub head: Head,
    /// The bytes that the log stores and that the hash covers.
    pub bytes: Bytes,
}

/// Bytes that are not an entry of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Not an entry at all, or cut short.
    #[error("not an entry of this log: {0}")]
    Malformed(String),
    /// Written by a newer version.
    #[error("entry schema version {0} is not known to this version ({SCHEMA_VERSION})")]
    Version(u8),
}

impl Entry {
    /// Encodes and hashes; `log_id` is that of the log it is meant for.
    pub fn seal(&self, log_id: LogId) -> SealedEntry {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(MAGIC);
        bytes.push(SCHEMA_VERSION);
        self.serialize(&mut bytes).expect("writing to memory cannot fail");
        let hash = EntryHash::of(&bytes);
        let head = Head { log_id, position: self.position, epoch: self.epoch, hash };
        SealedEntry { head, bytes: bytes.into() }
    }

    /// Reads what [`Self::seal`] wrote; every byte must belong.
    pub fn decode(bytes: &[u8]) -> Result<Self, EntryError> {
        let Some((magic, [version, body @ ..])) = bytes.split_first_chunk::<2>() else {
            return Err(EntryError::Malformed("too short".into()));
        };
        if magic != MAGIC {
            return Err(EntryError::Malformed("wrong first bytes".into()));
        }
        if *version != SCHEMA_VERSION {
            return Err(EntryError::Version(*version));
        }
        borsh::from_slice(body).map_err(|error| EntryError::Malformed(error.to_string()))
    }
}
