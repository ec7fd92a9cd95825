//! PostgreSQL: the fence inside the business transaction.
//!
//! [`SQL`] installs a table and the function `sereno_fence`, which does the work and can be called from any language.
//! [`PostgresGuard`] is a thin helper over `tokio-postgres` around it: it begins, shows the tokens, runs the work and
//! commits, and says honestly what became of it.
//!
//! ```no_run
//! use sereno_guard::{Fence, postgres::{Outcome, PostgresGuard}};
//!
//! # async fn pay(mut client: tokio_postgres::Client, token: u64) -> Result<(), Box<dyn std::error::Error>> {
//! let guard = PostgresGuard::new();
//! let fence = Fence::new("default/lock/orders/42", token)?;
//! let outcome = guard
//!     .run(&mut client, &[fence], async |transaction| {
//!         transaction.execute("UPDATE orders SET state = 'paid' WHERE id = 42", &[]).await
//!     })
//!     .await?;
//! match outcome {
//!     Outcome::Done(rows) => println!("{rows} rows"),
//!     Outcome::Fenced(refused) => println!("stop: {refused}"),
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod transaction;

pub use error::FenceError;
pub use transaction::{Begun, FencedTransaction, Outcome, TransactionState, transaction_state};

use crate::{Fence, Reporter};
use tokio_postgres::{Client, IsolationLevel, Transaction};

pub use crate::POSTGRES_SQL as SQL;
/// What `sereno_fence` raises on a token that is too old.
pub const STALE_TOKEN: &str = "SF001";

/// Runs transactions behind the fence. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct PostgresGuard {
    reporter: Option<Reporter>,
    isolation: Option<IsolationLevel>,
}

impl PostgresGuard {
    /// One that reports to nobody and leaves the isolation level to the database's default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the service that it checks, and what it refused.
    pub fn reporting(self, reporter: Reporter) -> Self {
        Self { reporter: Some(reporter), ..self }
    }

    /// Of the transactions that it begins. `READ COMMITTED` is enough for the fence; under higher levels a transaction
    /// can end with a serialization failure, which [`FenceError::is_worth_repeating`] tells.
    pub fn isolation(self, level: IsolationLevel) -> Self {
        Self { isolation: Some(level), ..self }
    }

    /// Installs [`SQL`], in one transaction. Of several programs that do so at once each waits for the other.
    ///
    /// # Errors
    /// Those of the database, for example for want of a right.
    pub async fn install(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        // Several statements in one string are one transaction. The number is only ours: "sereno" in ASCII.
        let lock = "SELECT pg_advisory_xact_lock(126879548141167);\n";
        client.batch_execute(&format!("{lock}{SQL}")).await
    }

    /// Begins a transaction and shows it these tokens, in the order of their keys.
    ///
    /// # Errors
    /// [`FenceError::NotDone`], and [`FenceError::NoFence`] where there is none.
    pub async fn begin<'a>(
        &self,
        client: &'a mut Client,
        fences: &[Fence],
    ) -> Result<Begun<'a>, FenceError> {
        let mut builder = client.build_transaction();
        if let Some(level) = self.isolation {
            builder = builder.isolation_level(level);
        }
        let transaction = builder.start().await.map_err(FenceError::NotDone)?;
        let begun = transaction::show(transaction, fences).await?;
        if let Some(reporter) = &self.reporter {
            match &begun {
                Begun::Passed(_) => fences.iter().for_each(|fence| reporter.checks(fence.key())),
                Begun::Fenced(refused) => reporter.refused(refused),
            }
        }
        Ok(begun)
    }

    /// Runs `work` in a transaction behind the fence, and commits it. An error of the work rolls it back.
    ///
    /// Dropping the future before the commit rolls back; during the commit it leaves the outcome unknown, as a lost
    /// connection does.
    ///
    /// # Errors
    /// [`FenceError::NotDone`] and [`FenceError::Work`]: nothing was changed. [`FenceError::Unknown`]: nobody has heard.
    pub async fn run<T, E>(
        &self,
        client: &mut Client,
        fences: &[Fence],
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<Outcome<T>, FenceError<E>> {
        let begun = self.begin(client, fences).await.map_err(FenceError::for_any_work)?;
        let fenced = match begun {
            Begun::Passed(fenced) => fenced,
            Begun::Fenced(refused) => return Ok(Outcome::Fenced(refused)),
        };
        let transaction: &Transaction<'_> = &fenced;
        match work(transaction).await {
            Ok(value) => {
                fenced.commit().await.map_err(FenceError::for_any_work)?;
                Ok(Outcome::Done(value))
            }
            Err(error) => {
                fenced.rollback().await;
                Err(FenceError::Work(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sql_raises_the_documented_state() {
        assert!(SQL.contains(&format!("ERRCODE = '{STALE_TOKEN}'")));
        assert!(SQL.contains(&crate::TOKEN_MAX.to_string()));
        assert!(SQL.contains(&format!("BETWEEN 1 AND {}", crate::FENCE_KEY_BYTES_MAX)));
        assert_eq!(126_879_548_141_167, i64::from_be_bytes(*b"\0\0sereno"));
    }
}
