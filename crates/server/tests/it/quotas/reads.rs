//! Lists, explanations, and how old they are.

use super::{ask, limit, node, of, reserve};
use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{
    Committed, ErrorCode, LimitPut, OnExpiry, QuotaExplanation, QuotaNode, QuotaNodeRead,
    QuotaPage, ReservationPage, ReservationRead, ReservationState, Reserved, Shortage,
};

fn paths(nodes: &[QuotaNode]) -> Vec<&str> {
    nodes.iter().map(|node| node.path.as_str()).collect()
}

async fn put(bench: &Bench, quota: &str) {
    let body = json!({"quota": quota, "limit": 1, "expectedVersion": 0});
    bench.post("/v1/quotas/put-limit", with_id(body)).await.ok::<LimitPut>();
}

#[tokio::test]
async fn nodes_are_listed_by_path_and_quotas_by_name() {
    let bench = Bench::memory().await;
    limit(&bench, "", 100, json!({})).await;
    for path in ["acme", "acme/vision", "acme2", "beta"] {
        limit(&bench, path, 10, json!({})).await;
    }
    for quota in ["bytes", "gpus"] {
        put(&bench, quota).await;
    }
    let all: QuotaPage = bench.get("/v1/quotas?quota=gpu").await.ok();
    assert_eq!(paths(&all.nodes), ["", "acme", "acme/vision", "acme2", "beta"]);
    assert_eq!(all.next_cursor, None);
    let some: QuotaPage = bench.get("/v1/quotas?quota=gpu&prefix=acme/").await.ok();
    assert_eq!(paths(&some.nodes), ["acme/vision"]);
    // The root's path is empty, and a page may end with it.
    let root: QuotaPage = bench.get("/v1/quotas?quota=gpu&limit=1").await.ok();
    assert_eq!((paths(&root.nodes), root.next_cursor.as_deref()), (vec![""], Some("")));
    let next: QuotaPage = bench.get("/v1/quotas?quota=gpu&limit=2&cursor=").await.ok();
    assert_eq!(
        (paths(&next.nodes), next.next_cursor.as_deref()),
        (vec!["acme", "acme/vision"], Some("acme/vision"))
    );
    let last: QuotaPage = bench.get("/v1/quotas?quota=gpu&limit=2&cursor=acme/vision").await.ok();
    assert_eq!((paths(&last.nodes), last.next_cursor), (vec!["acme2", "beta"], None));
    let nothing: QuotaPage = bench.get("/v1/quotas?quota=unheard-of").await.ok();
    assert!(nothing.nodes.is_empty());

    let names = |page: &QuotaPage| -> Vec<String> {
        page.nodes.iter().map(|node| node.quota.clone()).collect()
    };
    let roots: QuotaPage = bench.get("/v1/quotas").await.ok();
    assert_eq!(
        (names(&roots), roots.next_cursor.as_deref()),
        (vec!["bytes".into(), "gpu".into(), "gpus".into()], None)
    );
    let some: QuotaPage = bench.get("/v1/quotas?prefix=gpu&limit=1").await.ok();
    assert_eq!((names(&some), some.next_cursor.as_deref()), (vec!["gpu".into()], Some("gpu")));
    let rest: QuotaPage = bench.get("/v1/quotas?prefix=gpu&limit=1&cursor=gpu").await.ok();
    assert_eq!((names(&rest), rest.next_cursor), (vec!["gpus".into()], None));
    bench.stop().await;
}

#[tokio::test]
async fn a_node_tells_its_books_and_how_old_they_are() {
    let bench = Bench::memory().await;
    limit(&bench, "", 100, json!({})).await;
    limit(&bench, "acme", 50, json!({})).await;
    for (owner, amount) in [("anna", 5), ("bert", 6), ("carla", 7)] {
        let reserved = reserve(&bench, "acme", amount, json!({"owner": owner})).await;
        bench.post("/v1/quotas/commit", of(&reserved, json!({}))).await.ok::<Committed>();
    }
    reserve(&bench, "", 2, json!({})).await;
    let root = node(&bench, "gpu").await;
    assert_eq!((root.node.committed, root.node.reserved), (18, 2));
    assert_eq!((root.node.direct_committed, root.node.direct_reserved), (0, 2));
    assert!(root.owners.is_empty() && !root.node.sweep_pending);
    let acme: QuotaNodeRead = bench.get("/v1/quotas/gpu%2Facme?limit=2").await.ok();
    let owners: Vec<_> =
        acme.owners.iter().map(|one| (one.owner.as_str(), one.committed)).collect();
    assert_eq!(
        (owners, acme.next_cursor.as_deref()),
        (vec![("anna", 5), ("bert", 6)], Some("bert"))
    );
    let rest: QuotaNodeRead = bench.get("/v1/quotas/gpu/acme?limit=2&cursor=bert").await.ok();
    assert_eq!((rest.owners[0].owner.as_str(), rest.next_cursor), ("carla", None));
    let stale: QuotaNodeRead = bench.get("/v1/quotas/gpu/acme?consistency=stale").await.ok();
    assert!(stale.revision <= rest.revision && stale.age_ms < 60_000);
    // A quota may be called like a verb.
    put(&bench, "reserve").await;
    assert_eq!(node(&bench, "reserve").await.node.limit, 1);
    bench.get("/v1/quotas/cpu").await.problem(ErrorCode::NotFound);
    bench.get("/v1/quotas/gpu/nobody").await.problem(ErrorCode::NotFound);
    bench.get("/v1/quotas/gpu?namespace=nowhere").await.problem(ErrorCode::NotFound);
    bench.stop().await;
}

#[tokio::test]
async fn a_refusal_is_explained_with_who_has_what() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    limit(&bench, "acme", 8, json!({})).await;
    let first = reserve(&bench, "acme", 5, json!({"labels": {"job": "7"}, "priority": 3})).await;
    reserve(&bench, "", 1, json!({"owner": "bert"})).await;
    bench
        .post("/v1/quotas/reserve", ask("acme", 4, json!({"owner": "carla"})))
        .await
        .problem(ErrorCode::QuotaExhausted);
    let told: QuotaExplanation = bench.get("/v1/quota-explain?quota=gpu&path=acme").await.ok();
    assert_eq!(paths(&told.layers), ["", "acme"]);
    let refusal = told.last_refusal.unwrap();
    assert_eq!((refusal.owner.as_str(), refusal.amount), ("carla", 4));
    assert_eq!(
        (refusal.layers[0].path.as_str(), refusal.layers[0].kind),
        ("acme", Shortage::Limit)
    );
    let [holder] = told.holders.as_slice() else { panic!("{:?}", told.holders) };
    assert_eq!((holder.fence, holder.priority), (Some(first.fence), 3));
    assert_eq!((holder.on_expiry, holder.labels.0["job"].as_str()), (OnExpiry::Release, "7"));
    assert!(!told.has_more);
    let root: QuotaExplanation = bench.get("/v1/quota-explain?quota=gpu&limit=1").await.ok();
    assert_eq!((root.holders.len(), root.has_more, root.last_refusal), (1, true, None));
    let missing = bench.get("/v1/quota-explain?path=acme").await;
    assert_eq!(missing.problem(ErrorCode::InvalidArgument).field.as_deref(), Some("quota"));
    bench.get("/v1/quota-explain?quota=cpu").await.problem(ErrorCode::NotFound);
    bench.stop().await;
}

#[tokio::test]
async fn reservations_are_listed_oldest_first() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    for path in ["acme", "acme/vision", "beta"] {
        limit(&bench, path, 10, json!({})).await;
    }
    let mut all: Vec<Reserved> = Vec::new();
    for (owner, path) in [("anna", "acme"), ("bert", "acme/vision"), ("anna", "beta")] {
        all.push(reserve(&bench, path, 1, json!({"owner": owner})).await);
    }
    let begin = of(&all[2], json!({"inFlightTtl": "1m", "onExpiry": "commit"}));
    bench.post("/v1/quotas/begin", begin).await.ok::<Reserved>();
    let listed = async |query: &str| -> Vec<usize> {
        let page: ReservationPage = bench.get(&format!("/v1/reservations?{query}")).await.ok();
        let number = |id: &str| all.iter().position(|one| one.reservation_id == id).unwrap();
        page.reservations.iter().map(|row| number(&row.reservation_id)).collect()
    };
    assert_eq!(listed("").await, [0, 1, 2]);
    assert_eq!(listed("owner=anna").await, [0, 2]);
    assert_eq!(listed("quota=gpu&path=acme").await, [0, 1]);
    assert_eq!(listed("quota=gpu&path=acme&owner=bert").await, [1]);
    assert_eq!(listed("state=inFlight").await, [2]);
    assert_eq!(listed("state=quarantined").await, [0; 0]);
    let page: ReservationPage = bench.get("/v1/reservations?limit=2").await.ok();
    let cursor = page.next_cursor.unwrap();
    assert_eq!(listed(&format!("limit=2&cursor={cursor}")).await, [2]);
    for (query, field) in [
        ("path=acme", "path"),
        ("state=ended", "state"),
        ("cursor=x", "cursor"),
        ("prefix=a", "prefix"),
    ] {
        let wrong = bench.get(&format!("/v1/reservations?{query}")).await;
        assert_eq!(wrong.problem(ErrorCode::InvalidArgument).field.as_deref(), Some(field));
    }
    let path = format!("/v1/reservations/{}", all[2].reservation_id);
    let read: ReservationRead = bench.get(&path).await.ok();
    assert_eq!(read.reservation.state, ReservationState::InFlight);
    assert_eq!(read.reservation.on_expiry, OnExpiry::Commit);
    let missing = format!("/v1/reservations/{}", "0".repeat(32));
    bench.get(&missing).await.problem(ErrorCode::NotFound);
    let wrong: Value = bench.get("/v1/reservations/nonsense").await.body;
    assert_eq!(wrong["field"], "reservationId");
    bench.stop().await;
}
