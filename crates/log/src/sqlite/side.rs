//! The side file `HEAD`: what SQLite cannot tell.
//!
//! SQLite takes a damaged frame of its WAL for the end of the log, and a chain of hashes cannot show a missing
//! tail. So `HEAD` says how far the log goes. Two slots are overwritten in turn, never truncated or renamed:
//!
//! ```text
//! slot = position (u64) | changes (u64) | hash of the entry there (32) | check (16)        64 bytes
//! ```
//!
//! *changes* counts the committed transactions that mean something (appends, snapshots, trims): a lost snapshot
//! or trim is a lost tail too. A slot is written after its commit and before anybody hears of that commit, so
//! the log is never behind `HEAD` after a kill: the kernel keeps both in the order written. Nor after a power
//! cut: the commit was fsynced before the slot was written at all. The slot itself is fsynced by `flush` and
//! before each trim and checkpoint; until then a power cut may leave it behind the log, which is only less strict.
//!
//! The slots lie 4 KiB apart, so that a torn write of one block never touches the other.

use super::{failure, folder, state::LogState};
use crate::{LogError, record};
use sereno_core::{entry::EntryHash, ids::Position};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// The file's name in the data folder.
pub(super) const FILE: &str = "HEAD";
/// Where the second slot lies.
pub(super) const STRIDE: u64 = 4096;
const SLOT_BYTES: usize = 64;
const PURPOSE: &str = "sereno HEAD slot";

/// What a sound slot says: the log has at least this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) position: Position,
    pub(super) changes: u64,
    pub(super) hash: EntryHash,
}

impl Mark {
    pub(super) fn of(state: &LogState) -> Self {
        Self { position: state.head.position, changes: state.changes, hash: state.head.hash }
    }

    fn encode(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(SLOT_BYTES);
        data.extend_from_slice(&self.position.0.to_le_bytes());
        data.extend_from_slice(&self.changes.to_le_bytes());
        data.extend_from_slice(&self.hash.0);
        record::seal(PURPOSE, data)
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let mut data = record::unseal(PURPOSE, slot)?;
        Some(Self {
            position: Position(record::take_u64(&mut data)?),
            changes: record::take_u64(&mut data)?,
            hash: EntryHash(record::take(&mut data)?),
        })
    }
}

/// One slot as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// Only zeros: not written yet.
    Blank,
    Sound(Mark),
    Unsound,
}

/// Both slots as found; `None` where there is no file.
pub(super) type Slots = Option<[SlotState; 2]>;

/// Reads the file without changing it.
pub(super) fn read(dir: &Path) -> Result<Slots, LogError> {
    let bytes = match std::fs::read(dir.join(FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure::io("reading HEAD", &error)),
    };
    Ok(Some([0, STRIDE as usize].map(|start| match bytes.get(start..start + SLOT_BYTES) {
        Some(slot) if slot.iter().all(|byte| *byte == 0) => SlotState::Blank,
        Some(slot) => Mark::decode(slot).map_or(SlotState::Unsound, SlotState::Sound),
        None => SlotState::Unsound,
    })))
}

/// The newest sound slot: the one that counts.
pub(super) fn newest(slots: &[SlotState; 2]) -> Option<(usize, Mark)> {
    let sound = slots.iter().enumerate().filter_map(|(index, slot)| match slot {
        SlotState::Sound(mark) => Some((index, *mark)),
        SlotState::Blank | SlotState::Unsound => None,
    });
    sound.max_by_key(|(_, mark)| mark.changes)
}

/// The file, open for writing.
pub(super) struct SideFile {
    file: File,
    path: PathBuf,
    /// The slot to overwrite next: never the newest sound one.
    next: usize,
}

impl SideFile {
    /// Creates it, durable and with `mark` in it, or makes a half-created one whole.
    pub(super) fn create(dir: &Path, mark: &Mark) -> Result<(), LogError> {
        let path = dir.join(FILE);
        let file = folder::private_file().read(true).create(true).truncate(false).open(&path);
        let write = |file: File| -> io::Result<()> {
            let mut bytes = vec![0; 2 * STRIDE as usize];
            bytes[..SLOT_BYTES].copy_from_slice(&mark.encode());
            file.write_all_at(&bytes, 0)?;
            file.sync_all()?;
            File::open(dir)?.sync_all()
        };
        file.and_then(write).map_err(|error| failure::io("creating HEAD", &error))
    }

    /// Opens what [`read`] found.
    pub(super) fn open(dir: &Path, slots: &[SlotState; 2]) -> Result<Self, LogError> {
        let path = dir.join(FILE);
        let file = File::options().read(true).write(true).open(&path);
        let file = file.map_err(|error| failure::io("opening HEAD", &error))?;
        let next = newest(slots).map_or(0, |(index, _)| 1 - index);
        Ok(Self { file, path, next })
    }

    /// Says how far the log goes. Reaches the kernel, not yet the disk.
    pub(super) fn write(&mut self, mark: &Mark) -> Result<(), LogError> {
        let written = self.file.write_all_at(&mark.encode(), self.next as u64 * STRIDE);
        written
            .map_err(|error| failure::io(&format!("writing {}", self.path.display()), &error))?;
        self.next = 1 - self.next;
        Ok(())
    }

    /// Brings what was written to the disk.
    pub(super) fn sync(&self) -> Result<(), LogError> {
        let synced = self.file.sync_data();
        synced.map_err(|error| failure::io(&format!("syncing {}", self.path.display()), &error))
    }
}
