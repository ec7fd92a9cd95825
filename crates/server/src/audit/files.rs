//! The folder of the trail: files named by the number of their first line.

use super::AuditConfig;
use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

const PREFIX: &str = "audit-";
const SUFFIX: &str = ".jsonl";

/// One file of the trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrailFile {
    /// The number of its first line.
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

impl TrailFile {
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The files in order.
pub(super) fn list(folder: &Path) -> io::Result<Vec<TrailFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let digits = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
        if let Some(first) = digits.and_then(|digits| digits.parse().ok()) {
            files.push(TrailFile { first, path });
        }
    }
    files.sort_by_key(|file| file.first);
    Ok(files)
}

/// The folder, being written to.
pub(super) struct Files {
    config: AuditConfig,
}

impl Files {
    pub(super) fn open(config: AuditConfig) -> io::Result<Self> {
        fs::create_dir_all(&config.folder)?;
        Ok(Self { config })
    }

    pub(super) fn list(&self) -> io::Result<Vec<TrailFile>> {
        list(&self.config.folder)
    }

    /// A file of this size is full.
    pub(super) fn file_bytes(&self) -> u64 {
        self.config.file_bytes
    }

    /// Begins a file, and removes the oldest ones beyond the number that is kept.
    pub(super) fn create(&self, first: u64) -> io::Result<File> {
        let path = self.config.folder.join(format!("{PREFIX}{first:020}{SUFFIX}"));
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let files = self.list()?;
        let surplus = files.len().saturating_sub(self.config.files);
        for old in &files[..surplus] {
            fs::remove_file(&old.path)?;
        }
        self.sync()?;
        Ok(file)
    }

    /// Cuts a file to `length` and opens it for appending.
    pub(super) fn reopen(path: &Path, length: u64) -> io::Result<File> {
        let file = OpenOptions::new().append(true).open(path)?;
        if file.metadata()?.len() != length {
            file.set_len(length)?;
            file.sync_all()?;
        }
        Ok(file)
    }

    pub(super) fn remove(&self, file: &TrailFile) -> io::Result<()> {
        fs::remove_file(&file.path)?;
        self.sync()
    }

    /// Names in a folder are durable when the folder is.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.config.folder)?.sync_all()
    }
}
