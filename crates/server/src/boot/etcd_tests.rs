//! What a door makes of an etcd that fills up, is full, and cannot be asked.

use super::{Opened, Server};
use crate::{
    cluster::{
        Storage,
        testing::{full, holds, silent},
    },
    config::Config,
};
use reqwest::StatusCode;
use sereno_api::{ErrorCode, Granted, Problem, Status};
use sereno_log::{etcd::EtcdStatus, memory::MemoryLog};
use std::sync::Arc;

const QUOTA: u64 = 1_000;

/// A server that believes what it is told of its etcd.
struct Told {
    server: Server,
    storage: Storage,
    http: reqwest::Client,
}

impl Told {
    async fn start() -> Self {
        let storage = Storage::default();
        let opened =
            Opened { storage: storage.clone(), ..Opened::alone(Arc::new(MemoryLog::new())) };
        let server = Server::start_with(Config::in_memory(), opened).await.unwrap();
        server.ready().await;
        Self { server, storage, http: reqwest::Client::new() }
    }

    fn etcd_says(&self, status: EtcdStatus) {
        self.storage.set(status, QUOTA);
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let answer = self.http.get(format!("{}{path}", self.server.url())).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    async fn post(&self, path: &str, body: String) -> (StatusCode, String) {
        let request = self.http.post(format!("{}/v1/locks/{path}", self.server.url()));
        let request = request.header("content-type", "application/json").body(body);
        let answer = request.send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    async fn acquire(&self, resource: &str) -> (StatusCode, String) {
        let body = format!(
            r#"{{"resource": "{resource}", "requestId": "request-of-{resource}", "owner": "test"}}"#
        );
        self.post("acquire", body).await
    }

    async fn metric(&self, name: &str) -> String {
        let text = self.get("/metrics").await.1;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
    }
}

fn granted((status, body): (StatusCode, String)) -> Granted {
    assert_eq!(status, StatusCode::OK, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn above_eighty_percent_nothing_new_is_granted_and_what_was_granted_is_kept() {
    let told = Told::start().await;
    told.etcd_says(holds(800));
    let before = granted(told.acquire("a").await);
    told.etcd_says(holds(810));
    let (status, body) = told.acquire("b").await;
    let problem: Problem = serde_json::from_str(&body).unwrap();
    assert_eq!((status, problem.code), (StatusCode::TOO_MANY_REQUESTS, ErrorCode::Overloaded));
    assert!(problem.retry_after_ms.is_some() && body.contains("81 % of its quota"), "{body}");
    // An answer that was lost is given again, and the lease goes on, and ends.
    assert_eq!(granted(told.acquire("a").await).fencing_token, before.fencing_token);
    let lease = format!(r#"{{"resource": "a", "leaseId": "{}"}}"#, before.lease_id);
    for path in ["renew", "release"] {
        let (status, body) = told.post(path, lease.clone()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
    }
    assert_eq!(told.get("/readyz").await.0, StatusCode::OK, "it serves all the same");
    assert_eq!(told.metric("sereno_etcd_quota_ratio").await, "0.81");
    // An outage makes no room.
    told.etcd_says(silent());
    assert_eq!(told.acquire("b").await.0, StatusCode::TOO_MANY_REQUESTS);
    told.etcd_says(holds(400));
    granted(told.acquire("b").await);
    told.server.stop().await.unwrap();
}

#[tokio::test]
async fn without_space_it_does_not_serve_and_an_outage_does_not_hide_that() {
    let told = Told::start().await;
    told.etcd_says(holds(400));
    assert_eq!(told.get("/readyz").await.0, StatusCode::OK);
    for says in [full(990), silent()] {
        told.etcd_says(says);
        let (status, body) = told.get("/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.contains("etcd has no space left"), "{body}");
        let (status, body) = told.acquire("b").await;
        let problem: Problem = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status, problem.code),
            (StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable)
        );
        assert!(problem.detail.contains("etcd has no space left"), "{body}");
        for (name, value) in [
            ("no_space", "1.0"),
            ("quota_ratio", "1.0"),
            ("db_bytes", "990.0"),
            ("db_used_bytes", "1.0"),
        ] {
            assert_eq!(told.metric(&format!("sereno_etcd_{name}")).await, value, "{name}");
        }
    }
    assert_eq!(told.metric("sereno_etcd_members").await, "1.0");
    assert_eq!(told.metric("sereno_etcd_members_healthy").await, "0.0");
    let status: Status = serde_json::from_str(&told.get("/v1/status").await.1).unwrap();
    let etcd = status.etcd.unwrap();
    assert!(etcd.no_space && etcd.quota_percent == 100, "{etcd:?}");
    assert_eq!(etcd.members[0].fault.as_deref(), Some("not reached"));
    told.etcd_says(holds(400));
    assert_eq!(told.get("/readyz").await.0, StatusCode::OK);
    told.server.stop().await.unwrap();
}
