//! Holds over HTTP.

use crate::harness::{Bench, ENGINES, with_id};
use serde_json::{Value, json};
use sereno_api::{
    ErrorCode, ForceReleased, Held, HeldAll, Hold, HoldExtended, HoldPage, HoldReleased, HoldState,
    NamespacePut, RetryWith,
};

fn hold(resource: &str, owner: &str) -> Value {
    with_id(json!({"resource": resource, "owner": owner, "ttl": "10m"}))
}

#[tokio::test]
async fn a_hold_from_the_shelf_to_the_till() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let held: Held = bench.post("/v1/holds/hold", hold("shoe/42", "anna")).await.ok();
        assert_eq!((held.fence_key.as_str(), held.yours), ("default/hold/shoe/42", false));
        let again: Held = bench.post("/v1/holds/hold", hold("shoe/42", "anna")).await.ok();
        assert!(again.yours && again.fence == held.fence);
        let taken = bench.post("/v1/holds/hold", hold("shoe/42", "bert")).await;
        let taken = taken.problem(ErrorCode::Taken);
        assert_eq!(taken.holder.unwrap().owner, "anna");
        assert_eq!(taken.retry_with, Some(RetryWith::NewRequestId));
        assert!(taken.retry_after_ms.unwrap() > 590_000);

        let of_anna = |more: Value| {
            let mut body = with_id(json!({"resource": "shoe/42", "owner": "anna"}));
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            body
        };
        let renew = of_anna(json!({"fence": held.fence, "ttl": "20m"}));
        let renewed: HoldExtended = bench.post("/v1/holds/renew", renew).await.ok();
        assert!(renewed.expires_in_ms > 1_190_000 && !renewed.begun);
        let wrong = of_anna(json!({"fence": held.fence - 1}));
        bench.post("/v1/holds/renew", wrong).await.problem(ErrorCode::NotHolder);
        let begin = of_anna(json!({"fence": held.fence, "ttl": "1h"}));
        let begun: HoldExtended = bench.post("/v1/holds/begin", begin).await.ok();
        assert!(begun.begun && begun.expires_in_ms > 3_590_000);
        let late = bench.post("/v1/holds/renew", of_anna(json!({"fence": held.fence}))).await;
        late.problem(ErrorCode::MaxHoldReached);
        bench.post("/v1/holds/release", of_anna(json!({}))).await.problem(ErrorCode::NotHolder);
        let release = of_anna(json!({"fence": held.fence}));
        let released: HoldReleased = bench.post("/v1/holds/release", release.clone()).await.ok();
        assert!(released.released && !released.replayed);
        let repeated: HoldReleased = bench.post("/v1/holds/release", release).await.ok();
        assert!(repeated.released && repeated.replayed);
        let free: Hold = bench.get("/v1/holds/shoe/42").await.ok();
        assert_eq!((free.state, free.holder), (HoldState::Free, None));
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_cart_is_held_as_a_whole_and_exchanged() {
    let bench = Bench::memory().await;
    let all = |resources: Value, more: Value| {
        let mut body = with_id(json!({"resources": resources, "owner": "anna", "ttl": "10m"}));
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    bench.post("/v1/holds/hold", hold("b", "bert")).await.ok::<Held>();
    let refused = bench.post("/v1/holds/hold-all", all(json!(["a", "b"]), json!({}))).await;
    let refused = refused.problem(ErrorCode::Taken);
    assert_eq!(refused.in_the_way.len(), 1);
    let cart: HeldAll =
        bench.post("/v1/holds/hold-all", all(json!(["a", "c"]), json!({}))).await.ok();
    assert_eq!(cart.holds.len(), 2);
    let replaces = json!({"replaces": [{"resource": "a", "fence": cart.holds[0].fence}]});
    bench.post("/v1/holds/hold-all", all(json!(["d"]), replaces)).await.ok::<HeldAll>();
    // A catalogue page is about its own items only: "d" begins otherwise, "shelf" sorts next to it.
    for resource in ["shoe/41", "shoe/42", "shelf/1", "shoes"] {
        bench.post("/v1/holds/hold", hold(resource, "carla")).await.ok::<Held>();
    }
    let page: HoldPage = bench.get("/v1/holds?prefix=shoe/&consistency=stale").await.ok();
    let names: Vec<_> = page.holds.iter().map(|row| row.resource.as_str()).collect();
    assert_eq!((names, page.next_cursor), (vec!["shoe/41", "shoe/42"], None));
    let page: HoldPage = bench.get("/v1/holds?owner=anna&consistency=stale").await.ok();
    let names: Vec<_> = page.holds.iter().map(|row| row.resource.as_str()).collect();
    assert_eq!(names, ["c", "d"]);
    let page: HoldPage = bench.get("/v1/holds?prefix=shoe/&owner=anna").await.ok();
    assert!(page.holds.is_empty());
    let first: HoldPage = bench.get("/v1/holds?limit=2").await.ok();
    assert_eq!(first.next_cursor.as_deref(), Some("c"));
    let rest: HoldPage = bench.get("/v1/holds?limit=2&cursor=c").await.ok();
    assert_eq!((rest.holds.len(), rest.next_cursor.as_deref()), (2, Some("shelf/1")));

    let fence = rest.holds[0].holder.fence;
    let force = with_id(json!({"resource": "d", "fence": fence, "reason": "recalled"}));
    let forced: ForceReleased = bench.post("/v1/holds/force-release", force).await.ok();
    assert_eq!(forced.fencing_token, fence);
    bench.stop().await;
}

#[tokio::test]
async fn hoarders_are_refused_by_the_namespaces_rules() {
    let bench = Bench::memory().await;
    let policy = json!({"holdsPerOwner": 1, "holdCooldown": "1m"});
    let put = json!({"expectedVersion": 0, "policy": policy});
    bench.put("/v1/namespaces/shop", put).await.ok::<NamespacePut>();
    let read = bench.get("/v1/namespaces/shop").await.body;
    assert_eq!(read["policy"]["holdsPerOwner"], 1);
    assert_eq!(read["policy"]["holdCooldown"], "1m");
    let in_shop = |resource: &str| {
        let mut body = hold(resource, "anna");
        body["namespace"] = "shop".into();
        body
    };
    bench.post("/v1/holds/hold", in_shop("a")).await.ok::<Held>();
    let refused = bench.post("/v1/holds/hold", in_shop("b")).await;
    let refused = refused.problem(ErrorCode::LimitReached);
    assert_eq!((refused.limit.as_deref(), refused.max), (Some("holdsPerOwner"), Some(1)));
    let release = json!({"namespace": "shop", "resource": "a", "owner": "anna"});
    bench.post("/v1/holds/release", with_id(release)).await.ok::<HoldReleased>();
    let cools = bench.post("/v1/holds/hold", in_shop("a")).await.problem(ErrorCode::LimitReached);
    assert_eq!(cools.limit.as_deref(), Some("holdCooldown"));
    assert!(cools.retry_after_ms.unwrap() > 50_000);
    bench.stop().await;
}
