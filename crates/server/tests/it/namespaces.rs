//! Namespaces over HTTP.

use crate::harness::{Bench, ENGINES};
use serde_json::json;
use sereno_api::{ErrorCode, Millis, Namespace, NamespacePage, NamespacePut};

#[tokio::test]
async fn a_namespace_is_created_read_replaced_and_listed() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let path = "/v1/namespaces/team-a";
        bench.get(path).await.problem(ErrorCode::NotFound);
        let policy = json!({"maxHold": "1h", "lockDelay": "2s", "replyMemory": {"refusals": "2m"}});
        let created = bench.put(path, json!({"expectedVersion": 0, "policy": policy})).await;
        assert_eq!(created.status, 201);
        assert_eq!(created.ok::<NamespacePut>().version, 1);

        let read: Namespace = bench.get(path).await.ok();
        assert_eq!((read.version, read.leases), (1, 0));
        assert_eq!(read.policy.max_hold, Some(Millis::from_secs(3_600)));
        assert_eq!(read.policy.reply_memory.clone().unwrap().refusals, Some(Millis(120_000)));

        let stale = bench.put(path, json!({"expectedVersion": 0, "policy": {}})).await;
        assert_eq!(stale.problem(ErrorCode::VersionConflict).current_version, Some(1));
        let missing =
            bench.put("/v1/namespaces/no", json!({"expectedVersion": 3, "policy": {}})).await;
        assert_eq!(missing.problem(ErrorCode::VersionConflict).current_version, Some(0));

        // What was read can be put back as it is.
        let back = bench.put(path, json!({"expectedVersion": 1, "policy": read.policy})).await;
        assert_eq!(back.status, 200);
        assert_eq!(bench.get(path).await.ok::<Namespace>().policy, read.policy);

        let replaced = bench.put(path, json!({"expectedVersion": 2, "policy": {}})).await;
        assert_eq!(replaced.ok::<NamespacePut>().version, 3);
        let read: Namespace = bench.get(path).await.ok();
        assert_eq!((read.policy.max_hold, read.policy.lock_delay), (None, Some(Millis(0))));

        let all: NamespacePage = bench.get("/v1/namespaces").await.ok();
        let names: Vec<_> = all.namespaces.iter().map(|one| one.namespace.as_str()).collect();
        assert_eq!((names, all.next_cursor), (vec!["default", "team-a"], None));
        let first: NamespacePage = bench.get("/v1/namespaces?limit=1").await.ok();
        assert_eq!(first.next_cursor.as_deref(), Some("default"));
        let rest: NamespacePage = bench.get("/v1/namespaces?limit=1&cursor=default").await.ok();
        assert_eq!((rest.namespaces[0].namespace.as_str(), rest.next_cursor), ("team-a", None));
        bench.stop().await;
    }
}

#[tokio::test]
async fn policies_that_make_no_sense_name_the_field() {
    let bench = Bench::memory().await;
    for (policy, field) in [
        (json!({"minTtl": "2m", "maxTtl": "1m"}), "minTtl"),
        (json!({"maxTtl": "2h"}), "maxTtl"),
        (json!({"defaultTtl": "0s"}), "defaultTtl"),
        (json!({"lockDelay": "5m"}), "lockDelay"),
        (json!({"fencingRequired": true, "fencing": "bestEffort"}), "fencing"),
        (json!({"maxLeases": 9_999_999}), "maxLeases"),
        (json!({"maxLeases": -1}), "policy.maxLeases"),
        (json!({"requestsPerSecond": 0}), "requestsPerSecond"),
        (json!({"replyMemory": {"refusals": "1s"}}), "replyMemory.refusals"),
        (json!({"replyMemory": {"records": 0}}), "replyMemory.records"),
        (json!({"replyMemory": {"grants": "1s"}}), "policy.replyMemory.grants"),
        (json!({"colour": "red"}), "policy.colour"),
    ] {
        let answer =
            bench.put("/v1/namespaces/n", json!({"expectedVersion": 0, "policy": policy})).await;
        let problem = answer.problem(ErrorCode::InvalidArgument);
        assert_eq!(problem.field.as_deref(), Some(field), "{policy}");
    }
    bench.put("/v1/namespaces/n", json!({"policy": {}})).await.problem(ErrorCode::InvalidArgument);
    bench.get("/v1/namespaces/n").await.problem(ErrorCode::NotFound);
    bench.stop().await;
}
