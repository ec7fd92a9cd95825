//! Files that are there as a whole or not at all, also after a power cut.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Replaces `path` by a file with these bytes. One writer at a time: the new file's name is fixed, so that a crash
/// leaves at most one behind.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = new_name(path)?;
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_new(&new, bytes, mode).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // What counts is the first error.
        let _ = fs::remove_file(&new);
    }
    written?;
    sync_folder_of(path)
}

fn write_new(new: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(new)?;
    // Whatever the umask says.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn new_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut new = OsString::from(".");
    new.push(name);
    new.push(".sereno-new");
    Ok(path.with_file_name(new))
}

/// Makes the name durable.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
