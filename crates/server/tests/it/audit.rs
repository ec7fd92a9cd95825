//! The audit trail of a real server.

use crate::harness::{Bench, Engine, request_id};
use serde_json::{Value, json};
use sereno_api::{AuditKind, AuditPage, ErrorCode, Reason, Released};
use sereno_server::{Config, audit};

async fn page(bench: &Bench, query: &str) -> AuditPage {
    bench.get(&format!("/v1/audit{query}")).await.ok()
}

#[tokio::test]
async fn every_grant_and_every_end_is_in_it_and_no_secret() {
    let bench = Bench::start(Engine::Sqlite).await;
    let secret = bench.acquire("a", json!({"labels": {"note": "private-note"}})).await;
    let secret = secret.ok::<sereno_api::Granted>();
    let lease = json!({"resource": "a", "leaseId": secret.lease_id});
    bench.post("/v1/locks/release", lease).await.ok::<Released>();
    let granted = bench.grant("b").await;
    let force = json!({
        "resource": "b", "fencingToken": granted.fencing_token, "requestId": request_id(), "reason": "gone",
    });
    bench.post("/v1/locks/force-release", force).await.ok::<Value>();
    let put = json!({"expectedVersion": 0, "policy": {"maxLeases": 0}});
    bench.put("/v1/namespaces/none", put).await.ok::<Value>();
    bench.acquire("c", json!({"namespace": "none"})).await.problem(ErrorCode::LimitReached);
    let floor = json!({"requestId": request_id(), "floor": granted.fencing_token + 1_000_000_000});
    bench.post("/v1/admin/token-floor", floor).await.ok::<Value>();

    let lines = page(&bench, "").await.lines;
    let kinds: Vec<_> = lines.iter().map(|line| line.kind).collect();
    assert_eq!(
        kinds,
        [
            AuditKind::Log,
            AuditKind::LevelRaised,
            AuditKind::Granted,
            AuditKind::Ended,
            AuditKind::Granted,
            AuditKind::Ended,
            AuditKind::NamespacePut,
            AuditKind::Refused,
            AuditKind::TokenFloorSet,
        ]
    );
    assert_eq!(lines[2].fence_key.as_deref(), Some("default/lock/a"));
    assert_eq!(lines[2].fencing_token, Some(secret.fencing_token));
    assert_eq!((lines[3].end, lines[5].end), (Some(Reason::Released), Some(Reason::Forced)));
    assert_eq!(lines[5].reason.as_deref(), Some("gone"));
    assert_eq!(lines[7].code, Some(ErrorCode::LimitReached));
    assert!(lines[2].revision < lines[3].revision && lines[2].entry_hash.is_some());

    let first_two = page(&bench, "?limit=2").await;
    assert_eq!((first_two.lines.len(), first_two.next_from), (2, 3));
    let rest = page(&bench, &format!("?from={}", first_two.next_from)).await;
    assert_eq!(rest.lines, lines[2..]);
    assert_eq!(page(&bench, "?from=1000").await.lines, []);

    let folder = bench.stop().await;
    let trail = audit::folder_in(folder.path());
    assert_eq!(audit::verify(&trail).unwrap().findings, []);
    for file in std::fs::read_dir(&trail).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(&secret.lease_id) && !text.contains("private-note"));
    }
}

#[tokio::test]
async fn a_restart_goes_on_where_it_was() {
    let mut folder = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for round in 0..3 {
        let config = Config::in_folder(folder.path());
        let bench = Bench::start_with(folder, config).await;
        let resource = format!("r/{round}");
        bench.grant(&resource).await;
        expected.push(format!("default/lock/{resource}"));
        let lines = page(&bench, "").await.lines;
        let keys: Vec<_> = lines.iter().filter_map(|line| line.fence_key.clone()).collect();
        assert_eq!(keys, expected);
        folder = bench.stop().await;
        let verdict = audit::verify(&audit::folder_in(folder.path())).unwrap();
        assert_eq!((verdict.findings, verdict.gaps), (vec![], vec![]));
    }
}

#[tokio::test]
async fn a_trail_that_was_taken_away_is_missed_only_as_far_as_the_log_is() {
    let bench = Bench::start(Engine::Sqlite).await;
    bench.grant("a").await;
    let folder = bench.stop().await;
    std::fs::remove_dir_all(audit::folder_in(folder.path())).unwrap();
    let config = Config::in_folder(folder.path());
    let bench = Bench::start_with(folder, config).await;
    // The log still has everything from its beginning, so the trail is made again.
    let lines = page(&bench, "").await.lines;
    let kinds: Vec<_> = lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds, [AuditKind::Log, AuditKind::LevelRaised, AuditKind::Granted]);
    bench.stop().await;
}

#[tokio::test]
async fn a_damaged_trail_is_not_written_on() {
    let bench = Bench::start(Engine::Sqlite).await;
    bench.grant("a").await;
    bench.grant("b").await;
    let folder = bench.stop().await;
    let trail = audit::folder_in(folder.path());
    let file = std::fs::read_dir(&trail).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    std::fs::write(&file, [lines[0], lines[2]].concat()).unwrap();
    let error = sereno_server::Server::start(Config::in_folder(folder.path())).await.err().unwrap();
    assert!(error.to_string().contains("the audit trail is damaged"), "{error}");
}
