//! The shapes of quotas' JSON: what is sent, what may be left out, what is refused.

use super::*;
use crate::{ErrorCode, Millis, Problem, Reason, WaitingState};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json, to_value};
use std::fmt::Debug;

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: Value) -> T {
    let read: T = from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(to_value(&read).unwrap(), json);
    read
}

fn refuses<T: DeserializeOwned>(json: Value, why: &str) {
    match from_value::<T>(json.clone()) {
        Ok(_) => panic!("{json} was taken"),
        Err(error) => assert!(error.to_string().contains(why), "{json}: {error}"),
    }
}

const ID: &str = "00112233445566778899aabbccddeeff";

#[test]
fn a_reserve_says_what_it_has_to_and_the_rest_has_defaults() {
    let short: ReserveRequest = from_value(json!({
        "owner": "train-7", "items": [{"quota": "gpu", "amount": 4}], "requestId": "r-1234567",
        "ttl": "30s",
    }))
    .unwrap();
    let root = QuotaItem { quota: "gpu".into(), path: String::new(), amount: 4 };
    assert_eq!((&*short.namespace, &short.items), ("default", &vec![root]));
    assert_eq!((short.ttl, short.on_expiry, short.priority), (Millis(30_000), None, None));
    assert!(short.wait_timeout.is_none() && short.max_lifetime.is_none());
    let long = json!({
        "namespace": "ml", "owner": "train-7", "requestId": "r-1234567", "ttl": "30s",
        "items": [{"quota": "gpu", "path": "acme/vision", "amount": 4}], "maxLifetime": "2h",
        "onExpiry": "quarantine", "priority": 9, "waitTimeout": "5s", "labels": {"job": "7"}, "bornAt": 12,
    });
    let long: ReserveRequest = round_trip(long);
    assert_eq!(long.on_expiry, Some(OnExpiry::Quarantine));
}

#[test]
fn items_are_objects_and_unknown_fields_are_refused() {
    let reserve =
        |items: Value| json!({"owner": "o", "items": items, "requestId": "r-1234567", "ttl": "1s"});
    refuses::<ReserveRequest>(reserve(json!([["gpu", "a", 4]])), "a JSON object");
    refuses::<ReserveRequest>(reserve(json!([{"quota": "gpu", "amount": -1}])), "-1");
    refuses::<ReserveRequest>(reserve(json!([{"quota": "gpu", "amount": 1.5}])), "1.5");
    refuses::<ReserveRequest>(reserve(json!([{"quota": "gpu", "amount": 1, "min": 1}])), "min");
    refuses::<CommitRequest>(
        json!({"reservationId": ID, "items": [["gpu", "a", 4]], "requestId": "r-1234567"}),
        "a JSON object",
    );
    refuses::<PutLimitRequest>(
        json!({"quota": "gpu", "limit": 1, "requestId": "r-1234567"}),
        "expectedVersion",
    );
}

#[test]
fn a_commit_is_of_everything_and_final_unless_it_says_otherwise() {
    let commit: CommitRequest =
        from_value(json!({"reservationId": ID, "items": null, "requestId": "r-1234567"})).unwrap();
    assert_eq!((commit.items, commit.is_final, commit.late), (None, true, None));
    let part: CommitRequest = round_trip(json!({
        "namespace": "default", "reservationId": ID, "fence": 9, "final": false, "late": "readmit",
        "items": [{"quota": "gpu", "path": "", "amount": 1}], "requestId": "r-1234567",
    }));
    assert_eq!((part.is_final, part.late), (false, Some(LateCommit::Readmit)));
    let done: Committed = round_trip(json!({
        "commitId": 7, "reservationId": ID, "taken": [{"quota": "gpu", "path": "a", "amount": 1}],
        "returned": [], "left": [], "readmits": ID, "replayed": true, "originalRevision": 4,
        "revision": 5, "clusterTimeMs": 6,
    }));
    assert_eq!(done.taken[0].amount, 1);
}

#[test]
fn limits_have_defaults() {
    let put: PutLimitRequest = from_value(json!({
        "quota": "gpu", "limit": 64, "expectedVersion": 0, "requestId": "r-1234567",
    }))
    .unwrap();
    assert_eq!((put.burst, put.guaranteed, put.weight, put.refuse_debt), (0, 0, 1, false));
    assert!(put.owner_reserved_max.is_none() && put.patience.is_none() && put.home.is_none());
    round_trip::<PutLimitRequest>(json!({
        "namespace": "default", "quota": "gpu", "path": "", "limit": 64, "burst": 1, "guaranteed": 2,
        "weight": 3, "ownerReservedMax": 4, "patience": "10s", "home": "eu", "expectedVersion": 5,
        "refuseDebt": true, "requestId": "r-1234567",
    }));
}

#[test]
fn answers_keep_their_shape() {
    let reserved: Reserved = round_trip(json!({
        "state": "reserved", "reservationId": ID, "fenceKey": format!("default/quota/{ID}"), "fence": 9,
        "items": [{"quota": "gpu", "path": "acme", "amount": 4, "available": [60, 12]}],
        "clipped": false, "expiresAt": "2026-12-01T00:00:00Z", "expiresInMs": 30_000,
        "finalDeadlineInMs": 86_400_000, "replayed": false, "revision": 3, "clusterTimeMs": 4,
    }));
    assert_eq!(reserved.state, ReservationState::Reserved);
    let waiting: ReservationWaiting = round_trip(json!({
        "state": "waiting", "place": 2, "waitExpiresInMs": 900, "replayed": false, "revision": 3,
        "clusterTimeMs": 4,
    }));
    assert_eq!(waiting.state, WaitingState::Waiting);
    let released: ReservationReleased = round_trip(json!({
        "released": false, "items": [], "reason": "expired", "replayed": false, "revision": 3,
        "clusterTimeMs": 4,
    }));
    assert_eq!(released.reason, Some(Reason::Expired));
    let reported: UsageReported = round_trip(json!({
        "drift": {"observed": 1, "committedThen": 5, "explained": 1, "drift": -3, "inARow": 1},
        "replayed": false, "revision": 3, "clusterTimeMs": 4,
    }));
    assert_eq!(reported.drift.drift, -3);
    round_trip::<Reservation>(json!({
        "reservationId": ID, "state": "waiting", "fenceKey": format!("default/quota/{ID}"), "owner": "o",
        "items": [], "onExpiry": "release", "priority": 0, "ageMs": 1, "heldForMs": 0,
        "expiresInMs": 5,
    }));
}

#[test]
fn a_refusal_lists_every_layer() {
    let layer = |path: &str, kind: &str| {
        json!({"quota": "gpu", "path": path, "limit": 8, "burst": 0, "committed": 6, "reserved": 2,
            "available": 0, "asked": 4, "shortfall": 4, "version": 1, "kind": kind})
    };
    let problem: Problem = round_trip(json!({
        "type": "/errors/QUOTA_EXHAUSTED", "title": "The quota is exhausted", "status": 409,
        "code": "QUOTA_EXHAUSTED", "detail": "d", "outcome": "notApplied", "retryWith": "newRequestId",
        "retryAfterMs": 500, "layers": [layer("", "limit"), layer("acme", "guarantee")],
        "sweepPending": false,
    }));
    assert_eq!(problem.layers[1].kind, Shortage::Guarantee);
    let elsewhere: Problem = round_trip(json!({
        "type": "/errors/WRONG_REGION", "title": "Another region is home", "status": 421,
        "code": "WRONG_REGION", "detail": "d", "outcome": "notApplied", "home": "eu",
    }));
    assert_eq!((elsewhere.code, elsewhere.home.as_deref()), (ErrorCode::WrongRegion, Some("eu")));
    let mut later = layer("", "fairness");
    later["moreThanNow"] = json!(1);
    assert_eq!(from_value::<QuotaLayer>(later).unwrap().kind, Shortage::Unrecognised);
}
