//! Guards against a scripted service: renewal, risk, loss, release. Real clocks, short leases.

use crate::stub::{Asked, Say, Stub, granted, grants_all, not_renewed, problem, released, renewed};
use serde_json::json;
use sereno_client::{Client, GuardState, Loss, Moment, NotHeld, Release, RunError};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

const ACQUIRE: &str = "/v1/locks/acquire";
const RENEW: &str = "/v1/locks/renew-many";
const RELEASE: &str = "/v1/locks/release";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A stub's moment on the clock of leases.
fn moment(at: Instant) -> Moment {
    Moment::now().minus(at.elapsed())
}

/// Grants for a second; renewals get what `renew` says.
fn with_renewals(
    mut renew: impl FnMut(&Asked) -> Say + Send + 'static,
) -> impl FnMut(&Asked) -> Say + Send + 'static {
    move |asked| match asked.path.as_str() {
        ACQUIRE => granted(asked, 7, 1_000),
        RENEW => renew(asked),
        _ => released(),
    }
}

#[tokio::test]
async fn a_guard_outlives_its_ttl_by_renewing() {
    let stub = Stub::start(grants_all(1_000));
    let guard = Client::new(&stub.url).unwrap().lock("a").acquire().await.unwrap();
    let waiting = stub.clone();
    let third = move |asked: &[Asked]| asked.iter().filter(|a| a.path == RENEW).count() >= 4;
    tokio::task::spawn_blocking(move || waiting.until("four renewals", third)).await.unwrap();
    assert_eq!(guard.check(), Ok(()));
    let asked = stub.asked();
    let renewals: Vec<_> = asked.iter().filter(|a| a.path == RENEW).collect();
    let first = renewals[0].at - asked[0].at;
    assert!(first >= ms(295) && first < ms(700), "a third of the TTL: {first:?}");
    assert_eq!(renewals[0].body["leases"][0]["leaseId"], crate::stub::LEASE_ID);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn silence_is_risk_then_loss_before_the_ttl_is_over_and_the_release_is_sent_until_answered() {
    let answers = Arc::new(AtomicBool::new(false));
    let answering = answers.clone();
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        ACQUIRE => granted(asked, 7, 1_000),
        RENEW => Say::Silence,
        _ if answering.load(Ordering::SeqCst) => released(),
        _ => problem(503, "UNAVAILABLE", Some("sameRequestId")),
    });
    let client = Client::new(&stub.url).unwrap();
    let guard = client.lock("a").acquire().await.unwrap();
    let sent = stub.asked_on(ACQUIRE)[0].at;
    let mut watch = guard.watch();
    watch.wait_for(|status| status.state == GuardState::AtRisk).await.unwrap();
    assert_eq!(guard.check(), Err(NotHeld::AtRisk));
    assert_eq!(guard.token(), Ok(7), "running work goes on");
    assert_eq!(guard.lost().await, Loss::Deadline);
    let deadline = watch.borrow().deadline;
    let arrived = moment(sent);
    assert!(deadline <= arrived.plus(ms(970)), "a second after it was sent, less 1 % and 20 ms");
    assert!(deadline > arrived.plus(ms(500)) && deadline <= Moment::now());
    assert_eq!(guard.check(), Err(NotHeld::Lost(Loss::Deadline)));
    assert_eq!(guard.remaining(), Duration::ZERO);
    let renewals = stub.asked_on(RENEW).len();
    assert!(renewals >= 2, "a hung renewal is tried again beside it: {renewals}");

    let waiting = stub.clone();
    // Only then is it answered, so the first of them was not.
    let twice = |asked: &[Asked]| asked.iter().filter(|it| it.path == RELEASE).count() >= 2;
    tokio::task::spawn_blocking(move || waiting.until("a second release", twice)).await.unwrap();
    answers.store(true, Ordering::SeqCst);
    client.settled().await;
    assert_eq!(stub.asked_on(RENEW).len(), renewals, "lost is final: nothing is renewed");
}

#[tokio::test]
async fn a_renewal_that_fails_and_then_succeeds_loses_nothing() {
    let mut failures = 3;
    let stub = Stub::start(with_renewals(move |asked| {
        failures -= 1;
        if failures > 0 { Say::Cut } else { renewed(asked, 30_000) }
    }));
    let guard = Client::new(&stub.url).unwrap().lock("a").acquire().await.unwrap();
    let mut watch = guard.watch();
    let far = |status: &sereno_client::GuardStatus| {
        status.deadline.since(sereno_client::Moment::now()) > Duration::from_secs(20)
    };
    watch.wait_for(far).await.unwrap();
    assert_eq!(guard.check(), Ok(()));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn renewals_wait_for_no_silent_address_while_others_answer() {
    const FAR: Duration = Duration::from_secs(20);
    // The one that granted hangs. The two others say for a while that nobody leads, and then one does.
    let silent = Stub::start(|asked| match asked.path.as_str() {
        ACQUIRE => granted(asked, 7, 3_000),
        RENEW => Say::Silence,
        _ => released(),
    });
    let refusals = Arc::new(AtomicU32::new(0));
    let standby = || {
        let refusals = refusals.clone();
        Stub::start(with_renewals(move |asked| match refusals.fetch_add(1, Ordering::SeqCst) {
            0..4 => problem(503, "UNAVAILABLE", Some("sameRequestId")),
            _ => renewed(asked, 60_000),
        }))
    };
    let standbys = [standby(), standby()];
    let servers = [&silent, &standbys[0], &standbys[1]].map(|stub| stub.url.as_str()).join(",");
    let guard = Client::new(&servers).unwrap().lock("a").acquire().await.unwrap();
    let mut watch = guard.watch();
    let decided = |status: &sereno_client::GuardStatus| {
        status.deadline.since(Moment::now()) > FAR || matches!(status.state, GuardState::Lost(_))
    };
    watch.wait_for(decided).await.unwrap();
    assert_eq!(guard.check(), Ok(()));
    let (waited, asked) = (silent.asked_on(RENEW).len(), refusals.load(Ordering::SeqCst));
    assert!(waited <= 3 && asked >= 5, "the silent one {waited} times, the others {asked}");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn being_told_loses_at_once() {
    let told = |code: &'static str, more: serde_json::Value| {
        Stub::start(with_renewals(move |asked| not_renewed(asked, code, &more)))
    };
    for (stub, loss) in [
        (told("LEASE_ENDED", json!({"reason": "forced"})), Loss::Ended("forced".into())),
        (told("NOT_HOLDER", json!({})), Loss::Unknown),
    ] {
        let guard = Client::new(&stub.url).unwrap().lock("a").acquire().await.unwrap();
        assert_eq!(guard.lost().await, loss);
        assert!(stub.asked_on(ACQUIRE)[0].at.elapsed() < ms(900), "before its deadline");
    }
}

#[tokio::test]
async fn max_hold_reached_holds_until_the_final_deadline() {
    let stub = Stub::start(with_renewals(|asked| {
        not_renewed(asked, "MAX_HOLD_REACHED", &json!({"finalDeadlineInMs": 1_500}))
    }));
    let guard = Client::new(&stub.url).unwrap().lock("a").acquire().await.unwrap();
    let waiting = stub.clone();
    let renewal = tokio::task::spawn_blocking(move || waiting.until_asked_on(RENEW)).await.unwrap();
    assert_eq!(guard.lost().await, Loss::MaxHold);
    let deadline = guard.watch().borrow().deadline;
    let arrived = moment(renewal.at);
    assert!(deadline <= arrived.plus(ms(1_465)), "1.5 s after it was sent, less 1 % and 20 ms");
    assert!(deadline > arrived.plus(ms(1_000)) && deadline <= Moment::now());
    assert_eq!(stub.asked_on(RENEW).len(), 1, "nothing is left to renew");
}

#[tokio::test]
async fn run_drops_the_work_on_loss_and_says_so() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let stub = Stub::start(with_renewals(|_| Say::Cut));
    let guard = Client::new(&stub.url).unwrap().lock("a").acquire().await.unwrap();
    assert_eq!(guard.run(async { 5 }).await, Ok(5));
    let dropped = Arc::new(AtomicBool::new(false));
    let witness = Dropped(dropped.clone());
    let endless = async move {
        let _witness = witness;
        std::future::pending::<()>().await;
    };
    let ended = guard.run(endless).await;
    assert_eq!(ended, Err(RunError::Lost { loss: Loss::Deadline, finished: None }));
    assert!(dropped.load(Ordering::SeqCst));
    let again = guard.run(async { 5 }).await;
    assert_eq!(again, Err(RunError::NotBegun(NotHeld::Lost(Loss::Deadline))));
}

#[tokio::test]
async fn work_that_blocked_past_the_deadline_is_told_that_it_was_not_protected() {
    let stub = Stub::start(with_renewals(|_| Say::Cut));
    let guard = Client::new(&stub.url).unwrap().lock("a").acquire().await.unwrap();
    let deadline = guard.remaining();
    let ended = guard
        .run(async {
            // The work blocks its thread, so nothing could have cancelled it.
            std::thread::sleep(deadline);
            5
        })
        .await;
    assert_eq!(ended, Err(RunError::Lost { loss: Loss::Deadline, finished: Some(5) }));
}

#[tokio::test]
async fn dropping_releases_in_the_background() {
    let stub = Stub::start(grants_all(30_000));
    let client = Client::new(&stub.url).unwrap();
    let guard = client.lock("a").acquire().await.unwrap();
    let lost = guard.lost();
    drop(guard);
    assert_eq!(lost.await, Loss::Released);
    client.settled().await;
    assert_eq!(stub.asked_on(RELEASE).len(), 1);
}

#[tokio::test]
async fn an_explicit_release_is_honest() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        ACQUIRE => granted(asked, 7, 30_000),
        _ => Say::Json(
            200,
            json!({"released": false, "reason": "forced", "revision": 1, "clusterTimeMs": 1}),
        ),
    });
    let client = Client::builder().servers(&stub.url).call_timeout(ms(300)).build().unwrap();
    let guard = client.lock("a").acquire().await.unwrap();
    let reason = sereno_client::api::Reason::Forced;
    assert_eq!(guard.release().await, Ok(Release::Before(reason)));

    stub.now(|asked| if asked.path == ACQUIRE { granted(asked, 8, 30_000) } else { Say::Silence });
    let guard = client.lock("a").acquire().await.unwrap();
    let begun = Instant::now();
    assert!(matches!(guard.release().await, Err(sereno_client::Error::Unknown(_))));
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn guards_of_a_namespace_share_a_call_and_a_hung_one_blocks_nobody() {
    let stub = Stub::start(|asked| match (asked.path.as_str(), asked.body["namespace"].as_str()) {
        (ACQUIRE, _) => granted(asked, 7, 2_000),
        (RENEW, Some("hangs")) => Say::Silence,
        (RENEW, _) => renewed(asked, 2_000),
        _ => released(),
    });
    let client = Client::new(&stub.url).unwrap();
    let hung = client.lock("h").namespace("hangs").acquire().await.unwrap();
    let mut guards = Vec::new();
    for index in 0..10 {
        guards.push(client.lock(format!("r{index}")).acquire().await.unwrap());
    }
    assert_eq!(hung.lost().await, Loss::Deadline);
    for guard in &guards {
        assert_eq!(guard.check(), Ok(()));
    }
    let good = |asked: &&Asked| asked.body["namespace"] == "default";
    let renewals = stub.asked_on(RENEW);
    let calls: Vec<_> = renewals.iter().filter(good).collect();
    let renewed: usize = calls.iter().map(|a| a.body["leases"].as_array().unwrap().len()).sum();
    assert!(renewed >= 20, "each at least twice in 2 s: {renewed}");
    assert!(calls.len() * 3 <= renewed, "{} calls for {renewed} renewals", calls.len());
}

#[test]
fn it_needs_no_runtime_of_the_caller_and_a_blocked_one_does_not_stop_renewals() {
    let stub = Stub::start(grants_all(1_000));
    let client = Client::new(&stub.url).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let guard = runtime.block_on(client.lock("a").acquire()).unwrap();
    drop(runtime);
    stub.until("renewals without a runtime", |asked| {
        asked.iter().filter(|a| a.path == RENEW).count() >= 4
    });
    assert_eq!(guard.check(), Ok(()));
}
