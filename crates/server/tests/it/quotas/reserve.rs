//! From the limit to the return.

use super::{and, ask, limit, node, of, reserve, same_again};
use crate::harness::{Bench, ENGINES, with_id};
use serde_json::{Value, json};
use sereno_api::{
    Committed, ErrorCode, Outcome, Reason, ReservationReleased, ReservationState, Reserved,
    RetryWith, Returned, Shortage,
};

#[tokio::test]
async fn capacity_from_the_reserve_to_the_return() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        limit(&bench, "", 10, json!({})).await;
        let put = limit(&bench, "acme", 8, json!({})).await;
        assert_eq!((put.version, put.debt, put.path.as_str()), (1, 0, "acme"));

        let reserved = reserve(&bench, "acme", 4, json!({})).await;
        assert_eq!(reserved.state, ReservationState::Reserved);
        assert_eq!(reserved.items[0].available, [6, 4]);
        assert_eq!(reserved.fence_key, format!("default/quota/{}", reserved.reservation_id));
        assert_eq!((reserved.expires_in_ms, reserved.final_deadline_in_ms), (30_000, 86_400_000));
        let extend = of(&reserved, json!({"ttl": "1m"}));
        let extended: Reserved = bench.post("/v1/quotas/extend", extend).await.ok();
        assert!(extended.expires_in_ms > 55_000 && !extended.clipped);
        assert_eq!(extended.fence, reserved.fence);
        let begin = of(&reserved, json!({"inFlightTtl": "10m", "onExpiry": "quarantine"}));
        let begun: Reserved = bench.post("/v1/quotas/begin", begin).await.ok();
        assert_eq!(begun.state, ReservationState::InFlight);
        assert!(begun.expires_in_ms > 590_000);
        let items =
            |amount: u64| json!({"items": [{"quota": "gpu", "path": "acme", "amount": amount}]});
        let resized: Reserved = bench.post("/v1/quotas/resize", of(&reserved, items(6))).await.ok();
        assert_eq!((resized.items[0].amount, &*resized.items[0].available), (6, &[4, 2][..]));

        let part = of(&reserved, and(items(2), json!({"final": false})));
        let part: Committed = bench.post("/v1/quotas/commit", part).await.ok();
        assert_eq!((part.taken[0].amount, part.left[0].amount), (2, 4));
        assert!(part.returned.is_empty() && part.readmits.is_none());
        let rest: Committed = bench.post("/v1/quotas/commit", of(&reserved, items(3))).await.ok();
        assert_eq!((rest.taken[0].amount, rest.returned[0].amount), (3, 1));
        assert!(rest.left.is_empty() && rest.commit_id > part.commit_id);

        let give = |commit_id: u64, amount: u64| {
            let named = json!({"commitId": commit_id, "quota": "gpu", "path": "acme"});
            and(with_id(named), json!({"owner": "anna", "amount": amount}))
        };
        let returned: Returned =
            bench.post("/v1/quotas/return", give(part.commit_id, 1)).await.ok();
        assert_eq!((returned.amount, returned.left), (1, 1));
        let excess = bench.post("/v1/quotas/return", give(part.commit_id, 2)).await;
        let excess = excess.problem(ErrorCode::ExceedsReservation);
        let figures = excess.excess.unwrap();
        assert_eq!((figures.has, figures.asked, figures.owner.as_str()), (1, 2, "anna"));
        assert_eq!(excess.retry_with, None);

        let over = bench.post("/v1/quotas/release", of(&reserved, json!({}))).await;
        let over = over.problem(ErrorCode::ReservationEnded);
        assert_eq!(over.reason, Some(Reason::Committed));
        assert_eq!(over.fencing_token, Some(reserved.fence));

        let read = node(&bench, "gpu/acme").await;
        assert_eq!((read.node.committed, read.node.reserved, read.node.available), (4, 0, 4));
        let commits: Vec<_> =
            read.owners[0].commits.iter().map(|one| (one.commit_id, one.left)).collect();
        assert_eq!(commits, [(part.commit_id, 1), (rest.commit_id, 3)]);
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_write_that_is_repeated_is_answered_as_before() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let twice = async |path: &str, body: Value| -> Value {
        let first = bench.post(path, body.clone()).await;
        assert_eq!(first.status, 200, "{first:?}");
        assert_eq!(first.body["replayed"], false);
        let again = bench.post(path, body).await;
        same_again(&first.body, &again.body);
        first.body
    };
    let body = ask("", 4, json!({}));
    let reserved = twice("/v1/quotas/reserve", body.clone()).await;
    let reserved: Reserved = serde_json::from_value(reserved).unwrap();
    twice("/v1/quotas/extend", of(&reserved, json!({"ttl": "1m"}))).await;
    let begin = json!({"inFlightTtl": "1m", "onExpiry": "commit"});
    twice("/v1/quotas/begin", of(&reserved, begin)).await;
    let three = json!({"items": [{"quota": "gpu", "amount": 3}]});
    twice("/v1/quotas/resize", of(&reserved, three)).await;
    let one = json!({"items": [{"quota": "gpu", "amount": 1}], "final": false});
    let part = twice("/v1/quotas/commit", of(&reserved, one)).await;
    let released = twice("/v1/quotas/release", of(&reserved, json!({}))).await;
    assert_eq!((&released["released"], &released["items"][0]["amount"]), (&json!(true), &json!(2)));
    let give = json!({"commitId": part["commitId"], "quota": "gpu", "owner": "anna", "amount": 1});
    twice("/v1/quotas/return", with_id(give)).await;
    assert_eq!(node(&bench, "gpu").await.node.available, 10, "nothing was done twice");

    // What its reserve asked for is over; the reserve itself had its effect.
    let spent = bench.post("/v1/quotas/reserve", body.clone()).await;
    let spent = spent.problem(ErrorCode::ReservationEnded);
    assert_eq!((spent.outcome, spent.reason), (Outcome::Applied, Some(Reason::Released)));
    assert_eq!(spent.retry_with, Some(RetryWith::NewRequestId));
    assert_eq!(spent.fencing_token, Some(reserved.fence));
    let released = bench.post("/v1/quotas/release", of(&reserved, json!({}))).await;
    let released: ReservationReleased = released.ok();
    assert_eq!((released.released, released.reason), (false, Some(Reason::Released)));

    let other = bench.post("/v1/quotas/reserve", and(body.clone(), json!({"ttl": "31s"}))).await;
    let other = other.problem(ErrorCode::RequestIdReused);
    assert_eq!(other.retry_with, Some(RetryWith::NewRequestId));
    let extend = of(&reserved, json!({"requestId": body["requestId"]}));
    bench.post("/v1/quotas/extend", extend).await.problem(ErrorCode::RequestIdReused);
    bench.stop().await;
}

#[tokio::test]
async fn a_refusal_lists_every_layer_with_its_figures() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    limit(&bench, "acme", 8, json!({"ownerReservedMax": 5})).await;
    limit(&bench, "acme/vision", 6, json!({})).await;
    reserve(&bench, "acme/vision", 4, json!({"owner": "bert"})).await;
    let mut two = ask("acme/vision", 3, json!({}));
    two["items"].as_array_mut().unwrap().push(json!({"quota": "gpu", "path": "acme", "amount": 4}));
    let refused = bench.post("/v1/quotas/reserve", two.clone()).await;
    let refused = refused.problem(ErrorCode::QuotaExhausted);
    let layers: Vec<_> = refused.layers.iter().map(|one| (one.path.as_str(), one.kind)).collect();
    let expected = [
        ("", Shortage::Limit),
        ("acme", Shortage::Limit),
        ("acme/vision", Shortage::Limit),
        ("acme", Shortage::OwnerMax),
    ];
    assert_eq!(layers, expected);
    let root = &refused.layers[0];
    assert_eq!((root.limit, root.committed, root.reserved), (10, 0, 4));
    assert_eq!((root.asked, root.available, root.shortfall), (7, 6, 1));
    assert_eq!((root.version, root.burst, root.quota.as_str()), (1, 0, "gpu"));
    assert_eq!((refused.sweep_pending, refused.retry_after_ms), (Some(false), None));
    assert_eq!(refused.retry_with, Some(RetryWith::NewRequestId));
    assert!(refused.detail.contains("7 of gpu were asked for, 6 are available"), "{refused:?}");
    assert!(refused.detail.contains("one owner may reserve 5"), "{refused:?}");
    let again = bench.post("/v1/quotas/reserve", two).await.problem(ErrorCode::QuotaExhausted);
    assert_eq!((again.replayed, again.layers.len()), (Some(true), 4));

    let body = ask("acme/vision", 3, json!({}));
    let full = bench.post("/v1/quotas/reserve", body).await.problem(ErrorCode::QuotaExhausted);
    assert_eq!(full.layers.len(), 1);
    assert!(full.retry_after_ms.is_some(), "it may fit when something has come back");
    let unknown = and(ask("", 1, json!({})), json!({"items": [{"quota": "cpu", "amount": 1}]}));
    let unknown = bench.post("/v1/quotas/reserve", unknown).await;
    let unknown = unknown.problem(ErrorCode::QuotaExhausted);
    assert_eq!((unknown.layers[0].kind, unknown.layers[0].limit), (Shortage::Unknown, 0));
    assert_eq!(unknown.retry_after_ms, None);
    bench.stop().await;
}

#[tokio::test]
async fn a_reservation_is_named_by_its_id_and_its_fence() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let reserved = reserve(&bench, "", 1, json!({"maxLifetime": "30s"})).await;
    let wrong = of(&reserved, json!({"fence": reserved.fence - 1}));
    let wrong = bench.post("/v1/quotas/commit", wrong).await.problem(ErrorCode::NotHolder);
    assert!(wrong.detail.contains("another fence"), "{wrong:?}");
    let unknown = with_id(json!({"reservationId": "0".repeat(32)}));
    bench.post("/v1/quotas/extend", unknown).await.problem(ErrorCode::NotFound);
    let at_its_end = bench.post("/v1/quotas/extend", of(&reserved, json!({}))).await;
    let at_its_end = at_its_end.problem(ErrorCode::MaxHoldReached);
    assert!(at_its_end.detail.contains("maxLifetime is used up"), "{at_its_end:?}");
    let nowhere = and(ask("", 1, json!({})), json!({"namespace": "nowhere"}));
    bench.post("/v1/quotas/reserve", nowhere).await.problem(ErrorCode::NotFound);
    // Without its fence is enough: the name is nobody's guess.
    let by_name = with_id(json!({"reservationId": reserved.reservation_id}));
    bench.post("/v1/quotas/release", by_name).await.ok::<ReservationReleased>();
    bench.stop().await;
}
