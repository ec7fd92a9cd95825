//! Regions over HTTP: homes of namespaces, and what is refused because its home is elsewhere.

use crate::harness::{Bench, Engine, acquire_body, with_id};
use serde_json::{Value, json};
use sereno_api::{
    AuditKind, AuditPage, Elected, ErrorCode, Granted, Namespace, NamespacePut, Outcome, Problem,
    Released, Status,
};
use sereno_core::names::RegionName;
use sereno_server::Config;

async fn bench(engine: Engine) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let config = match engine {
        Engine::Memory => Config::in_memory(),
        Engine::Sqlite => Config::in_folder(folder.path()),
    };
    let region = Some(RegionName::new("eu").unwrap());
    let bench = Bench::start_with(folder, Config { region, ..config }).await;
    // What the leader says is in the log before the first call is.
    let mut status = bench.server.as_ref().unwrap().node().status();
    status.wait_for(|status| status.region.is_some()).await.unwrap();
    bench
}

async fn put_home(bench: &Bench, name: &str, version: u64, home: &str) -> NamespacePut {
    let body = json!({"expectedVersion": version, "home": home});
    bench.put(&format!("/v1/namespaces/{name}"), body).await.ok()
}

async fn home(bench: &Bench, name: &str) -> Option<String> {
    bench.get(&format!("/v1/namespaces/{name}")).await.ok::<Namespace>().home
}

#[tokio::test]
async fn a_home_is_put_by_itself_and_stays_when_the_policy_is_put() {
    let bench = bench(Engine::Sqlite).await;
    assert_eq!(put_home(&bench, "shop", 0, "us").await.version, 1);
    assert_eq!(home(&bench, "shop").await.as_deref(), Some("us"));
    let policy = json!({"expectedVersion": 1, "policy": {"maxTtl": "10m"}});
    assert_eq!(bench.put("/v1/namespaces/shop", policy).await.ok::<NamespacePut>().version, 2);
    let holds = json!({"expectedVersion": 2, "policy": {"holdsPerOwner": 2}});
    bench.put("/v1/namespaces/shop", holds).await.ok::<NamespacePut>();
    assert_eq!(home(&bench, "shop").await.as_deref(), Some("us"));

    let put = async |body: Value| bench.put("/v1/namespaces/shop", body).await;
    let field = async |body: Value| {
        put(body).await.problem(ErrorCode::InvalidArgument).field.unwrap_or_default()
    };
    assert_eq!(field(json!({"expectedVersion": 3, "home": "us", "policy": {}})).await, "home");
    assert_eq!(field(json!({"expectedVersion": 3, "home": "US"})).await, "home");
    assert_eq!(field(json!({"expectedVersion": 3})).await, "policy");
    let stale = put(json!({"expectedVersion": 1, "home": "eu"})).await;
    assert_eq!(stale.problem(ErrorCode::VersionConflict).current_version, Some(3));
    let nowhere = json!({"expectedVersion": 3, "home": "eu"});
    bench.put("/v1/namespaces/nowhere", nowhere).await.problem(ErrorCode::NotFound);

    put_home(&bench, "shop", 3, "").await;
    assert_eq!(home(&bench, "shop").await, None);
    let page: AuditPage = bench.get("/v1/audit").await.ok();
    let told = page.lines.iter().filter_map(|line| match line.kind {
        AuditKind::RegionSet => Some((None, line.region.as_deref())),
        AuditKind::HomePut => Some((line.namespace.as_deref(), line.region.as_deref())),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(None, Some("eu")), (Some("shop"), Some("us")), (Some("shop"), None)]);
    bench.stop().await;
}

fn is_sent_home(problem: &Problem) {
    assert_eq!((problem.home.as_deref(), problem.retry_with), (Some("us"), None));
    assert_eq!(problem.outcome, Outcome::NotApplied);
    assert!(problem.detail.contains("us"), "{}", problem.detail);
}

#[tokio::test]
async fn every_family_is_sent_home_and_what_gives_back_is_not() {
    let bench = bench(Engine::Memory).await;
    assert_eq!(bench.get("/v1/status").await.ok::<Status>().region.as_deref(), Some("eu"));
    bench
        .put("/v1/namespaces/shop", json!({"expectedVersion": 0, "policy": {}}))
        .await
        .ok::<Value>();
    let inside = |mut body: Value| {
        body["namespace"] = json!("shop");
        body
    };
    let lock = inside(acquire_body("a", json!({})));
    let granted: Granted = bench.post("/v1/locks/acquire", lock).await.ok();
    let term = inside(with_id(json!({"election": "e", "candidate": "n1"})));
    let elected: Elected = bench.post("/v1/elections/campaign", term.clone()).await.ok();
    put_home(&bench, "shop", 1, "us").await;

    let lease = inside(json!({"resource": "a", "leaseId": granted.lease_id}));
    let of_term = inside(json!({"election": "e", "leaseId": elected.lease_id}));
    let many = json!({"leases": [{"resource": "a", "leaseId": granted.lease_id}]});
    let run = json!({"job": "j", "schedule": "0 2 * * *", "zone": "UTC", "expectedVersion": 0});
    let key = json!({"fenceKey": "shop/lock/a", "guard": "g", "token": 1});
    let hold = json!({"resource": "a", "owner": "o", "ttl": "1m"});
    let all = json!({"resources": ["x", "y"], "owner": "o"});
    for (path, body) in [
        ("/v1/locks/acquire", inside(acquire_body("b", json!({})))),
        ("/v1/locks/acquire-all", inside(with_id(all))),
        ("/v1/locks/renew", lease.clone()),
        ("/v1/locks/renew-many", inside(many)),
        ("/v1/elections/campaign", inside(with_id(json!({"election": "f", "candidate": "n1"})))),
        ("/v1/elections/renew", of_term.clone()),
        ("/v1/holds/hold", inside(with_id(hold))),
        ("/v1/jobs/put", inside(run)),
        ("/v1/guards/report", with_id(key)),
    ] {
        is_sent_home(&bench.post(path, body).await.problem(ErrorCode::WrongRegion));
    }
    assert!(bench.post("/v1/locks/release", lease).await.ok::<Released>().released);
    bench.post("/v1/elections/resign", of_term).await.ok::<Value>();
    bench.post("/v1/elections/abandon", inside(with_id(json!({})))).await.ok::<Value>();
    bench.grant("a").await;
    bench.stop().await;
}
