//! Reports, to a scripted service.

use crate::stub::{Asked, Say, Stub};
use serde_json::json;
use sereno_client::Client;
use sereno_guard::{Refused, Reporter};
use std::time::{Duration, Instant};

pub(crate) fn to(stub: &Stub) -> Reporter {
    let client = Client::builder().servers(&stub.url).call_timeout(Duration::from_secs(5)).build();
    Reporter::new(client.unwrap(), "test guard").unwrap()
}

pub(crate) fn recorded(_: &Asked) -> Say {
    let body = json!({"recorded": true, "replayed": false, "revision": 1, "clusterTimeMs": 2});
    Say::Json(200, body)
}

/// The last report is that of this refusal.
#[track_caller]
pub(crate) fn assert_refusal(stub: &Stub, key: &str, token: u64, highest: u64) {
    let asked = stub.asked_on("/v1/guards/report");
    let body = &asked.last().expect("a report").body;
    let told = [&body["fenceKey"], &body["token"], &body["highest"], &body["guard"]];
    assert_eq!(told, [&json!(key), &json!(token), &json!(highest), &json!("test guard")]);
}

fn refused(token: u64) -> Refused {
    Refused { key: "default/lock/x".into(), token, highest: 100 }
}

#[tokio::test]
async fn it_says_that_it_checks_and_what_it_refused() {
    let stub = Stub::start(recorded);
    let reporter = to(&stub);
    reporter.checks("default/lock/x");
    reporter.settled().await;
    reporter.checks("default/lock/y");
    reporter.refused(&Refused { key: "default/lock/y".into(), token: 5, highest: 7 });
    reporter.settled().await;
    let asked = stub.asked_on("/v1/guards/report");
    assert_eq!(asked.len(), 2, "one for the family, one for the refusal: {asked:#?}");
    assert_eq!(asked[0].method, "POST");
    for (asked, expected) in asked.iter().zip([
        json!({"fenceKey": "default/lock/x", "guard": "test guard"}),
        json!({"fenceKey": "default/lock/y", "guard": "test guard", "token": 5, "highest": 7}),
    ]) {
        let mut body = asked.body.clone();
        let body = body.as_object_mut().unwrap();
        assert!(body.remove("requestId").is_some());
        body.remove("bornAt");
        assert_eq!(json!(body), expected);
    }
    assert_eq!(reporter.counts().sent, 2);
}

#[tokio::test]
async fn a_storm_is_one_report_a_second() {
    let stub = Stub::start(recorded);
    let reporter = to(&stub);
    let begun = Instant::now();
    for token in 0..20_000 {
        reporter.refused(&refused(token % 99 + 1));
    }
    reporter.refused(&refused(42));
    reporter.settled().await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let asked = stub.asked_on("/v1/guards/report");
    assert!((1..=seconds + 2).contains(&asked.len()), "{} in {seconds} s", asked.len());
    assert_eq!(asked.last().unwrap().body["token"], 42, "the latest is told");
}

#[tokio::test]
async fn a_service_that_is_away_or_refuses_fails_nobody() {
    let stub = Stub::start(|_| crate::stub::problem(404, "NOT_FOUND", None));
    let reporter = to(&stub);
    let begun = Instant::now();
    reporter.refused(&refused(5));
    assert!(begun.elapsed() < Duration::from_secs(1), "it does not wait");
    tokio::time::timeout(Duration::from_secs(20), reporter.settled()).await.unwrap();
    assert_eq!((reporter.counts().sent, reporter.counts().failed), (0, 1));
}

#[test]
fn names_are_those_that_the_service_takes() {
    for name in ["", "a\nb", &"x".repeat(129)] {
        let client = Client::new("http://127.0.0.1:1").unwrap();
        assert!(Reporter::new(client, name).is_err(), "{name:?}");
    }
}
