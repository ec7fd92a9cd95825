//! The trees of limits.

use super::{and, limit, node, reserve, same_again};
use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{ErrorCode, LimitPut, NodeRemoved, QuotaNodeRead};

fn put(path: &str, limit: u64, version: u64, more: Value) -> Value {
    let body = json!({"quota": "gpu", "path": path, "limit": limit, "expectedVersion": version});
    and(with_id(body), more)
}

#[tokio::test]
async fn rules_are_versioned_and_a_cut_shows_as_debt() {
    let bench = Bench::memory().await;
    let body = put("", 10, 0, json!({}));
    let first = bench.post("/v1/quotas/put-limit", body.clone()).await;
    same_again(&first.body, &bench.post("/v1/quotas/put-limit", body).await.body);
    let conflict = bench.post("/v1/quotas/put-limit", put("", 12, 0, json!({}))).await;
    assert_eq!(conflict.problem(ErrorCode::VersionConflict).current_version, Some(1));
    reserve(&bench, "", 8, json!({})).await;
    let refused = put("", 6, 1, json!({"refuseDebt": true}));
    let refused = bench.post("/v1/quotas/put-limit", refused).await;
    assert_eq!(refused.problem(ErrorCode::InvalidArgument).field.as_deref(), Some("limit"));
    let cut: LimitPut = bench.post("/v1/quotas/put-limit", put("", 6, 1, json!({}))).await.ok();
    assert_eq!((cut.version, cut.debt), (2, 2));
    let read = node(&bench, "gpu").await.node;
    assert_eq!((read.version, read.debt, read.available, read.limit), (2, 2, 0, 6));
    assert!(read.updated_in_revision > 0);
    bench.stop().await;
}

#[tokio::test]
async fn every_rule_of_a_node_is_read_as_it_was_put() {
    let bench = Bench::memory().await;
    limit(&bench, "", 100, json!({"patience": "10s", "burst": 5, "home": "eu"})).await;
    let rules = json!({"burst": 1, "guaranteed": 20, "weight": 3, "ownerReservedMax": 4});
    limit(&bench, "acme", 40, rules).await;
    let root = node(&bench, "gpu").await.node;
    assert_eq!((root.patience, root.burst), (Some(sereno_api::Millis(10_000)), 5));
    assert_eq!((root.home.as_deref(), root.weight, root.available), (Some("eu"), 1, 85));
    let acme = node(&bench, "gpu/acme").await.node;
    assert_eq!((acme.guaranteed, acme.effective_guaranteed, acme.weight), (20, 20, 3));
    assert_eq!((acme.owner_reserved_max, acme.patience), (Some(4), None));

    // More is guaranteed than is left after a cut: each counts for its part.
    let cut = put("", 10, 1, json!({}));
    bench.post("/v1/quotas/put-limit", cut).await.ok::<LimitPut>();
    let acme = node(&bench, "gpu/acme").await.node;
    assert_eq!((acme.guaranteed, acme.effective_guaranteed), (20, 10));
    bench.stop().await;
}

#[tokio::test]
async fn a_node_that_is_not_in_use_can_be_removed() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    limit(&bench, "acme", 10, json!({})).await;
    let remove = |path: &str, version: u64| {
        with_id(json!({"quota": "gpu", "path": path, "expectedVersion": version}))
    };
    let parent = bench.post("/v1/quotas/remove-node", remove("", 1)).await;
    let parent = parent.problem(ErrorCode::InvalidArgument);
    assert_eq!(parent.field.as_deref(), Some("path"));
    let stale = bench.post("/v1/quotas/remove-node", remove("acme", 2)).await;
    assert_eq!(stale.problem(ErrorCode::VersionConflict).current_version, Some(1));
    let body = remove("acme", 1);
    let removed = bench.post("/v1/quotas/remove-node", body.clone()).await;
    same_again(&removed.body, &bench.post("/v1/quotas/remove-node", body).await.body);
    assert!(removed.ok::<NodeRemoved>().removed);
    let gone = bench.get("/v1/quotas/gpu/acme").await.problem(ErrorCode::NotFound);
    assert!(gone.detail.contains("its limit is 0"), "{gone:?}");
    bench.post("/v1/quotas/remove-node", remove("acme", 1)).await.problem(ErrorCode::NotFound);
    let root: QuotaNodeRead = node(&bench, "gpu").await;
    assert_eq!(root.node.version, 1);
    bench.stop().await;
}
