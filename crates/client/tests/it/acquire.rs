//! Acquiring against a scripted service: lost answers, waits, refusals, time-outs, dropped futures.

use crate::stub::{
    Asked, Say, Stub, abandoned, granted, grants_all, problem, released, renewed, waiting,
};
use crate::{client, ids, secs};
use sereno_client::{Client, Error, GuardState, api::ErrorCode};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

const ACQUIRE: &str = "/v1/locks/acquire";
const RENEW: &str = "/v1/locks/renew-many";
const RELEASE: &str = "/v1/locks/release";
const ABANDON: &str = "/v1/locks/abandon";

/// The first `answers` to acquires, then as a well-behaved service.
fn first(mut answers: Vec<Say>) -> impl FnMut(&Asked) -> Say + Send + 'static {
    answers.reverse();
    let mut then = grants_all(30_000);
    move |asked| match (asked.path.as_str(), answers.is_empty()) {
        (ACQUIRE, false) => answers.pop().unwrap(),
        _ => then(asked),
    }
}

#[tokio::test]
async fn a_grant_becomes_a_guard_and_a_release_is_answered() {
    let stub = Stub::start(grants_all(30_000));
    let sent = Instant::now();
    let guard = client(&stub).lock("orders/42").ttl(secs(30)).acquire().await.unwrap();
    assert_eq!(guard.token(), Ok(7));
    assert_eq!(guard.fence_key(), "default/lock/orders/42");
    assert_eq!(guard.check(), Ok(()));
    let most = Duration::from_millis(29_680);
    assert!(guard.remaining() <= most && guard.remaining() > most - sent.elapsed() - secs(1));
    let body = &stub.asked_on(ACQUIRE)[0].body;
    assert_eq!(body["leaseTtl"], "30s");
    assert_eq!(body["owner"], "test");
    assert!(body.get("waitTimeout").is_none());
    assert_eq!(body["requestId"].as_str().unwrap().len(), 32);
    assert_eq!(guard.release().await, Ok(sereno_client::Release::Now));
    assert_eq!(stub.asked_on(RELEASE)[0].body["leaseId"], crate::stub::LEASE_ID);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_request() {
    let stub = Stub::start(first(vec![Say::Cut, Say::Cut, Say::Text(502, "bad gateway".into())]));
    let guard = client(&stub).lock("a").acquire().await.unwrap();
    let ids = ids(&stub.asked_on(ACQUIRE));
    assert_eq!(ids.len(), 4);
    assert_eq!(BTreeSet::from_iter(ids).len(), 1);
    assert_eq!(guard.state(), GuardState::Held);
}

#[tokio::test]
async fn unavailable_is_repeated_with_the_same_request() {
    let unavailable = || problem(503, "UNAVAILABLE", Some("sameRequestId"));
    let stub = Stub::start(first(vec![unavailable(), unavailable()]));
    let _guard = client(&stub).lock("a").acquire().await.unwrap();
    let ids = ids(&stub.asked_on(ACQUIRE));
    assert_eq!((ids.len(), BTreeSet::from_iter(ids).len()), (3, 1));
}

#[tokio::test]
async fn several_addresses_take_over_from_each_other() {
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let stopping = Stub::start(|_| problem(503, "UNAVAILABLE", Some("sameRequestId")));
    let good = Stub::start(grants_all(30_000));
    let servers = format!("{dead},{},{}", stopping.url, good.url);
    let client = Client::new(&servers).unwrap();
    let guard = client.lock("a").acquire().await.unwrap();
    assert_eq!(ids(&stopping.asked_on(ACQUIRE)), ids(&good.asked_on(ACQUIRE)));
    guard.release().await.unwrap();
    assert_eq!(good.asked_on(RELEASE).len(), 1, "it stays with the one that serves");
}

#[tokio::test]
async fn a_wait_repeats_the_same_call_and_reports_held_on_a_renewal() {
    let mut polls = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        ACQUIRE => {
            polls += 1;
            if polls < 3 { waiting(asked) } else { granted(asked, 9, 1_000) }
        }
        RENEW => renewed(asked, 30_000),
        _ => released(),
    });
    let guard = client(&stub).lock("a").wait(secs(60)).acquire().await.unwrap();
    let asked = stub.asked_on(ACQUIRE);
    assert_eq!((asked.len(), BTreeSet::from_iter(ids(&asked)).len()), (3, 1));
    assert!(asked.iter().all(|a| a.body["waitTimeout"].as_str().unwrap().ends_with('s')));
    assert_eq!(stub.asked_on(RENEW).len(), 1);
    assert!(guard.remaining() > secs(25), "the renewal's figures count: {:?}", guard.remaining());
}

#[tokio::test]
async fn a_grant_that_ended_while_it_was_waited_for_is_asked_for_anew() {
    let mut renewals = 0;
    let mut polls = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        ACQUIRE => {
            polls += 1;
            if polls == 1 { waiting(asked) } else { granted(asked, polls, 30_000) }
        }
        RENEW => {
            renewals += 1;
            if renewals == 1 {
                crate::stub::not_renewed(
                    asked,
                    "LEASE_ENDED",
                    &serde_json::json!({"reason": "expired"}),
                )
            } else {
                renewed(asked, 30_000)
            }
        }
        _ => released(),
    });
    let guard = client(&stub).lock("a").wait(secs(60)).acquire().await.unwrap();
    assert_eq!(guard.token(), Ok(3));
    let ids = ids(&stub.asked_on(ACQUIRE));
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
}

#[tokio::test]
async fn locked_is_told_with_its_holder_and_nothing_is_abandoned() {
    let stub = Stub::start(|_| {
        let Say::Json(status, mut body) = problem(409, "LOCKED", Some("newRequestId")) else {
            unreachable!()
        };
        body["holder"] = serde_json::json!({
            "owner": "other", "fencingToken": 5, "heldForMs": 1, "expiresInMs": 2
        });
        Say::Json(status, body)
    });
    let client = client(&stub);
    let error = client.lock("a").acquire().await.unwrap_err();
    assert!(error.is_locked());
    let Error::Refused(problem) = error else { panic!("{error}") };
    assert_eq!(problem.holder.unwrap().owner, "other");
    client.settled().await;
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn with_a_time_out_locked_is_tried_again_with_new_requests() {
    let locked = || problem(409, "LOCKED", Some("newRequestId"));
    let stub = Stub::start(first(vec![locked(), locked()]));
    let _guard = client(&stub).lock("a").timeout(secs(30)).acquire().await.unwrap();
    let ids = ids(&stub.asked_on(ACQUIRE));
    assert_eq!((ids.len(), BTreeSet::from_iter(ids).len()), (3, 3));
}

#[tokio::test]
async fn a_hanging_service_is_given_up_in_time_and_the_request_abandoned() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        ACQUIRE => Say::Silence,
        _ => abandoned(),
    });
    let client = client(&stub);
    let begun = Instant::now();
    let error = client.lock("a").timeout(secs(1)).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    assert!(begun.elapsed() >= Duration::from_millis(900) && begun.elapsed() < secs(3));
    client.settled().await;
    assert_eq!(ids(&stub.asked_on(ABANDON)), ids(&stub.asked_on(ACQUIRE)));
}

#[tokio::test]
async fn a_dropped_acquire_is_abandoned_until_that_is_answered() {
    let mut abandons = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        ACQUIRE => Say::Silence,
        _ => {
            abandons += 1;
            if abandons == 1 { Say::Cut } else { abandoned() }
        }
    });
    let client = client(&stub);
    let acquire = tokio::spawn(client.lock("a").wait(secs(60)).acquire());
    let asking = stub.clone();
    tokio::task::spawn_blocking(move || asking.until_asked_on(ACQUIRE)).await.unwrap();
    acquire.abort();
    assert!(acquire.await.unwrap_err().is_cancelled());
    client.settled().await;
    let abandons = stub.asked_on(ABANDON);
    assert_eq!(abandons.len(), 2);
    assert_eq!(ids(&abandons)[1], ids(&stub.asked_on(ACQUIRE))[0]);
}

#[tokio::test]
async fn nothing_reachable_is_unavailable_and_certain() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::new(&url).unwrap();
    let error = client.lock("a").timeout(Duration::from_millis(300)).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

#[tokio::test]
async fn born_at_is_the_last_seen_cluster_time() {
    let stub = Stub::start(grants_all(30_000));
    let client = client(&stub);
    let _one = client.lock("a").acquire().await.unwrap();
    let _two = client.lock("b").acquire().await.unwrap();
    let asked = stub.asked_on(ACQUIRE);
    assert!(asked[0].body.get("bornAt").is_none());
    assert_eq!(asked[1].body["bornAt"], 91_234);
}

#[tokio::test]
async fn a_born_at_of_another_log_is_not_told_again() {
    let mut others = grants_all(30_000);
    let stub = Stub::start(move |asked| match asked.body.get("bornAt") {
        Some(_) => {
            let Say::Json(status, mut body) = problem(400, "INVALID_ARGUMENT", None) else {
                unreachable!()
            };
            body["field"] = "bornAt".into();
            Say::Json(status, body)
        }
        None => others(asked),
    });
    let client = client(&stub);
    let _one = client.lock("a").acquire().await.unwrap();
    let _two = client.lock("b").acquire().await.unwrap();
    let ids = ids(&stub.asked_on(ACQUIRE));
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[1], ids[2], "it is the same request");
}

#[tokio::test]
async fn all_at_once_has_one_lease_and_a_token_each() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        "/v1/locks/acquire-all" => Say::Json(
            200,
            serde_json::json!({
                "state": "granted", "leaseId": crate::stub::LEASE_ID, "fencing": "enforced",
                "locks": [
                    {"resource": "b", "fenceKey": "default/lock/b", "fencingToken": 11},
                    {"resource": "a", "fenceKey": "default/lock/a", "fencingToken": 12},
                ],
                "expiresAt": "", "expiresInMs": 30_000, "replayed": false, "revision": 1,
                "clusterTimeMs": 1,
            }),
        ),
        _ => released(),
    });
    let guard = client(&stub).lock_all(["b", "a"]).acquire().await.unwrap();
    let tokens: Vec<_> = guard.grant().holdings.iter().map(|h| h.fencing_token).collect();
    assert_eq!(tokens, [11, 12]);
    guard.release().await.unwrap();
    let released: Vec<_> =
        stub.asked_on(RELEASE).iter().map(|a| a.body["resource"].clone()).collect();
    assert_eq!(released, ["a", "b"], "in reverse order");
}

#[tokio::test]
async fn many_are_taken_in_sorted_order_and_given_back_when_one_is_missing() {
    let mut others = grants_all(30_000);
    let stub =
        Stub::start(move |asked| match (asked.path.as_str(), asked.body["resource"].as_str()) {
            (ACQUIRE, Some("c")) => problem(409, "WAIT_TIMEOUT", Some("newRequestId")),
            _ => others(asked),
        });
    let client = client(&stub);
    let many = client.lock_many(["b", "a"], |lock| lock.wait(secs(5))).await.unwrap();
    assert_eq!(many.check(), Ok(()));
    assert!(many.release().await.iter().all(Result::is_ok));
    let resources = |path: &str| -> Vec<_> {
        let asked = stub.asked_on(path);
        asked.iter().map(|a| a.body["resource"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(
        (resources(ACQUIRE), resources(RELEASE)),
        (vec!["a".into(), "b".into()], vec!["b".into(), "a".into()])
    );

    let error = client.lock_many(["c", "b", "a"], |lock| lock).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::WaitTimeout));
    client.settled().await;
    let mut released = resources(RELEASE).split_off(2);
    released.sort();
    assert_eq!(released, ["a", "b"]);
}
