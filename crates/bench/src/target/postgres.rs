//! A pool in PostgreSQL: a row with a conditional update, and a row for each reservation. One statement a call, prepared,
//! each a transaction of its own.

use super::{Acquired, Ask, LeaseId, Released};
use crate::{error::Error, wire::Fault};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::{Client, NoTls, Row, Statement, error::SqlState, types::ToSql};

const POOL: &str = include_str!("../../sql/pool.sql");
const RESERVE: &str = include_str!("../../sql/reserve.sql");
const COMMIT: &str = include_str!("../../sql/commit.sql");
/// Of a request that was seen before.
const SEEN: &str =
    "SELECT coalesce(commit_key::text, '') FROM reservations WHERE id = $1::text::uuid";
/// What a comparison with a durable log rests on.
const DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// A server with the tables in it, and how to connect to it.
#[derive(Clone)]
pub struct PostgresTarget {
    url: Arc<str>,
    ttl: Duration,
    pool: Arc<Pool>,
}

impl std::fmt::Debug for PostgresTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresTarget").field("url", &self.url).finish_non_exhaustive()
    }
}

impl PostgresTarget {
    /// Makes the tables, and makes sure that the server fsyncs before it answers. `connections`: for all clients of one
    /// thread together.
    ///
    /// # Errors
    /// It does not answer, or is set up otherwise.
    pub async fn prepare(
        url: &str,
        limit: u64,
        ttl: Duration,
        connections: usize,
    ) -> Result<Self, Error> {
        let failed = |error: tokio_postgres::Error| Error::Service {
            call: "postgres: prepare".into(),
            why: format!("{error:?}"),
        };
        let client = connect(url).await.map_err(failed)?;
        for name in DURABLE {
            let found: String =
                client.query_one(&format!("SHOW {name}"), &[]).await.map_err(failed)?.get(0);
            if found != "on" {
                let why = format!("{name} is {found}");
                return Err(Error::Service { call: "postgres: SHOW".into(), why });
            }
        }
        client.batch_execute(POOL).await.map_err(failed)?;
        let fill = format!("INSERT INTO pool (name, \"limit\") VALUES ('hot', {limit})");
        client.batch_execute(&fill).await.map_err(failed)?;
        Ok(Self { url: url.into(), ttl, pool: Arc::new(Pool::new(connections)) })
    }

    /// The same with connections of its own.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        self.with_connections(self.pool.size)
    }

    /// The same with so many connections of its own.
    #[must_use]
    pub fn with_connections(&self, connections: usize) -> Self {
        let pool = Arc::new(Pool::new(connections));
        Self { url: self.url.clone(), ttl: self.ttl, pool }
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        // Its end is told to whoever uses the client.
        let _ = connection.await;
    });
    Ok(client)
}

/// Connections, lent out one at a time to whoever has waited longest.
struct Pool {
    size: usize,
    room: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// With its statements.
struct Connection {
    client: Client,
    reserve: Statement,
    commit: Statement,
}

impl Pool {
    fn new(size: usize) -> Self {
        Self { size, room: Semaphore::new(size), idle: Mutex::default() }
    }

    async fn lend(&self, url: &str) -> Result<(SemaphorePermit<'_>, Connection), Fault> {
        let not_sent = |error: tokio_postgres::Error| Fault::NotSent(format!("{error:?}"));
        let room = self.room.acquire().await.expect("nobody closes it");
        let found = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(connection) = found.filter(|it| !it.client.is_closed()) {
            return Ok((room, connection));
        }
        let client = connect(url).await.map_err(not_sent)?;
        let reserve = client.prepare(RESERVE).await.map_err(not_sent)?;
        let commit = client.prepare(COMMIT).await.map_err(not_sent)?;
        Ok((room, Connection { client, reserve, commit }))
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

/// One client, which shares the connections of its thread.
pub struct Postgres(PostgresTarget);

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Postgres").field(&self.0).finish()
    }
}

impl Postgres {
    /// Makes sure that there is a connection.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn connect(target: &PostgresTarget) -> Result<Self, Fault> {
        let (_room, connection) = target.pool.lend(&target.url).await?;
        target.pool.give_back(connection);
        Ok(Self(target.clone()))
    }

    /// Reserves one. The same request again finds what it has reserved.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn reserve(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        let (id, owner) = (ask.request_id.as_str(), ask.resource);
        let ttl_ms = self.0.ttl.as_secs_f64() * 1e3;
        let found = self.run(|it| &it.reserve, &[&id, &owner, &ttl_ms], id).await?;
        Ok(match found {
            Found::Done | Found::Before(_) => Acquired::Granted(*ask.request_id),
            Found::Nothing => Acquired::Refused("QUOTA_EXHAUSTED"),
        })
    }

    /// Commits it. The same request again finds that it is done.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn commit(&mut self, reservation: &LeaseId) -> Result<Released, Fault> {
        // One commit for each reservation: its name will do for the request's.
        let (id, key) = (reservation.as_str(), reservation.as_str());
        let found = self.run(|it| &it.commit, &[&id, &key], id).await?;
        Ok(match found {
            Found::Done => Released::Done,
            Found::Before(by) if by.replace('-', "") == key => Released::Done,
            Found::Before(_) | Found::Nothing => Released::Refused("RESERVATION_ENDED"),
        })
    }

    async fn run(
        &self,
        statement: impl Fn(&Connection) -> &Statement,
        values: &[&(dyn ToSql + Sync)],
        id: &str,
    ) -> Result<Found, Fault> {
        let PostgresTarget { url, pool, .. } = &self.0;
        let (_room, connection) = pool.lend(url).await?;
        let answer = connection.client.query_opt(statement(&connection), values).await;
        let found = match answer {
            Ok(Some(_)) => Ok(Found::Done),
            Ok(None) => seen(&connection.client, id).await,
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                seen(&connection.client, id).await
            }
            Err(error) => Err(error),
        };
        let found = found.map_err(|error| Fault::Silent(format!("{error:?}")))?;
        pool.give_back(connection);
        Ok(found)
    }
}

enum Found {
    Done,
    /// By an earlier call; by which request it was committed, or nothing.
    Before(String),
    Nothing,
}

/// A statement that changed nothing: was there the same request before?
async fn seen(client: &Client, id: &str) -> Result<Found, tokio_postgres::Error> {
    let row: Option<Row> = client.query_opt(SEEN, &[&id]).await?;
    Ok(row.map_or(Found::Nothing, |row| Found::Before(row.get(0))))
}
