//! The data folder: its lock, and the mark of a restore that was not finished.

use super::failure;
use crate::LogError;
use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

/// The lock's file in the data folder. It stays; the lock on it ends with the process.
pub(super) const LOCK_FILE: &str = "sereno.lock";
/// Stands in the folder while a snapshot is being restored into it.
pub(super) const RESTORING_FILE: &str = "RESTORING";

/// Holds the folder until dropped.
pub(super) struct FolderLock {
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
    /// Creates the folder where it is missing, and takes its lock or says who is in the way.
    pub(super) fn take(dir: &Path) -> Result<Self, LogError> {
        let doing = format!("creating the data folder {}", dir.display());
        if !dir.is_dir() {
            std::fs::create_dir_all(dir).map_err(|error| failure::io(&doing, &error))?;
            if let Some(parent) = dir.canonicalize().ok().as_deref().and_then(Path::parent) {
                sync(parent)?;
            }
        }
        let path = dir.join(LOCK_FILE);
        let doing = format!("opening {}", path.display());
        let file = File::options().write(true).create(true).truncate(false).open(&path);
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

    /// Takes the lock where it is free, without leaving a file that was not there. `None`: somebody has it.
    pub(super) fn try_take_existing(dir: &Path) -> Result<Option<Self>, LogError> {
        if !exists(dir, LOCK_FILE) {
            return Err(LogError::Refused(format!("{} is no data folder", dir.display())));
        }
        match Self::take(dir) {
            Ok(lock) => Ok(Some(lock)),
            Err(LogError::InUse(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
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
