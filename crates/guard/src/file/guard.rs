//! The right to work on a file.

use super::{FileFence, FileFenceError, Locked, durable, error::doing};
use rustix::io::{FdFlags, fcntl_setfd};
use std::{
    fs,
    io::{Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Nobody else works on the file while this lives. Dropped, it lets the next one in.
#[derive(Debug)]
pub struct FileGuard {
    fence: FileFence,
    running: Locked,
    token: u64,
    rose: bool,
}

impl FileGuard {
    pub(super) fn new(fence: FileFence, running: Locked, token: u64, rose: bool) -> Self {
        let guard = Self { fence, running, token, rose };
        guard.sign();
        guard
    }

    /// The token that was accepted.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether it was the first with this token: an ownership that has just begun.
    pub fn is_new_owner(&self) -> bool {
        self.rose
    }

    /// Replaces the protected file by one with these bytes, as a whole and durably: whoever reads it sees the old
    /// content or the new one. It keeps its mode (a new one gets 0644), not its owner.
    ///
    /// # Errors
    /// [`FileFenceError::Io`]. After an error the file has the old content or, if only syncing failed, the new one.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), FileFenceError> {
        let path = self.fence.target();
        let mode =
            fs::metadata(path).map_or(0o644, |metadata| metadata.permissions().mode() & 0o7777);
        durable::replace(path, bytes, mode).map_err(doing("writing", path))
    }

    /// Leaves the right to the program that this process is about to become (`exec`), and to what that starts: it ends
    /// with the last of them, even if they are killed.
    ///
    /// # Errors
    /// [`FileFenceError::Io`].
    pub fn leave_to_exec(self) -> Result<(), FileFenceError> {
        let Self { fence, running, .. } = self;
        let Some(file) = running.keep() else { return Ok(()) };
        let kept = fcntl_setfd(&file, FdFlags::empty());
        kept.map_err(|error| doing("keeping", fence.folder())(error.into()))?;
        // It stays open until the process and its children have ended.
        std::mem::forget(file);
        Ok(())
    }

    /// Says who works, for people. Nothing rests on it.
    fn sign(&self) {
        let text = format!("token {}, process {}\n", self.token, std::process::id());
        if let Some(mut file) = self.running.file() {
            let _ = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(text.as_bytes()));
        }
    }
}

/// Who has signed last.
pub(super) fn who(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("running")).ok()?;
    let who = text.trim();
    (!who.is_empty() && who.len() < 200 && !who.contains(char::is_control)).then(|| who.to_string())
}
