//! Scheduled jobs over HTTP.

use crate::harness::{Bench, ENGINES, with_id};
use serde_json::{Value, json};
use sereno_api::{
    Abandoned, AbandonedWas, ErrorCode, ForceReleased, Job, JobChanged, JobPage, JobPut, Reason,
    Renewed, RunClaimed, RunFinished, RunState,
};
use sereno_schedule::instant;
use std::time::{SystemTime, UNIX_EPOCH};

const SLOT: &str = "2026-01-01T02:00:00Z";

async fn put(bench: &Bench, more: Value) -> JobPut {
    let mut body = json!({"job": "a/b", "schedule": "0 2 * * *", "expectedVersion": 0});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    bench.post("/v1/jobs/put", body).await.ok()
}

fn claim(slot: &str, version: u64) -> Value {
    with_id(json!({"job": "a/b", "jobVersion": version, "slot": slot, "owner": "w1"}))
}

fn of(run: &RunClaimed, more: Value) -> Value {
    let mut body = json!({"job": "a/b", "leaseId": run.lease_id});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// An extra run, for slots of the past count as finished.
async fn ask(bench: &Bench) -> String {
    let body = with_id(json!({"job": "a/b", "reason": "now"}));
    bench.post("/v1/jobs/run-now", body).await.ok::<JobChanged>().slot.unwrap()
}

#[tokio::test]
async fn a_run_from_its_slot_to_its_end() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        bench.get("/v1/jobs/a/b").await.problem(ErrorCode::NotFound);
        assert_eq!(put(&bench, json!({"zone": "Europe/Madrid", "retries": 1})).await.version, 1);
        let past = bench.post("/v1/jobs/claim-run", claim(SLOT, 1)).await;
        past.problem(ErrorCode::RunFinished);
        let future = bench.post("/v1/jobs/claim-run", claim("2099-01-01T02:00:00Z", 1)).await;
        assert!(future.problem(ErrorCode::TooEarly).retry_after_ms.unwrap() > 1_000_000);

        let slot = ask(&bench).await;
        let run: RunClaimed = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await.ok();
        assert_eq!((run.attempt, run.fence_key.as_str()), (1, "default/job/a/b"));
        assert_eq!(run.slot, slot);
        let other = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await;
        let other = other.problem(ErrorCode::RunClaimed);
        assert_eq!(other.holder.unwrap().fencing_token, run.fencing_token);
        bench.post("/v1/jobs/renew-run", of(&run, json!({}))).await.ok::<Renewed>();
        let failed = of(&run, with_id(json!({"result": "failed"})));
        let failed: RunFinished = bench.post("/v1/jobs/finish-run", failed).await.ok();
        assert_eq!((failed.state, failed.attempt), (RunState::Retry, 1));
        let run: RunClaimed = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await.ok();
        assert_eq!(run.attempt, 2);
        let succeeded = of(&run, with_id(json!({"result": "succeeded"})));
        let done: RunFinished = bench.post("/v1/jobs/finish-run", succeeded.clone()).await.ok();
        assert_eq!(done.state, RunState::Succeeded);
        let again: RunFinished = bench.post("/v1/jobs/finish-run", succeeded).await.ok();
        assert!(again.replayed);
        let late = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await;
        late.problem(ErrorCode::RunFinished);

        let job: Job = bench.get("/v1/jobs/a/b").await.ok();
        assert_eq!((job.zone.as_str(), job.runs.len()), ("Europe/Madrid", 1));
        assert_eq!(job.runs[0].end, Some(Reason::Finished));
        let page: JobPage = bench.get("/v1/jobs?prefix=a").await.ok();
        assert_eq!(page.jobs[0].last.as_ref().unwrap().slot, slot);
        bench.stop().await;
    }
}

/// The text is part of the interface: replicas hand it to their commands, whose business keys it becomes.
#[tokio::test]
async fn a_slot_is_written_the_same_everywhere_and_without_needless_milliseconds() {
    let bench = Bench::memory().await;
    put(&bench, json!({"schedule": "* * * * * *"})).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let slot = instant::format((now + 2) * 1_000);
    assert_eq!(slot.len(), "2026-03-29T01:00:00Z".len(), "{slot}");
    let run: RunClaimed = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await.ok();
    assert_eq!(run.slot, slot);
    let done = of(&run, with_id(json!({"result": "succeeded"})));
    let done: RunFinished = bench.post("/v1/jobs/finish-run", done).await.ok();
    assert_eq!(done.slot, slot);
    let job: Job = bench.get("/v1/jobs/a/b").await.ok();
    assert_eq!((&job.runs[0].slot, &job.watermark), (&slot, &slot));
    bench.stop().await;
}

#[tokio::test]
async fn operators_have_the_last_word() {
    let bench = Bench::memory().await;
    put(&bench, json!({"missed": "all"})).await;
    let why = || with_id(json!({"job": "a/b", "reason": "maintenance"}));
    let paused: JobChanged = bench.post("/v1/jobs/pause", why()).await.ok();
    assert!(paused.paused);
    let slot = ask(&bench).await;
    bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await.problem(ErrorCode::RunPaused);
    bench.post("/v1/jobs/resume", why()).await.ok::<JobChanged>();
    let run: RunClaimed = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await.ok();
    let mut skip = why();
    skip["slot"] = slot.as_str().into();
    bench.post("/v1/jobs/skip", skip).await.problem(ErrorCode::RunClaimed);
    let mut force = why();
    force["fencingToken"] = run.fencing_token.into();
    bench.post("/v1/jobs/force-release", force).await.ok::<ForceReleased>();
    let exhausted = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await;
    exhausted.problem(ErrorCode::RetriesExhausted);

    let old = put(&bench, json!({"expectedVersion": 1, "retries": 2})).await;
    assert_eq!(old.version, 2);
    let stale = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await;
    assert_eq!(stale.problem(ErrorCode::VersionConflict).current_version, Some(2));
    bench.stop().await;
}

#[tokio::test]
async fn a_claim_that_was_never_begun_is_given_back() {
    let bench = Bench::memory().await;
    put(&bench, json!({})).await;
    let slot = ask(&bench).await;
    let body = claim(&slot, 1);
    let abandon = json!({"requestId": body["requestId"]});
    bench.post("/v1/jobs/claim-run", body).await.ok::<RunClaimed>();
    let abandoned: Abandoned = bench.post("/v1/jobs/abandon", abandon).await.ok();
    assert_eq!(abandoned.was, AbandonedWas::Granted);
    let run: RunClaimed = bench.post("/v1/jobs/claim-run", claim(&slot, 1)).await.ok();
    assert_eq!(run.attempt, 1);
    bench.stop().await;
}

#[tokio::test]
async fn a_definition_that_makes_no_sense_is_refused() {
    let bench = Bench::memory().await;
    for (field, value) in [
        ("schedule", "not cron"),
        ("schedule", "0 0 30 2 *"),
        ("schedule", ""),
        ("zone", "Europe/Atlantis"),
        ("missed", "maybe"),
        ("overlap", "perhaps"),
        ("maxRun", "25h"),
        ("job", "a b"),
        ("job", "a/1"),
    ] {
        let mut body = json!({"job": "a", "schedule": "0 2 * * *", "expectedVersion": 0});
        body[field] = value.into();
        let problem = bench.post("/v1/jobs/put", body).await.problem(ErrorCode::InvalidArgument);
        assert_eq!(problem.field.as_deref(), Some(field), "{problem:?}");
    }
    for slot in ["2026-01-01T02:00:00", "2026-02-30T02:00:00Z", "now"] {
        let problem = bench.post("/v1/jobs/claim-run", claim(slot, 1)).await;
        let problem = problem.problem(ErrorCode::InvalidArgument);
        assert_eq!(problem.field.as_deref(), Some("slot"));
    }
    bench.stop().await;
}
