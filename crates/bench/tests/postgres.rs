//! The closed loop on a quota, against a real PostgreSQL, which has to be installed: a test that was not run has not
//! passed. And both of them in `peers`.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use sereno_bench::{
    closed::{Plan, measure},
    process::start_postgres,
    stats::Operation,
    target::{Acquired, Ask, Postgres, PostgresTarget, Released, RequestIds, Target},
};
use sereno_postgres_dev::Server;
use std::time::Duration;
use support::{count, run};
use tempfile::TempDir;

const TTL: Duration = Duration::from_secs(30);

async fn prepare(folder: &TempDir, limit: u64) -> (Server, PostgresTarget) {
    let server = start_postgres(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let target = PostgresTarget::prepare(&server.url(), limit, TTL, 4).await.unwrap();
    (server, target)
}

/// A number that PostgreSQL answers.
async fn number(server: &Server, sql: &str) -> i64 {
    let (client, connection) =
        tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_same_request_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, target) = prepare(&folder, 2).await;
    let (mut client, ids) = (Postgres::connect(&target).await.unwrap(), RequestIds::default());
    let (first, second, third) = (ids.next(), ids.next(), ids.next());
    let ask = |request_id| Ask { resource: "ada", request_id, wait: None };
    let granted = Acquired::Granted(first);
    assert_eq!(client.reserve(&ask(&first)).await, Ok(granted));
    assert_eq!(client.reserve(&ask(&first)).await, Ok(granted));
    assert_eq!(number(&server, "SELECT reserved FROM pool").await, 1);
    assert_eq!(client.commit(&first).await, Ok(Released::Done));
    assert_eq!(client.commit(&first).await, Ok(Released::Done));
    assert_eq!(number(&server, "SELECT committed FROM pool").await, 1);
    assert_eq!(number(&server, "SELECT reserved FROM pool").await, 0);
    // Two there are, and a third one there is not: what it cannot get leaves no trace.
    assert_eq!(client.reserve(&ask(&second)).await, Ok(Acquired::Granted(second)));
    assert_eq!(client.reserve(&ask(&third)).await, Ok(Acquired::Refused("QUOTA_EXHAUSTED")));
    assert_eq!(client.commit(&third).await, Ok(Released::Refused("RESERVATION_ENDED")));
    assert_eq!(client.reserve(&ask(&first)).await, Ok(granted), "remembered when all are gone");
    assert_eq!(number(&server, "SELECT count(*) FROM reservations").await, 2);
}

#[tokio::test]
async fn all_clients_together_commit_what_they_count() {
    let folder = tempfile::tempdir().unwrap();
    let (server, target) = prepare(&folder, 1_000_000).await;
    let plan = Plan {
        clients: 8,
        warm_up: Duration::ZERO,
        window: Duration::from_millis(500),
        resources: None,
        wait: None,
        threads: 2,
        seed: 1,
    };
    let server_id = server.process_id().unwrap();
    let measured = measure(&Target::Postgres(target), &plan, &[server_id]).unwrap();
    assert!(measured.cycles > 0);
    for operation in [Operation::Reserve, Operation::Commit] {
        let figures = measured.board.of(operation);
        assert_eq!((figures.done, figures.unknown), (figures.offered, 0), "{operation:?}");
    }
    let committed = number(&server, "SELECT committed FROM pool").await;
    assert!(committed.unsigned_abs() >= measured.cycles, "{committed}, {}", measured.cycles);
    let same = "SELECT committed - (SELECT count(*) FROM reservations WHERE state = 'committed') FROM pool";
    assert_eq!(number(&server, same).await, 0);
    let cpu = measured.server_cpu.unwrap();
    assert!(cpu.cores > 0.0, "its connections are processes of their own: {cpu}");
}

#[test]
fn peers_compare_a_hot_quota() {
    let report = run(
        "peers --peers sereno-quota,postgres-quota --clients 1,8 --seconds 1 --warm-up 0 --rounds 1",
    );
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{report}");
    for row in rows {
        assert_eq!(count(row, "notDone"), 0, "{report}");
        for call in ["reserve", "commit"] {
            assert!(count(&row[call], "p50Us") > 0, "{report}");
        }
    }
    let ratios = report["ratios"].as_array().unwrap();
    let pairs: Vec<_> = ratios.iter().map(|it| (&it["above"], &it["clients"])).collect();
    assert_eq!(pairs, [(&"sereno-quota".into(), &1.into()), (&"sereno-quota".into(), &8.into())]);
    assert!(ratios.iter().all(|it| it["cycles"]["median"].as_f64().unwrap() > 0.0), "{report}");
}
