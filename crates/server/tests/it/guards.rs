//! What fence guards report.

use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{ErrorCode, GuardReported};

#[tokio::test]
async fn a_report_is_counted_audited_and_proves_the_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let config = sereno_server::Config::in_folder(folder.path());
    let bench = Bench::start_with(folder, config).await;
    let granted = bench.grant("orders/42").await;
    let proven = async || bench.get("/v1/namespaces/default").await.body["fencingProven"].clone();
    assert_eq!(proven().await, false);
    let report = |more: Value| {
        let mut body = with_id(json!({"fenceKey": granted.fence_key, "guard": "ledger"}));
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    bench.post("/v1/guards/report", report(json!({}))).await.ok::<GuardReported>();
    assert_eq!(proven().await, true);
    let older = granted.fencing_token - 1;
    let refused = report(json!({"token": older, "highest": granted.fencing_token}));
    bench.post("/v1/guards/report", refused).await.ok::<GuardReported>();
    let metrics = bench.get("/metrics").await.body;
    let metrics = metrics.as_str().unwrap();
    let counted = r#"sereno_fence_refusals_total{namespace="default",family="lock"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    let audit = bench.get("/v1/audit").await.body;
    let lines = audit["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["kind"] == "fenceRefused").unwrap();
    assert_eq!(line["fenceKey"], granted.fence_key);
    assert_eq!(line["fencingToken"], older);
    assert_eq!(line["highest"], granted.fencing_token);

    for wrong in ["orders/42", "default/admin/x", "default/lock/a b", "Shop/lock/a", ""] {
        let body = with_id(json!({"fenceKey": wrong, "guard": "ledger"}));
        bench.post("/v1/guards/report", body).await.problem(ErrorCode::InvalidArgument);
    }
    // What no guard can have seen is not counted.
    let (held, older) = (granted.fencing_token, older);
    for (impossible, rule) in [
        (json!({"token": held, "highest": older}), "highest: must be above token"),
        (json!({"token": held, "highest": held}), "highest: must be above token"),
        (json!({"highest": held}), "highest: is only told together with token"),
    ] {
        let problem = bench.post("/v1/guards/report", report(impossible)).await;
        let problem = problem.problem(ErrorCode::InvalidArgument);
        assert!(problem.detail.contains(rule), "{}", problem.detail);
    }
    let metrics = bench.get("/metrics").await.body;
    assert!(metrics.as_str().unwrap().contains(counted));
    bench.stop().await;
}
