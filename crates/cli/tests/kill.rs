//! Acknowledged means durable: the real server under load is killed with SIGKILL at random moments, 200 times in a
//! row, and after each restart everything acknowledged is there, and nothing that was never asked for.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const KILLS: u64 = 200;
const WORKERS: u64 = 8;

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sereno"))
            .args(["serve", "--http", "127.0.0.1:0", "--log-level", "error", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect("the server names its address").unwrap();
        let at = first.find("http://").expect("the first line has the address");
        let url = first[at..].split_whitespace().next().unwrap().to_string();
        Self { child, url }
    }

    /// SIGKILL, as `Child::kill` does on Unix.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What is known of one lock: what was asked for, and what was acknowledged.
#[derive(Clone, Debug, Default)]
struct Known {
    request: Value,
    /// The acknowledged grant.
    granted: Option<Value>,
    /// An acknowledged renewal to an hour, after a grant of a minute.
    renewed: bool,
    release_asked: bool,
    released: bool,
}

type Locks = BTreeMap<String, Known>;

async fn post(http: &reqwest::Client, url: &str, path: &str, body: &Value) -> Option<Value> {
    let body = serde_json::to_vec(body).unwrap();
    let request = http.post(format!("{url}{path}")).header("content-type", "application/json");
    let response = request.body(body).send().await.ok()?;
    let status = response.status();
    let bytes = response.bytes().await.ok()?;
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    if status.is_success() {
        return Some(answer);
    }
    // A server that is being started or is busy may refuse; then nothing was acknowledged.
    assert!(status.is_server_error() || status.as_u16() == 429, "{path}: {status} {answer}");
    None
}

async fn get(http: &reqwest::Client, url: &str, path: &str) -> Value {
    let response = http.get(format!("{url}{path}")).send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// Locks, renews and releases until the server is gone; gives everything it knows.
async fn work(
    http: reqwest::Client,
    url: String,
    round: u64,
    worker: u64,
    first: Arc<AtomicBool>,
) -> Locks {
    let mut locks = Locks::new();
    for n in 0.. {
        let resource = format!("kill/{round}/{worker}/{n}");
        let request = json!({
            "resource": resource, "requestId": format!("request-{round}-{worker}-{n}"),
            "owner": "killer", "leaseTtl": "60s",
        });
        let known = locks.entry(resource.clone()).or_insert(Known { request, ..Known::default() });
        let Some(granted) = post(&http, &url, "/v1/locks/acquire", &known.request).await else {
            return locks;
        };
        first.store(true, Ordering::Release);
        let lease_id = granted["leaseId"].clone();
        known.granted = Some(granted);
        if n % 3 == 0 {
            let body = json!({"resource": resource, "leaseId": lease_id, "leaseTtl": "1h"});
            if post(&http, &url, "/v1/locks/renew", &body).await.is_none() {
                return locks;
            }
            known.renewed = true;
        }
        if n % 3 == 1 {
            known.release_asked = true;
            let body = json!({"resource": resource, "leaseId": lease_id});
            let Some(answer) = post(&http, &url, "/v1/locks/release", &body).await else {
                return locks;
            };
            assert_eq!(answer["released"], true, "{answer}");
            known.released = true;
        }
    }
    unreachable!("a worker ends with its server")
}

async fn check(http: &reqwest::Client, url: &str, name: &str, known: &Known) {
    let view = get(http, url, &format!("/v1/locks/{name}")).await;
    let token = view["holder"]["fencingToken"].as_u64();
    let acknowledged = known.granted.as_ref().map(|grant| grant["fencingToken"].as_u64().unwrap());
    if known.released {
        assert_eq!(token, None, "{name}: its release was acknowledged: {view}");
    } else if acknowledged.is_some() && !known.release_asked {
        assert_eq!(token, acknowledged, "{name}: its grant was acknowledged: {view}");
        let expires_in_ms = view["holder"]["expiresInMs"].as_u64().unwrap();
        assert!(!known.renewed || expires_in_ms > 3_000_000, "{name}: renewed: {view}");
        let asked_ms = if known.renewed || is_third(name) { 3_600_000 } else { 60_000 };
        assert!(expires_in_ms <= asked_ms, "{name}: nobody asked for so long: {view}");
    } else if let (Some(token), Some(acknowledged)) = (token, acknowledged) {
        assert_eq!(token, acknowledged, "{name}: held by somebody who never asked: {view}");
    }
}

/// Whether a renewal was asked for, acknowledged or not.
fn is_third(name: &str) -> bool {
    name.rsplit('/').next().unwrap().parse::<u64>().unwrap() % 3 == 0
}

/// The same request gets the same answer, after the crash too.
async fn check_replay(http: &reqwest::Client, url: &str, known: &Known) {
    let Some(granted) = known.granted.as_ref().filter(|_| !known.release_asked) else { return };
    let again = post(http, url, "/v1/locks/acquire", &known.request).await.unwrap();
    assert_eq!(again["replayed"], true, "{again}");
    for field in ["leaseId", "fencingToken", "fenceKey"] {
        assert_eq!(again[field], granted[field], "{field}: {again}");
    }
}

async fn load_until_killed(http: &reqwest::Client, server: Server, round: u64) -> Locks {
    let first = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..WORKERS)
        .map(|worker| {
            tokio::spawn(work(http.clone(), server.url.clone(), round, worker, first.clone()))
        })
        .collect();
    let begun = Instant::now();
    while !first.load(Ordering::Acquire) {
        assert!(begun.elapsed() < Duration::from_secs(30), "the server answers");
        tokio::task::yield_now().await;
    }
    // The moment of the kill is the point of the test: somewhere in the load, spread over 40 ms.
    tokio::time::sleep(Duration::from_micros(round * 7_919 % 40_000)).await;
    server.kill();
    let mut locks = Locks::new();
    for task in tasks {
        locks.extend(task.await.unwrap());
    }
    locks
}

#[tokio::test]
async fn two_hundred_kills_lose_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut everything = Locks::new();
    let mut last = Locks::new();
    for round in 0..=KILLS {
        // A new client: connections to the killed server are of no use.
        let http = reqwest::Client::new();
        let server = Server::start(folder.path());
        for (name, known) in &last {
            check(&http, &server.url, name, known).await;
        }
        if let Some(known) = last.values().next() {
            check_replay(&http, &server.url, known).await;
        }
        everything.append(&mut last);
        if round == KILLS {
            check_nothing_invented(&http, &server.url, &everything).await;
            server.kill();
            break;
        }
        last = load_until_killed(&http, server, round).await;
    }
    let acknowledged = everything.values().filter(|known| known.granted.is_some()).count();
    assert!(acknowledged as u64 > KILLS * WORKERS, "there was load: {acknowledged} grants");
}

/// Every lock that is held was asked for, and is not among the released.
async fn check_nothing_invented(http: &reqwest::Client, url: &str, everything: &Locks) {
    let mut cursor = String::new();
    loop {
        let page = get(http, url, &format!("/v1/locks?limit=1000{cursor}")).await;
        for lock in page["locks"].as_array().unwrap() {
            let name = lock["resource"].as_str().unwrap();
            let known = everything.get(name).unwrap_or_else(|| panic!("nobody asked for {name}"));
            assert!(!known.released, "{name} was released");
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return,
        }
    }
}
