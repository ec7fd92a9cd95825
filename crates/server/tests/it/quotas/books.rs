//! The books against reality.

use super::{and, limit, node, of, reserve, same_again};
use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{Adjusted, Committed, ErrorCode, QuotaNodeRead, Reconciled, UsageReported};

/// A report against one read.
fn report(read: &QuotaNodeRead, epoch: u64, observed: u64) -> Value {
    with_id(json!({
        "quota": "gpu", "reporter": "nightly", "epoch": epoch, "observed": observed,
        "asOfRevision": read.revision, "committedThen": read.node.committed,
        "clusterTimeMs": read.cluster_time_ms,
    }))
}

fn reconcile(epoch: u64, more: Value) -> Value {
    and(with_id(json!({"quota": "gpu", "reporter": "nightly", "epoch": epoch})), more)
}

#[tokio::test]
async fn drift_is_compensated_once_and_after_two_reports() {
    let bench = Bench::memory().await;
    limit(&bench, "", 100, json!({})).await;
    let reserved = reserve(&bench, "", 10, json!({})).await;
    bench.post("/v1/quotas/commit", of(&reserved, json!({}))).await.ok::<Committed>();
    let none = bench.post("/v1/quotas/reconcile", reconcile(1, json!({}))).await;
    let none = none.problem(ErrorCode::StaleReport);
    assert_eq!(none.last_report.unwrap().epoch, 0);

    let read = node(&bench, "gpu").await;
    let body = report(&read, 1, 13);
    let answer = bench.post("/v1/quotas/report-usage", body.clone()).await;
    same_again(&answer.body, &bench.post("/v1/quotas/report-usage", body).await.body);
    let first: UsageReported = answer.ok();
    assert_eq!((first.drift.drift, first.drift.explained, first.drift.in_a_row), (3, 0, 1));
    let waits: Reconciled = bench.post("/v1/quotas/reconcile", reconcile(1, json!({}))).await.ok();
    assert!(waits.waits_for_another && waits.change == 0);
    let repeated = bench.post("/v1/quotas/report-usage", report(&read, 1, 13)).await;
    let repeated = repeated.problem(ErrorCode::StaleReport);
    assert_eq!((repeated.last_report.unwrap().epoch, repeated.retry_with), (1, None));

    let read = node(&bench, "gpu").await;
    let second = bench.post("/v1/quotas/report-usage", report(&read, 2, 13)).await;
    assert_eq!(second.ok::<UsageReported>().drift.in_a_row, 2);
    let dry = bench.post("/v1/quotas/reconcile", reconcile(2, json!({"dryRun": true}))).await;
    let dry: Reconciled = dry.ok();
    assert_eq!((dry.change, dry.dry_run, dry.commit_id), (3, true, None));
    let done: Reconciled = bench.post("/v1/quotas/reconcile", reconcile(2, json!({}))).await.ok();
    assert!(done.change == 3 && done.commit_id.is_some() && !done.already);
    let again: Reconciled = bench.post("/v1/quotas/reconcile", reconcile(2, json!({}))).await.ok();
    assert!(again.already && again.change == 0);
    let read = node(&bench, "gpu").await;
    assert_eq!(read.node.committed, 13);
    assert!(read.reports[0].compensated && read.reports[0].reporter == "nightly");
    let less = bench.post("/v1/quotas/report-usage", report(&read, 3, 10)).await;
    assert_eq!(less.ok::<UsageReported>().drift.drift, -3);
    let at_once = reconcile(3, json!({"atOnce": true}));
    let less: Reconciled = bench.post("/v1/quotas/reconcile", at_once).await.ok();
    assert_eq!((less.change, node(&bench, "gpu").await.node.committed), (-3, 10));
    bench.stop().await;
}

#[tokio::test]
async fn a_report_of_the_future_or_of_nothing_is_refused() {
    let bench = Bench::memory().await;
    limit(&bench, "", 100, json!({})).await;
    let read = node(&bench, "gpu").await;
    for (more, field) in [
        (json!({"asOfRevision": 1_000_000}), "asOfRevision"),
        (json!({"clusterTimeMs": 1_000_000_000_u64}), "clusterTimeMs"),
        (json!({"epoch": 0}), "epoch"),
        (json!({"observed": 1_u64 << 52}), "observed"),
        (json!({"committedThen": 1_u64 << 52}), "committedThen"),
    ] {
        let body = and(report(&read, 1, 0), more);
        let refused = bench.post("/v1/quotas/report-usage", body).await;
        let refused = refused.problem(ErrorCode::InvalidArgument);
        assert_eq!(refused.field.as_deref(), Some(field));
    }
    let elsewhere = and(report(&read, 1, 0), json!({"path": "acme"}));
    bench.post("/v1/quotas/report-usage", elsewhere).await.problem(ErrorCode::NotFound);
    bench.stop().await;
}

#[tokio::test]
async fn an_operator_says_what_is_real() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let adjust = |change: &str, amount: u64| {
        let body = json!({"quota": "gpu", "owner": "anna", "change": change, "amount": amount});
        and(with_id(body), json!({"reason": "counted by hand"}))
    };
    let body = adjust("add", 12);
    let answer = bench.post("/v1/quotas/adjust", body.clone()).await;
    same_again(&answer.body, &bench.post("/v1/quotas/adjust", body).await.body);
    let added: Adjusted = answer.ok();
    assert!(added.committed == 12 && added.commit_id.is_some());
    assert_eq!(node(&bench, "gpu").await.node.debt, 2, "no limit is asked");
    let less: Adjusted = bench.post("/v1/quotas/adjust", adjust("subtract", 5)).await.ok();
    assert_eq!((less.committed, less.commit_id), (7, None));
    let excess = bench.post("/v1/quotas/adjust", adjust("subtract", 8)).await;
    let excess = excess.problem(ErrorCode::ExceedsReservation).excess.unwrap();
    assert_eq!((excess.has, excess.asked), (7, 8));
    bench.stop().await;
}
