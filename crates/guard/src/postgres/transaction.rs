//! A transaction behind the fence.

use super::{
    STALE_TOKEN,
    error::{self, FenceError},
};
use crate::{Fence, Refused};
use std::{fmt, ops::Deref};
use tokio_postgres::{Client, Error, Transaction, types::Type};

/// What became of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may have been refused"]
pub enum Outcome<T> {
    /// Committed.
    Done(T),
    /// Another owner has taken over. Nothing was changed: stop.
    Fenced(Refused),
}

/// A transaction that was begun.
#[must_use = "it may have been refused"]
pub enum Begun<'a> {
    /// All tokens were accepted; the keys are locked until its end.
    Passed(FencedTransaction<'a>),
    /// One was not, and the transaction was rolled back.
    Fenced(Refused),
}

/// A transaction that has passed the fence. Statements go through it as through any [`Transaction`]. Dropped, it is
/// rolled back.
pub struct FencedTransaction<'a> {
    transaction: Transaction<'a>,
    id: i64,
}

impl fmt::Debug for FencedTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedTransaction").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<'a> Deref for FencedTransaction<'a> {
    type Target = Transaction<'a>;

    fn deref(&self) -> &Transaction<'a> {
        &self.transaction
    }
}

impl FencedTransaction<'_> {
    /// What the database calls it: to ask for its state where the answer to the commit was lost.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Commits it.
    ///
    /// # Errors
    /// [`FenceError::NotDone`] if it was certainly not committed, also where a statement in it had failed and nobody
    /// minded; [`FenceError::Unknown`] where no answer came.
    pub async fn commit(self) -> Result<(), FenceError> {
        // A transaction in which a statement failed answers COMMIT by rolling back, without an error. This finds it.
        self.transaction.batch_execute("SELECT 1").await.map_err(FenceError::NotDone)?;
        self.transaction.commit().await.map_err(|error| error::of_commit(error, self.id))
    }

    /// Rolls it back. If the database is not reached it does so by itself.
    pub async fn rollback(self) {
        let _ = self.transaction.rollback().await;
    }
}

/// Shows the tokens, in the order of their keys.
pub(super) async fn show<'a>(
    transaction: Transaction<'a>,
    fences: &[Fence],
) -> Result<Begun<'a>, FenceError> {
    let mut sorted: Vec<&Fence> = fences.iter().collect();
    sorted.sort();
    let mut id = None;
    for fence in sorted {
        match show_one(&transaction, fence).await {
            Ok(transaction_id) => id = Some(transaction_id),
            Err(error) => {
                let refused = refusal(&error, fence);
                let _ = transaction.rollback().await;
                return refused.map(Begun::Fenced).ok_or(FenceError::NotDone(error));
            }
        }
    }
    let id = id.ok_or(FenceError::NoFence)?;
    Ok(Begun::Passed(FencedTransaction { transaction, id }))
}

/// Shows one token; the transaction's number.
async fn show_one(transaction: &Transaction<'_>, fence: &Fence) -> Result<i64, Error> {
    const SHOW: &str = "SELECT txid_current(), sereno_fence($1, $2)";
    let token = fence.token().cast_signed();
    let rows =
        transaction.query_typed(SHOW, &[(&fence.key(), Type::TEXT), (&token, Type::INT8)]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

/// The refusal that this error tells of.
fn refusal(error: &Error, fence: &Fence) -> Option<Refused> {
    let answer = error.as_db_error().filter(|answer| answer.code().code() == STALE_TOKEN)?;
    let detail: serde_json::Value = serde_json::from_str(answer.detail()?).ok()?;
    Some(fence.refused(detail["highest"].as_u64()?))
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// It is done.
    Committed,
    /// Nothing was changed, and nothing will be.
    Aborted,
    /// Ask again: it may still be committed.
    InProgress,
    /// Too long ago for the database to know.
    Forgotten,
}

/// Asks, over another connection to the same server, what became of the transaction of a [`FenceError::Unknown`]. After
/// a fail-over the answer is about the new server's history, which may lack it.
///
/// # Errors
/// Those of the database; also for a number that it has not given out yet.
pub async fn transaction_state(
    client: &Client,
    transaction_id: i64,
) -> Result<TransactionState, Error> {
    const ASK: &str = "SELECT txid_status($1)";
    let rows = client.query_typed(ASK, &[(&transaction_id, Type::INT8)]).await?;
    let state: Option<String> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
    Ok(match state.as_deref() {
        Some("committed") => TransactionState::Committed,
        Some("aborted") => TransactionState::Aborted,
        Some(_) => TransactionState::InProgress,
        None => TransactionState::Forgotten,
    })
}
