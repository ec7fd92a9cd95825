//! The files in the folder are still those that were opened. A file that was deleted or replaced under a running
//! process takes writes and keeps them from everybody else: what is acknowledged then is lost with the process.

use super::{database, folder, side};
use crate::LogError;
use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What the names in the folder led to at start.
pub(super) struct Files(Vec<(PathBuf, Option<Identity>)>);

/// Device and inode.
type Identity = (u64, u64);

impl Files {
    /// To be called when all of them are open.
    pub(super) fn note(dir: &Path) -> Self {
        let names = [folder::LOCK_FILE, database::FILE, database::WAL_FILE, side::FILE];
        let paths = names.map(|name| dir.join(name));
        Self(paths.into_iter().map(|path| (path.clone(), identity(&path))).collect())
    }

    /// Whether they still lead there.
    pub(super) fn check(&self) -> Result<(), LogError> {
        match self.0.iter().find(|(path, noted)| identity(path) != *noted) {
            None => Ok(()),
            Some((path, _)) => Err(LogError::Storage(format!(
                "{} was deleted, moved or replaced under the process that serves it",
                path.display()
            ))),
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
