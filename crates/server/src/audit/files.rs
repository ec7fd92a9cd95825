//! The folder of the trail: files named by the number of their first line.

use super::AuditConfig;
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

const PREFIX: &str = "audit-";
const SUFFIX: &str = ".jsonl";
/// Who did what is nobody else's business on this machine.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

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

    /// All of it; an error names the file.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        fs::read(&self.path).map_err(|error| naming(&self.path, &error))
    }
}

fn naming(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("reading {}: {error}", path.display()))
}

/// The files in order; none where there is no folder.
pub(super) fn list_if_any(folder: &Path) -> io::Result<Vec<TrailFile>> {
    match list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| naming(folder, &error)),
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

/// The data folder around the trail holds the ids of leases, and who can read one can end that lease. It is made for
/// its owner only; one that was there before is left as it is, for its mode may be meant.
fn warn_if_open_to_others(data: &Path) {
    let mode = fs::metadata(data).map(|metadata| metadata.permissions().mode() & 0o7777);
    if let Some(mode) = mode.ok().filter(|mode| mode & 0o077 != 0) {
        tracing::warn!(
            folder = %data.display(),
            mode = format!("{mode:04o}"),
            "others than its owner can enter the data folder, which holds lease ids: chmod 700 closes it"
        );
    }
}

/// The folder, being written to.
pub(super) struct Files {
    config: AuditConfig,
}

impl Files {
    pub(super) fn open(config: AuditConfig) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&config.folder)?;
        config.folder.parent().into_iter().for_each(warn_if_open_to_others);
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
        let file = OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(path)?;
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
