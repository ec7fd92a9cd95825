//! Three etcd members and three nodes as real processes.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use crate::support::{SERENO, Service};
use serde_json::Value;
use sereno_core::ids::Position;
use sereno_etcd_dev::{Cluster, Options, scratch_folder};
use sereno_log::{
    Log, Read,
    etcd::{self, EtcdOptions},
};
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// The longest pause that is accepted here, where builds and other tests run beside: L2 is measured apart.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Killed and removed when dropped.
pub struct Zones {
    pub dir: PathBuf,
    pub etcd: Cluster,
    pub nodes: [Option<Service>; 3],
    /// Of the log's keys in etcd.
    pub prefix: &'static str,
}

impl Zones {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further options of each node.
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_over(Options::default(), options)
    }

    /// The same over an etcd that is set so.
    pub fn start_over(etcd: Options, options: &[&str]) -> Self {
        let dir = scratch_folder().unwrap();
        let etcd = Cluster::start(&dir.join("etcd"), etcd).unwrap();
        fs::write(dir.join("secret"), "not a secret but long enough").unwrap();
        let mut zones = Self { dir, etcd, nodes: [None, None, None], prefix: "test" };
        (0..3).for_each(|zone| zones.start_node_with(zone, "127.0.0.1:0", options));
        zones.leader();
        zones
    }

    pub fn start_node(&mut self, zone: usize) {
        self.start_node_with(zone, "127.0.0.1:0", &[]);
    }

    /// Again where it was, so that clients find it.
    pub fn start_node_at(&mut self, zone: usize, url: &str) {
        self.start_node_with(zone, url.strip_prefix("http://").unwrap(), &[]);
    }

    /// With further options of `serve`.
    pub fn start_node_with(&mut self, zone: usize, address: &str, options: &[&str]) {
        let mut command = self.node_command(zone, address);
        self.nodes[zone] = Some(Service::of(command.args(options)));
    }

    /// What starts a node.
    pub fn node_command(&self, zone: usize, address: &str) -> Command {
        let mut command = Command::new(SERENO);
        command
            .args(["serve", "--http", address, "--log-level", "error"])
            .args(["--node-id", ZONES[zone], "--log", &self.etcd.log_url(self.prefix)])
            .arg("--data")
            .arg(self.dir.join(ZONES[zone]))
            .arg("--cluster-secret-file")
            .arg(self.dir.join("secret"))
            .stderr(Stdio::inherit());
        command
    }

    pub fn node(&self, zone: usize) -> &Service {
        self.nodes[zone].as_ref().unwrap()
    }

    /// As a crash would.
    pub fn kill_node(&mut self, zone: usize) {
        self.nodes[zone] = None;
    }

    /// As an operator does.
    pub fn stop_node(&mut self, zone: usize) {
        self.nodes[zone].take().unwrap().stop();
    }

    /// All its takeovers together, as its metrics tell.
    pub fn takeover_seconds(&self, zone: usize) -> f64 {
        let url = format!("{}/metrics", self.node(zone).url);
        let text = http().get(url).send().unwrap().text().unwrap();
        let line = text.lines().find_map(|it| it.strip_prefix("sereno_takeover_seconds_sum "));
        line.expect("there is such a metric").parse().unwrap()
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().flatten().map(|node| node.url.clone()).collect()
    }

    /// Where the log in etcd begins.
    pub fn first_entry(&self) -> u64 {
        let read = async {
            let url = self.etcd.log_url(self.prefix).parse().unwrap();
            let log = etcd::open(&url, EtcdOptions::default()).await.unwrap();
            log.read(Position(1), 1).await.unwrap()
        };
        match tokio::runtime::Runtime::new().unwrap().block_on(read) {
            Read::Trimmed { first } => first.0,
            Read::Entries(_) => 1,
        }
    }

    /// Which node leads and serves, once one does.
    pub fn leader(&self) -> usize {
        self.leader_except(usize::MAX)
    }

    /// The same among the others.
    pub fn leader_except(&self, stopped: usize) -> usize {
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

pub fn http() -> reqwest::blocking::Client {
    reqwest::blocking::Client::builder().timeout(Duration::from_secs(3)).build().unwrap()
}

/// Waits until a node's status is so.
pub fn wait_until(url: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let last = status(url);
        if let Some(so) = last.as_ref().filter(|it| is_so(it)) {
            return so.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {last:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The newest snapshot, once there is one beyond `position`.
pub fn snapshot_beyond(url: &str, position: u64) -> u64 {
    let is_beyond = |it: &Value| it["snapshotPosition"].as_u64().is_some_and(|at| at > position);
    let status = wait_until(url, "snapshots are made and known", is_beyond);
    status["snapshotPosition"].as_u64().unwrap()
}

pub fn status(url: &str) -> Option<Value> {
    let text = http().get(format!("{url}/v1/status")).send().ok()?.text().ok()?;
    serde_json::from_str(&text).ok()
}

pub fn post(
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
pub fn decide(urls: &[String], what: &str, body: &Value) -> (u16, Value) {
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
