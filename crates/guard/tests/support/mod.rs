//! One PostgreSQL for all tests of a file, with a database for each.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use sereno_guard::postgres::PostgresGuard;
use sereno_postgres_dev::Server;
use std::sync::{
    LazyLock,
    atomic::{AtomicU32, Ordering},
};
use tokio_postgres::{Client, Config, NoTls};

/// Never dropped: it ends with the process.
static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start().unwrap());

/// A database of its own, with the fence installed.
pub struct Database {
    pub url: String,
}

impl Database {
    pub async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let url = tokio::task::spawn_blocking(move || SERVER.create_database(&name).unwrap());
        let database = Self { url: url.await.unwrap() };
        PostgresGuard::new().install(&database.connect().await).await.unwrap();
        database
    }

    pub async fn connect(&self) -> Client {
        connect(&self.url.parse().unwrap()).await
    }
}

pub async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(async move {
        // Its end is told to whoever uses the client.
        let _ = connection.await;
    });
    client
}
