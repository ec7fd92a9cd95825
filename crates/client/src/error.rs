//! What can go wrong, told apart by what it means for the caller.

use crate::lease::Loss;
use sereno_api::{ErrorCode, Problem};

/// Why a call did not succeed. The variant says what is certain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service has decided: no. The problem has the code and its figures.
    #[error("{}: {}", .0.code, .0.detail)]
    Refused(Box<Problem>),
    /// Certainly nothing was done, and another try later may succeed.
    #[error("the service is unavailable (nothing was done): {0}")]
    Unavailable(String),
    /// The call may have been carried out; no answer told. Of an acquire: it is being abandoned in the background.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
    /// It was granted, and lost before it could be handed out.
    #[error("granted and lost again: {0}")]
    Lost(Loss),
    /// The arguments make no sense; nothing was sent.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// The code of a refusal.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(problem) => Some(problem.code),
            _ => None,
        }
    }

    /// Somebody else has the lock, or leads: at once, or still when the wait was over.
    pub fn is_locked(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::Locked | ErrorCode::WaitTimeout))
    }
}

/// Why [`crate::Guard::check`] says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHeld {
    /// A renewal is overdue: begin nothing new.
    #[error("at risk: a renewal is overdue")]
    AtRisk,
    /// Stop.
    #[error("lost: {0}")]
    Lost(Loss),
}

/// Why [`crate::Guard::run`] gives no output of the work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError<T> {
    /// The work was not begun.
    #[error("the work was not begun: {0}")]
    NotBegun(NotHeld),
    /// The lock or the term was lost under the work, and the work was stopped: its future was dropped where it stood.
    #[error("the work was stopped: {loss}")]
    Lost {
        /// Why.
        loss: Loss,
        /// The output, if the work came to its end just then. It was not protected to its end.
        finished: Option<T>,
    },
}
