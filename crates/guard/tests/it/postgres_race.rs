//! Many owners at once, on a real PostgreSQL: what is left must come from a history in which tokens never went down.

use crate::support::Database;
use sereno_guard::{
    Fence,
    postgres::{FenceError, Outcome, PostgresGuard},
};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Barrier;
use tokio_postgres::{Client, IsolationLevel};

const WRITERS: u64 = 16;

/// Each transaction notes its token in the order in which it comes to write, and overwrites the register.
const TABLES: &str = "
    CREATE TABLE history (at bigserial, key text, token bigint);
    CREATE TABLE register (key text PRIMARY KEY, token bigint, writes bigint);";

async fn write(
    guard: &PostgresGuard,
    client: &mut Client,
    key: &str,
    token: u64,
) -> Result<Outcome<()>, FenceError<tokio_postgres::Error>> {
    let fence = Fence::new(key, token).unwrap();
    let token = token.cast_signed();
    guard
        .run(client, &[fence], async |transaction| {
            // Read, think, write: only the fence keeps others out in between.
            let before = transaction
                .query_opt("SELECT token, writes FROM register WHERE key = $1", &[&key])
                .await?;
            let (last, writes) =
                before.map_or((0, 0), |row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
            assert!(last <= token, "{token} came after {last}");
            tokio::task::yield_now().await;
            transaction
                .execute(
                    "INSERT INTO register VALUES ($1, $2, $3)
                     ON CONFLICT (key) DO UPDATE SET token = $2, writes = $3",
                    &[&key, &token, &(writes + 1)],
                )
                .await?;
            transaction
                .execute("INSERT INTO history (key, token) VALUES ($1, $2)", &[&key, &token])
                .await?;
            Ok(())
        })
        .await
}

async fn check(database: &Database) {
    let client = database.connect().await;
    let rows = client.query("SELECT key, token FROM history ORDER BY at", &[]).await.unwrap();
    let mut last: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for row in rows {
        let (key, token): (String, i64) = (row.get(0), row.get(1));
        let (before, writes) = last.get(&key).copied().unwrap_or((0, 0));
        assert!(before <= token, "{key}: {token} was accepted after {before}");
        last.insert(key, (token, writes + 1));
    }
    let rows = client.query("SELECT key, token, writes FROM register", &[]).await.unwrap();
    let register: BTreeMap<String, (i64, i64)> =
        rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
    assert_eq!(register, last, "the register is what the last accepted write of each key left");
    let rows = client.query("SELECT fence_key, token FROM sereno_fence_tokens", &[]).await.unwrap();
    for row in rows {
        let (key, token): (String, i64) = (row.get(0), row.get(1));
        assert_eq!(last[&key].0, token, "{key}");
    }
}

/// Everybody on one key, with tokens up and down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_same_key() {
    for level in [None, Some(IsolationLevel::Serializable)] {
        let database = Database::new().await;
        database.connect().await.batch_execute(TABLES).await.unwrap();
        let guard = match level {
            None => PostgresGuard::new(),
            Some(level) => PostgresGuard::new().isolation(level),
        };
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            let (guard, mut client) = (guard.clone(), database.connect().await);
            writers.push(tokio::spawn(async move {
                let (mut done, mut fenced) = (0, 0);
                for round in 1..=25 {
                    // Owners overlap: each is a few tokens behind or before the others.
                    let token = round * 3 + (writer * 7) % 11;
                    loop {
                        match write(&guard, &mut client, "default/lock/one", token).await {
                            Ok(Outcome::Done(())) => done += 1,
                            Ok(Outcome::Fenced(refused)) => {
                                assert!(refused.highest > token);
                                fenced += 1;
                            }
                            Err(error) if error.is_worth_repeating() => continue,
                            Err(error) => panic!("{error}"),
                        }
                        break;
                    }
                }
                (done, fenced)
            }));
        }
        let (mut done, mut fenced) = (0, 0);
        for writer in writers {
            let (its_done, its_fenced) = writer.await.unwrap();
            done += its_done;
            fenced += its_fenced;
        }
        assert_eq!(done + fenced, 25 * WRITERS);
        assert!(done > 0 && fenced > 0, "{done} {fenced}");
        check(&database).await;
    }
}

/// The first token of a key, raced by all: no row is there to be locked yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_fresh_keys() {
    let database = Database::new().await;
    database.connect().await.batch_execute(TABLES).await.unwrap();
    let guard = PostgresGuard::new();
    let start = Arc::new(Barrier::new(usize::try_from(WRITERS).unwrap()));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (guard, mut client, start) = (guard.clone(), database.connect().await, start.clone());
        writers.push(tokio::spawn(async move {
            for round in 0..30 {
                start.wait().await;
                let token = 1 + (writer * 5 + round) % WRITERS;
                let key = format!("default/lock/fresh-{round}");
                let outcome = write(&guard, &mut client, &key, token).await.unwrap();
                // The highest of all is refused by nobody.
                assert!(outcome == Outcome::Done(()) || token < WRITERS, "{outcome:?}");
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    check(&database).await;
}
