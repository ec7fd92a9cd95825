//! Three etcd members and three nodes as real processes: what breaks costs a pause, and never a second holder.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use sereno_etcd_dev::{Cluster, Options, scratch_folder};
use std::{
    fs,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use support::{SERENO, Service, sereno, signal, stderr, stdout};

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// The longest pause that is accepted here, where builds and other tests run beside: L2 is measured apart.
const PATIENCE: Duration = Duration::from_secs(20);

struct Zones {
    dir: PathBuf,
    etcd: Cluster,
    nodes: [Option<Service>; 3],
    prefix: &'static str,
}

impl Zones {
    fn start() -> Self {
        let dir = scratch_folder().unwrap();
        let etcd = Cluster::start(&dir.join("etcd"), Options::default()).unwrap();
        fs::write(dir.join("secret"), "not a secret but long enough").unwrap();
        let mut zones = Self { dir, etcd, nodes: [None, None, None], prefix: "test" };
        (0..3).for_each(|zone| zones.start_node(zone));
        zones.leader();
        zones
    }

    fn start_node(&mut self, zone: usize) {
        self.start_node_on(zone, "127.0.0.1:0");
    }

    /// Again where it was, so that clients find it.
    fn start_node_at(&mut self, zone: usize, url: &str) {
        self.start_node_on(zone, url.strip_prefix("http://").unwrap());
    }

    fn start_node_on(&mut self, zone: usize, address: &str) {
        let mut command = std::process::Command::new(SERENO);
        command
            .args(["serve", "--http", address, "--log-level", "error"])
            .args(["--node-id", ZONES[zone], "--log", &self.etcd.log_url(self.prefix)])
            .arg("--data")
            .arg(self.dir.join(ZONES[zone]))
            .arg("--cluster-secret-file")
            .arg(self.dir.join("secret"))
            .stderr(Stdio::inherit());
        self.nodes[zone] = Some(Service::of(&mut command));
    }

    fn node(&self, zone: usize) -> &Service {
        self.nodes[zone].as_ref().unwrap()
    }

    /// As a crash would.
    fn kill_node(&mut self, zone: usize) {
        self.nodes[zone] = None;
    }

    fn urls(&self) -> Vec<String> {
        self.nodes.iter().flatten().map(|node| node.url.clone()).collect()
    }

    /// Which node leads and serves, once one does.
    fn leader(&self) -> usize {
        self.leader_except(usize::MAX)
    }

    /// The same among the others.
    fn leader_except(&self, stopped: usize) -> usize {
        let begun = Instant::now();
        loop {
            for (zone, node) in self.nodes.iter().enumerate() {
                let Some(node) = node.as_ref().filter(|_| zone != stopped) else { continue };
                if status(&node.url).is_some_and(|it| it["role"] == "leader" && it["ready"] == true)
                {
                    return zone;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "nobody leads");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Zones {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(|node| *node = None);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn http() -> reqwest::blocking::Client {
    reqwest::blocking::Client::builder().timeout(Duration::from_secs(3)).build().unwrap()
}

fn status(url: &str) -> Option<Value> {
    let text = http().get(format!("{url}/v1/status")).send().ok()?.text().ok()?;
    serde_json::from_str(&text).ok()
}

fn post(
    client: &reqwest::blocking::Client,
    url: &str,
    what: &str,
    body: &Value,
) -> Option<(u16, Value)> {
    let request = client
        .post(format!("{url}/v1/locks/{what}"))
        .header("content-type", "application/json")
        .body(body.to_string());
    let response = request.send().ok()?;
    let status = response.status().as_u16();
    Some((status, serde_json::from_str(&response.text().ok()?).ok()?))
}

/// Repeats the same request at one node after the other until the log has decided it.
fn decide(urls: &[String], what: &str, body: &Value) -> (u16, Value) {
    let (client, begun) = (http(), Instant::now());
    for url in urls.iter().cycle() {
        match post(&client, url, what, body) {
            Some((status, answer)) if status < 500 && status != 429 => return (status, answer),
            answer => {
                assert!(begun.elapsed() < PATIENCE, "no decision: {answer:?}");
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    unreachable!("the addresses are cycled")
}

fn acquire(resource: &str, request: &str) -> Value {
    json!({"resource": resource, "requestId": request, "owner": "test", "leaseTtl": "30s"})
}

/// One grant, as its client saw it: it was held at least between these moments.
#[derive(Clone, Debug)]
struct Grant {
    token: u64,
    from: Instant,
    until: Instant,
}

/// Clients that take the same lock in turn, at any node, and record it: until told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    grants: Arc<Mutex<Vec<Grant>>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn start(urls: &[String]) -> Self {
        let (stop, grants) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let client = |number: usize| {
            let (stop, grants, urls) = (stop.clone(), grants.clone(), urls.to_vec());
            thread::spawn(move || {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let request = format!("client-{number}-round-{round:06}");
                    let (status, answer) =
                        decide(&urls, "acquire", &acquire("contended", &request));
                    if status != 200 {
                        thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                    let token = answer["fencingToken"].as_u64().unwrap();
                    let from = Instant::now();
                    let lease = json!({"resource": "contended", "leaseId": answer["leaseId"]});
                    thread::sleep(Duration::from_millis(2));
                    let until = Instant::now();
                    let (status, answer) = decide(&urls, "release", &lease);
                    assert_eq!(status, 200, "{answer}");
                    grants.lock().unwrap().push(Grant { token, from, until });
                }
            })
        };
        let threads = (0..4).map(client).collect();
        Self { stop, grants, threads }
    }

    fn count(&self) -> usize {
        self.grants.lock().unwrap().len()
    }

    /// Waits until work goes on.
    fn goes_on(&self) -> Duration {
        let (before, begun) = (self.count(), Instant::now());
        while self.count() < before + 3 {
            assert!(begun.elapsed() < PATIENCE, "the service does not come back");
            thread::sleep(Duration::from_millis(20));
        }
        begun.elapsed()
    }

    /// No two held it at a time, and each later holder has the larger token.
    fn check(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut grants = self.grants.lock().unwrap().clone();
        grants.sort_by_key(|grant| grant.token);
        for pair in grants.windows(2) {
            assert!(pair[0].token < pair[1].token, "a token is granted once: {pair:?}");
            assert!(pair[0].until <= pair[1].from, "two held it at a time: {pair:?}");
        }
        grants.len()
    }
}

#[test]
fn whatever_is_killed_or_stopped_costs_a_pause_and_nothing_else() {
    let mut zones = Zones::start();
    let urls = zones.urls();
    let kept = decide(&urls, "acquire", &acquire("kept", "kept-request-1")).1;
    assert_eq!(kept["state"], "granted");
    let load = Load::start(&urls);
    load.goes_on();

    // The leader dies.
    let leader = zones.leader();
    zones.kill_node(leader);
    load.goes_on();
    zones.start_node_at(leader, &urls[leader]);

    // The leader is stopped for longer than anybody waits, and goes on: it must find out by itself.
    let leader = zones.leader();
    signal("-STOP", zones.node(leader).child.id());
    load.goes_on();
    let other = zones.leader_except(leader);
    signal("-CONT", zones.node(leader).child.id());
    let begun = Instant::now();
    while status(&zones.node(leader).url).is_none_or(|it| it["role"] != "follower") {
        assert!(begun.elapsed() < PATIENCE, "a deposed leader steps down by itself");
        thread::sleep(Duration::from_millis(50));
    }
    assert_ne!(other, leader);
    load.goes_on();

    // A member of etcd dies, its leader.
    let member = zones.etcd.leader().unwrap();
    zones.etcd.kill(member);
    load.goes_on();
    zones.etcd.restart(member).unwrap();
    zones.etcd.wait_until_healthy().unwrap();

    // Two members die: nothing is decided any more, and what was goes on when they are back.
    zones.etcd.kill(0);
    zones.etcd.kill(1);
    let client = http();
    let lost = post(&client, &urls[0], "acquire", &acquire("without-quorum", "no-quorum-1"));
    if let Some((status, answer)) = lost {
        assert!(status >= 500, "nothing is granted without a quorum: {answer}");
    }
    zones.etcd.restart(0).unwrap();
    zones.etcd.restart(1).unwrap();
    zones.etcd.wait_until_healthy().unwrap();
    load.goes_on();

    assert!(load.check() > 20);
    // What was granted before all that is answered the same by every node, and from a new process, too (S6).
    for url in zones.urls() {
        let again = decide(&[url], "acquire", &acquire("kept", "kept-request-1")).1;
        match again["state"].as_str() {
            Some("granted") => assert_eq!(again["fencingToken"], kept["fencingToken"]),
            _ => assert_eq!(again["code"], "LEASE_ENDED", "{again}"),
        }
    }
}

#[test]
fn a_backup_of_a_log_in_etcd_begins_a_new_one_with_larger_tokens() {
    let mut zones = Zones::start();
    let before = decide(&zones.urls(), "acquire", &acquire("kept", "kept-request-2")).1;
    let (old, new) = (zones.etcd.log_url("test"), zones.etcd.log_url("restored"));
    let file = zones.dir.join("backup");
    let file = file.to_str().unwrap();
    let written = sereno(&["backup", "--log", &old, "--to", file, "--output", "json"]);
    let written: Value = serde_json::from_str(&stdout(&written)).unwrap();
    assert_eq!(written["leases"], 1);
    (0..3).for_each(|zone| zones.kill_node(zone));
    let restore = ["restore", "--from", file, "--log", &new, "--pause", "1s"];
    assert!(stdout(&sereno(&restore)).contains("--log etcd://"));
    let twice = sereno(&restore);
    assert!(stderr(&twice).contains("there is a log already"), "{twice:?}");
    zones.prefix = "restored";
    (0..3).for_each(|zone| {
        fs::remove_dir_all(zones.dir.join(ZONES[zone])).unwrap();
        zones.start_node(zone);
    });
    zones.leader();
    let after = decide(&zones.urls(), "acquire", &acquire("other", "other-request-1")).1;
    assert!(after["fencingToken"].as_u64() > before["fencingToken"].as_u64(), "{after}");
    // The lease that the backup knows is still that of its holder.
    let lease = json!({"resource": "kept", "leaseId": before["leaseId"]});
    assert_eq!(decide(&zones.urls(), "renew", &lease).0, 200);
}
