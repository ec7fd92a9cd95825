//! Nodes on one log, each with its own door, and what comes to those doors and wants to be a link.

use super::{Opened, Server};
use crate::cluster::{HttpDial, LINK_PATH};
use crate::config::Config;
use sereno_log::{memory::MemoryLog, presence::MemoryPresence};
use sereno_node::driver::{Secret, Shared};
use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tracing::subscriber::DefaultGuard;

/// What no test has to wait for.
const LONG: Duration = Duration::from_secs(30);

/// A log that nodes share.
#[derive(Clone, Default)]
struct Cluster {
    log: MemoryLog,
    presence: MemoryPresence,
}

impl Cluster {
    async fn start(&self, id: &str, secret: &str, advertise: Option<String>) -> Server {
        let shared = Shared {
            presence: Arc::new(self.presence.clone()),
            dial: Arc::new(HttpDial::of(id)),
            secret: Secret::new(secret.as_bytes()),
        };
        let mut opened = Opened::alone(Arc::new(self.log.clone()));
        opened.shared = Some(shared);
        let config = Config { node_id: id.into(), advertise, ..Config::in_memory() };
        Server::start_with(config, opened).await.unwrap()
    }

    /// A first node, which leads.
    async fn lead(&self, id: &str, secret: &str, advertise: Option<String>) -> Server {
        let leader = self.start(id, secret, advertise).await;
        leader.ready().await;
        leader
    }
}

/// Waits until a node that follows hears of the leader over its link.
async fn linked(server: &Server) {
    let mut status = server.node.status();
    let heard = status.wait_for(|status| status.leader_heard_ms.is_some());
    tokio::time::timeout(LONG, heard).await.expect("it is linked").unwrap();
}

async fn metric(server: &Server, name: &str) -> u64 {
    let text = reqwest::get(format!("{}/metrics", server.url())).await.unwrap();
    let text = text.text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

/// Waits until so many links were refused.
async fn refused(server: &Server, times: u64) {
    let many = async { while metric(server, "sereno_links_refused_total").await < times {} };
    tokio::time::timeout(LONG, many).await.expect("links are refused");
}

/// The log lines of this test's thread, which runs all of its tasks.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn capture() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let capturing = tracing_subscriber::fmt().with_ansi(false);
        let capturing = capturing.with_writer(move || writer.clone()).finish();
        (lines, tracing::subscriber::set_default(capturing))
    }

    fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One line names the stranger and says what to look at, however often it comes; the metric counts all.
async fn check_refused(lines: &Lines, leader: &Server, claims: &str) {
    refused(leader, 4).await;
    let said = lines.with("a link was refused");
    let [line] = &said[..] else { panic!("{said:?}") };
    for part in ["WARN", claims, "127.0.0.1", "times=1", "--cluster-secret-file", "--log"] {
        assert!(line.contains(part), "{part:?} in {line}");
    }
    assert_eq!(metric(leader, "sereno_links").await, 0);
}

#[tokio::test]
async fn a_node_with_another_secret_is_complained_of_once_and_hinders_nobody() {
    let (lines, _capturing) = Lines::capture();
    let cluster = Cluster::default();
    let leader = cluster.lead("zone-a", "the secret of all", None).await;
    let stranger = cluster.start("zone-b", "the secret of nobody", None).await;
    check_refused(&lines, &leader, "node=zone-b").await;
    assert!(stranger.node.status().borrow().leader_heard_ms.is_none());
    let node = cluster.start("zone-c", "the secret of all", None).await;
    linked(&node).await;
    assert_eq!(metric(&leader, "sereno_links").await, 1);
    for server in [node, stranger, leader] {
        server.stop().await.unwrap();
    }
}

/// As after a restore to a new prefix, with a node of the old one left over.
#[tokio::test]
async fn a_node_of_another_log_is_complained_of() {
    let (lines, _capturing) = Lines::capture();
    let leader = Cluster::default().lead("zone-a", "the secret of all", None).await;
    let other = Cluster::default();
    // What this one had for an address has become the first one's.
    let before = other.lead("old-a", "the secret of all", Some(leader.url())).await;
    let stranger = other.start("old-b", "the secret of all", None).await;
    check_refused(&lines, &leader, "node=old-b").await;
    for server in [stranger, before, leader] {
        server.stop().await.unwrap();
    }
}

/// Asks for a link, and then says nothing more.
async fn silent_stranger(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let request = format!(
        "GET {LINK_PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: sereno-link-1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn strangers_without_end_take_no_place_from_a_node() {
    let cluster = Cluster::default();
    let leader = cluster.lead("zone-a", "the secret of all", None).await;
    let before = cluster.start("zone-b", "the secret of all", None).await;
    linked(&before).await;
    let flood = async {
        let mut strangers = Vec::new();
        let mut wave = tokio::time::interval(Duration::from_millis(100));
        loop {
            // More than there are places, and all of them in use all the time.
            for _ in 0..100 {
                strangers.push(silent_stranger(&leader).await);
            }
            strangers.drain(..strangers.len() - 100);
            wave.tick().await;
        }
    };
    let nodes = async {
        refused(&leader, 200).await;
        let after = cluster.start("zone-c", "the secret of all", None).await;
        linked(&after).await;
        refused(&leader, 1_000).await;
        assert_eq!(metric(&leader, "sereno_links").await, 2, "both are still there");
        after
    };
    let after = tokio::select! {
        () = flood => unreachable!("it has no end"),
        after = nodes => after,
    };
    for server in [after, before, leader] {
        server.stop().await.unwrap();
    }
}
