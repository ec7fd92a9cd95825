//! Turns errors of SQLite and of files into what they mean for a log.

use crate::LogError;
use rusqlite::ErrorCode;
use std::io;

/// A file operation failed.
pub(super) fn io(doing: &str, error: &io::Error) -> LogError {
    LogError::Storage(format!("{doing}: {error}"))
}

/// SQLite failed. What the disk or the system is to blame for is `Storage`; everything else that goes wrong with
/// fixed statements on a known schema means that the file is not what was written.
pub(super) fn sqlite(doing: &str, error: rusqlite::Error) -> LogError {
    let message = format!("{doing}: {error}");
    let Some(failure) = error.sqlite_error() else { return LogError::Damaged(message) };
    /// SQLITE_IOERR_SHORT_READ: the file ends inside a page.
    const SHORT_READ: i32 = 522;
    match failure.code {
        ErrorCode::SystemIoFailure if failure.extended_code == SHORT_READ => {
            LogError::Damaged(message)
        }
        ErrorCode::SystemIoFailure
        | ErrorCode::DiskFull
        | ErrorCode::CannotOpen
        | ErrorCode::ReadOnly
        | ErrorCode::PermissionDenied
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::OutOfMemory
        | ErrorCode::NoLargeFileSupport => LogError::Storage(message),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LogError::InUse(message),
        _ => LogError::Damaged(message),
    }
}

/// Gives an error its context where it passes by.
pub(super) trait Doing<T> {
    /// `doing`: what was under way, as in "reading entry 7".
    fn doing(self, doing: &str) -> Result<T, LogError>;
}

impl<T> Doing<T> for Result<T, rusqlite::Error> {
    fn doing(self, doing: &str) -> Result<T, LogError> {
        self.map_err(|error| sqlite(doing, error))
    }
}
