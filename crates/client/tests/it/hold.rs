//! Holds against a scripted service: who has it, until when, what is lost, and going on without the service.

use crate::stub::{Asked, Say, Stub, held, hold_extended, problem, problem_with};
use serde_json::json;
use sereno_client::{
    Client, Error, HoldError, HoldName, LimitKind, ListHolds, OnUnavailable, PlaceHold, Protection,
    api::ErrorCode,
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

const HOLD: &str = "/v1/holds/hold";
const HOLD_ALL: &str = "/v1/holds/hold-all";
const BEGIN: &str = "/v1/holds/begin";
const RENEW: &str = "/v1/holds/renew";
const RELEASE: &str = "/v1/holds/release";

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

fn place(stub: &Stub) -> PlaceHold {
    Client::new(&stub.url).unwrap().hold("sku/42").owner("cart-7")
}

fn let_go(released: bool) -> Say {
    let body =
        json!({"released": released, "replayed": false, "revision": 20, "clusterTimeMs": 91_237});
    Say::Json(200, body)
}

/// Holds everything for ten minutes, and a minute for the payment.
fn holds_all(asked: &Asked) -> Say {
    match asked.path.as_str() {
        HOLD => held(asked, 5, 600_000),
        BEGIN => hold_extended(asked, true, 60_000),
        RENEW => hold_extended(asked, false, 600_000),
        RELEASE => let_go(true),
        other => panic!("not in the script: {other}"),
    }
}

#[tokio::test]
async fn a_hold_is_begun_at_payment_and_released_and_always_names_its_fence() {
    let stub = Stub::start(holds_all);
    let mut held = place(&stub).ttl(minutes(10)).label("page", "checkout").hold().await.unwrap();
    assert_eq!((held.fence(), held.fence_key()), (5, "default/hold/sku/42"));
    assert_eq!((held.owner(), held.is_yours(), held.is_begun()), ("cart-7", false, false));
    let left = held.remaining();
    assert!(left <= Duration::from_millis(593_980) && left > minutes(9), "{left:?}");
    assert_eq!(held.check(), Ok(()));
    held.renew(None).await.unwrap();
    held.begin(minutes(1)).await.unwrap();
    assert!(held.is_begun() && held.remaining() <= minutes(1));
    assert_eq!(held.release().await, Ok(true));
    let asked = stub.asked();
    assert_eq!((&asked[0].body["ttl"], &asked[2].body["ttl"]), (&json!("10m"), &json!("1m")));
    for asked in &asked {
        assert_eq!(asked.body["owner"], "cart-7");
        assert!(asked.path == HOLD || asked.body["fence"] == 5, "{asked:?}");
    }
    let ids: BTreeSet<_> = asked.iter().map(|asked| asked.body["requestId"].to_string()).collect();
    assert_eq!(ids.len(), 4, "each call is a request of its own");
}

#[tokio::test]
async fn nothing_is_renewed_or_released_by_itself() {
    let stub = Stub::start(|asked| held(asked, 5, 300));
    let client = Client::new(&stub.url).unwrap();
    let held = client.hold("sku/42").hold().await.unwrap();
    while held.check().is_ok() {
        tokio::time::sleep(held.remaining()).await;
    }
    assert_eq!(held.remaining(), Duration::ZERO);
    drop(held);
    client.settled().await;
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_request() {
    let mut lost = 4;
    let stub = Stub::start(move |asked| {
        lost -= 1;
        if lost % 2 == 1 { Say::Cut } else { holds_all(asked) }
    });
    let mut held = place(&stub).hold().await.unwrap();
    held.begin(minutes(1)).await.unwrap();
    for path in [HOLD, BEGIN] {
        let asked = stub.asked_on(path);
        assert_eq!(
            (asked.len(), &asked[0].body),
            (2, &{
                let mut again = asked[1].body.clone();
                // The cluster time that was seen last is not part of the request.
                match asked[0].body.get("bornAt") {
                    Some(born_at) => again["bornAt"] = born_at.clone(),
                    None => drop(again.as_object_mut().unwrap().remove("bornAt")),
                }
                again
            })
        );
    }
}

#[tokio::test]
async fn taken_says_who_has_it_and_until_when() {
    let holder =
        json!({"owner": "cart-1", "fencingToken": 4, "heldForMs": 1, "expiresInMs": 90_000});
    let more = json!({"holder": holder, "retryAfterMs": 90_000});
    let stub = Stub::start(move |_| problem_with(409, "TAKEN", Some("newRequestId"), &more));
    let error = place(&stub).hold().await.unwrap_err();
    let HoldError::Taken(taken) = error else { panic!("{error}") };
    assert_eq!(taken.frees_in, Some(Duration::from_secs(90)));
    assert_eq!(taken.holder.unwrap().owner, "cart-1");
    assert_eq!(stub.asked().len(), 1, "it never waits");

    let way = json!([{"resource": "seat/2", "waiters": 0,
                      "holder": {"owner": "x", "fencingToken": 4, "heldForMs": 1, "expiresInMs": 5}}]);
    let more = json!({"inTheWay": way});
    let stub = Stub::start(move |_| problem_with(409, "TAKEN", Some("newRequestId"), &more));
    let seats = Client::new(&stub.url).unwrap().hold_all(["seat/1", "seat/2"]);
    let HoldError::Taken(taken) = seats.hold().await.unwrap_err() else { panic!() };
    assert_eq!(taken.in_the_way[0].resource, "seat/2");
    assert_eq!((taken.until, taken.frees_in), (None, None));
}

#[tokio::test]
async fn caps_and_cool_downs_are_told_apart() {
    for (limit, kind) in
        [("holdsPerOwner", LimitKind::PerOwner), ("holdCooldown", LimitKind::CoolDown)]
    {
        let more = json!({"limit": limit, "max": 4, "retryAfterMs": 30_000});
        let stub =
            Stub::start(move |_| problem_with(429, "LIMIT_REACHED", Some("newRequestId"), &more));
        let error = place(&stub).on_unavailable(OnUnavailable::Degrade).hold().await.unwrap_err();
        let HoldError::Limit(limit) = error else { panic!("{error}") };
        assert_eq!((limit.kind, limit.max), (kind, Some(4)));
        assert_eq!(limit.retry_after, Some(Duration::from_secs(30)));
    }
}

#[tokio::test]
async fn a_hold_that_is_somebody_elses_by_now_is_over() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        HOLD => held(asked, 5, 600_000),
        BEGIN => problem(409, "NOT_HOLDER", None),
        RENEW => problem_with(409, "MAX_HOLD_REACHED", None, &json!({"finalDeadlineInMs": 10})),
        _ => problem_with(409, "LEASE_ENDED", None, &json!({"reason": "expired"})),
    });
    let mut held = place(&stub).hold().await.unwrap();
    assert!(matches!(held.begin(minutes(1)).await, Err(HoldError::Over(_))));
    assert!(!held.is_begun());
    let longest = held.renew(Some(minutes(5))).await.unwrap_err();
    assert!(
        matches!(&longest, HoldError::Other(error) if error.code() == Some(ErrorCode::MaxHoldReached)),
        "{longest}"
    );
    assert_eq!(held.release().await, Ok(false), "nothing of it is left: that was wanted");
}

#[tokio::test]
async fn all_are_held_together_and_each_has_its_fence() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        HOLD_ALL => {
            let one = |(resource, fence)| json!({"resource": resource, "fenceKey": format!("default/hold/{resource}"), "fence": fence});
            let holds: Vec<_> = [("seat/2", 8), ("seat/1", 9)].into_iter().map(one).collect();
            let body = json!({
                "state": "held", "holds": holds, "owner": "cart-7", "yours": false, "begun": false, "expiresAt": "",
                "expiresInMs": 600_000, "finalDeadlineInMs": 900_000, "replayed": false, "revision": 1,
                "clusterTimeMs": 1,
            });
            Say::Json(200, body)
        }
        HOLD => held(asked, 7, 600_000),
        BEGIN if asked.body["resource"] == "seat/1" => hold_extended(asked, true, 30_000),
        BEGIN => hold_extended(asked, true, 60_000),
        _ => let_go(true),
    });
    let client = Client::new(&stub.url).unwrap();
    let before = client.hold("seat/0").owner("cart-7").hold().await.unwrap();
    let two = client.hold_all(["seat/2", "seat/1"]).owner("cart-7");
    let two = two.replaces(&before).replaces_named("seat/9", None);
    let mut seats = two.hold().await.unwrap();
    let fences: Vec<_> = seats.holdings().iter().map(|holding| holding.fencing_token).collect();
    assert_eq!((fences, seats.fence()), (vec![8, 9], 8));
    assert!(seats.final_deadline() > Some(seats.deadline()));
    let replaced = json!([{"resource": "seat/0", "fence": 7}, {"resource": "seat/9"}]);
    assert_eq!(stub.asked_on(HOLD_ALL)[0].body["replaces"], replaced);
    seats.begin(minutes(1)).await.unwrap();
    assert!(seats.remaining() <= Duration::from_secs(30), "as long as the shortest of them");
    assert_eq!(seats.release().await, Ok(true));
    let released: Vec<_> =
        stub.asked_on(RELEASE).iter().map(|asked| asked.body["fence"].as_u64()).collect();
    assert_eq!(released, [Some(9), Some(8)], "in reverse order");
}

#[tokio::test]
async fn without_the_service_the_default_is_an_error_and_degrade_goes_on() {
    let nowhere = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let overloaded = Stub::start(|_| problem(429, "OVERLOADED", Some("newRequestId")));
    let busy = Stub::start(|_| problem(503, "UNAVAILABLE", Some("sameRequestId")));
    let silent = Stub::start(|_| Say::Silence);
    for url in [&nowhere, &overloaded.url, &busy.url, &silent.url] {
        let place = Client::new(url).unwrap().hold("sku/42").timeout(Duration::from_millis(300));
        let begun = Instant::now();
        let error = place.clone().hold().await.unwrap_err();
        assert!(error.is_unavailable(), "{url}: {error}");
        let fail = place.clone().on_unavailable(OnUnavailable::Fail).hold().await;
        assert!(fail.is_err());
        match place.on_unavailable(OnUnavailable::Degrade).hold().await {
            Ok(Protection::Unprotected { reason }) => assert!(reason.is_unavailable()),
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(4), "a buyer waits");
    }
    // What the service has decided is no reason to go on.
    let taken = Stub::start(|_| problem(409, "TAKEN", Some("newRequestId")));
    let decided = place(&taken).on_unavailable(OnUnavailable::Degrade).hold().await;
    assert!(matches!(decided, Err(HoldError::Taken(_))));
    let good = Stub::start(holds_all);
    let held = place(&good).on_unavailable(OnUnavailable::Degrade).hold().await;
    assert!(matches!(held, Ok(Protection::Held(held)) if held.fence() == 5));
}

#[tokio::test]
async fn any_instance_acts_for_the_owner() {
    let stub = Stub::start(|asked| match asked.method.as_str() {
        "GET" => {
            Say::Json(200, json!({"holds": [], "revision": 1, "clusterTimeMs": 1, "ageMs": 3}))
        }
        _ => holds_all(asked),
    });
    let client = Client::new(&stub.url).unwrap();
    let mut name = HoldName {
        namespace: Some("shop".into()),
        resource: "sku/42".into(),
        owner: "cart-7".into(),
        fence: Some(5),
    };
    assert!(client.begin_hold(&name, minutes(5)).await.unwrap().begun);
    client.renew_hold(&name, Some(minutes(5))).await.unwrap();
    name.fence = None;
    assert!(client.release_hold(&name).await.unwrap().released);
    let asked = stub.asked();
    assert!(asked.iter().all(|asked| asked.body["namespace"] == "shop"));
    assert!(asked[2].body.get("fence").is_none());
    let list = ListHolds { prefix: "sku/".into(), stale: true, ..ListHolds::default() };
    client.list_holds(&list).await.unwrap();
    let path = stub.asked().pop().unwrap().path;
    assert_eq!(path, "/v1/holds?namespace=default&prefix=sku/&consistency=stale");
}

#[tokio::test]
async fn an_answer_that_never_comes_is_unknown() {
    let stub = Stub::start(|_| Say::Cut);
    let error = place(&stub).timeout(Duration::from_millis(200)).hold().await.unwrap_err();
    assert!(matches!(error, HoldError::Other(Error::Unknown(_))), "{error}");
}
