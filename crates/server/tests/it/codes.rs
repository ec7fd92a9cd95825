//! Every code that this version can answer, reached on purpose.

use crate::harness::{Bench, acquire_body, request_id};
use serde_json::{Value, json};
use sereno_api::{ErrorCode, Granted, NamespacePut, Outcome, Reason, Released, RetryWith};
use sereno_log::memory::{AppendFault, MemoryLog};
use std::sync::Arc;

async fn namespace(bench: &Bench, name: &str, policy: Value) {
    let body = json!({"expectedVersion": 0, "policy": policy});
    bench.put(&format!("/v1/namespaces/{name}"), body).await.ok::<NamespacePut>();
}

#[tokio::test]
async fn refusals_of_the_log_say_what_and_how_to_go_on() {
    let bench = Bench::memory().await;
    let granted = bench.grant("a").await;

    let locked = bench.acquire("a", json!({})).await.problem(ErrorCode::Locked);
    assert_eq!(locked.retry_with, Some(RetryWith::NewRequestId));
    assert_eq!(locked.holder.unwrap().fencing_token, granted.fencing_token);
    assert!(
        locked.waiters == Some(0) && locked.retry_after_ms > Some(0) && locked.revision.is_some()
    );

    let timed_out =
        bench.acquire("a", json!({"waitTimeout": "50ms"})).await.problem(ErrorCode::WaitTimeout);
    assert_eq!(
        (timed_out.reason, timed_out.outcome),
        (Some(Reason::TimedOut), Outcome::NotApplied)
    );

    let stranger = json!({"resource": "a", "leaseId": "ab".repeat(16)});
    let not_holder = bench.post("/v1/locks/renew", stranger).await.problem(ErrorCode::NotHolder);
    assert_eq!((not_holder.retry_with, not_holder.outcome), (None, Outcome::NotApplied));
    let nobody = json!({"resource": "a", "leaseId": "0".repeat(32)});
    bench.post("/v1/locks/renew", nobody).await.problem(ErrorCode::NotHolder);

    let id = request_id();
    let first: Granted = bench.acquire("b", json!({"requestId": id})).await.ok();
    let reused =
        bench.acquire("c", json!({"requestId": id})).await.problem(ErrorCode::RequestIdReused);
    assert_eq!(reused.retry_with, Some(RetryWith::NewRequestId));
    let lease = json!({"resource": "b", "leaseId": first.lease_id});
    bench.post("/v1/locks/release", lease).await.ok::<Released>();
    let spent = bench.acquire("b", json!({"requestId": id})).await.problem(ErrorCode::LeaseEnded);
    assert_eq!((spent.outcome, spent.reason), (Outcome::Applied, Some(Reason::Released)));
    assert_eq!(spent.fencing_token, Some(first.fencing_token));
    assert!(spent.replayed == Some(true) && spent.original_revision.is_some());

    let bounded: Granted =
        bench.acquire("d", json!({"maxHold": "30s", "leaseTtl": "30s"})).await.ok();
    assert_eq!(bounded.final_deadline_in_ms, Some(30_000));
    let lease = json!({"resource": "d", "leaseId": bounded.lease_id});
    let reached = bench.post("/v1/locks/renew", lease).await.problem(ErrorCode::MaxHoldReached);
    assert!(
        reached.final_deadline_in_ms <= Some(30_000)
            && reached.fencing_token == Some(bounded.fencing_token)
    );

    let early = bench.acquire("e", json!({"bornAt": 1_000_000_000})).await;
    assert_eq!(early.problem(ErrorCode::InvalidArgument).field.as_deref(), Some("bornAt"));
    bench.stop().await;
}

#[tokio::test]
async fn rules_of_a_namespace_are_refusals_of_their_own() {
    let bench = Bench::memory().await;
    let inside = |name: &str, more: Value| {
        let mut body = acquire_body("r", more);
        body["namespace"] = json!(name);
        body
    };
    bench
        .post("/v1/locks/acquire", inside("nowhere", json!({})))
        .await
        .problem(ErrorCode::NotFound);

    namespace(&bench, "money", json!({"fencing": "enforced", "fencingRequired": true})).await;
    let unfenced = inside("money", json!({"fencing": "bestEffort"}));
    bench.post("/v1/locks/acquire", unfenced).await.problem(ErrorCode::FencingRequired);

    namespace(&bench, "tiny", json!({"maxLeases": 1, "maxWaiters": 0})).await;
    bench.post("/v1/locks/acquire", inside("tiny", json!({}))).await.ok::<Granted>();
    let mut second = inside("tiny", json!({}));
    second["resource"] = json!("s");
    let full = bench.post("/v1/locks/acquire", second).await.problem(ErrorCode::LimitReached);
    assert_eq!((full.limit.as_deref(), full.max), (Some("maxLeases"), Some(1)));
    assert_eq!(full.retry_with, Some(RetryWith::NewRequestId));
    let waiter = inside("tiny", json!({"waitTimeout": "5s"}));
    let full = bench.post("/v1/locks/acquire", waiter).await.problem(ErrorCode::LimitReached);
    assert_eq!(full.limit.as_deref(), Some("maxWaiters"));

    namespace(&bench, "slow", json!({"requestsPerSecond": 1})).await;
    let mut limited = None;
    for _ in 0..5 {
        let answer =
            bench.post("/v1/locks/acquire", inside("slow", json!({"waitTimeout": "1ms"}))).await;
        if answer.status == ErrorCode::LimitReached.status() {
            limited = Some(answer.problem(ErrorCode::LimitReached));
            break;
        }
    }
    let limited = limited.expect("five at once are more than one a second");
    assert_eq!((limited.limit.as_deref(), limited.revision), (Some("requestsPerSecond"), None));
    assert_eq!(limited.retry_with, Some(RetryWith::SameRequestId));

    namespace(&bench, "forgetful", json!({"replyMemory": {"records": 1}})).await;
    bench.post("/v1/locks/acquire", inside("forgetful", json!({}))).await.ok::<Granted>();
    let full = bench.post("/v1/locks/acquire", inside("forgetful", json!({}))).await;
    let full = full.problem(ErrorCode::Overloaded);
    assert_eq!((full.limit.as_deref(), full.max), (Some("replyMemory.records"), Some(1)));
    bench.stop().await;
}

#[tokio::test]
async fn ten_thousand_waiters_fill_a_queue() {
    let bench = Bench::memory().await;
    bench.grant("a").await;
    let url = format!("{}/v1/locks/acquire", bench.url);
    // Each asks once, hears its place, and goes away: its wait stays for the grace.
    let crowd = (0..500).map(|_| async {
        for _ in 0..20 {
            let body = acquire_body("a", json!({"waitTimeout": "10m"}));
            let call = bench.http.post(&url).json(&body).header("Sereno-Timeout", "150ms");
            assert_eq!(call.send().await.unwrap().status(), 202);
        }
    });
    futures_util::future::join_all(crowd).await;
    let full = bench.acquire("a", json!({"waitTimeout": "1m"})).await.problem(ErrorCode::QueueFull);
    assert_eq!((full.max, full.retry_with), (Some(10_000), Some(RetryWith::NewRequestId)));
    bench.stop().await;
}

#[tokio::test]
async fn an_append_without_an_answer_is_an_unknown_outcome() {
    let log = Arc::new(MemoryLog::new());
    let bench = Bench::on(log.clone()).await;
    (0..1_000).for_each(|_| log.plan_append(AppendFault::Lost));
    let url = format!("{}/v1/locks/acquire", bench.url);
    let body = acquire_body("a", json!({}));
    let call = bench.http.post(url).json(&body).header("Sereno-Timeout", "300ms");
    let unknown = bench.send(call).await.problem(ErrorCode::UnknownOutcome);
    assert_eq!(
        (unknown.outcome, unknown.retry_with),
        (Outcome::Unknown, Some(RetryWith::SameRequestId))
    );
    assert!(unknown.cluster_time_ms.is_some() && unknown.revision.is_none());
}

#[tokio::test]
async fn codes_of_the_door_itself() {
    let bench = Bench::memory().await;
    let http = |method: &str, path: &str| {
        bench.http.request(method.parse().unwrap(), format!("{}{path}", bench.url))
    };
    bench.get("/v2/locks").await.problem(ErrorCode::NotFound);
    bench.get("/v1/audit").await.problem(ErrorCode::NotFound);
    let wrong = bench.send(http("DELETE", "/v1/namespaces/default")).await;
    let mut allowed: Vec<_> = wrong.headers["allow"].to_str().unwrap().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "PUT"]);
    wrong.problem(ErrorCode::MethodNotAllowed);
    let form = http("POST", "/v1/locks/acquire").header("content-type", "text/plain").body("{}");
    bench.send(form).await.problem(ErrorCode::UnsupportedMediaType);
    let large = http("POST", "/v1/locks/acquire").json(&json!({"resource": "x".repeat(1 << 20)}));
    bench.send(large).await.problem(ErrorCode::TooLarge);
    let foreign =
        http("POST", "/v1/locks/acquire").header("origin", "http://evil.example").json(&json!({}));
    bench.send(foreign).await.problem(ErrorCode::PermissionDenied);
    let rebound = http("GET", "/v1/status").header("host", "evil.example");
    bench.send(rebound).await.problem(ErrorCode::PermissionDenied);
    let alien = format!("/v1/watch?from={}-5", "ab".repeat(16));
    let resync = bench.get(&alien).await.problem(ErrorCode::Resync);
    assert!(resync.cursor.is_some());
    for page in ["LOCKED", "UNKNOWN_OUTCOME"] {
        let text = bench.get(&format!("/errors/{page}")).await.body;
        assert!(text.as_str().unwrap().starts_with(&format!("# {page}\n")));
    }
    bench.get("/errors/NO_SUCH_CODE").await.problem(ErrorCode::NotFound);
    bench.stop().await;
}
