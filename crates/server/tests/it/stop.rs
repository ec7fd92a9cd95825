//! Graceful stops, and what is there after them.

use crate::harness::{Bench, Engine, acquire_body};
use serde_json::json;
use sereno_api::{ErrorCode, Lock, LockState, Outcome, Problem, RetryWith};
use sereno_server::Config;

#[tokio::test]
async fn held_calls_are_told_that_nobody_knows() {
    let bench = Bench::memory().await;
    bench.grant("a").await;
    let url = format!("{}/v1/locks/acquire", bench.url);
    let held = bench.http.post(url).json(&acquire_body("a", json!({"waitTimeout": "1m"})));
    let held = tokio::spawn(held.send());
    while bench.get("/v1/locks/a").await.ok::<Lock>().waiters == 0 {}
    bench.stop().await;
    let response = held.await.unwrap().unwrap();
    assert_eq!(response.status(), 503);
    let problem: Problem = response.json().await.unwrap();
    assert_eq!((problem.code, problem.outcome), (ErrorCode::Unavailable, Outcome::Unknown));
    assert_eq!(problem.retry_with, Some(RetryWith::SameRequestId));
}

#[tokio::test]
async fn what_was_granted_is_there_after_a_restart() {
    let bench = Bench::start(Engine::Sqlite).await;
    let granted = bench.grant("a").await;
    let port: u16 = bench.url.rsplit(':').next().unwrap().parse().unwrap();
    let folder = bench.stop().await;
    // The port is free again at once.
    let config = Config { http: ([127, 0, 0, 1], port).into(), ..Config::in_folder(folder.path()) };
    let bench = Bench::start_with(folder, config).await;
    let lock: Lock = bench.get("/v1/locks/a").await.ok();
    assert_eq!(
        (lock.state, lock.holder.unwrap().fencing_token),
        (LockState::Held, granted.fencing_token)
    );
    assert!(bench.grant("b").await.fencing_token > granted.fencing_token);
    bench.stop().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_folder_or_address_is_refused() {
    let bench = Bench::start(Engine::Sqlite).await;
    let same_folder = Config::in_folder(bench.folder.path());
    let error = sereno_server::Server::start(same_folder).await.err().unwrap().to_string();
    assert!(error.contains("in use"), "{error}");
    let address = bench.server.as_ref().unwrap().addr();
    let same_address = Config { http: address, ..Config::in_memory() };
    let error = sereno_server::Server::start(same_address).await.err().unwrap().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
    bench.stop().await;
}
