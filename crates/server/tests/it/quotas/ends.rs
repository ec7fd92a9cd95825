//! What becomes of a reservation whose deadline passes, and of commits that come late.

use super::{ask, limit, node, of, reserve, same_again};
use crate::harness::Bench;
use serde_json::json;
use sereno_api::{
    Committed, ErrorCode, Outcome, Reason, ReservationRead, ReservationReleased, ReservationState,
    Reserved, Settled, Settlement, Shortage,
};

#[tokio::test]
async fn a_late_commit_is_refused_or_admitted_anew() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let expires = reserve(&bench, "", 6, json!({"ttl": "1s"})).await;
    // Whoever waits is granted when it has expired.
    let next = ask("", 10, json!({"waitTimeout": "1m", "owner": "bert"}));
    let next: Reserved = bench.post("/v1/quotas/reserve", next).await.ok();

    let late = bench.post("/v1/quotas/commit", of(&expires, json!({}))).await;
    let late = late.problem(ErrorCode::ReservationEnded);
    assert_eq!((late.reason, late.outcome), (Some(Reason::Expired), Outcome::NotApplied));
    assert!(late.detail.contains("has ended: expired"), "{late:?}");
    let released = bench.post("/v1/quotas/release", of(&expires, json!({}))).await;
    let released: ReservationReleased = released.ok();
    assert_eq!((released.released, released.reason), (false, Some(Reason::Expired)));
    assert!(released.items.is_empty());
    let readmit = json!({"late": "readmit"});
    let full = bench.post("/v1/quotas/commit", of(&expires, readmit.clone())).await;
    let full = full.problem(ErrorCode::ExpiredNoCapacity);
    assert_eq!((full.layers[0].kind, full.layers[0].shortfall), (Shortage::Limit, 6));
    assert!(full.sweep_pending.is_some() && full.retry_with.is_none());

    bench.post("/v1/quotas/release", of(&next, json!({}))).await.ok::<ReservationReleased>();
    let body = of(&expires, readmit.clone());
    let admitted = bench.post("/v1/quotas/commit", body.clone()).await;
    same_again(&admitted.body, &bench.post("/v1/quotas/commit", body).await.body);
    let admitted: Committed = admitted.ok();
    assert_eq!(admitted.readmits.as_deref(), Some(expires.reservation_id.as_str()));
    assert_ne!(admitted.reservation_id, expires.reservation_id);
    assert_eq!((admitted.taken[0].amount, node(&bench, "gpu").await.node.committed), (6, 6));
    let twice = bench.post("/v1/quotas/commit", of(&expires, readmit)).await;
    twice.problem(ErrorCode::ReservationEnded);
    bench.stop().await;
}

/// Reads a reservation until it is in quarantine.
async fn until_quarantined(bench: &Bench, reserved: &Reserved) -> ReservationRead {
    loop {
        let path = format!("/v1/reservations/{}", reserved.reservation_id);
        let read: ReservationRead = bench.get(&path).await.ok();
        if read.reservation.state == ReservationState::Quarantined {
            return read;
        }
    }
}

#[tokio::test]
async fn what_is_quarantined_keeps_its_capacity_until_it_is_settled() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let fate = json!({"ttl": "1s", "onExpiry": "quarantine"});
    let live = reserve(&bench, "", 1, json!({})).await;
    let early = of(&live, json!({"settlement": "commit", "reason": "checked"}));
    let early = bench.post("/v1/quotas/settle", early).await.problem(ErrorCode::InvalidArgument);
    assert_eq!(early.field.as_deref(), Some("reservationId"));
    bench.post("/v1/quotas/release", of(&live, json!({}))).await.ok::<ReservationReleased>();

    let first = reserve(&bench, "", 6, fate.clone()).await;
    let second = reserve(&bench, "", 4, fate).await;
    let read = until_quarantined(&bench, &first).await;
    assert_eq!(read.reservation.expires_in_ms, 0);
    until_quarantined(&bench, &second).await;
    assert_eq!(node(&bench, "gpu").await.node.reserved, 10);

    let commit = bench.post("/v1/quotas/commit", of(&first, json!({}))).await;
    let commit = commit.problem(ErrorCode::ReservationEnded);
    assert_eq!(commit.reason, Some(Reason::Quarantined));
    assert_eq!(commit.fencing_token, Some(first.fence));
    let used = of(&first, json!({"settlement": "commit", "reason": "it runs"}));
    let answer = bench.post("/v1/quotas/settle", used.clone()).await;
    same_again(&answer.body, &bench.post("/v1/quotas/settle", used).await.body);
    let settled: Settled = answer.ok();
    assert_eq!((settled.settlement, settled.commit_id.is_some()), (Settlement::Commit, true));
    let free = of(&second, json!({"settlement": "release", "reason": "it never started"}));
    let settled: Settled = bench.post("/v1/quotas/settle", free).await.ok();
    assert_eq!((settled.settlement, settled.commit_id), (Settlement::Release, None));
    let figures = node(&bench, "gpu").await.node;
    assert_eq!((figures.committed, figures.reserved), (6, 0));
    let over = of(&first, json!({"settlement": "release", "reason": "again"}));
    let over = bench.post("/v1/quotas/settle", over).await.problem(ErrorCode::ReservationEnded);
    assert_eq!(over.reason, Some(Reason::Committed));
    let path = format!("/v1/reservations/{}", second.reservation_id);
    bench.get(&path).await.problem(ErrorCode::NotFound);
    bench.stop().await;
}

#[tokio::test]
async fn more_than_is_reserved_is_not_committed() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let reserved = reserve(&bench, "", 4, json!({})).await;
    let more = json!({"items": [{"quota": "gpu", "amount": 3}, {"quota": "gpu", "amount": 2}]});
    let more = bench.post("/v1/quotas/commit", of(&reserved, more)).await;
    let excess = more.problem(ErrorCode::ExceedsReservation).excess.unwrap();
    assert_eq!((excess.quota.as_str(), excess.path.as_str()), ("gpu", ""));
    assert_eq!((excess.has, excess.asked), (4, 5));
    let grows = json!({"items": [{"quota": "gpu", "amount": 11}]});
    let grows = bench.post("/v1/quotas/resize", of(&reserved, grows)).await;
    let layers = grows.problem(ErrorCode::QuotaExhausted).layers;
    assert_eq!((layers[0].asked, layers[0].available), (7, 6));
    let done: Committed = bench.post("/v1/quotas/commit", of(&reserved, json!({}))).await.ok();
    assert_eq!(done.taken[0].amount, 4);
    bench.stop().await;
}
