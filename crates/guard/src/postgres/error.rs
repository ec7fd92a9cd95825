//! What became of a transaction that did not succeed.

use std::{any::Any, convert::Infallible};
use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

/// Why there is no outcome. The variant says what is certain. `E` is what the work fails with.
#[derive(Debug, thiserror::Error)]
pub enum FenceError<E = Infallible> {
    /// No fence was given, so nothing would be protected. Nothing was begun.
    #[error("no fence was given")]
    NoFence,
    /// The database said no, or was not reached; nothing was changed.
    #[error("nothing was changed: {}", describe(.0))]
    NotDone(#[source] Error),
    /// The work failed; what it had changed was rolled back.
    #[error("the work failed and was rolled back: {0}")]
    Work(E),
    /// The commit was sent, and whether it happened was not answered. Ask with [`super::transaction_state`], or
    /// repeat the work if it is idempotent, with the same token.
    #[error("whether it was committed is unknown (transaction {transaction_id}): {}", describe(.error))]
    Unknown {
        /// What the database calls the transaction.
        transaction_id: i64,
        /// What went wrong.
        #[source]
        error: Error,
    },
}

impl<E: 'static> FenceError<E> {
    /// Whether the same transaction, with the same token, may succeed if it is run again from its beginning: a
    /// serialization failure or a deadlock, also one that the work has met and returned as it was. Nothing was changed.
    pub fn is_worth_repeating(&self) -> bool {
        let error = match self {
            Self::NotDone(error) => Some(error),
            Self::Work(error) => (error as &dyn Any).downcast_ref::<Error>(),
            Self::NoFence | Self::Unknown { .. } => None,
        };
        let repeatable = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        error.and_then(Error::code).is_some_and(|code| repeatable.contains(code))
    }
}

impl FenceError {
    /// The same where work may fail too.
    pub(super) fn for_any_work<E>(self) -> FenceError<E> {
        match self {
            Self::NoFence => FenceError::NoFence,
            Self::NotDone(error) => FenceError::NotDone(error),
            Self::Work(never) => match never {},
            Self::Unknown { transaction_id, error } => {
                FenceError::Unknown { transaction_id, error }
            }
        }
    }
}

/// The answer to a commit that failed.
pub(super) fn of_commit(error: Error, transaction_id: i64) -> FenceError {
    match error.as_db_error().is_some_and(is_certain) {
        true => FenceError::NotDone(error),
        false => FenceError::Unknown { transaction_id, error },
    }
}

/// A plain `ERROR` is the server's word that it has aborted the transaction: once it has written the commit it has no
/// way back, and whatever fails then is fatal or a warning. `FATAL` and `PANIC` are about the connection or the
/// server, and say nothing about the commit (a server that stops while it waits for a standby has committed).
fn is_certain(answer: &DbError) -> bool {
    answer.parsed_severity() == Some(Severity::Error)
}

/// The database's own words, where it said any: the error's text alone is "db error".
fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(answer) => format!("{} ({})", answer.message(), answer.code().code()),
        None => error.to_string(),
    }
}
