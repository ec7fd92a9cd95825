//! What nobody should send: a clear error that names field and rule, and nothing changed.

use super::{and, ask, limit, of, reserve};
use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{ErrorCode, QuotaPage};

/// Each of these changes of a good body is refused with the field's name.
async fn refuses(bench: &Bench, path: &str, good: impl Fn() -> Value, wrong: Vec<(Value, &str)>) {
    for (more, field) in wrong {
        let body = and(good(), more.clone());
        let problem = bench.post(path, body).await.problem(ErrorCode::InvalidArgument);
        assert_eq!(problem.field.as_deref(), Some(field), "{path} {more}: {problem:?}");
        assert!(problem.detail.starts_with(&format!("{field}: ")), "{problem:?}");
        assert_eq!(problem.retry_with, None);
    }
}

fn items(quota: &str, path: &str, amount: Value) -> Value {
    json!({"items": [{"quota": quota, "path": path, "amount": amount}]})
}

#[tokio::test]
async fn fields_of_a_reserve_that_break_a_rule_are_named() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let wrong = vec![
        (json!({"items": []}), "items"),
        (json!({"items": vec![json!({"quota": "gpu", "amount": 1}); 17]}), "items"),
        (json!({"items": {"quota": "gpu"}}), "items"),
        (json!({"items": [["gpu", "", 1]]}), "items[0]"),
        (json!({"items": [{"amount": 1}]}), "items[0]"),
        (items("", "", json!(1)), "items[0].quota"),
        (items("gpu/acme", "", json!(1)), "items[0].quota"),
        (items(&"x".repeat(65), "", json!(1)), "items[0].quota"),
        (items("gpu", "/acme", json!(1)), "items[0].path"),
        (items("gpu", "a/b/c/d/e/f/g/h/i", json!(1)), "items[0].path"),
        (items("gpu", &"x".repeat(191), json!(1)), "items[0].path"),
        (items("gpu", "", json!(0)), "items[0].amount"),
        (items("gpu", "", json!(-1)), "items[0].amount"),
        (items("gpu", "", json!(1.5)), "items[0].amount"),
        (items("gpu", "", json!("1")), "items[0].amount"),
        (items("gpu", "", json!(1_u64 << 52)), "items[0].amount"),
        (json!({"ttl": "500ms"}), "ttl"),
        (json!({"ttl": "2h"}), "ttl"),
        (json!({"ttl": 30}), "ttl"),
        (json!({"maxLifetime": "721h"}), "maxLifetime"),
        (json!({"maxLifetime": "0s"}), "maxLifetime"),
        (json!({"waitTimeout": "11m"}), "waitTimeout"),
        (json!({"onExpiry": "explode"}), "onExpiry"),
        (json!({"priority": 256}), "priority"),
        (json!({"priority": -1}), "priority"),
        (json!({"owner": ""}), "owner"),
        (json!({"requestId": "short"}), "requestId"),
        (json!({"namespace": "Default"}), "namespace"),
        (json!({"labels": {"": "x"}}), "labels"),
        (json!({"quota": "gpu"}), "quota"),
        (json!({"bornAt": -1}), "bornAt"),
    ];
    refuses(&bench, "/v1/quotas/reserve", || ask("", 1, json!({})), wrong).await;
    let lifetime = ask("", 1, json!({"maxLifetime": "721h"}));
    let told = bench.post("/v1/quotas/reserve", lifetime).await.problem(ErrorCode::InvalidArgument);
    assert!(told.detail.ends_with("must be 1s to 720h, is 721h"), "{told:?}");
    let page: sereno_api::ReservationPage = bench.get("/v1/reservations").await.ok();
    assert!(page.reservations.is_empty(), "nothing was reserved");
    bench.stop().await;
}

#[tokio::test]
async fn fields_about_a_reservation_that_break_a_rule_are_named() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let reserved = reserve(&bench, "", 4, json!({})).await;
    let good = || of(&reserved, json!({}));
    let named = || {
        vec![
            (json!({"reservationId": "nonsense"}), "reservationId"),
            (json!({"reservationId": "AB".repeat(16)}), "reservationId"),
            (json!({"fence": -1}), "fence"),
            (json!({"fence": 1_u64 << 53}), "fence"),
            (json!({"requestId": null}), "requestId"),
        ]
    };
    let mut commit = named();
    commit.extend([
        (json!({"items": []}), "items"),
        (items("gpu", "", json!(1_u64 << 52)), "items[0].amount"),
        (json!({"final": "yes"}), "final"),
        (json!({"late": "maybe"}), "late"),
    ]);
    refuses(&bench, "/v1/quotas/commit", good, commit).await;
    let mut resize = named();
    resize.extend([
        (items("gpu", "", json!(0)), "items"),
        (items("gpu", "acme", json!(1)), "items"),
        (items("gpu", "..", json!(1)), "items[0].path"),
    ]);
    let to_two = || and(of(&reserved, json!({})), items("gpu", "", json!(2)));
    refuses(&bench, "/v1/quotas/resize", to_two, resize).await;
    let mut extend = named();
    extend.extend([(json!({"ttl": "2h"}), "ttl"), (json!({"inFlightTtl": "1m"}), "inFlightTtl")]);
    refuses(&bench, "/v1/quotas/extend", good, extend).await;
    let begin = || of(&reserved, json!({"inFlightTtl": "1m", "onExpiry": "commit"}));
    let mut wrong = named();
    wrong.extend([
        (json!({"inFlightTtl": "61m"}), "inFlightTtl"),
        (json!({"onExpiry": "maybe"}), "onExpiry"),
        (json!({"onExpiry": null}), "onExpiry"),
    ]);
    refuses(&bench, "/v1/quotas/begin", begin, wrong).await;
    refuses(&bench, "/v1/quotas/release", good, named()).await;
    let settle = || of(&reserved, json!({"settlement": "commit", "reason": "r"}));
    let wrong = vec![
        (json!({"settlement": "maybe"}), "settlement"),
        (json!({"reason": ""}), "reason"),
        (json!({"reason": "x".repeat(513)}), "reason"),
    ];
    refuses(&bench, "/v1/quotas/settle", settle, wrong).await;
    bench.stop().await;
}

#[tokio::test]
async fn fields_of_limits_and_books_that_break_a_rule_are_named() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let node = |more: Value| and(with_id(json!({"quota": "gpu", "path": "acme"})), more);
    let put = || node(json!({"limit": 5, "expectedVersion": 0}));
    let wrong = vec![
        (json!({"quota": "a b"}), "quota"),
        (json!({"path": "acme/"}), "path"),
        (json!({"path": "nobody/vision"}), "path"),
        (json!({"limit": 1_u64 << 52}), "limit"),
        (json!({"limit": null}), "limit"),
        (json!({"burst": (1_u64 << 52) - 1}), "burst"),
        (json!({"guaranteed": 6}), "guaranteed"),
        (json!({"path": "", "expectedVersion": 1, "guaranteed": 1}), "guaranteed"),
        (json!({"limit": 20, "guaranteed": 11}), "guaranteed"),
        (json!({"weight": 0}), "weight"),
        (json!({"weight": 1_000_001}), "weight"),
        (json!({"patience": "1s"}), "patience"),
        (json!({"path": "", "expectedVersion": 1, "patience": "11m"}), "patience"),
        (json!({"home": "EU"}), "home"),
        (json!({"expectedVersion": -1}), "expectedVersion"),
        (json!({"refuseDebt": 1}), "refuseDebt"),
        (json!({"reserved": 1}), "reserved"),
    ];
    refuses(&bench, "/v1/quotas/put-limit", put, wrong).await;
    let adjust = || {
        let body = json!({"owner": "anna", "change": "add", "amount": 1, "reason": "r"});
        and(node(body), json!({"path": ""}))
    };
    let wrong = vec![
        (json!({"change": "double"}), "change"),
        (json!({"amount": 0}), "amount"),
        (json!({"amount": 1_u64 << 52}), "amount"),
        (json!({"reason": "a\nb"}), "reason"),
        (json!({"owner": null}), "owner"),
    ];
    refuses(&bench, "/v1/quotas/adjust", adjust, wrong).await;
    let give =
        || and(node(json!({"commitId": 1, "owner": "anna", "amount": 1})), json!({"path": ""}));
    let wrong = vec![
        (json!({"commitId": 1_u64 << 53}), "commitId"),
        (json!({"commitId": "1"}), "commitId"),
        (json!({"amount": 0}), "amount"),
    ];
    refuses(&bench, "/v1/quotas/return", give, wrong).await;
    let lend = || and(node(json!({"region": "us", "amount": 2})), json!({"path": ""}));
    let wrong = vec![
        (json!({"region": "US"}), "region"),
        (json!({"amount": 0}), "amount"),
        (json!({"overdraftCap": 3}), "overdraftCap"),
    ];
    refuses(&bench, "/v1/quotas/share-grant", lend, wrong).await;
    let report = json!({"reporter": "", "epoch": 1, "dryRun": true});
    let reconcile = || and(node(json!({"reporter": "r", "epoch": 1})), json!({"path": ""}));
    refuses(&bench, "/v1/quotas/reconcile", reconcile, vec![(report, "reporter")]).await;
    let page: QuotaPage = bench.get("/v1/quotas?quota=gpu").await.ok();
    assert_eq!((page.nodes.len(), page.nodes[0].version), (1, 1), "nothing changed");
    bench.stop().await;
}
