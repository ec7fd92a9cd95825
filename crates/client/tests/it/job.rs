//! A replica of a job against a scripted service: what it puts, claims, renews and finishes, and what it does when
//! nobody answers. Real clocks, short leases.

use crate::stub::{Asked, Say, Stub, abandoned, problem};
use serde_json::{Value, json};
use sereno_client::{
    Attempt, Client, Error, Job, JobNews, Loss, RunError,
    api::{RunResult, RunState},
    schedule::instant,
};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const GET: &str = "/v1/jobs/nightly?namespace=default";
const PUT: &str = "/v1/jobs/put";
const CLAIM: &str = "/v1/jobs/claim-run";
const RENEW: &str = "/v1/jobs/renew-run";
const FINISH: &str = "/v1/jobs/finish-run";
const ABANDON: &str = "/v1/jobs/abandon";

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// A job that has a slot each second, as the service tells it.
fn record(version: u64, watermark: u64) -> Value {
    json!({
        "job": "nightly", "version": version, "schedule": "* * * * * *", "zone": "UTC", "missed": "all",
        "overlap": "forbid", "retries": 2, "maxRun": "1h", "paused": false,
        "watermark": instant::format(watermark), "runs": [], "revision": 1, "clusterTimeMs": 5, "ageMs": 1,
    })
}

fn put(version: u64) -> Say {
    Say::Json(200, json!({"job": "nightly", "version": version, "revision": 2, "clusterTimeMs": 6}))
}

fn claimed(asked: &Asked, expires_in_ms: u64) -> Say {
    Say::Json(
        200,
        json!({
            "state": "claimed", "job": "nightly", "slot": asked.body["slot"], "attempt": 1,
            "fenceKey": "default/job/nightly", "leaseId": crate::stub::LEASE_ID, "fencingToken": 7,
            "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "replayed": false, "revision": 3,
            "finalDeadlineInMs": 3_600_000, "clusterTimeMs": 7,
        }),
    )
}

fn renewed(expires_in_ms: u64) -> Say {
    Say::Json(
        200,
        json!({
            "fencingToken": 7, "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "clipped": false,
            "finalDeadlineInMs": 3_600_000, "revision": 4, "clusterTimeMs": 8,
        }),
    )
}

fn finished(state: &str) -> Say {
    Say::Json(
        200,
        json!({
            "job": "nightly", "slot": "2026-05-04T12:00:00Z", "attempt": 1, "state": state, "replayed": false,
            "revision": 5, "clusterTimeMs": 9,
        }),
    )
}

/// A well-behaved service with the job as this test's replicas define it.
fn good(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    let watermark = now();
    move |asked| match asked.path.as_str() {
        GET => Say::Json(200, record(3, watermark)),
        CLAIM => claimed(asked, ttl_ms),
        RENEW => renewed(ttl_ms),
        FINISH => finished(if asked.body["result"] == "succeeded" { "succeeded" } else { "retry" }),
        ABANDON => abandoned(),
        other => panic!("not in the script: {other}"),
    }
}

fn client(stub: &Stub) -> Client {
    let builder = Client::builder().servers(&stub.url).owner("tester");
    builder.call_timeout(Duration::from_millis(500)).build().unwrap()
}

fn nightly(client: &Client) -> Job {
    let missed = sereno_client::api::Missed::All;
    client.job("nightly").schedule("* * * * * *", "UTC").missed(missed).retries(2)
}

async fn until(
    stub: &Stub,
    what: &'static str,
    enough: impl Fn(&[Asked]) -> bool + Send + 'static,
) {
    let stub = stub.clone();
    tokio::task::spawn_blocking(move || stub.until(what, enough)).await.unwrap();
}

fn count(asked: &[Asked], path: &str) -> usize {
    asked.iter().filter(|asked| asked.path == path).count()
}

#[tokio::test]
async fn what_is_no_schedule_is_refused_before_anything_is_sent() {
    let stub = Stub::start(|asked| panic!("{asked:?}"));
    let client = client(&stub);
    for (cron, zone, said) in [
        ("61 * * * *", "UTC", "schedule: minutes"),
        ("* * * * *", "Atlantis", "zone: "),
        ("0 0 31 2 *", "UTC", "never comes"),
        ("", "UTC", "has 0 fields"),
    ] {
        let error = client.job("x").schedule(cron, zone).start().await.map(drop).unwrap_err();
        assert!(matches!(&error, Error::Invalid(why) if why.contains(said)), "{error}");
    }
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn a_start_puts_what_is_absent_or_different_and_nothing_else() {
    let stub = Stub::start(good(30_000));
    let client = client(&stub);
    nightly(&client).start().await.unwrap();
    assert_eq!(stub.asked_on(PUT).len(), 0, "it is there as it should be");

    stub.now(|asked| match asked.path.as_str() {
        GET => problem(404, "NOT_FOUND", None),
        _ => put(1),
    });
    nightly(&client).start().await.unwrap();
    let absent = stub.asked_on(PUT).remove(0).body;
    assert_eq!((&absent["expectedVersion"], &absent["retries"]), (&json!(0), &json!(2)));
    assert_eq!((&absent["schedule"], &absent["zone"]), (&json!("* * * * * *"), &json!("UTC")));
    assert_eq!((&absent["maxRun"], &absent["missed"]), (&json!("1h"), &json!("all")));

    stub.now(move |asked| match asked.path.as_str() {
        GET => Say::Json(200, record(8, now())),
        _ => put(9),
    });
    nightly(&client).retries(5).start().await.unwrap();
    let different = stub.asked_on(PUT).remove(1).body;
    assert_eq!((&different["expectedVersion"], &different["retries"]), (&json!(8), &json!(5)));
}

#[tokio::test]
async fn a_conflict_is_read_again() {
    let mut reads = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        GET => {
            reads += 1;
            if reads == 1 {
                problem(404, "NOT_FOUND", None)
            } else {
                Say::Json(200, record(1, now()))
            }
        }
        _ => problem(409, "VERSION_CONFLICT", None),
    });
    nightly(&client(&stub)).start().await.unwrap();
    assert_eq!((stub.asked_on(GET).len(), stub.asked_on(PUT).len()), (2, 1));
}

#[tokio::test]
async fn a_refusal_by_rule_ends_it() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        GET => problem(404, "NOT_FOUND", None),
        _ => problem(400, "INVALID_ARGUMENT", None),
    });
    let error = nightly(&client(&stub)).start().await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
}

#[tokio::test]
async fn a_due_slot_is_claimed_renewed_and_finished() {
    let stub = Stub::start(good(1_000));
    let client = client(&stub);
    let mut runner = nightly(&client).label("team", "books").start().await.unwrap();
    let attempt = runner.next().await.unwrap();
    let claim = stub.asked_on(CLAIM).remove(0).body;
    assert_eq!((&claim["jobVersion"], &claim["owner"]), (&json!(3), &json!("tester")));
    assert_eq!(claim["labels"]["team"], "books");
    let slot = instant::parse(claim["slot"].as_str().unwrap()).unwrap();
    assert!(slot.is_multiple_of(1_000) && slot <= now(), "{slot}");
    assert_eq!(attempt.grant().slot, claim["slot"]);
    assert_eq!((attempt.token(), attempt.grant().attempt), (Ok(7), 1));
    assert_eq!(attempt.grant().fence_key, "default/job/nightly");
    until(&stub, "four renewals", |asked| count(asked, RENEW) >= 4).await;
    assert_eq!(attempt.check(), Ok(()), "past its first lease");
    assert_eq!(stub.asked_on(RENEW)[0].body["leaseId"], crate::stub::LEASE_ID);
    let lost = attempt.lost();
    let end = attempt.finish(RunResult::Succeeded).await.unwrap();
    assert_eq!(end.state, RunState::Succeeded);
    assert_eq!(lost.await, Loss::Released);
    let finish = stub.asked_on(FINISH).remove(0).body;
    assert_eq!(
        (&finish["result"], &finish["leaseId"]),
        (&json!("succeeded"), &json!(crate::stub::LEASE_ID))
    );
}

#[tokio::test]
async fn a_lost_answer_to_a_claim_is_asked_for_again_with_the_same_id() {
    let mut first = true;
    let mut rest = good(30_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        CLAIM if std::mem::take(&mut first) => Say::Cut,
        _ => rest(asked),
    });
    let mut runner = nightly(&client(&stub)).start().await.unwrap();
    let attempt = runner.next().await.unwrap();
    let claims = stub.asked_on(CLAIM);
    assert_eq!(claims.len(), 2);
    assert_eq!(claims[0].body["requestId"], claims[1].body["requestId"]);
    attempt.finish(RunResult::Failed).await.unwrap();
}

#[tokio::test]
async fn giving_up_while_a_claim_is_under_way_gives_it_back() {
    let mut rest = good(30_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        CLAIM => Say::Silence,
        _ => rest(asked),
    });
    let client = client(&stub);
    let mut runner = nightly(&client).start().await.unwrap();
    let next = tokio::spawn(async move { runner.next().await.map(drop) });
    until(&stub, "a claim", |asked| count(asked, CLAIM) > 0).await;
    next.abort();
    until(&stub, "an abandon", |asked| count(asked, ABANDON) > 0).await;
    client.settled().await;
    let claim = stub.asked_on(CLAIM).remove(0).body;
    assert_eq!(stub.asked_on(ABANDON)[0].body["requestId"], claim["requestId"]);
}

#[tokio::test]
async fn what_was_never_begun_is_given_back_and_what_is_dropped_has_failed() {
    let stub = Stub::start(good(30_000));
    let client = client(&stub);
    let mut runner = nightly(&client).start().await.unwrap();
    runner.next().await.unwrap().give_back();
    client.settled().await;
    assert_eq!((stub.asked_on(ABANDON).len(), stub.asked_on(FINISH).len()), (1, 0));
    drop(runner.next().await.unwrap());
    client.settled().await;
    assert_eq!(stub.asked_on(FINISH)[0].body["result"], "failed");
}

#[tokio::test]
async fn the_end_is_told_until_it_is_answered_after_the_lease_too_and_always_with_one_id() {
    let silent = Arc::new(Mutex::new(true));
    let (quiet, mut rest) = (silent.clone(), good(1_000));
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RENEW | FINISH if *quiet.lock().unwrap() => Say::Cut,
        _ => rest(asked),
    });
    let client = client(&stub);
    let mut runner = nightly(&client).start().await.unwrap();
    let attempt = runner.next().await.unwrap();
    let lost = attempt.lost();
    let finishing = tokio::spawn(attempt.finish(RunResult::Succeeded));
    assert_eq!(lost.await, Loss::Deadline);
    let before = stub.asked_on(FINISH).len();
    *silent.lock().unwrap() = false;
    assert_eq!(finishing.await.unwrap().unwrap().state, RunState::Succeeded);
    let finishes = stub.asked_on(FINISH);
    assert!(before >= 2 && finishes.len() > before, "{before} and {}", finishes.len());
    assert!(finishes.iter().all(|asked| asked.body["requestId"] == finishes[0].body["requestId"]));
}

#[tokio::test]
async fn an_end_that_is_not_accepted_says_so() {
    let mut rest = good(30_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        FINISH => problem(409, "LEASE_ENDED", None),
        _ => rest(asked),
    });
    let mut runner = nightly(&client(&stub)).start().await.unwrap();
    let attempt = runner.next().await.unwrap();
    let error = attempt.finish(RunResult::Succeeded).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
}

#[tokio::test]
async fn a_renewal_that_is_refused_loses_at_once_and_stops_the_work() {
    let mut rest = good(3_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        RENEW => problem(409, "LEASE_ENDED", None),
        _ => rest(asked),
    });
    let client = client(&stub);
    let mut runner = nightly(&client).start().await.unwrap();
    let attempt = runner.next().await.unwrap();
    let ended = attempt.run(std::future::pending::<()>()).await;
    let loss = Loss::Ended("unknown".into());
    assert_eq!(ended, Err(RunError::Lost { loss, finished: None }));
}

#[tokio::test]
async fn somebody_elses_definition_is_followed_and_not_fought() {
    let news = Arc::new(Mutex::new(Vec::new()));
    let told = news.clone();
    let watermark = now();
    let mut rest = good(30_000);
    let mut reads = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        GET => {
            reads += 1;
            let mut job = record(if reads == 1 { 3 } else { 4 }, watermark);
            if reads > 1 {
                job["schedule"] = "*/2 * * * * *".into();
            }
            Say::Json(200, job)
        }
        _ => rest(asked),
    });
    let client = client(&stub);
    let job = nightly(&client).on_news(move |news| told.lock().unwrap().push(news.clone()));
    let mut runner = job.start().await.unwrap();
    for _ in 0..2 {
        let attempt = runner.next().await.unwrap();
        let slot = instant::parse(&attempt.grant().slot).unwrap();
        assert_eq!(slot % 2_000, 0, "by the new schedule");
        attempt.finish(RunResult::Succeeded).await.unwrap();
    }
    assert_eq!(stub.asked_on(PUT).len(), 0);
    assert!(stub.asked_on(CLAIM).iter().all(|asked| asked.body["jobVersion"] == 4));
    let adopted =
        JobNews::Adopted { version: 4, schedule: "*/2 * * * * *".into(), zone: "UTC".into() };
    assert_eq!(*news.lock().unwrap(), [adopted], "told once");
}

#[tokio::test]
async fn while_nobody_answers_nothing_is_claimed_and_it_is_told_once() {
    let news = Arc::new(Mutex::new(Vec::new()));
    let told = news.clone();
    let stub = Stub::start(|_| problem(503, "UNAVAILABLE", Some("sameRequestId")));
    let client = client(&stub);
    let job = nightly(&client).on_news(move |news| told.lock().unwrap().push(news.clone()));
    let taking_part = tokio::spawn(async move {
        let mut runner = job.start().await.unwrap();
        runner.next().await.unwrap().finish(RunResult::Succeeded).await.unwrap();
    });
    until(&stub, "many reads", |asked| count(asked, GET) >= 10).await;
    assert_eq!(count(&stub.asked(), GET), stub.asked().len(), "it only reads");
    stub.now(good(30_000));
    taking_part.await.unwrap();
    let news = news.lock().unwrap();
    assert!(
        matches!(&news[..], [JobNews::Unreachable(why), JobNews::Reachable] if why.contains("UNAVAILABLE")),
        "{news:?}"
    );
}

#[tokio::test]
async fn a_run_that_somebody_else_has_is_no_error() {
    let mut refusals =
        ["RUN_CLAIMED", "RUN_FINISHED", "VERSION_CONFLICT", "RUN_PAUSED"].into_iter();
    let mut rest = good(30_000);
    let stub = Stub::start(move |asked| match (asked.path.as_str(), asked.path == CLAIM) {
        (_, true) => match refusals.next() {
            Some(code) => problem(409, code, Some("newRequestId")),
            None => rest(asked),
        },
        _ => rest(asked),
    });
    let mut runner = nightly(&client(&stub)).start().await.unwrap();
    runner.next().await.unwrap().finish(RunResult::Succeeded).await.unwrap();
    let ids: std::collections::BTreeSet<String> =
        stub.asked_on(CLAIM).iter().map(|asked| asked.body["requestId"].to_string()).collect();
    assert_eq!(ids.len(), 5, "each claim has its own id");
    assert!(stub.asked_on(GET).len() >= 6, "and a read before it");
}

#[tokio::test]
async fn the_runner_runs_and_finishes_by_what_the_work_says() {
    let mut rest = good(30_000);
    let mut claims = 0;
    let stub = Stub::start(move |asked| {
        claims += usize::from(asked.path == CLAIM);
        match claims {
            3 if asked.path == CLAIM => problem(403, "PERMISSION_DENIED", None),
            _ => rest(asked),
        }
    });
    let mut runner = nightly(&client(&stub)).start().await.unwrap();
    let mut seen = 0;
    let ended = runner
        .run(async |attempt: &Attempt| {
            assert_eq!(attempt.token(), Ok(7));
            seen += 1;
            if seen == 1 { Ok(()) } else { Err("the books do not balance") }
        })
        .await;
    assert!(matches!(ended, Error::Refused(_)), "{ended}");
    let results: Vec<_> =
        stub.asked_on(FINISH).iter().map(|asked| asked.body["result"].clone()).collect();
    assert_eq!(results, ["succeeded", "failed"]);
}
