//! `/metrics`, `/livez`, `/readyz`, `/v1/status`.

use crate::{
    harness::{Bench, Engine, with_id},
    watch::Stream,
};
use serde_json::json;
use sereno_api::{Elected, Election, ElectionState, ErrorCode, Granted, Released, Role, Status};

async fn text(bench: &Bench) -> String {
    bench.get("/metrics").await.body.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_happened_and_what_is_can_be_read() {
    let bench = Bench::start(Engine::Sqlite).await;
    bench.put("/v1/namespaces/money", json!({"expectedVersion": 0, "policy": {"fencing": "enforced", "fencingRequired": true}}))
        .await
        .ok::<serde_json::Value>();
    let granted = bench.grant("a").await;
    bench.acquire("a", json!({})).await.problem(ErrorCode::Locked);
    bench.acquire("a", json!({"waitTimeout": "20ms"})).await.problem(ErrorCode::WaitTimeout);
    let stranger = json!({"resource": "a", "leaseId": "ab".repeat(16)});
    bench.post("/v1/locks/renew", stranger.clone()).await.problem(ErrorCode::NotHolder);
    bench
        .post("/v1/locks/renew-many", json!({"leases": [stranger]}))
        .await
        .ok::<serde_json::Value>();
    let lease = json!({"resource": "a", "leaseId": granted.lease_id});
    bench.post("/v1/locks/release", lease).await.ok::<Released>();
    bench.acquire("b", json!({"namespace": "money"})).await.ok::<Granted>();
    bench.acquire("A b", json!({})).await.problem(ErrorCode::InvalidArgument);
    let text = text(&bench).await;
    for line in [
        "sereno_requests_total{operation=\"acquire\",code=\"OK\"} 2",
        "sereno_requests_total{operation=\"acquire\",code=\"LOCKED\"} 1",
        "sereno_requests_total{operation=\"acquire\",code=\"WAIT_TIMEOUT\"} 1",
        "sereno_requests_total{operation=\"acquire\",code=\"INVALID_ARGUMENT\"} 1",
        "sereno_request_seconds_count{operation=\"acquire\",mode=\"now\"} 3",
        "sereno_request_seconds_count{operation=\"acquire\",mode=\"wait\"} 1",
        "sereno_renewals_refused_total{family=\"lock\",code=\"NOT_HOLDER\"} 2",
        "sereno_grants_total{namespace=\"default\",family=\"lock\",waited=\"false\"} 1",
        "sereno_ends_total{namespace=\"default\",family=\"lock\",end=\"released\"} 1",
        "sereno_wait_seconds_count{namespace=\"default\",family=\"lock\",result=\"ended\"} 1",
        "sereno_hold_seconds_count{namespace=\"default\",family=\"lock\"} 1",
        "sereno_leases{namespace=\"money\"} 1.0",
        "sereno_leases{namespace=\"default\"} 0.0",
        "sereno_namespace_fencing_unproven{namespace=\"money\"} 1.0",
        "sereno_hot_resource_acquires{namespace=\"default\",resource=\"a\"} 3.0",
        "sereno_takeover_seconds_count 1",
        "sereno_ready 1.0",
        "sereno_leader 1.0",
        "sereno_connections 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
    for name in ["sereno_append_seconds_count ", "sereno_log_bytes ", "sereno_batch_commands_sum "]
    {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}"));
        assert!(line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() > 0.0, "{line}");
    }
    assert!(!text.contains("fencing_unproven{namespace=\"default\"}"));
    assert!(text.ends_with("# EOF\n"));
    bench.stop().await;
}

#[tokio::test]
async fn a_lost_leader_shows_until_the_next_one_leads() {
    let bench = Bench::memory().await;
    let campaign = |candidate: &str| {
        let body = json!({"election": "e", "candidate": candidate, "leaseTtl": "1s"});
        bench.post("/v1/elections/campaign", with_id(body))
    };
    let has = async |lines: &[&str]| {
        let text = text(&bench).await;
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} is missing in:\n{text}");
        }
    };
    has(&["sereno_elections_vacant 0.0", "sereno_election_vacant_seconds_count 0"]).await;
    let mut stream = Stream::open_path(&bench, "/v1/elections/e?observe=true").await;
    let mut state = async || {
        let election: Election = serde_json::from_str(&stream.next().await.unwrap().data).unwrap();
        election.state
    };
    assert_eq!(state().await, ElectionState::Vacant);
    let first: Elected = campaign("n1").await.ok();
    assert_eq!(state().await, ElectionState::Leading);
    assert_eq!(state().await, ElectionState::Vacant, "the term expires");
    let late = json!({"election": "e", "leaseId": first.lease_id});
    bench.post("/v1/elections/renew", late).await.problem(ErrorCode::LeaseEnded);
    has(&[
        "sereno_grants_total{namespace=\"default\",family=\"election\",waited=\"false\"} 1",
        "sereno_ends_total{namespace=\"default\",family=\"election\",end=\"expired\"} 1",
        "sereno_hold_seconds_count{namespace=\"default\",family=\"election\"} 1",
        "sereno_renewals_refused_total{family=\"election\",code=\"LEASE_ENDED\"} 1",
        "sereno_renewals_refused_total{family=\"lock\",code=\"LEASE_ENDED\"} 0",
        "sereno_elections_vacant 1.0",
        "sereno_election_vacant_seconds_count 0",
    ])
    .await;
    campaign("n2").await.ok::<Elected>();
    has(&[
        "sereno_elections_vacant 0.0",
        "sereno_elections_vacant_oldest_seconds 0.0",
        "sereno_election_vacant_seconds_count 1",
        "sereno_runs_total{namespace=\"default\",state=\"lost\"} 0",
    ])
    .await;
    bench.stop().await;
}

/// A quota of which some is used, and more than the books say.
async fn quota(bench: &Bench) {
    let post = async |verb: &str, fields: serde_json::Value| {
        let answer = bench.post(&format!("/v1/quotas/{verb}"), with_id(fields)).await;
        answer.ok::<serde_json::Value>()
    };
    let put = json!({"quota": "gpu", "limit": 10, "expectedVersion": 0});
    post("put-limit", put).await;
    let acme = json!({"quota": "gpu", "path": "acme", "limit": 4, "expectedVersion": 0});
    post("put-limit", acme).await;
    let reserve = async |amount: u64, more: serde_json::Value| {
        let items = json!([{"quota": "gpu", "path": "acme", "amount": amount}]);
        let mut body = json!({"owner": "o", "items": items, "ttl": "1m"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        post("reserve", body).await["reservationId"].clone()
    };
    let first = reserve(3, json!({})).await;
    post("commit", json!({"reservationId": first})).await;
    reserve(1, json!({})).await;
    let lend = json!({"quota": "gpu", "region": "us", "amount": 5, "overdraftCap": 2});
    let share = post("share-grant", lend).await["shareId"].clone();
    post("share-reclaim", json!({"shareId": share, "reason": "a test"})).await;
    let read = bench.get("/v1/quotas/gpu").await.body;
    let report = json!({
        "quota": "gpu", "reporter": "counter", "epoch": 1, "observed": 9, "committedThen": read["node"]["committed"],
        "asOfRevision": read["revision"], "clusterTimeMs": read["clusterTimeMs"],
    });
    post("report-usage", report).await;
    let cut = json!({"quota": "gpu", "path": "acme", "limit": 1, "expectedVersion": 1});
    post("put-limit", cut).await;
}

#[tokio::test]
async fn quotas_show_their_books_and_what_somebody_has_to_look_at() {
    let bench = Bench::memory().await;
    quota(&bench).await;
    let text = text(&bench).await;
    for line in [
        "sereno_quota_limit{namespace=\"default\",quota=\"gpu\",path=\"\"} 10.0",
        "sereno_quota_limit{namespace=\"default\",quota=\"gpu\",path=\"acme\"} 1.0",
        "sereno_quota_committed{namespace=\"default\",quota=\"gpu\",path=\"\"} 3.0",
        // One by a reservation, and what is kept of the share.
        "sereno_quota_reserved{namespace=\"default\",quota=\"gpu\",path=\"\"} 4.0",
        "sereno_quota_available{namespace=\"default\",quota=\"gpu\",path=\"\"} 3.0",
        "sereno_quota_available{namespace=\"default\",quota=\"gpu\",path=\"acme\"} 0.0",
        "sereno_quota_debt{namespace=\"default\",quota=\"gpu\",path=\"acme\"} 3.0",
        "sereno_quota_nodes_in_debt 1.0",
        "sereno_quota_lent{namespace=\"default\",quota=\"gpu\"} 5.0",
        "sereno_quota_lent_twice{namespace=\"default\",quota=\"gpu\"} 2.0",
        "sereno_quotas_lent_twice 1.0",
        "sereno_quota_waiters{namespace=\"default\",quota=\"gpu\"} 0.0",
        "sereno_quota_quarantined 0.0",
        // Nine were counted: three are committed, and four may be reserved.
        "sereno_quota_drift{namespace=\"default\",quota=\"gpu\",path=\"\"} 2.0",
        "sereno_quota_drifting 1.0",
        "sereno_quota_reports_total{namespace=\"default\",drift=\"more\"} 1",
        "sereno_quota_reports_total{namespace=\"default\",drift=\"none\"} 0",
        "sereno_quota_expiries_total{namespace=\"default\",fate=\"release\"} 0",
        "sereno_quota_late_commits_total{namespace=\"default\"} 0",
        "sereno_quota_reconciliations_total{namespace=\"default\"} 0",
        "sereno_grants_total{namespace=\"default\",family=\"quota\",waited=\"false\"} 2",
        "sereno_ends_total{namespace=\"default\",family=\"quota\",end=\"committed\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn what_nobody_has_settled_shows_until_somebody_does() {
    let bench = Bench::memory().await;
    quota(&bench).await;
    let mut watch = Stream::open_path(&bench, "/v1/watch?family=quota").await;
    watch.next().await.unwrap();
    let items = json!([{"quota": "gpu", "amount": 1}]);
    let body = json!({"owner": "o", "items": items, "ttl": "1s", "onExpiry": "quarantine"});
    let path = "/v1/quotas/reserve";
    let reserved: serde_json::Value = bench.post(path, with_id(body)).await.ok();
    let id = reserved["reservationId"].as_str().unwrap().to_owned();
    // It is reserved; and its deadline passes.
    watch.next().await.unwrap();
    watch.next().await.unwrap();
    let quarantined = "sereno_quota_quarantined 1.0";
    let seen = text(&bench).await;
    assert!(seen.contains(quarantined), "{seen}");
    assert!(
        seen.contains("sereno_quota_expiries_total{namespace=\"default\",fate=\"quarantine\"} 1")
    );
    let settle = json!({"reservationId": id, "settlement": "release", "reason": "it never began"});
    bench.post("/v1/quotas/settle", with_id(settle)).await.ok::<serde_json::Value>();
    assert!(text(&bench).await.contains("sereno_quota_quarantined 0.0"));
    bench.stop().await;
}

#[tokio::test]
async fn alerts_ask_only_for_metrics_that_there_are() {
    let bench = Bench::start(Engine::Sqlite).await;
    let money = json!({"fencing": "enforced", "fencingRequired": true});
    let money = json!({"expectedVersion": 0, "policy": money});
    bench.put("/v1/namespaces/money", money).await.ok::<serde_json::Value>();
    quota(&bench).await;
    let text = text(&bench).await;
    let alerts = include_str!("../../../../docs/alerts.yml");
    let mut asked = 0;
    for word in alerts.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let Some(name) = word.strip_prefix("sereno_") else { continue };
        let family = ["_bucket", "_count", "_sum", "_total"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        assert!(text.contains(&format!("# HELP sereno_{family} ")), "no metric is called {word}");
        asked += 1;
    }
    assert!(asked > 10, "{asked}");
    bench.stop().await;
}

#[tokio::test]
async fn every_metric_is_in_the_documentation() {
    let bench = Bench::start(Engine::Sqlite).await;
    bench.grant("a").await;
    quota(&bench).await;
    let page = include_str!("../../../../docs/metrics.md");
    let mut told = 0;
    for line in text(&bench).await.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        let suffix = if kind == "counter" { "_total" } else { "" };
        let row = format!("| `{name}{suffix}` | {kind} |");
        assert!(page.contains(&row), "docs/metrics.md has no row that begins with {row}");
        told += 1;
    }
    assert!(told > 50, "{told}");
    bench.stop().await;
}

#[tokio::test]
async fn health_and_status() {
    let bench = Bench::memory().await;
    assert_eq!(bench.get("/livez").await.body, "ok\n");
    assert_eq!(bench.get("/readyz").await.body, "ready\n");
    let status: Status = bench.get("/v1/status").await.ok();
    assert_eq!((status.role, status.ready, status.not_ready), (Role::Leader, true, None));
    assert_eq!((status.node_id.as_str(), status.log_id.len()), ("node-1", 32));
    bench.stop().await;
}
