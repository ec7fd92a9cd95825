//! Three nodes on one log: one leads, all answer, and another takes over.

use crate::support::{acquire, chain, config, decided, granted, release, undecided, until};
use async_trait::async_trait;
use sereno_core::ids::Position;
use sereno_log::{
    Log,
    memory::{AppendFault, MemoryLog},
    presence::{MemoryPresence, Presence},
};
use sereno_node::{
    driver::{self, Dial, Observer, Secret, Shared, Stream, accept_link},
    handle::{Consistency, NodeHandle, Role, Undecided},
};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// Streams in memory to the nodes that are there, by their addresses.
#[derive(Clone, Default)]
struct Network {
    nodes: Arc<Mutex<BTreeMap<String, NodeHandle>>>,
}

#[async_trait]
impl Dial for Network {
    async fn dial(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let node = self.nodes.lock().expect("no thread panicked with it").get(address).cloned();
        let node = node.ok_or(io::ErrorKind::ConnectionRefused)?;
        let (here, there) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            let accepted = accept_link(&node, there, &Secret::new(b"s")).await?;
            accepted.serve(node).await
        });
        Ok(Box::new(here))
    }
}

#[derive(Clone, Default)]
struct Cluster {
    log: MemoryLog,
    presence: MemoryPresence,
    network: Network,
}

/// How long each of a node's takeovers took.
#[derive(Default)]
struct Takeovers(Mutex<Vec<Duration>>);

impl Observer for Takeovers {
    fn leads(&self, took: Duration) {
        self.0.lock().expect("no thread panicked with it").push(took);
    }
}

impl Cluster {
    async fn start(&self, id: &str) -> NodeHandle {
        self.start_with(id, b"s", Arc::new(())).await
    }

    async fn start_with(&self, id: &str, secret: &[u8], observer: Arc<dyn Observer>) -> NodeHandle {
        let shared = Shared {
            presence: Arc::new(self.presence.clone()),
            dial: Arc::new(self.network.clone()),
            secret: Secret::new(secret),
        };
        let config = driver::Config {
            node_id: id.into(),
            address: id.into(),
            shared: Some(shared),
            ..config()
        };
        let log: Arc<dyn Log> = Arc::new(self.log.clone());
        let node = driver::start(log, config, Vec::new(), observer).await.expect("it starts");
        self.is_at(id, &node);
        node
    }

    /// Whoever dials this address reaches `node` from now on.
    fn is_at(&self, address: &str, node: &NodeHandle) {
        let mut nodes = self.network.nodes.lock().expect("no thread panicked with it");
        nodes.insert(address.into(), node.clone());
    }

    /// Its links are refused from now on; those that are there stay.
    fn unreachable(&self, id: &str) {
        self.network.nodes.lock().expect("no thread panicked with it").remove(id);
    }
}

fn leads(node: &NodeHandle) -> bool {
    matches!(node.status().borrow().role, Role::Leader { .. })
}

async fn ready(node: &NodeHandle) {
    until(node, |status| status.not_ready.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn any_node_takes_any_request_and_one_leads() {
    let cluster = Cluster::default();
    let nodes = [cluster.start("a").await, cluster.start("b").await, cluster.start("c").await];
    for node in &nodes {
        ready(node).await;
    }
    assert_eq!(nodes.iter().filter(|node| leads(node)).count(), 1);
    for (n, node) in nodes.iter().enumerate() {
        let n = n as u64;
        granted(node, acquire(&format!("resource-{n}"), n)).await;
    }
    // What one node was told, every other one reads.
    for node in &nodes {
        let deadline = Instant::now() + Duration::from_secs(5);
        let leases = node.read(Consistency::Consistent, deadline, |state| state.leases()).await;
        assert_eq!(leases.expect("it is confirmed").0, 3);
    }
    // The same request, asked at another node, is the same grant (S6).
    let again = decided(&nodes[1], acquire("resource-0", 0)).await;
    assert!(again.replayed.is_some(), "{again:?}");
    for node in &nodes {
        node.stop().await;
    }
    assert!(cluster.presence.list().await.expect("it is memory").is_empty(), "they said goodbye");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_is_followed_at_once_and_the_state_goes_on() {
    let cluster = Cluster::default();
    let a = cluster.start("a").await;
    ready(&a).await;
    let b = cluster.start("b").await;
    ready(&b).await;
    granted(&b, acquire("r", 1)).await;
    let begun = Instant::now();
    a.stop().await;
    cluster.unreachable("a");
    until(&b, |status| matches!(status.role, Role::Leader { .. })).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "a resign needs no silence");
    let again = decided(&b, acquire("r", 1)).await;
    assert!(again.replayed.is_some(), "{again:?}");
    decided(&b, release("r", 1)).await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_appends_stand_still_is_followed_after_a_silence() {
    let cluster = Cluster::default();
    let a = cluster.start("a").await;
    ready(&a).await;
    let takeovers = Arc::new(Takeovers::default());
    let b = cluster.start_with("b", b"s", takeovers.clone()).await;
    ready(&b).await;
    // It follows for a while: what it tells of a takeover must not count that.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (head, _) = chain(&a).await;
    // The leader's appends get lost, however often they are sent: b hears nothing any more.
    for _ in 0..8 {
        cluster.log.plan_append(AppendFault::Lost);
    }
    let begun = Instant::now();
    until(&b, |status| matches!(status.role, Role::Leader { .. })).await;
    let took = begun.elapsed();
    assert!((2_000..3_500).contains(&took.as_millis()), "{took:?}");
    let told = takeovers.0.lock().expect("no thread panicked with it").clone();
    assert!(matches!(told[..], [it] if (2_000..3_500).contains(&it.as_millis())), "{told:?}");
    // The old leader finds that out, follows, and passes on what it is asked.
    until(&a, |status| status.role == Role::Follower && status.not_ready.is_none()).await;
    granted(&a, acquire("r", 1)).await;
    assert!(cluster.log.head().await.expect("it is memory").position > head.position);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_link_a_standby_says_so_and_waits_half_as_long() {
    let cluster = Cluster::default();
    let a = cluster.start("a").await;
    ready(&a).await;
    cluster.unreachable("a");
    let b = cluster.start("b").await;
    until(&b, |status| status.not_ready.as_deref() == Some("the leader is not reached")).await;
    undecided(&b, acquire("r", 1)).await;
    // The log moves, so b leaves the leader alone; stale reads are answered.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(leads(&a));
    let stale = node_position(&b).await;
    assert!(stale > Position(1), "it follows all the same");
    // Now the leader falls silent: its heartbeat is lost, and sent in vain three times more within the next 350 ms.
    until(&b, |status| status.position > stale).await;
    for _ in 0..5 {
        cluster.log.plan_append(AppendFault::Lost);
    }
    let begun = Instant::now();
    until(&b, |status| matches!(status.role, Role::Leader { .. })).await;
    let took = begun.elapsed();
    assert!((850..1_500).contains(&took.as_millis()), "{took:?}");
    a.stop().await;
    b.stop().await;
}

/// Whether a node has no link to whom the log names as leader, and passes nothing on.
async fn is_cut_off(node: &NodeHandle, leader: &NodeHandle) {
    until(node, |status| status.not_ready.as_deref() == Some("the leader is not reached")).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        // Clients come to the leader, or it would resign: no other node reaches it.
        decided(leader, acquire("its", 9)).await;
        let refused = undecided(node, acquire("r", 1)).await;
        assert!(matches!(refused, Undecided::Unavailable { .. }), "{refused:?}");
        let deadline = Instant::now() + Duration::from_secs(1);
        let read = node.read(Consistency::Consistent, deadline, |state| state.leases()).await;
        assert!(read.is_err(), "{read:?}");
        assert_eq!(node.status().borrow().leader_heard_ms, None);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let deadline = Instant::now() + Duration::from_secs(1);
    let leases = leader.read(Consistency::Consistent, deadline, |state| state.leases()).await;
    assert_eq!(leases.expect("it leads").0, 1, "nothing has come of it");
}

#[tokio::test(start_paused = true)]
async fn a_node_with_another_secret_is_never_linked_and_passes_nothing_on() {
    let cluster = Cluster::default();
    let a = cluster.start("a").await;
    ready(&a).await;
    let stranger = cluster.start_with("b", b"t", Arc::new(())).await;
    is_cut_off(&stranger, &a).await;
    stranger.stop().await;
    a.stop().await;
}

/// Another service runs where the leader was, with the same secret: it knows nothing of this log.
#[tokio::test(start_paused = true)]
async fn a_node_of_another_log_is_not_believed_though_it_knows_the_secret() {
    let (cluster, foreign) = (Cluster::default(), Cluster::default());
    let (a, stranger) = (cluster.start("a").await, foreign.start("a").await);
    ready(&a).await;
    ready(&stranger).await;
    cluster.is_at("a", &stranger);
    let b = cluster.start("b").await;
    until(&b, |status| status.not_ready.as_deref() == Some("the leader is not reached")).await;
    undecided(&b, acquire("r", 1)).await;
    // A link would be there within the next second, as it is when the leader is where it was.
    tokio::time::sleep(Duration::from_secs(4)).await;
    undecided(&b, acquire("r", 1)).await;
    let leases = stranger.read(Consistency::Stale, Instant::now(), |state| state.leases()).await;
    assert_eq!(leases.expect("a stale read needs nobody").0, 0, "nothing was passed on to it");
    cluster.is_at("a", &a);
    ready(&b).await;
    granted(&b, acquire("r", 1)).await;
    assert!(leads(&a) && !leads(&b));
    for node in [&a, &b, &stranger] {
        node.stop().await;
    }
}

/// Each finds the other by what it has left in the record that both write.
#[tokio::test(start_paused = true)]
async fn of_two_processes_with_one_id_neither_begins_to_lead() {
    let cluster = Cluster::default();
    let other = cluster.start("other").await;
    ready(&other).await;
    let one = cluster.start("twin").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let two = cluster.start("twin").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    other.stop().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    for node in [&one, &two] {
        assert!(!leads(node));
        let why = node.status().borrow().not_ready.clone();
        assert!(why.as_ref().is_some_and(|why| why.contains("this node's id")), "{why:?}");
    }
    two.stop().await;
    until(&one, |status| matches!(status.role, Role::Leader { .. })).await;
    one.stop().await;
}

async fn node_position(node: &NodeHandle) -> Position {
    let read = node.read(Consistency::Stale, Instant::now(), |state| state.head().position);
    read.await.expect("a stale read needs nobody").0
}
