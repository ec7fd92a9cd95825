//! Waiting for capacity, and giving up.

use super::{ask, limit, node, of, reserve, same_again};
use crate::harness::{Answer, Bench, ENGINES, with_id};
use serde_json::{Value, json};
use sereno_api::{
    Abandoned, AbandonedWas, Committed, ErrorCode, Reason, ReservationPage, ReservationReleased,
    ReservationState, ReservationWaiting, Reserved, RetryWith,
};

/// Asks without the patience to be held.
async fn impatiently(bench: &Bench, body: &Value) -> Answer {
    let call = bench.http.post(format!("{}/v1/quotas/reserve", bench.url)).json(body);
    bench.send(call.header("Sereno-Timeout", "100ms")).await
}

fn abandon(of: &Value) -> Value {
    json!({"requestId": of["requestId"]})
}

#[tokio::test]
async fn who_waits_is_answered_when_capacity_comes_back() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        limit(&bench, "", 10, json!({})).await;
        let first = reserve(&bench, "", 8, json!({})).await;
        let body = ask("", 4, json!({"waitTimeout": "1m", "owner": "bert"}));
        let waiting = impatiently(&bench, &body).await;
        assert_eq!(waiting.status, 202);
        let waiting: ReservationWaiting = waiting.ok();
        assert_eq!((waiting.place, waiting.replayed), (1, false));
        assert!(waiting.wait_expires_in_ms > 50_000);
        let queue: ReservationPage = bench.get("/v1/reservations?state=waiting").await.ok();
        let [row] = queue.reservations.as_slice() else { panic!("{queue:?}") };
        assert_eq!((row.owner.as_str(), row.fence, row.held_for_ms), ("bert", None, 0));
        assert_eq!(node(&bench, "gpu").await.node.waiters, 1);

        let held = bench.post("/v1/quotas/reserve", body.clone());
        let release = bench.post("/v1/quotas/release", of(&first, json!({})));
        let (granted, released) = tokio::join!(held, release);
        assert!(released.ok::<ReservationReleased>().released);
        let granted: Reserved = granted.ok();
        assert_eq!((granted.state, granted.items[0].amount), (ReservationState::Reserved, 4));
        assert!(granted.fence > first.fence);
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_wait_ends_by_time_and_what_never_fits_does_not_wait() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    reserve(&bench, "", 8, json!({})).await;
    let body = ask("", 4, json!({"waitTimeout": "50ms"}));
    let over = bench.post("/v1/quotas/reserve", body.clone()).await;
    let over = over.problem(ErrorCode::WaitTimeout);
    assert_eq!(
        (over.reason, over.retry_with),
        (Some(Reason::TimedOut), Some(RetryWith::NewRequestId))
    );
    let again = bench.post("/v1/quotas/reserve", body).await.problem(ErrorCode::WaitTimeout);
    assert_eq!(again.replayed, Some(true));
    let never = ask("", 11, json!({"waitTimeout": "1m"}));
    let never = bench.post("/v1/quotas/reserve", never).await.problem(ErrorCode::QuotaExhausted);
    assert_eq!(never.retry_after_ms, None);
    bench.stop().await;
}

#[tokio::test]
async fn what_is_abandoned_holds_nothing_and_gets_nothing() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let was = async |of: &Value| -> AbandonedWas {
        bench.post("/v1/quotas/abandon", abandon(of)).await.ok::<Abandoned>().was
    };
    let granted = ask("", 8, json!({}));
    bench.post("/v1/quotas/reserve", granted.clone()).await.ok::<Reserved>();
    let waits = ask("", 4, json!({"waitTimeout": "1m"}));
    assert_eq!(impatiently(&bench, &waits).await.status, 202);
    assert_eq!(was(&waits).await, AbandonedWas::Waiting);
    bench.post("/v1/quotas/reserve", waits).await.problem(ErrorCode::Abandoned);
    assert_eq!(was(&granted).await, AbandonedWas::Granted);
    assert_eq!(node(&bench, "gpu").await.node.available, 10);
    let ended: Abandoned = bench.post("/v1/quotas/abandon", abandon(&granted)).await.ok();
    assert_eq!((ended.was, ended.reason), (AbandonedWas::Ended, Some(Reason::Abandoned)));
    let unseen = ask("", 1, json!({}));
    assert_eq!(was(&unseen).await, AbandonedWas::Unseen);
    bench.post("/v1/quotas/reserve", unseen).await.problem(ErrorCode::Abandoned);
    let refused = ask("", 11, json!({}));
    bench.post("/v1/quotas/reserve", refused.clone()).await.problem(ErrorCode::QuotaExhausted);
    let refused: Abandoned = bench.post("/v1/quotas/abandon", abandon(&refused)).await.ok();
    assert_eq!(refused.code, Some(ErrorCode::QuotaExhausted));
    // A write that was done stays done; one that has not come yet never will be.
    let reserved = reserve(&bench, "", 3, json!({})).await;
    let commit = of(&reserved, json!({}));
    let done = bench.post("/v1/quotas/commit", commit.clone()).await;
    assert_eq!(was(&commit).await, AbandonedWas::Done);
    same_again(&done.body, &bench.post("/v1/quotas/commit", commit).await.body);
    let done: Committed = done.ok();
    let give = json!({"commitId": done.commit_id, "quota": "gpu", "owner": "anna", "amount": 1});
    let give = with_id(give);
    assert_eq!(was(&give).await, AbandonedWas::Unseen);
    bench.post("/v1/quotas/return", give).await.problem(ErrorCode::Abandoned);
    assert_eq!(node(&bench, "gpu").await.node.committed, 3);
    bench.stop().await;
}
