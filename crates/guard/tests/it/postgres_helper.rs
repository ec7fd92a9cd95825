//! The helper over `tokio-postgres`, on a real PostgreSQL: what it says is what happened.

use crate::{reporter, stub::Stub, support::Database};
use sereno_guard::{
    Fence, Refused,
    postgres::{Begun, FenceError, Outcome, PostgresGuard, TransactionState, transaction_state},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_postgres::{Client, Config, Transaction};

const KEY: &str = "default/lock/orders/42";

fn fence(token: u64) -> Vec<Fence> {
    vec![Fence::new(KEY, token).unwrap()]
}

async fn with_table() -> Database {
    let database = Database::new().await;
    let sql = "CREATE TABLE effect (n int PRIMARY KEY)";
    database.connect().await.batch_execute(sql).await.unwrap();
    database
}

async fn effects(database: &Database) -> i64 {
    let row = database.connect().await.query_one("SELECT count(*) FROM effect", &[]).await;
    row.unwrap().get(0)
}

/// Inserts 1.
async fn insert(
    client: &mut Client,
    token: u64,
) -> Result<Outcome<u64>, FenceError<tokio_postgres::Error>> {
    PostgresGuard::new()
        .run(client, &fence(token), async |transaction| {
            transaction.execute("INSERT INTO effect VALUES (1)", &[]).await
        })
        .await
}

#[tokio::test]
async fn done_is_committed_and_fenced_is_not() {
    let database = with_table().await;
    let mut client = database.connect().await;
    assert_eq!(insert(&mut client, 7).await.unwrap(), Outcome::Done(1));
    assert_eq!(effects(&database).await, 1);
    let refused = Refused { key: KEY.into(), token: 6, highest: 7 };
    assert_eq!(insert(&mut client, 6).await.unwrap(), Outcome::Fenced(refused));
    assert_eq!(effects(&database).await, 1);
}

async fn nothing(_: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    Ok(())
}

#[tokio::test]
async fn that_it_checks_and_what_it_refused_is_reported() {
    let database = with_table().await;
    let mut client = database.connect().await;
    let stub = Stub::start(reporter::recorded);
    let reporter = reporter::to(&stub);
    let guard = PostgresGuard::new().reporting(reporter.clone());
    let done = guard.run(&mut client, &fence(7), nothing).await.unwrap();
    assert_eq!(done, Outcome::Done(()));
    reporter.settled().await;
    let asked = stub.asked_on("/v1/guards/report");
    assert_eq!((asked.len(), asked[0].body["fenceKey"].as_str()), (1, Some(KEY)));
    assert!(asked[0].body.get("token").is_none(), "nothing was refused");
    let fenced = guard.run(&mut client, &fence(6), nothing).await.unwrap();
    assert!(matches!(fenced, Outcome::Fenced(_)), "{fenced:?}");
    reporter.settled().await;
    reporter::assert_refusal(&stub, KEY, 6, 7);
}

#[tokio::test]
async fn what_fails_is_rolled_back_and_the_client_can_go_on() {
    let database = with_table().await;
    let mut client = database.connect().await;
    let guard = PostgresGuard::new();
    let failed = guard
        .run(&mut client, &fence(7), async |transaction| {
            transaction.execute("INSERT INTO effect VALUES (1)", &[]).await.unwrap();
            Err::<(), _>("the card was declined")
        })
        .await;
    assert!(matches!(failed, Err(FenceError::Work("the card was declined"))), "{failed:?}");
    assert_eq!(effects(&database).await, 0);
    // The token went with it.
    assert_eq!(insert(&mut client, 5).await.unwrap(), Outcome::Done(1));
    let none = guard.run(&mut client, &[], async |_| Ok::<_, ()>(())).await;
    assert!(matches!(none, Err(FenceError::NoFence)), "{none:?}");
}

/// PostgreSQL answers COMMIT with a silent rollback where a statement has failed before.
#[tokio::test]
async fn an_error_that_nobody_minded_is_not_called_done() {
    let database = with_table().await;
    let mut client = database.connect().await;
    assert_eq!(insert(&mut client, 7).await.unwrap(), Outcome::Done(1));
    let outcome = PostgresGuard::new()
        .run(&mut client, &fence(7), async |transaction| {
            transaction.execute("INSERT INTO effect VALUES (2)", &[]).await.unwrap();
            // "It is there already, so all is well."
            assert!(transaction.execute("INSERT INTO effect VALUES (1)", &[]).await.is_err());
            Ok::<_, ()>(())
        })
        .await;
    assert!(matches!(outcome, Err(FenceError::NotDone(_))), "{outcome:?}");
    assert_eq!(effects(&database).await, 1);
}

#[tokio::test]
async fn an_error_at_the_commit_is_certain() {
    let database = Database::new().await;
    let mut client = database.connect().await;
    let sql = "CREATE TABLE effect (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    client.batch_execute(sql).await.unwrap();
    let outcome = PostgresGuard::new()
        .run(&mut client, &fence(7), async |transaction| {
            transaction.execute("INSERT INTO effect VALUES (1), (1)", &[]).await
        })
        .await;
    assert!(matches!(outcome, Err(FenceError::NotDone(_))), "{outcome:?}");
    assert_eq!(effects(&database).await, 0);
}

#[tokio::test]
async fn a_transaction_can_be_taken_step_by_step() {
    let database = with_table().await;
    let mut client = database.connect().await;
    let guard = PostgresGuard::new();
    let Begun::Passed(transaction) = guard.begin(&mut client, &fence(7)).await.unwrap() else {
        panic!("nobody was there before")
    };
    transaction.execute("INSERT INTO effect VALUES (1)", &[]).await.unwrap();
    let id = transaction.id();
    let other = database.connect().await;
    assert_eq!(transaction_state(&other, id).await.unwrap(), TransactionState::InProgress);
    transaction.commit().await.unwrap();
    assert_eq!(transaction_state(&other, id).await.unwrap(), TransactionState::Committed);
    let Begun::Fenced(refused) = guard.begin(&mut client, &fence(6)).await.unwrap() else {
        panic!("it is stale")
    };
    assert_eq!(refused.highest, 7);
}

/// Two owners of two keys each, shown in opposite orders: nobody deadlocks. And the future can be spawned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_keys_are_shown_in_one_order() {
    let database = with_table().await;
    let mut tasks = Vec::new();
    for keys in [["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]] {
        let mut client = database.connect().await;
        tasks.push(tokio::spawn(async move {
            let fences: Vec<_> = keys.iter().map(|key| Fence::new(*key, 7).unwrap()).collect();
            for _ in 0..50 {
                let outcome = PostgresGuard::new()
                    .run(&mut client, &fences, async |transaction| {
                        transaction.batch_execute("SELECT pg_sleep(0.001)").await
                    })
                    .await;
                assert_eq!(outcome.unwrap(), Outcome::Done(()));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// What becomes of a COMMIT on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    /// It arrives, and the answer does not.
    AnswerLost,
    /// It does not arrive.
    Lost,
}

/// Stands between a client and the database, and breaks the connection at the first COMMIT.
async fn breaking_proxy(database: &Database, commit: Commit) -> Config {
    let mut config: Config = database.url.parse().unwrap();
    let to = config.get_ports()[0];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let back = tokio::spawn(async move {
            let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
            (from_server, to_client)
        });
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let length = from_client.read(&mut buffer).await.unwrap();
            let is_commit = buffer[..length].windows(7).any(|bytes| bytes == b"COMMIT\0");
            if is_commit {
                // From here on the client hears nothing.
                back.abort();
            }
            if is_commit && commit == Commit::Lost || length == 0 {
                return;
            }
            to_server.write_all(&buffer[..length]).await.unwrap();
            if is_commit {
                to_server.flush().await.unwrap();
                return;
            }
        }
    });
    let host = config.get_hosts()[0].clone();
    assert_eq!(host, tokio_postgres::config::Host::Tcp("127.0.0.1".into()));
    let mut through = Config::new();
    through
        .host("127.0.0.1")
        .port(port)
        .user(config.get_user().unwrap())
        .dbname(config.get_dbname().unwrap());
    config = through;
    config
}

#[tokio::test]
async fn a_lost_answer_to_the_commit_is_unknown_and_can_be_asked_for() {
    for (commit, expected, count) in [
        (Commit::AnswerLost, TransactionState::Committed, 1),
        (Commit::Lost, TransactionState::Aborted, 0),
    ] {
        let database = with_table().await;
        let mut client = crate::support::connect(&breaking_proxy(&database, commit).await).await;
        let error = insert(&mut client, 7).await.unwrap_err();
        let FenceError::Unknown { transaction_id, .. } = error else { panic!("{error:?}") };
        let other = database.connect().await;
        // The server may not have noticed yet.
        let state = loop {
            match transaction_state(&other, transaction_id).await.unwrap() {
                TransactionState::InProgress => tokio::task::yield_now().await,
                state => break state,
            }
        };
        assert_eq!((state, effects(&database).await), (expected, count));
    }
}

#[tokio::test]
async fn a_database_that_is_away_has_changed_nothing() {
    let database = with_table().await;
    let mut client = database.connect().await;
    let end = "SELECT pg_terminate_backend(pg_backend_pid())";
    assert!(client.batch_execute(end).await.is_err());
    let outcome = insert(&mut client, 7).await;
    assert!(matches!(outcome, Err(FenceError::NotDone(_))), "{outcome:?}");
}
