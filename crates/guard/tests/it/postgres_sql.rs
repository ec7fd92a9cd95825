//! The SQL of the fence, on a real PostgreSQL.

use crate::support::Database;
use tokio_postgres::{Client, Error};

const KEY: &str = "default/lock/orders/42";

/// Shows a token, in a transaction of its own or in the one that is open.
async fn fence(client: &Client, key: Option<&str>, token: Option<i64>) -> Result<(), Error> {
    client.execute("SELECT sereno_fence($1, $2)", &[&key, &token]).await.map(drop)
}

fn code(result: Result<(), Error>) -> String {
    result.unwrap_err().code().expect("the database's answer").code().to_string()
}

async fn highest(client: &Client, key: &str) -> Option<i64> {
    let row = client
        .query_opt("SELECT token FROM sereno_fence_tokens WHERE fence_key = $1", &[&key])
        .await
        .unwrap();
    row.map(|row| row.get(0))
}

#[tokio::test]
async fn it_accepts_higher_and_equal_and_refuses_lower() {
    let client = Database::new().await.connect().await;
    for token in [5, 5, 7, 7] {
        fence(&client, Some(KEY), Some(token)).await.unwrap();
    }
    let error = fence(&client, Some(KEY), Some(6)).await.unwrap_err();
    let answer = error.as_db_error().unwrap();
    assert_eq!(answer.code().code(), "SF001");
    for word in [KEY, "6", "7"] {
        assert!(answer.message().contains(word), "{}", answer.message());
    }
    let detail: serde_json::Value = serde_json::from_str(answer.detail().unwrap()).unwrap();
    assert_eq!(detail, serde_json::json!({"fenceKey": KEY, "token": 6, "highest": 7}));
    fence(&client, Some("default/lock/other"), Some(1)).await.unwrap();
    assert_eq!(highest(&client, KEY).await, Some(7));
}

#[tokio::test]
async fn bad_input_is_refused() {
    let client = Database::new().await.connect().await;
    let long = "k".repeat(401);
    let max = (1 << 53) - 1;
    for (key, token) in [
        (None, Some(1)),
        (Some(""), Some(1)),
        (Some(long.as_str()), Some(1)),
        (Some(KEY), None),
        (Some(KEY), Some(0)),
        (Some(KEY), Some(-1)),
        (Some(KEY), Some(max + 1)),
    ] {
        assert_eq!(code(fence(&client, key, token).await), "22023", "{key:?} {token:?}");
    }
    fence(&client, Some(&long[..400]), Some(max)).await.unwrap();
}

#[tokio::test]
async fn a_token_is_remembered_with_the_effect_or_not_at_all() {
    let client = Database::new().await.connect().await;
    client.batch_execute("BEGIN").await.unwrap();
    fence(&client, Some(KEY), Some(9)).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(highest(&client, KEY).await, None);
    fence(&client, Some(KEY), Some(5)).await.unwrap();
}

#[tokio::test]
async fn a_stale_transaction_is_lost_whether_anybody_looks_or_not() {
    let client = Database::new().await.connect().await;
    client.batch_execute("CREATE TABLE effect (n int)").await.unwrap();
    fence(&client, Some(KEY), Some(9)).await.unwrap();
    client.batch_execute("BEGIN; INSERT INTO effect VALUES (1)").await.unwrap();
    assert_eq!(code(fence(&client, Some(KEY), Some(5)).await), "SF001");
    assert!(client.batch_execute("INSERT INTO effect VALUES (2)").await.is_err());
    client.batch_execute("COMMIT").await.unwrap();
    let rows = client.query("SELECT n FROM effect", &[]).await.unwrap();
    assert_eq!(rows.len(), 0);
}

#[tokio::test]
async fn a_newer_owner_waits_for_the_older_transaction_and_sees_its_effect() {
    for first_of_key in [true, false] {
        let database = Database::new().await;
        let (old, new) = (database.connect().await, database.connect().await);
        old.batch_execute("CREATE TABLE effect (n int)").await.unwrap();
        if !first_of_key {
            fence(&old, Some(KEY), Some(5)).await.unwrap();
        }
        old.batch_execute("BEGIN").await.unwrap();
        fence(&old, Some(KEY), Some(5)).await.unwrap();
        let waiting = tokio::spawn(async move {
            new.batch_execute("BEGIN").await.unwrap();
            fence(&new, Some(KEY), Some(7)).await.unwrap();
            let count: i64 =
                new.query_one("SELECT count(*) FROM effect", &[]).await.unwrap().get(0);
            new.batch_execute("COMMIT").await.unwrap();
            count
        });
        until_somebody_waits(&database).await;
        assert!(!waiting.is_finished());
        old.batch_execute("INSERT INTO effect VALUES (1); COMMIT").await.unwrap();
        assert_eq!(waiting.await.unwrap(), 1, "first of the key: {first_of_key}");
        assert_eq!(code(fence(&old, Some(KEY), Some(5)).await), "SF001");
    }
}

#[tokio::test]
async fn an_older_owner_that_waits_for_a_newer_one_is_refused_or_let_in_by_its_end() {
    for (end, expected) in [("COMMIT", "SF001"), ("ROLLBACK", "in")] {
        let database = Database::new().await;
        let (old, new) = (database.connect().await, database.connect().await);
        new.batch_execute("BEGIN").await.unwrap();
        fence(&new, Some(KEY), Some(7)).await.unwrap();
        let waiting = tokio::spawn(async move { fence(&old, Some(KEY), Some(5)).await });
        until_somebody_waits(&database).await;
        new.batch_execute(end).await.unwrap();
        match waiting.await.unwrap() {
            Ok(()) => assert_eq!(expected, "in"),
            error => assert_eq!(code(error), expected),
        }
    }
}

/// Under REPEATABLE READ and SERIALIZABLE a transaction that waited must not go on with what it saw before: it gets
/// a serialization failure, also where the older transaction brought no new token. The repeat sees everything.
#[tokio::test]
async fn higher_isolation_levels_never_pass_with_an_old_view() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let database = Database::new().await;
        let (old, new) = (database.connect().await, database.connect().await);
        old.batch_execute("CREATE TABLE effect (n int)").await.unwrap();
        fence(&old, Some(KEY), Some(5)).await.unwrap();
        old.batch_execute("BEGIN").await.unwrap();
        // Equal: the row keeps its token.
        fence(&old, Some(KEY), Some(5)).await.unwrap();
        old.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        let again = begin.clone();
        let waiting = tokio::spawn(async move {
            new.batch_execute(&begin).await.unwrap();
            let result = fence(&new, Some(KEY), Some(7)).await;
            new.batch_execute("ROLLBACK").await.unwrap();
            (result, new)
        });
        until_somebody_waits(&database).await;
        old.batch_execute("COMMIT").await.unwrap();
        let (result, new) = waiting.await.unwrap();
        assert_eq!(code(result), "40001", "{level}");
        new.batch_execute(&again).await.unwrap();
        fence(&new, Some(KEY), Some(7)).await.unwrap();
        new.batch_execute("COMMIT").await.unwrap();
        // A stale token is told as such, too.
        old.batch_execute(&again).await.unwrap();
        assert_eq!(code(fence(&old, Some(KEY), Some(5)).await), "SF001", "{level}");
    }
}

#[tokio::test]
async fn it_can_be_installed_again_and_closed_to_writers() {
    let database = Database::new().await;
    let owner = database.connect().await;
    owner.batch_execute(sereno_guard::POSTGRES_SQL).await.unwrap();
    fence(&owner, Some(KEY), Some(7)).await.unwrap();
    owner.batch_execute(sereno_guard::POSTGRES_SQL).await.unwrap();
    assert_eq!(highest(&owner, KEY).await, Some(7), "tokens survive it");
    // As the head of the file says.
    owner
        .batch_execute(
            "CREATE ROLE writer_of_this_test LOGIN;
             REVOKE ALL ON sereno_fence_tokens FROM PUBLIC;
             ALTER FUNCTION sereno_fence(text, bigint) SECURITY DEFINER SET search_path = public, pg_temp",
        )
        .await
        .unwrap();
    let mut config: tokio_postgres::Config = database.url.parse().unwrap();
    let writer = crate::support::connect(config.user("writer_of_this_test")).await;
    fence(&writer, Some(KEY), Some(8)).await.unwrap();
    let denied = writer.batch_execute("DELETE FROM sereno_fence_tokens").await;
    assert_eq!(code(denied), "42501");
    // A table of its own, by the same name, does not help either.
    writer
        .batch_execute(
            "CREATE TEMP TABLE sereno_fence_tokens (fence_key text PRIMARY KEY, token bigint)",
        )
        .await
        .unwrap();
    assert_eq!(code(fence(&writer, Some(KEY), Some(5)).await), "SF001");
}

async fn until_somebody_waits(database: &Database) {
    let watch = database.connect().await;
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    loop {
        let waiting: i64 = watch.query_one(sql, &[]).await.unwrap().get(0);
        if waiting > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}
