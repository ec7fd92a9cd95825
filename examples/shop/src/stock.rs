//! The stock, which decides. It is right without any hold: with one it is right *and* the buyer knew before paying.

use crate::{
    name::Name,
    order::{Order, Purchase, State},
    pool::Pool,
};
use sereno_guard::{
    Fence,
    postgres::{FenceError, Outcome, PostgresGuard},
};
use std::{slice, time::Duration};
use tokio_postgres::{Error, Transaction};

pub(crate) struct Stock {
    pool: Pool,
    guard: PostgresGuard,
}

/// A step that did not happen, or of which nobody heard: ask again with the same payment key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StockError {
    #[error("the database: {0}")]
    Database(#[from] Error),
    #[error("the database: {0}")]
    Fenced(#[from] FenceError<Error>),
}

/// What came of writing an order down.
pub(crate) enum Begun {
    /// It is written, by this call or an earlier one with the same payment key: now charge.
    Order(Order),
    /// The pair is gone, or has been promised to somebody else: do not charge.
    Gone,
}

impl Stock {
    pub(crate) async fn open(pool: Pool, guard: PostgresGuard) -> Result<Self, Error> {
        let client = pool.lend().await?;
        guard.install(&client).await?;
        client
            .batch_execute(concat!(
                "SELECT pg_advisory_xact_lock(42002);",
                include_str!("../sql/shop.sql")
            ))
            .await?;
        drop(client);
        Ok(Self { pool, guard })
    }

    /// The numbers of the pairs that are for sale; `max` of them at most.
    pub(crate) async fn unsold(&self, sku: &Name, max: usize) -> Result<Vec<i32>, StockError> {
        let ask =
            "SELECT number FROM pairs WHERE sku = $1 AND sold_to IS NULL ORDER BY number LIMIT $2";
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = self.pool.lend().await?.query(ask, &[&sku.as_str(), &max]).await?;
        Ok(rows.iter().map(|row| row.get("number")).collect())
    }

    pub(crate) async fn order(&self, payment_key: &str) -> Result<Option<Order>, StockError> {
        let ask = format!("SELECT {} FROM orders WHERE payment_key = $1", Order::COLUMNS);
        let row = self.pool.lend().await?.query_opt(&ask, &[&payment_key]).await?;
        Ok(row.map(|row| Order::read(&row)))
    }

    /// Orders that nobody has finished, and nobody has touched for so long.
    pub(crate) async fn unfinished(&self, quiet: Duration) -> Result<Vec<Order>, StockError> {
        let ask = format!(
            "SELECT {} FROM orders WHERE state IN ('paying', 'refunding', 'declining')
             AND changed_at < clock_timestamp() - $1::float8 * interval '1 second' LIMIT 100",
            Order::COLUMNS
        );
        let rows = self.pool.lend().await?.query(&ask, &[&quiet.as_secs_f64()]).await?;
        Ok(rows.iter().map(Order::read).collect())
    }

    /// Before the money moves: shows the fence, looks whether there is still something to sell, and writes down what
    /// is about to happen, so that whoever comes after a crash knows. From here on no earlier holder of this pair can
    /// buy it, however late their payment comes back.
    pub(crate) async fn begin(
        &self,
        purchase: &Purchase,
        held: Option<(i32, &Fence)>,
    ) -> Result<Begun, StockError> {
        let Purchase { payment_key, buyer, sku } = purchase;
        let pair = held.map(|(pair, _)| pair);
        let token = held.map(|(_, fence)| fence.token().cast_signed());
        let outcome = self.transaction(held.map(|(_, fence)| fence), async |stock| {
            let insert = "INSERT INTO orders (payment_key, buyer, sku, pair, fence, state)
                          SELECT $1::text, $2::text, $3::text, $4::int, $5::bigint, 'paying' WHERE EXISTS (
                              SELECT FROM pairs WHERE sku = $3 AND sold_to IS NULL AND number = coalesce($4, number))
                          ON CONFLICT (payment_key) DO NOTHING";
            let (key, buyer, sku) = (payment_key.as_str(), buyer.as_str(), sku.as_str());
            stock.execute(insert, &[&key, &buyer, &sku, &pair, &token]).await.map(drop)
        });
        match outcome.await? {
            Outcome::Fenced(_) => Ok(Begun::Gone),
            Outcome::Done(()) => {
                let order = self.order(payment_key.as_str()).await?;
                Ok(order.map_or(Begun::Gone, Begun::Order))
            }
        }
    }

    /// After the money has moved: one short transaction decides. `Sold`, or `Refunding`; or what another instance has
    /// decided before.
    pub(crate) async fn sell(&self, order: &Order) -> Result<State, StockError> {
        let outcome = self.transaction(order.fence.as_ref(), async |stock| {
            // Of two instances that finish the same order the second one waits here, and finds what the first one did.
            let ask = format!("SELECT {} FROM orders WHERE payment_key = $1 FOR UPDATE", Order::COLUMNS);
            let now = Order::read(&stock.query_one(&ask, &[&order.payment_key]).await?);
            if now.state != State::Paying {
                return Ok(now.state);
            }
            let sold = match order.pair {
                Some(pair) => take(stock, order, pair).await?,
                None => match any_pair(stock, &order.sku).await? {
                    Some(pair) => take(stock, order, pair).await?,
                    None => None,
                },
            };
            let (state, name) = match sold {
                Some(_) => (State::Sold, "sold"),
                None => (State::Refunding, "refunding"),
            };
            let write = "UPDATE orders SET state = $2, pair = coalesce($3, pair), changed_at = clock_timestamp()
                         WHERE payment_key = $1";
            stock.execute(write, &[&order.payment_key, &name, &sold]).await?;
            Ok(state)
        });
        match outcome.await? {
            Outcome::Done(state) => Ok(state),
            // The hold had ended, and somebody else got the pair: the money was late.
            Outcome::Fenced(_) => self.leave_paying(order, "refunding").await,
        }
    }

    /// The order goes on to `state`, unless somebody has decided it before. Gives the state that it is in.
    pub(crate) async fn leave_paying(
        &self,
        order: &Order,
        state: &str,
    ) -> Result<State, StockError> {
        let write = "UPDATE orders SET state = $2, changed_at = clock_timestamp()
                     WHERE payment_key = $1 AND state = 'paying'";
        let key = &order.payment_key;
        self.pool.lend().await?.execute(write, &[key, &state]).await?;
        self.state(order).await
    }

    /// No money has moved, or it is back: the end of an order that was not sold.
    pub(crate) async fn end_unsold(&self, order: &Order) -> Result<State, StockError> {
        let write = "UPDATE orders SET changed_at = clock_timestamp(),
                         state = CASE state WHEN 'refunding' THEN 'refunded' ELSE 'declined' END
                     WHERE payment_key = $1 AND state IN ('refunding', 'declining')";
        self.pool.lend().await?.execute(write, &[&order.payment_key]).await?;
        self.state(order).await
    }

    async fn state(&self, order: &Order) -> Result<State, StockError> {
        Ok(self.order(&order.payment_key).await?.map_or(order.state, |order| order.state))
    }

    /// A transaction, behind the fence where there is one.
    async fn transaction<T>(
        &self,
        fence: Option<&Fence>,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<Outcome<T>, StockError> {
        let mut client = self.pool.lend().await?;
        if let Some(fence) = fence {
            return Ok(self.guard.run(&mut client, slice::from_ref(fence), work).await?);
        }
        let transaction = client.transaction().await?;
        let value = work(&transaction).await?;
        transaction.commit().await?;
        Ok(Outcome::Done(value))
    }
}

/// Any pair, for a buyer who holds none. From the far end: those that others may be holding are in front.
/// `SKIP LOCKED` would be quicker, and would say "sold out" while the last one is in a transaction that may yet fail.
async fn any_pair(stock: &Transaction<'_>, sku: &str) -> Result<Option<i32>, Error> {
    let ask = "SELECT number FROM pairs WHERE sku = $1 AND sold_to IS NULL
               ORDER BY number DESC LIMIT 1 FOR UPDATE";
    Ok(stock.query_opt(ask, &[&sku]).await?.map(|row| row.get("number")))
}

/// The conditional update: whatever anybody believes, a pair is sold to one.
async fn take(stock: &Transaction<'_>, order: &Order, pair: i32) -> Result<Option<i32>, Error> {
    let sell = "UPDATE pairs SET sold_to = $3 WHERE sku = $1 AND number = $2 AND sold_to IS NULL";
    let sold = stock.execute(sell, &[&order.sku, &pair, &order.payment_key]).await?;
    Ok((sold == 1).then_some(pair))
}
