//! Why a run could not be carried out. What the measured service answers is a figure, never an error.

use std::{io, path::Path};

/// What stops a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A program that the run needs is not on this machine.
    #[error("{0}")]
    Missing(String),
    /// A program started by the run did not come up, or went away.
    #[error("{program}: {why}")]
    Child {
        /// Its name.
        program: &'static str,
        /// What happened, with the end of what it wrote.
        why: String,
    },
    /// The measured service did not answer a call that the run itself rests on.
    #[error("{call}: {why}")]
    Service {
        /// What was asked of it.
        call: String,
        /// What came back.
        why: String,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// Wraps an I/O error with what was tried.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Wraps an I/O error with what was tried on a path.
    pub fn path(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("{what} {}", path.display()))
    }
}
