//! The ledger. Two things make it right whatever happens to whoever writes: the **slot** in the primary key makes a
//! second attempt harmless, and the **fence** in every transaction keeps earlier attempts out.

use sereno_guard::{
    Fence, Refused,
    postgres::{FenceError, Outcome, PostgresGuard},
};
use tokio_postgres::{Client, Config, Error, NoTls, Transaction};

/// PostgreSQL ends a transaction in which nobody does anything for so long. Else a replica that is paused in the middle
/// of one would keep the fence's row locked, and the next attempt would wait for it.
const TRANSACTION_SETTINGS: &str = "-c idle_in_transaction_session_timeout=2s";

/// One attempt at one slot.
pub(crate) struct Run {
    pub slot: String,
    pub attempt: i32,
    pub replica: String,
    pub fence: Fence,
}

pub(crate) struct Ledger {
    client: Client,
    guard: PostgresGuard,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Stop: the next attempt is at work.
    #[error("{0}")]
    Fenced(Refused),
    #[error("the ledger: {0}")]
    Database(#[from] Error),
    #[error("the ledger: {0}")]
    Transaction(#[from] FenceError<Error>),
}

impl Ledger {
    pub(crate) async fn connect(url: &str) -> Result<Self, Error> {
        let mut config: Config = url.parse()?;
        config.options(TRANSACTION_SETTINGS);
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(async move {
            // Its end is told to whoever uses the client.
            let _ = connection.await;
        });
        Ok(Self { client, guard: PostgresGuard::new() })
    }

    /// The accounts that this slot still owes.
    pub(crate) async fn open_accounts(&mut self, run: &Run) -> Result<Vec<i32>, Failure> {
        self.behind_the_fence(run, async |ledger| {
            let ask = "SELECT account FROM accounts a WHERE NOT EXISTS (
                           SELECT FROM settlements s WHERE s.slot = $1 AND s.account = a.account)
                       ORDER BY account";
            let rows = ledger.query(ask, &[&run.slot]).await?;
            Ok(rows.iter().map(|row| row.get("account")).collect())
        })
        .await
    }

    /// Before the work for an account, in a short transaction of its own: is this attempt still the one? It is noted who
    /// is at what.
    pub(crate) async fn begin(&mut self, run: &Run, account: i32) -> Result<(), Failure> {
        self.behind_the_fence(run, async |ledger| {
            let note = "INSERT INTO begun (slot, account, attempt, token, replica) VALUES ($1, $2, $3, $4, $5)";
            let token = run.fence.token().cast_signed();
            ledger
                .execute(note, &[&run.slot, &account, &run.attempt, &token, &run.replica])
                .await
                .map(drop)
        })
        .await
    }

    /// Settles one account for this slot, unless an earlier attempt has: the note and the money in one transaction.
    pub(crate) async fn settle(&mut self, run: &Run, account: i32) -> Result<(), Failure> {
        self.behind_the_fence(run, async |ledger| {
            let note = "INSERT INTO settlements (slot, account, amount, attempt, token, replica)
                        SELECT $1, account, due, $3, $4, $5 FROM accounts WHERE account = $2
                        ON CONFLICT (slot, account) DO NOTHING";
            let token = run.fence.token().cast_signed();
            let noted = ledger
                .execute(note, &[&run.slot, &account, &run.attempt, &token, &run.replica])
                .await?;
            if noted == 1 {
                let pay = "UPDATE accounts SET balance = balance + due WHERE account = $1";
                ledger.execute(pay, &[&account]).await?;
            }
            Ok(())
        })
        .await
    }

    /// The token is shown in every transaction: that is how it is known, between two accounts, whether this attempt is
    /// still the one. No look at a clock or at the service could tell.
    async fn behind_the_fence<T>(
        &mut self,
        run: &Run,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let fences = std::slice::from_ref(&run.fence);
        match self.guard.run(&mut self.client, fences, work).await? {
            Outcome::Done(value) => Ok(value),
            Outcome::Fenced(refused) => {
                self.note_refusal(run, &refused).await?;
                Err(Failure::Fenced(refused))
            }
        }
    }

    /// For people, and for the test: it is no part of what keeps the ledger right.
    async fn note_refusal(&self, run: &Run, refused: &Refused) -> Result<(), Error> {
        let note = "INSERT INTO refusals (slot, attempt, token, highest, replica) VALUES ($1, $2, $3, $4, $5)";
        let (token, highest) = (refused.token.cast_signed(), refused.highest.cast_signed());
        let Run { slot, attempt, replica, .. } = run;
        self.client.execute(note, &[slot, attempt, &token, &highest, replica]).await.map(drop)
    }
}
