//! A file or a folder behind a fence.
//!
//! The fence is a folder beside it, `NAME.sereno-fence`, with three files:
//!
//! - `token`: the highest token, replaced as a whole (a new file, synced, renamed, the folder synced);
//! - `lock`: locked (`flock`) while `token` is looked at and replaced, for a moment;
//! - `running`: locked while somebody works on what is protected. Says who, for people.
//!
//! Whoever comes first makes its token durable, *then* waits for the one who works, *then* looks again whether a newer
//! one has come. So an older owner that goes on trying cannot keep a newer one out, and none begins after it.

mod durable;
mod error;
mod guard;
mod record;

pub use error::FileFenceError;
pub use guard::FileGuard;

use crate::{
    Reporter,
    fence::{self, Refused},
};
use error::doing;
use record::Record;
use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// What the fence's folder is called after the protected name.
const SUFFIX: &str = ".sereno-fence";
/// Only its owner may hold everybody up.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Between two looks at a lock that somebody else has.
const LOOK_EACH: Duration = Duration::from_millis(20);

/// The fence of one file or folder. Makes nothing until it is entered.
#[derive(Clone, Debug)]
pub struct FileFence {
    target: PathBuf,
    folder: PathBuf,
    reporter: Option<Reporter>,
}

impl FileFence {
    /// Of this path, which need not exist yet. The fence belongs to the *name*: where the last part of the path is a
    /// symbolic link, it is the link that is protected. Use one name for one thing.
    ///
    /// # Errors
    /// [`FileFenceError::Invalid`] for a path that ends in no name (`/`, `..`).
    pub fn at(path: impl AsRef<Path>) -> Result<Self, FileFenceError> {
        let target = path.as_ref().to_path_buf();
        let Some(name) = target.file_name() else {
            let rule = format!(
                "{} does not end in a name, so there is nothing beside it",
                target.display()
            );
            return Err(FileFenceError::Invalid(rule));
        };
        let mut name = name.to_os_string();
        name.push(SUFFIX);
        let folder = target.with_file_name(name);
        Ok(Self { target, folder, reporter: None })
    }

    /// Tells the service that it checks, with each new owner, and whom it did not let in. Only under a fence key: the
    /// service knows no paths.
    pub fn reporting(self, reporter: Reporter) -> Self {
        Self { reporter: Some(reporter), ..self }
    }

    /// What is protected.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where the fence is kept. Whoever removes it lets older owners in again.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The highest token that was shown, and the fence key that goes with it. `None`: none was.
    ///
    /// # Errors
    /// [`FileFenceError::Io`], [`FileFenceError::Damaged`].
    pub fn highest(&self) -> Result<Option<(u64, Option<String>)>, FileFenceError> {
        Ok(Record::read(&self.record_path())?.map(|record| (record.token, record.key)))
    }

    /// Whether this token is still the newest that was shown. Good to ask between the steps of long work: a newer
    /// owner may be waiting. By itself it protects nothing.
    ///
    /// # Errors
    /// [`FileFenceError::Refused`] if it is not.
    pub fn check(&self, token: u64) -> Result<(), FileFenceError> {
        match self.highest()? {
            Some((highest, key)) if highest > token => {
                Err(self.refused(token, key.as_deref(), highest))
            }
            _ => Ok(()),
        }
    }

    /// Shows a token, waits at most `wait` for whoever works there now (with an older token or the same one), and
    /// gives the right to work until the guard is dropped. Blocks.
    ///
    /// `key`: the fence key that the token belongs to. A path has one; tokens of another are refused, for they say
    /// nothing about each other. Left out, any is meant.
    ///
    /// # Errors
    /// [`FileFenceError::Refused`]: a newer token was shown, before or meanwhile. [`FileFenceError::Busy`]: the wait is
    /// over; the token is remembered all the same.
    pub fn enter(
        &self,
        token: u64,
        key: Option<&str>,
        wait: Duration,
    ) -> Result<FileGuard, FileFenceError> {
        let entered = self.enter_in_silence(token, key, wait);
        if let Some(reporter) = &self.reporter {
            self.report(reporter, key, &entered);
        }
        entered
    }

    fn report(
        &self,
        reporter: &Reporter,
        key: Option<&str>,
        entered: &Result<FileGuard, FileFenceError>,
    ) {
        let known = || self.highest().ok().flatten().and_then(|(_, key)| key);
        let Some(key) = key.map(Into::into).or_else(known) else { return };
        match entered {
            Ok(guard) if guard.is_new_owner() => reporter.checks(&key),
            Err(FileFenceError::Refused(refused)) => {
                reporter.refused(&Refused { key, ..refused.clone() });
            }
            _ => {}
        }
    }

    fn enter_in_silence(
        &self,
        token: u64,
        key: Option<&str>,
        wait: Duration,
    ) -> Result<FileGuard, FileFenceError> {
        let key = key.map(|key| fence::check_key(key.into())).transpose()?;
        // The same rule for the token.
        fence::Fence::new("any", token)?;
        let until = Instant::now() + wait;
        self.make_folder()?;
        let rose = self.show(token, key.as_deref(), until)?;
        // One that is overtaken while it waits need not wait any longer.
        let running = self.lock_by("running", until, || self.check(token))?;
        // From here on nobody else works there; one that was shown later may have worked while this one waited.
        self.check_again(token)?;
        Ok(FileGuard::new(self.clone(), running, token, rose))
    }

    /// Compares, and makes a higher token durable. Whether it was higher.
    fn show(&self, token: u64, key: Option<&str>, until: Instant) -> Result<bool, FileFenceError> {
        let lock = self.lock_by("lock", until, || Ok(()))?;
        let shown = self.show_locked(token, key);
        drop(lock);
        shown
    }

    fn show_locked(&self, token: u64, key: Option<&str>) -> Result<bool, FileFenceError> {
        let path = self.record_path();
        let before = Record::read(&path)?;
        if let Some(before) = &before {
            if let (Some(known), Some(key)) = (before.key.as_deref(), key)
                && known != key
            {
                return Err(FileFenceError::OtherKey {
                    path: self.target.clone(),
                    known: known.into(),
                    shown: key.into(),
                });
            }
            if before.token > token {
                return Err(self.refused(token, before.key.as_deref(), before.token));
            }
        }
        let known_key = before.as_ref().and_then(|before| before.key.clone());
        let after = Record { key: known_key.or_else(|| key.map(Into::into)), token };
        let rose = before.as_ref().is_none_or(|before| before.token < token);
        if before.as_ref() != Some(&after) {
            durable::replace(&path, after.to_string().as_bytes(), FILE_MODE)
                .map_err(doing("writing", &path))?;
        }
        Ok(rose)
    }

    fn check_again(&self, token: u64) -> Result<(), FileFenceError> {
        if self.highest()?.is_none() {
            let why = "it was removed under a running guard".into();
            return Err(FileFenceError::Damaged { path: self.record_path(), why });
        }
        self.check(token)
    }

    fn refused(&self, token: u64, key: Option<&str>, highest: u64) -> FileFenceError {
        let key = key.map_or_else(|| self.target.display().to_string(), Into::into);
        FileFenceError::Refused(Refused { key, token, highest })
    }

    fn record_path(&self) -> PathBuf {
        self.folder.join("token")
    }

    fn make_folder(&self) -> Result<(), FileFenceError> {
        match DirBuilder::new().mode(FOLDER_MODE).create(&self.folder) {
            Ok(()) => durable::sync_folder_of(&self.folder)
                .map_err(doing("syncing the folder of", &self.folder)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(doing("making", &self.folder)(error)),
        }
    }

    /// Locks one of the fence's files, or says who has it when the time is over. Gives up when `is_worth_it` fails.
    fn lock_by(
        &self,
        name: &str,
        until: Instant,
        is_worth_it: impl Fn() -> Result<(), FileFenceError>,
    ) -> Result<Locked, FileFenceError> {
        let path = self.folder.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(&path).map_err(doing("opening", &path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked(Some(file))),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(doing("locking", &path)(error)),
            }
            is_worth_it()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(FileFenceError::Busy {
                    path: self.target.clone(),
                    who: guard::who(&self.folder),
                });
            }
            thread::sleep(left.min(LOOK_EACH));
        }
    }
}

/// A locked file.
#[derive(Debug)]
pub(crate) struct Locked(Option<File>);

impl Locked {
    fn file(&self) -> Option<&File> {
        self.0.as_ref()
    }

    /// The open file, whose lock is then not given back.
    fn keep(mut self) -> Option<File> {
        self.0.take()
    }
}

impl Drop for Locked {
    /// Closing the file is not enough while another thread of this process starts a program: until that has begun to
    /// run it has the file open too.
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // If it fails the lock ends with the process.
            let _ = file.unlock();
        }
    }
}

#[cfg(test)]
mod tests;
