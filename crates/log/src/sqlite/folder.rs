//! The data folder: its lock, and the mark of a restore that was not finished.
//!
//! The log holds lease ids, and whoever knows one can renew and release that lease: so the folder and its files are
//! made for their owner only, whatever the umask says. One that is there already keeps its mode: it may be meant.

use super::failure;
use crate::LogError;
use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

/// Of the folder, and of each file in it.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The lock's file in the data folder. It stays; the lock on it ends with the process.
pub(super) const LOCK_FILE: &str = "sereno.lock";
/// Stands in the folder while a snapshot is being restored into it.
pub(super) const RESTORING_FILE: &str = "RESTORING";

/// Holds a data folder for one process, until dropped. A node whose log is elsewhere has one too, for its audit trail.
pub struct FolderLock {
    file: File,
}

impl Drop for FolderLock {
    /// Closing the file is not enough while another thread of this process starts a program: until that has
    /// begun to run it has the file open too.
    fn drop(&mut self) {
        // If it fails the lock ends with the process, as always.
        let _ = self.file.unlock();
    }
}

impl FolderLock {
    /// Creates the folder where it is missing, and takes its lock.
    ///
    /// # Errors
    /// [`LogError::InUse`] if another process has it; [`LogError::Storage`] if it cannot be made or opened.
    pub fn take(dir: &Path) -> Result<Self, LogError> {
        let doing = format!("creating the data folder {}", dir.display());
        if !dir.is_dir() {
            make(dir).map_err(|error| failure::io(&doing, &error))?;
            if let Some(parent) = dir.canonicalize().ok().as_deref().and_then(Path::parent) {
                sync(parent)?;
            }
        }
        let path = dir.join(LOCK_FILE);
        let doing = format!("opening {}", path.display());
        let file = private_file().create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failure::io(&doing, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(LogError::InUse(format!(
                "another process serves the data folder {} (it holds {})",
                dir.display(),
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failure::io(&doing, &error)),
        }
    }

    /// Takes the lock where it is free; makes no file and needs to write none. `None`: somebody has it.
    ///
    /// # Errors
    /// [`LogError::Refused`] where there is no data folder; [`LogError::Storage`] if it cannot be opened.
    pub fn try_take_existing(dir: &Path) -> Result<Option<Self>, LogError> {
        let path = dir.join(LOCK_FILE);
        let doing = format!("opening {}", path.display());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(LogError::Refused(format!("{} is no data folder", dir.display())));
            }
            Err(error) => return Err(failure::io(&doing, &error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failure::io(&doing, &error)),
        }
    }
}

/// Folders above it get the mode that the umask gives.
fn make(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        std::fs::create_dir_all(parent)?;
    }
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(dir)
}

/// Opens a file for writing that only its owner can read, where it is made.
pub(super) fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(FILE_MODE);
    options
}

/// True if a file of that name is there and has anything in it.
pub(super) fn has_content(dir: &Path, name: &str) -> bool {
    std::fs::metadata(dir.join(name)).is_ok_and(|metadata| metadata.len() > 0)
}

/// True if a file of that name is there.
pub(super) fn exists(dir: &Path, name: &str) -> bool {
    dir.join(name).exists()
}

/// Makes the names in the folder durable.
pub(super) fn sync(dir: &Path) -> Result<(), LogError> {
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    synced.map_err(|error| failure::io(&format!("syncing the folder {}", dir.display()), &error))
}

/// Refuses a folder in which a restore was cut short.
pub(super) fn refuse_half_restored(dir: &Path) -> Result<(), LogError> {
    if exists(dir, RESTORING_FILE) {
        return Err(LogError::Refused(format!(
            "a restore into {} was not finished: empty the folder and restore again",
            dir.display()
        )));
    }
    Ok(())
}

/// Refuses a folder that has anything but the lock in it.
pub(super) fn refuse_non_empty(dir: &Path) -> Result<(), LogError> {
    let names = |dir: &Path| -> io::Result<Vec<_>> {
        std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    };
    let doing = format!("listing {}", dir.display());
    let names = names(dir).map_err(|error| failure::io(&doing, &error))?;
    match names.iter().find(|name| *name != LOCK_FILE) {
        Some(name) => Err(LogError::Refused(format!(
            "the folder {} is not empty: {} is in it",
            dir.display(),
            name.display()
        ))),
        None => Ok(()),
    }
}
