//! A pretend payment provider. Like the real ones it is idempotent by the payment key, may be slow, and gives money
//! back. In your own service this is somebody else's API.

use crate::pool::Pool;
use std::time::Duration;
use tokio_postgres::Error;

/// How often a stuck payment looks whether it may answer.
const LOOK_EACH: Duration = Duration::from_millis(20);

pub(crate) struct Provider {
    pool: Pool,
}

/// What came of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The money has moved, now or by an earlier call with this key.
    Done,
    /// The card was refused.
    Declined,
    /// This key was refunded or made void: it will never be charged (again).
    Void,
}

impl Provider {
    pub(crate) async fn open(pool: Pool) -> Result<Self, Error> {
        pool.lend()
            .await?
            .batch_execute(concat!(
                "SELECT pg_advisory_xact_lock(42001);",
                include_str!("../sql/provider.sql")
            ))
            .await?;
        Ok(Self { pool })
    }

    /// Charges once for each key, however often it is called. As card numbers for tests do, `card` says what happens:
    /// `declined`; `stuck`: the money moves, and the answer comes when somebody sets `answers` in the provider's
    /// table; anything else is good.
    pub(crate) async fn charge(&self, key: &str, card: &str) -> Result<Charge, Error> {
        if card == "declined" {
            return Ok(Charge::Declined);
        }
        let charge = "INSERT INTO payments (payment_key, state, answers) VALUES ($1, 'charged', $2)
                      ON CONFLICT (payment_key) DO UPDATE SET asked = payments.asked + 1
                      RETURNING asked, state";
        let row = self.pool.lend().await?.query_one(charge, &[&key, &(card != "stuck")]).await?;
        let (asked, state): (i32, &str) = (row.get("asked"), row.get("state"));
        if asked == 1 {
            self.wait_until_it_answers(key).await?;
        }
        Ok(if state == "charged" { Charge::Done } else { Charge::Void })
    }

    /// Gives the money back, once. A key that was never charged is void from here on.
    pub(crate) async fn refund(&self, key: &str) -> Result<(), Error> {
        let refund =
            "INSERT INTO payments (payment_key, state, asked, answers) VALUES ($1, 'void', 0, true)
                      ON CONFLICT (payment_key) DO UPDATE SET state = 'refunded'
                      WHERE payments.state = 'charged'";
        self.pool.lend().await?.execute(refund, &[&key]).await.map(drop)
    }

    /// Whether the money of this key has moved, and not back.
    pub(crate) async fn is_charged(&self, key: &str) -> Result<bool, Error> {
        let ask = "SELECT FROM payments WHERE payment_key = $1 AND state = 'charged'";
        let rows = self.pool.lend().await?.query(ask, &[&key]).await?;
        Ok(!rows.is_empty())
    }

    async fn wait_until_it_answers(&self, key: &str) -> Result<(), Error> {
        let ask = "SELECT FROM payments WHERE payment_key = $1 AND NOT answers";
        while !self.pool.lend().await?.query(ask, &[&key]).await?.is_empty() {
            tokio::time::sleep(LOOK_EACH).await;
        }
        Ok(())
    }
}
