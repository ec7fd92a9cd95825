//! A database for each play, in one PostgreSQL for all of them.

use sereno_postgres_dev::Server;
use std::sync::{
    LazyLock,
    atomic::{AtomicU32, Ordering},
};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Never dropped: it ends with the process.
static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start().unwrap());

/// A database, and a connection to look into it.
pub struct Database {
    url: String,
    client: Client,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Database {
    /// An empty one.
    pub async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("play{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let made = tokio::task::spawn_blocking(move || SERVER.create_database(&name).unwrap());
        let url = made.await.unwrap();
        let client = connect(&url).await;
        Self { url, client }
    }

    /// `postgres://…`
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs statements.
    pub async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The number that a query is about; 0 where there is none.
    pub async fn number(&self, sql: &str) -> i64 {
        let rows = self.rows(sql).await;
        rows.get(1).and_then(|row| row[0].parse().ok()).unwrap_or(0)
    }

    /// The answer to a query: the names of its columns, then its rows, all as text.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let answer = self.client.simple_query(sql).await;
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let mut rows = Vec::new();
        for message in answer {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    rows.push(columns.iter().map(|column| column.name().to_string()).collect());
                }
                SimpleQueryMessage::Row(row) => {
                    let text = |at| row.get(at).unwrap_or("-").to_string();
                    rows.push((0..row.len()).map(text).collect());
                }
                _ => {}
            }
        }
        rows
    }

    /// Writes the answer to a query as a table.
    pub async fn show(&self, sql: &str) {
        let rows = self.rows(sql).await;
        let Some(names) = rows.first() else { return };
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        for (at, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
            println!("    {}", cells.collect::<Vec<_>>().join("  ").trim_end());
            if at == 0 {
                let lines = widths.iter().map(|&width| "-".repeat(width));
                println!("    {}", lines.collect::<Vec<_>>().join("  "));
            }
        }
        println!();
    }
}

/// A connection.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move {
        // Its end is told to whoever uses the client.
        let _ = connection.await;
    });
    client
}
