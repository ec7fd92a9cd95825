//! The ledger of quotas, read from the audit trail.

use crate::harness::{Bench, Engine, with_id};
use serde_json::{Value, json};
use sereno_api::{AuditLine, ErrorCode, LedgerPage, QuotaChange};
use sereno_server::audit;

async fn quota(bench: &Bench, verb: &str, fields: Value) -> Value {
    bench.post(&format!("/v1/quotas/{verb}"), with_id(fields)).await.ok()
}

async fn limit(bench: &Bench, path: &str, limit: u64) {
    let put = json!({"quota": "gpu", "path": path, "limit": limit, "expectedVersion": 0});
    quota(bench, "put-limit", put).await;
}

async fn reserve(bench: &Bench, owner: &str, path: &str, amount: u64) -> Value {
    let items = json!([{"quota": "gpu", "path": path, "amount": amount}]);
    let reserve = json!({"owner": owner, "items": items, "ttl": "1m"});
    quota(bench, "reserve", reserve).await["reservationId"].clone()
}

async fn ledger(bench: &Bench, query: &str) -> LedgerPage {
    bench.get(&format!("/v1/quota-ledger{query}")).await.ok()
}

fn changes(lines: &[AuditLine]) -> Vec<QuotaChange> {
    lines.iter().filter_map(|line| Some(line.quota.as_ref()?.change)).collect()
}

/// Two tenants, a commit in part, a return, and an adjustment.
async fn story(bench: &Bench) {
    limit(bench, "", 10).await;
    limit(bench, "acme", 8).await;
    limit(bench, "bolt", 8).await;
    let first = reserve(bench, "anna", "acme", 5).await;
    let second = reserve(bench, "ben", "bolt", 2).await;
    let items = json!([{"quota": "gpu", "path": "acme", "amount": 3}]);
    let part = json!({"reservationId": first, "items": items, "final": false});
    let commit = quota(bench, "commit", part).await["commitId"].clone();
    quota(bench, "release", json!({"reservationId": second})).await;
    let back =
        json!({"quota": "gpu", "path": "acme", "owner": "anna", "commitId": commit, "amount": 1});
    quota(bench, "return", back).await;
    let adjust = json!({
        "quota": "gpu", "path": "bolt", "owner": "ben", "change": "add", "amount": 4, "reason": "it was there",
    });
    quota(bench, "adjust", adjust).await;
    quota(bench, "release", json!({"reservationId": first})).await;
}

#[tokio::test]
async fn every_change_is_there_with_the_sums_of_every_layer() {
    use QuotaChange::{Adjusted, Committed, LimitPut, Released, Reserved, Returned};
    let bench = Bench::start(Engine::Sqlite).await;
    bench.grant("not-a-quota").await;
    story(&bench).await;
    let all = ledger(&bench, "").await;
    assert!(all.complete);
    let told = [
        LimitPut, LimitPut, LimitPut, Reserved, Reserved, Committed, Released, Returned, Adjusted,
        Released,
    ];
    assert_eq!(changes(&all.lines), told);
    let commit = all.lines[5].quota.as_ref().unwrap();
    let layers: Vec<_> =
        commit.lines[0].layers.iter().map(|layer| (layer.committed, layer.reserved)).collect();
    assert_eq!(layers, [([0, 3], [7, 4]), ([0, 3], [5, 2])], "root first");
    assert_eq!((commit.lines[0].path.as_str(), commit.is_final), ("acme", Some(false)));
    assert_eq!(all.lines[5].owner.as_deref(), Some("anna"));
    let adjusted = &all.lines[8];
    assert_eq!(adjusted.reason.as_deref(), Some("it was there"));
    assert!(adjusted.revision > all.lines[7].revision && adjusted.time.is_some());
    let put = all.lines[1].quota.as_ref().unwrap();
    assert_eq!(put.node.as_ref().unwrap().path, "acme");
    assert_eq!((put.limits.as_ref().unwrap().limit, put.lines.len()), (8, 0));

    let of = async |query: &str| changes(&ledger(&bench, query).await.lines);
    assert_eq!(of("?quota=gpu").await, told);
    assert_eq!(of("?quota=cpu").await, []);
    assert_eq!(of("?namespace=other").await, []);
    assert_eq!(of("?quota=gpu&path=bolt").await, [LimitPut, Reserved, Released, Adjusted]);
    assert_eq!(of("?owner=anna").await, [Reserved, Committed, Returned, Released]);
    assert_eq!(of("?path=acme&owner=ben").await, []);

    let third = all.lines[2].time.clone().unwrap();
    let (since, until) =
        (of(&format!("?since={third}")).await, of(&format!("?until={third}")).await);
    assert_eq!(since.len() + until.len(), told.len(), "{since:?} {until:?}");
    assert!(since.len() >= 8, "{since:?}");
    assert_eq!(of("?since=2999-01-01T00:00:00Z").await, []);

    let first = ledger(&bench, "?limit=4").await;
    assert_eq!((first.lines.len(), first.complete), (4, false));
    let rest = ledger(&bench, &format!("?from={}", first.next_from)).await;
    assert_eq!((changes(&rest.lines), rest.complete), (told[4..].to_vec(), true));
    assert_eq!([first.lines, rest.lines].concat(), all.lines);

    for (query, field) in [
        ("?quota=a/b", "quota"),
        ("?path=/a", "path"),
        ("?since=yesterday", "since"),
        ("?until=2026-13-01T00:00:00Z", "until"),
        ("?owner=", "owner"),
        ("?limit=0", "limit"),
        ("?from=-1", "from"),
        ("?colour=red", "colour"),
    ] {
        let answer = bench.get(&format!("/v1/quota-ledger{query}")).await;
        let problem = answer.problem(ErrorCode::InvalidArgument);
        assert_eq!(problem.field.as_deref(), Some(field), "{query}");
    }
    let folder = bench.stop().await;
    let verdict = audit::verify(&audit::folder_in(folder.path())).unwrap();
    assert_eq!(verdict.findings, []);
}

#[tokio::test]
async fn without_a_trail_it_says_so() {
    let bench = Bench::memory().await;
    let refused = bench.get("/v1/quota-ledger").await.problem(ErrorCode::NotFound);
    assert!(refused.detail.contains("--log memory keeps none"), "{}", refused.detail);
    bench.stop().await;
}
