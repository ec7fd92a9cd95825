//! Why a file's fence does not let somebody in.

use crate::{InvalidFence, Refused};
use std::{io, path::Path, path::PathBuf};

/// Why not. Nothing was begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFenceError {
    /// A newer owner has taken over: stop.
    #[error("{0}")]
    Refused(Refused),
    /// Somebody works there, and the wait is over.
    #[error("{} is still being worked on{}", .path.display(), .who.as_deref().map(|who| format!(" ({who})")).unwrap_or_default())]
    Busy {
        /// What is protected.
        path: PathBuf,
        /// Who works there, as far as it is known.
        who: Option<String>,
    },
    /// The token belongs to another fence key than those before it.
    #[error("{} is guarded under {known}, and this token is one of {shown}", .path.display())]
    OtherKey {
        /// What is protected.
        path: PathBuf,
        /// Its fence key.
        known: String,
        /// The one that was shown.
        shown: String,
    },
    /// Bad input.
    #[error("{0}")]
    Invalid(String),
    /// The memory of the fence is not what was written. Nobody is let in, for the highest token is not known.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The fence could not be read or written.
    #[error("{doing} {}: {error}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        #[source]
        error: io::Error,
    },
}

impl From<InvalidFence> for FileFenceError {
    fn from(error: InvalidFence) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Says what failed.
pub(super) fn doing(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> FileFenceError {
    let path = path.to_path_buf();
    move |error| FileFenceError::Io { doing, path: path.clone(), error }
}
