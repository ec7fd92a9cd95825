//! Quotas whose home is elsewhere.

use super::{and, ask, limit, of};
use crate::harness::{Bench, with_id};
use serde_json::json;
use sereno_api::{Committed, ErrorCode, LimitPut, Reserved};
use sereno_core::names::RegionName;
use sereno_server::Config;

#[tokio::test]
async fn elsewhere_the_home_is_named_until_it_has_lent_something() {
    let mut config = Config::in_memory();
    config.region = Some(RegionName::new("eu").unwrap());
    let bench = Bench::start_with(tempfile::tempdir().unwrap(), config).await;
    limit(&bench, "", 0, json!({"home": "us"})).await;
    // The leader says where it runs right after its announce.
    let refused = loop {
        let answer = bench.post("/v1/quotas/reserve", ask("", 1, json!({}))).await;
        if answer.status == ErrorCode::WrongRegion.status() {
            break answer.problem(ErrorCode::WrongRegion);
        }
        answer.problem(ErrorCode::QuotaExhausted);
    };
    assert_eq!((refused.home.as_deref(), refused.retry_with), (Some("us"), None));
    assert!(refused.detail.contains("region us decides"), "{refused:?}");

    let lent = json!({"quota": "gpu", "limit": 2, "home": "us", "expectedVersion": 1});
    bench.post("/v1/quotas/put-limit", with_id(lent)).await.ok::<LimitPut>();
    let reserved: Reserved = bench.post("/v1/quotas/reserve", ask("", 2, json!({}))).await.ok();
    bench.post("/v1/quotas/commit", of(&reserved, json!({}))).await.ok::<Committed>();
    let more = bench.post("/v1/quotas/reserve", ask("", 1, json!({}))).await;
    assert_eq!(more.problem(ErrorCode::QuotaExhausted).layers[0].limit, 2);
    let refuse = json!({"quota": "gpu", "limit": 1, "home": "us", "expectedVersion": 2});
    let refuse = and(with_id(refuse), json!({"refuseDebt": true}));
    let refuse = bench.post("/v1/quotas/put-limit", refuse).await;
    assert_eq!(refuse.problem(ErrorCode::InvalidArgument).field.as_deref(), Some("limit"));
    bench.stop().await;
}
