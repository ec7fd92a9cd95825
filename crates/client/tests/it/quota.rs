//! Reservations against a scripted service: what is said to it, and what is never said twice or left unsaid.

use crate::{
    ids,
    stub::{
        Asked, RESERVATION, Say, Stub, abandoned, committed, given_back, problem, problem_with,
        reserved, still_reserved,
    },
};
use serde_json::{Value, json};
use sereno_client::{
    Client, Commit, Error, Loss, NotHeld, QuotaError, Reserve, RunError,
    api::{OnExpiry, Reason, Shortage},
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

const RESERVE: &str = "/v1/quotas/reserve";
const BEGIN: &str = "/v1/quotas/begin";
const EXTEND: &str = "/v1/quotas/extend";
const RESIZE: &str = "/v1/quotas/resize";
const COMMIT: &str = "/v1/quotas/commit";
const RELEASE: &str = "/v1/quotas/release";
const ABANDON: &str = "/v1/quotas/abandon";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn client(stub: &Stub) -> Client {
    Client::builder().servers(&stub.url).owner("test").call_timeout(ms(400)).build().unwrap()
}

fn gpus(client: &Client) -> Reserve {
    client.quota().reserve("gpu", "acme/vision", 4).owner("w1").ttl(Duration::from_secs(60))
}

fn four() -> Value {
    json!([{"quota": "gpu", "path": "acme/vision", "amount": 4}])
}

/// A service with room for everything, for this long.
fn has_room(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    move |asked| {
        let items: Vec<_> = four().as_array().unwrap().clone();
        let items: Vec<_> = items
            .into_iter()
            .map(|mut item| {
                item["available"] = json!([5, 3, 1]);
                item
            })
            .collect();
        match asked.path.as_str() {
            RESERVE => reserved(asked, 5, ttl_ms),
            BEGIN => still_reserved("inFlight", &items, 5, ttl_ms),
            EXTEND => still_reserved("reserved", &items, 5, ttl_ms),
            COMMIT => committed(&four(), &json!([])),
            RELEASE => given_back(),
            ABANDON => abandoned(),
            other => panic!("not in the script: {other}"),
        }
    }
}

#[tokio::test]
async fn what_is_committed_is_not_given_back_and_every_call_names_the_fence() {
    let stub = Stub::start(has_room(60_000));
    let client = client(&stub);
    let reserve = gpus(&client).and("bytes", "", 100).priority(3).label("job", "7");
    let mut held = reserve.max_lifetime(Duration::from_secs(600)).reserve().await.unwrap();
    assert_eq!((held.id(), held.fence(), held.owner()), (RESERVATION, 5, "w1"));
    assert_eq!(held.fence_key(), format!("default/quota/{RESERVATION}"));
    assert_eq!((held.items().len(), &held.items()[0].available[..]), (2, &[9, 7][..]));
    assert_eq!(held.check(), Ok(()));
    assert!(held.remaining() <= ms(59_380) && held.remaining() > ms(50_000));
    held.extend(Some(Duration::from_secs(90))).await.unwrap();
    assert_eq!(held.items()[0].available, [5, 3, 1], "as it was told last");
    held.begin(Duration::from_secs(300), OnExpiry::Quarantine).await.unwrap();
    assert!(held.is_begun());
    assert_eq!(held.commit().await.unwrap().commit_id, 7);
    assert_eq!(held.check(), Err(NotHeld::Lost(Loss::Released)), "there is nothing left of it");
    drop(held);
    client.settled().await;
    let asked = stub.asked();
    let paths: Vec<_> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(paths, [RESERVE, EXTEND, BEGIN, COMMIT]);
    for asked in &asked[1..] {
        assert_eq!(
            (&asked.body["reservationId"], &asked.body["fence"]),
            (&json!(RESERVATION), &json!(5))
        );
    }
    let body = &asked[0].body;
    assert_eq!((&body["ttl"], &body["maxLifetime"]), (&json!("1m"), &json!("10m")));
    assert_eq!((&body["priority"], &body["labels"]["job"]), (&json!(3), &json!("7")));
    assert_eq!(body["items"][1], json!({"quota": "bytes", "path": "", "amount": 100}));
    assert_eq!(
        (&asked[2].body["inFlightTtl"], &asked[2].body["onExpiry"]),
        (&json!("5m"), &json!("quarantine"))
    );
    assert_eq!((&asked[3].body["final"], asked[3].body.get("items")), (&json!(true), None));
    assert_eq!(ids(&asked).into_iter().collect::<BTreeSet<_>>().len(), 4);
}

#[tokio::test]
async fn a_dropped_reservation_is_given_back_until_that_is_answered() {
    let mut silent = 2;
    let mut room = has_room(60_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RELEASE if silent > 0 => {
            silent -= 1;
            Say::Cut
        }
        _ => room(asked),
    });
    let client = client(&stub);
    drop(gpus(&client).reserve().await.unwrap());
    client.settled().await;
    let released = stub.asked_on(RELEASE);
    assert_eq!(released.len(), 3);
    assert_eq!(ids(&released).into_iter().collect::<BTreeSet<_>>().len(), 1, "one request");
    assert_eq!(released[0].body["fence"], 5);
}

#[tokio::test]
async fn a_drop_leaves_to_its_fate_what_was_not_to_be_released() {
    let stub = Stub::start(has_room(60_000));
    let client = client(&stub);
    drop(gpus(&client).on_expiry(OnExpiry::Commit).reserve().await.unwrap());
    let mut begun = gpus(&client).reserve().await.unwrap();
    begun.begin(Duration::from_secs(60), OnExpiry::Quarantine).await.unwrap();
    // Only the first begin counts, at the service too.
    begun.begin(Duration::from_secs(60), OnExpiry::Release).await.unwrap();
    drop(begun);
    let name = gpus(&client).reserve().await.unwrap().leave();
    assert_eq!((name.reservation_id.as_str(), name.fence), (RESERVATION, Some(5)));
    client.settled().await;
    assert!(stub.asked_on(RELEASE).is_empty());
    // But said aloud it is given back in any case.
    let held = gpus(&client).on_expiry(OnExpiry::Quarantine).reserve().await.unwrap();
    assert!(held.release().await.unwrap().released);
    assert_eq!(stub.asked_on(RELEASE).len(), 1);
}

#[tokio::test]
async fn a_commit_that_was_not_heard_is_repeated_and_never_taken_for_a_release() {
    let mut room = has_room(60_000);
    let mut cut = false;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        COMMIT => {
            cut = !cut;
            if cut { Say::Cut } else { room(asked) }
        }
        _ => room(asked),
    });
    let client = client(&stub);
    let mut held = gpus(&client).reserve().await.unwrap();
    held.commit().await.unwrap();
    assert_eq!(ids(&stub.asked_on(COMMIT)).into_iter().collect::<BTreeSet<_>>().len(), 1);

    // Not even in time: it goes on in the background, with the same request.
    let stub = Stub::start(has_room(60_000));
    let client = self::client(&stub);
    let mut held = gpus(&client).reserve().await.unwrap();
    let mut room = has_room(60_000);
    stub.now(move |asked| if asked.path == COMMIT { Say::Cut } else { room(asked) });
    for _ in 0..2 {
        let error = held.commit().await.unwrap_err();
        assert!(matches!(error, QuotaError::Other(Error::Unknown(_))), "{error}");
    }
    let before = stub.asked_on(COMMIT).len();
    stub.now(has_room(60_000));
    drop(held);
    client.settled().await;
    let commits = stub.asked_on(COMMIT);
    assert_eq!(commits.len(), before + 1);
    assert_eq!(
        ids(&commits).into_iter().collect::<BTreeSet<_>>().len(),
        1,
        "called twice, meant once"
    );
    assert!(stub.asked_on(RELEASE).is_empty());
}

#[tokio::test]
async fn a_commit_whose_caller_went_away_is_meant_all_the_same() {
    let mut room = has_room(60_000);
    let stub =
        Stub::start(move |asked| if asked.path == COMMIT { Say::Silence } else { room(asked) });
    let client = client(&stub);
    let mut held = gpus(&client).reserve().await.unwrap();
    let gone = tokio::time::timeout(ms(50), held.commit()).await;
    assert!(gone.is_err());
    stub.now(has_room(60_000));
    drop(held);
    client.settled().await;
    let commits = stub.asked_on(COMMIT);
    assert_eq!(ids(&commits).into_iter().collect::<BTreeSet<_>>().len(), 1);
    assert!(stub.asked_on(RELEASE).is_empty());
}

#[tokio::test]
async fn a_part_is_committed_and_the_rest_goes_on() {
    let one = json!([{"quota": "gpu", "path": "acme/vision", "amount": 1}]);
    let left = json!([{"quota": "gpu", "path": "acme/vision", "amount": 3}]);
    let mut room = has_room(60_000);
    let told = (one.clone(), left.clone());
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        COMMIT if asked.body["final"] == false => committed(&told.0, &told.1),
        COMMIT => committed(&told.0, &json!([])),
        _ => room(asked),
    });
    let client = client(&stub);
    let mut held = gpus(&client).and("bytes", "", 10).reserve().await.unwrap();
    let part = held.commit_part([("gpu", "acme/vision", 1)]).await.unwrap();
    assert_eq!(part.left[0].amount, 3);
    let items: Vec<_> = held.items().iter().map(|it| (it.quota.as_str(), it.amount)).collect();
    assert_eq!(items, [("gpu", 3)]);
    assert_eq!(held.check(), Ok(()));
    let last = Commit::of([("gpu", "acme/vision", 1)]).or_readmit();
    held.commit_with(last).await.unwrap();
    let commits = stub.asked_on(COMMIT);
    assert_eq!((&commits[0].body["items"], commits[0].body.get("late")), (&one, None));
    assert_eq!((&commits[1].body["items"], &commits[1].body["late"]), (&one, &json!("readmit")));
    drop(held);
    client.settled().await;
    assert!(stub.asked_on(RELEASE).is_empty());
}

#[tokio::test]
async fn what_is_over_is_told_apart_and_nothing_is_owed_for_it() {
    let mut room = has_room(60_000);
    let expired = json!({"reason": "expired"});
    let full = json!({"layers": [layer("", "limit")]});
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        COMMIT if asked.body["items"][0]["amount"] == 9 => {
            problem(409, "EXCEEDS_RESERVATION", None)
        }
        COMMIT if asked.body["late"] == "readmit" => {
            problem_with(409, "EXPIRED_NO_CAPACITY", None, &full)
        }
        COMMIT => problem_with(409, "RESERVATION_ENDED", None, &expired),
        _ => room(asked),
    });
    let client = client(&stub);
    let mut held = gpus(&client).reserve().await.unwrap();
    let too_much = held.commit_items([("gpu", "acme/vision", 9)]).await.unwrap_err();
    assert!(matches!(too_much, QuotaError::Exceeds(_)), "{too_much}");
    assert_eq!(held.check(), Ok(()), "nothing has changed");
    let late = held.commit().await.unwrap_err();
    assert!(matches!(&late, QuotaError::Over(problem) if problem.reason == Some(Reason::Expired)));
    assert_eq!(held.check(), Err(NotHeld::Lost(Loss::Ended("expired".into()))));
    let refund = held.commit_with(Commit::all().or_readmit()).await.unwrap_err();
    let QuotaError::ExpiredNoCapacity(why) = refund else { panic!("{refund}") };
    assert_eq!(why.layers[0].kind, Shortage::Limit);
    drop(held);
    // What stays reserved after a refusal is given back.
    let mut held = gpus(&client).reserve().await.unwrap();
    held.commit_items([("gpu", "acme/vision", 9)]).await.unwrap_err();
    drop(held);
    client.settled().await;
    assert_eq!(stub.asked_on(RELEASE).len(), 1);
}

fn layer(path: &str, kind: &str) -> Value {
    json!({
        "quota": "gpu", "path": path, "limit": 10, "burst": 0, "committed": 2, "reserved": 6, "available": 2,
        "asked": 4, "shortfall": 2, "version": 3, "kind": kind,
    })
}

#[tokio::test]
async fn every_exhausted_layer_is_told() {
    let layers = json!([layer("", "guarantee"), layer("acme", "limit")]);
    let more = json!({"layers": layers, "retryAfterMs": 1_000, "sweepPending": true});
    let stub =
        Stub::start(move |_| problem_with(409, "QUOTA_EXHAUSTED", Some("newRequestId"), &more));
    let error = gpus(&client(&stub)).reserve().await.unwrap_err();
    assert!(error.is_exhausted());
    let QuotaError::Exhausted(why) = error else { panic!("{error}") };
    let told: Vec<_> = why.layers.iter().map(|it| (it.path.as_str(), it.kind)).collect();
    assert_eq!(told, [("", Shortage::Guarantee), ("acme", Shortage::Limit)]);
    assert_eq!((why.retry_after, why.sweep_pending), (Some(ms(1_000)), true));
    assert_eq!(stub.asked().len(), 1, "without a wait or a time-out it is asked once");
}

#[tokio::test]
async fn with_a_time_out_it_is_tried_again_unless_it_could_never_be_had() {
    let mut room = has_room(60_000);
    let mut full = 2;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RESERVE if full > 0 => {
            full -= 1;
            let more = json!({"layers": [layer("", "limit")], "retryAfterMs": 20});
            problem_with(409, "QUOTA_EXHAUSTED", Some("newRequestId"), &more)
        }
        _ => room(asked),
    });
    let client = client(&stub);
    let held = gpus(&client).timeout(Duration::from_secs(10)).reserve().await.unwrap();
    let asked = stub.asked_on(RESERVE);
    assert_eq!(ids(&asked).into_iter().collect::<BTreeSet<_>>().len(), 3, "each a new request");
    held.leave();

    let more = json!({"layers": [layer("", "limit")]});
    let stub =
        Stub::start(move |_| problem_with(409, "QUOTA_EXHAUSTED", Some("newRequestId"), &more));
    let begun = Instant::now();
    let never = gpus(&self::client(&stub)).timeout(Duration::from_secs(10)).reserve().await;
    let QuotaError::Exhausted(why) = never.unwrap_err() else { panic!() };
    assert_eq!((why.retry_after, stub.asked().len()), (None, 1));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn who_waits_repeats_the_same_call_and_hears_once_more_how_long_it_lasts() {
    let (mut room, mut calls) = (has_room(60_000), 0);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RESERVE => {
            calls += 1;
            let waiting = json!({
                "state": "waiting", "place": 2, "waitExpiresInMs": 4_200, "replayed": false, "revision": 18,
                "clusterTimeMs": 91_235,
            });
            match calls {
                1 => Say::Json(202, waiting),
                2 => reserved(asked, 5, 60_000),
                _ => reserved(asked, 5, 30_000),
            }
        }
        _ => room(asked),
    });
    let client = client(&stub);
    let (tell, places) = std::sync::mpsc::channel();
    let wait = gpus(&client).wait(Duration::from_secs(5));
    let wait = wait.on_standing(move |standing| tell.send(standing.clone()).unwrap());
    let held = wait.reserve().await.unwrap();
    assert!(held.remaining() <= ms(29_680), "what the last answer says");
    assert_eq!(places.recv().unwrap(), sereno_client::Standing::Waiting { place: 2 });
    let asked = stub.asked_on(RESERVE);
    assert_eq!((asked.len(), &asked[0].body["waitTimeout"].is_string()), (3, &true));
    assert_eq!(ids(&asked).into_iter().collect::<BTreeSet<_>>().len(), 1);
    held.leave();
}

#[tokio::test]
async fn what_ended_while_nobody_heard_of_it_is_asked_for_anew() {
    let (mut room, mut calls) = (has_room(60_000), 0);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RESERVE => {
            calls += 1;
            match calls {
                1 => Say::Cut,
                2 => problem_with(409, "RESERVATION_ENDED", None, &json!({"reason": "expired"})),
                _ => room(asked),
            }
        }
        _ => room(asked),
    });
    let client = client(&stub);
    gpus(&client).timeout(Duration::from_secs(10)).reserve().await.unwrap().leave();
    let ids = ids(&stub.asked_on(RESERVE));
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
}

#[tokio::test]
async fn giving_up_abandons() {
    let mut room = has_room(60_000);
    let stub =
        Stub::start(move |asked| if asked.path == RESERVE { Say::Silence } else { room(asked) });
    let client = client(&stub);
    assert!(tokio::time::timeout(ms(100), gpus(&client).reserve()).await.is_err());
    client.settled().await;
    let abandoned = stub.until_asked_on(ABANDON);
    assert_eq!(abandoned.body["requestId"], stub.asked_on(RESERVE)[0].body["requestId"]);
}

#[tokio::test]
async fn nothing_is_extended_by_itself_unless_asked_for_and_the_local_clock_tells_the_end() {
    let stub = Stub::start(has_room(300));
    let client = client(&stub);
    let held = gpus(&client).on_expiry(OnExpiry::Quarantine).reserve().await.unwrap();
    assert_eq!(held.lost().await, Loss::Deadline);
    assert_eq!(
        (held.check(), held.remaining()),
        (Err(NotHeld::Lost(Loss::Deadline)), Duration::ZERO)
    );
    let work = held.run(std::future::pending::<()>()).await;
    assert!(matches!(work, Err(RunError::NotBegun(_))), "{work:?}");
    assert!(stub.asked_on(EXTEND).is_empty());

    stub.now(has_room(1_500));
    let held = gpus(&client).keep_extended().reserve().await.unwrap();
    stub.until("three extensions", |asked| {
        asked.iter().filter(|asked| asked.path == EXTEND).count() >= 3
    });
    assert_eq!(held.check(), Ok(()));
    let extended = stub.asked_on(EXTEND);
    assert_eq!((&extended[0].body["fence"], extended[0].body.get("ttl")), (&json!(5), None));
    let mut room = has_room(1_500);
    stub.now(move |asked| match asked.path.as_str() {
        EXTEND => problem_with(409, "RESERVATION_ENDED", None, &json!({"reason": "released"})),
        _ => room(asked),
    });
    let work = held.run(std::future::pending::<()>()).await;
    let Err(RunError::Lost { loss, finished: None }) = work else { panic!("{work:?}") };
    assert_eq!(loss, Loss::Ended("released".into()));
}

#[tokio::test]
async fn a_resize_names_new_amounts_and_a_refused_one_changes_nothing() {
    let two = json!({"quota": "gpu", "path": "acme/vision", "amount": 2, "available": [7, 5, 3]});
    let mut room = has_room(60_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RESIZE if asked.body["items"][0]["amount"] == 2 => {
            still_reserved("reserved", std::slice::from_ref(&two), 5, 60_000)
        }
        RESIZE => {
            let more = json!({"layers": [layer("", "limit")], "retryAfterMs": 1_000});
            problem_with(409, "QUOTA_EXHAUSTED", Some("newRequestId"), &more)
        }
        _ => room(asked),
    });
    let client = client(&stub);
    let mut held = gpus(&client).reserve().await.unwrap();
    held.resize([("gpu", "acme/vision", 2)]).await.unwrap();
    assert_eq!(held.items()[0].amount, 2);
    let error = held.resize([("gpu", "acme/vision", 99)]).await.unwrap_err();
    assert!(error.is_exhausted());
    assert_eq!((held.items()[0].amount, held.check()), (2, Ok(())));
    assert!(held.release().await.unwrap().released);
}

#[tokio::test]
async fn any_process_acts_for_a_reservation_by_its_name() {
    let stub = Stub::start(has_room(60_000));
    let quota = client(&stub).quota().namespace("shop");
    let mut name = sereno_client::ReservationName::new(RESERVATION);
    quota.extend(&name, None).await.unwrap();
    name.fence = Some(5);
    quota.begin(&name, Duration::from_secs(60), OnExpiry::Commit).await.unwrap();
    quota.commit(&name, Commit::of([("gpu", "", 1)]).keep_rest()).await.unwrap();
    quota.release(&name).await.unwrap();
    let asked = stub.asked();
    assert_eq!(asked[0].body.get("fence"), None);
    for asked in &asked {
        assert_eq!(
            (&asked.body["namespace"], &asked.body["reservationId"]),
            (&json!("shop"), &json!(RESERVATION))
        );
    }
    assert_eq!(asked[2].body["final"], false);
}

#[tokio::test]
async fn reads_name_what_they_want_and_nothing_else() {
    let stub = Stub::start(|_| problem(404, "NOT_FOUND", None));
    let quota = client(&stub).quota();
    let ledger = sereno_client::LedgerFilter {
        quota: Some("gpu".into()),
        path: Some("acme".into()),
        since: Some("2026-12-01T00:00:00Z".into()),
        from: Some(7),
        ..Default::default()
    };
    quota.get("gpu", "").await.unwrap_err();
    quota.get("gpu", "acme/vision").await.unwrap_err();
    quota.explain("gpu", "acme").await.unwrap_err();
    quota.list(&Default::default()).await.unwrap_err();
    quota.ledger(&ledger).await.unwrap_err();
    quota.reservations(&Default::default()).await.unwrap_err();
    quota.get_reservation(RESERVATION).await.unwrap_err();
    let paths: Vec<_> = stub.asked().into_iter().map(|asked| asked.path).collect();
    let expected = [
        "/v1/quotas/gpu?namespace=default",
        "/v1/quotas/gpu/acme/vision?namespace=default",
        "/v1/quota-explain?namespace=default&quota=gpu&path=acme",
        "/v1/quotas?namespace=default",
        "/v1/quota-ledger?namespace=default&quota=gpu&path=acme&since=2026-12-01T00:00:00Z&from=7",
        "/v1/reservations?namespace=default",
        &format!("/v1/reservations/{RESERVATION}?namespace=default"),
    ];
    assert_eq!(paths, expected);
}
