//! What the engine keeps in etcd: prefixes, snapshots, records, history.

use crate::etcd_support::{Own, fresh_prefix, fresh_url, open, open_with, proxy::Proxy, shared};
use bytes::Bytes;
use etcd_client::{Client, GetOptions};
use sereno_core::{entry::Head, ids::Position};
use sereno_etcd_dev::Options;
use sereno_log::{
    Append, Conflict, Log, LogError, Read, Slot,
    conformance::{Chain, entry_after, genesis},
    etcd::{self, EtcdLog, EtcdOptions, EtcdUrl},
    presence::{MemoryPresence, Presence},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// etcd itself, past the engine.
async fn store() -> Client {
    Client::connect(shared().endpoints(), None).await.expect("it connects")
}

async fn keys(prefix: &str) -> Vec<String> {
    let options = GetOptions::new().with_prefix().with_keys_only();
    let found = store().await.get(prefix, Some(options)).await.expect("it reads");
    found.kvs().iter().map(|kv| String::from_utf8_lossy(kv.key()).into_owned()).collect()
}

fn unpaced() -> EtcdOptions {
    EtcdOptions { snapshot_bytes_per_second: u64::MAX, ..EtcdOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_under_different_prefixes_know_nothing_of_each_other() {
    let outer = fresh_url(shared());
    let inner = outer.with_prefix(&format!("{}/slot", outer.prefix())).expect("it is a prefix");
    let (outer_log, inner_log) = (open(&outer).await, open(&inner).await);
    let mut chains = [Chain::default(), Chain::default()];
    chains[1].grow(&inner_log, 4).await;
    chains[0].append(&outer_log, genesis(3)).await;
    chains[0].grow(&outer_log, 9).await;
    for position in [5, 7] {
        outer_log.save_snapshot(chains[0].snapshot(position, 10)).await.expect("it saves");
    }
    outer_log.trim(Position(5)).await.expect("it trims");
    inner_log.presence().publish("n", Bytes::from_static(b"1")).await.expect("it publishes");
    assert_eq!(outer_log.presence().list().await, Ok(Vec::new()));
    chains[0].assert_is(&outer_log, 6).await;
    chains[1].assert_is(&inner_log, 1).await;
    assert_eq!(inner_log.latest_snapshot().await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_wipe_an_old_leader_meets_a_conflict() {
    let url = fresh_url(shared());
    let log = open(&url).await;
    let mut old = Chain::default();
    old.grow(&log, 3).await;
    shared().ctl(&["del", "--prefix", &format!("{}/@", url.prefix())]).expect("it deletes");
    let nothing = Conflict { head: Head::EMPTY, slot: Slot::Empty };
    let result = log.append(old.head(), old.next(1)).await;
    assert_eq!(result, Append::Conflict(nothing));
    // Another log begins, and is as long soon.
    let mut new = Chain::default();
    new.append(&log, genesis(9)).await;
    new.grow(&log, 6).await;
    let there = Conflict { head: new.head(), slot: Slot::Entry(new.head_at(4).hash) };
    assert_eq!(log.append(old.head(), old.next(1)).await, Append::Conflict(there));
    new.assert_is(&log, 1).await;
}

/// Half a wipe is damage, and no log begins over what is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_its_head_is_damaged() {
    let url = fresh_url(shared());
    let log = open(&url).await;
    let mut chain = Chain::default();
    chain.grow(&log, 3).await;
    shared().ctl(&["del", &format!("{}/@head", url.prefix())]).expect("it deletes");
    assert!(matches!(log.head().await, Err(LogError::Damaged(_))));
    assert_eq!(log.flush().await, Ok(()));
    let result = log.append(Head::EMPTY, genesis(9)).await;
    assert!(matches!(&result, Append::NotAppended(why) if why.contains("damaged")), "{result:?}");
    assert!(matches!(log.flush().await, Err(LogError::Damaged(_))), "the node is told");
    assert!(matches!(etcd::open(&url, unpaced()).await.map(drop), Err(LogError::Damaged(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_entry_is_damage_wherever_it_is() {
    for missing in 1..=4 {
        let url = fresh_url(shared());
        let log = open(&url).await;
        let mut chain = Chain::default();
        chain.grow(&log, 4).await;
        let slot = format!("{}/@slot/{missing:016x}", url.prefix());
        shared().ctl(&["del", &slot]).expect("it deletes");
        for from in 1..=missing {
            match log.read(Position(from), usize::MAX).await {
                Err(LogError::Damaged(_)) => {}
                // A page that ends before it, as pages do.
                Ok(Read::Entries(page)) if !page.is_empty() => {
                    assert!((page.len() as u64) + from <= missing, "{page:?}");
                }
                read => panic!("{missing} is missing, read from {from}: {read:?}"),
            }
        }
        // Resolving an append cannot take it for trimmed.
        if missing < 4 {
            let result = log
                .append(chain.head_at(missing - 1), chain.entries()[missing as usize - 1].clone())
                .await;
            assert!(
                matches!(&result, Append::NotAppended(why) if why.contains("missing")),
                "{result:?}"
            );
            assert!(matches!(log.flush().await, Err(LogError::Damaged(_))));
        }
    }
}

/// Two snapshots are saved while a reader has read a part of the one that goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_a_vanished_chunk_starts_again() {
    let proxy = Proxy::start(&shared().endpoints()[..1]).await;
    let url: EtcdUrl = fresh_url(shared());
    let slow = format!("etcd://{}/{}", proxy.endpoints()[0], url.prefix());
    let (log, reader) =
        (open_with(&url, unpaced()).await, open(&slow.parse().expect("it is a URL")).await);
    let mut chain = Chain::default();
    chain.grow(&log, 9).await;
    log.save_snapshot(chain.snapshot(3, 10 << 20)).await.expect("it saves");
    proxy.hold_after(3 << 20);
    let reading = tokio::spawn(async move { reader.latest_snapshot().await });
    proxy.is_holding().await;
    for position in [5, 7] {
        log.save_snapshot(chain.snapshot(position, 1_000)).await.expect("it saves");
    }
    proxy.hold_no_more();
    let read = reading.await.expect("it does not panic");
    assert_eq!(read, Ok(Some(chain.snapshot(7, 1_000))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_of_replaced_and_of_abandoned_snapshots_are_removed() {
    let url = fresh_url(shared());
    let log = Arc::new(
        open_with(&url, EtcdOptions { snapshot_bytes_per_second: 1 << 20, ..unpaced() }).await,
    );
    let mut chain = Chain::default();
    chain.grow(&*log, 9).await;
    let chunks = format!("{}/@chunk/", url.prefix());
    let abandoned = {
        let (log, snapshot) = (Arc::clone(&log), chain.snapshot(2, 4 << 20));
        tokio::spawn(async move { log.save_snapshot(snapshot).await })
    };
    while keys(&chunks).await.is_empty() {
        tokio::task::yield_now().await;
    }
    abandoned.abort();
    assert!(abandoned.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(log.latest_snapshot().await, Ok(None));
    for position in [3, 4, 5] {
        log.save_snapshot(chain.snapshot(position, 600_000)).await.expect("it saves");
        let kept = if position == 3 { 3 } else { 6 };
        assert_eq!(keys(&chunks).await.len(), kept, "three for each kept snapshot");
    }
    assert_eq!(log.latest_snapshot().await, Ok(Some(chain.snapshot(5, 600_000))));
}

/// Two nodes save at the same time; the slower finds the pointer moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_of_two_nodes_do_not_harm_each_other() {
    let url = fresh_url(shared());
    let (one, two) = (open_with(&url, unpaced()).await, open_with(&url, unpaced()).await);
    let mut chain = Chain::default();
    chain.grow(&one, 12).await;
    for position in 2..12 {
        let snapshot = chain.snapshot(position, 900_000);
        let results =
            tokio::join!(one.save_snapshot(snapshot.clone()), two.save_snapshot(snapshot.clone()));
        assert_eq!(results, (Ok(()), Ok(())));
        assert_eq!(one.latest_snapshot().await, Ok(Some(snapshot)));
    }
    assert_eq!(keys(&format!("{}/@chunk/", url.prefix())).await.len(), 8);
    assert_eq!(one.trim(Position(20)).await, Ok(Position(11)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_can_begin_after_a_snapshot() {
    let (source, target) = (fresh_url(shared()), fresh_url(shared()));
    let log = open(&source).await;
    let mut chain = Chain::default();
    chain.grow(&log, 6).await;
    let snapshot = chain.snapshot(6, 700_000);
    etcd::create_from_snapshot(&target, unpaced(), &snapshot).await.expect("it creates");
    let restored = open(&target).await;
    assert_eq!(restored.latest_snapshot().await, Ok(Some(snapshot.clone())));
    chain.assert_is(&restored, 7).await;
    restored.save_snapshot(snapshot.clone()).await.expect("it saves again");
    chain.grow(&restored, 9).await;
    chain.assert_is(&restored, 7).await;
    restored.save_snapshot(chain.snapshot(8, 10)).await.expect("it saves");
    assert_eq!(restored.trim(Position(8)).await, Ok(Position(7)));
    let again = etcd::create_from_snapshot(&target, unpaced(), &snapshot).await;
    assert!(matches!(again, Err(LogError::Refused(_))), "{again:?}");
    chain.assert_is(&restored, 7).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn presence_records_are_rewritten_listed_and_withdrawn() {
    let url = fresh_url(shared());
    let (one, two) = (open(&url).await, open(&url).await);
    let etcd: [Box<dyn Presence>; 2] = [Box::new(one.presence()), Box::new(two.presence())];
    let memory = MemoryPresence::default();
    let memory: [Box<dyn Presence>; 2] = [Box::new(memory.clone()), Box::new(memory)];
    for [one, two] in [etcd, memory] {
        assert_eq!(two.list().await, Ok(Vec::new()));
        one.publish("b", Bytes::from_static(b"1")).await.expect("it publishes");
        two.publish("a/x", Bytes::from_static(b"2")).await.expect("it publishes");
        one.publish("b", Bytes::from_static(b"3")).await.expect("it publishes");
        let list = two.list().await.expect("it lists");
        let list: Vec<_> = list.iter().map(|it| (it.id.as_str(), &it.record[..])).collect();
        assert_eq!(list, [("a/x", &b"2"[..]), ("b", b"3")]);
        one.withdraw("b").await.expect("it withdraws");
        one.withdraw("b").await.expect("again, too");
        assert_eq!(two.list().await.map(|list| list.len()), Ok(1));
        assert!(matches!(one.publish("", Bytes::new()).await, Err(LogError::Refused(_))));
    }
}

/// Of two nodes one goes on publishing; the other's record ends with its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_a_node_that_is_gone_goes_too() {
    let url = fresh_url(shared());
    let log = open(&url).await;
    let (here, gone) = (log.presence(), log.presence());
    gone.publish("gone", Bytes::from_static(b"x")).await.expect("it publishes");
    let begun = Instant::now();
    let mut round = 0u64;
    loop {
        round += 1;
        here.publish("here", Bytes::from(round.to_string())).await.expect("it publishes");
        let ids: Vec<_> =
            here.list().await.expect("it lists").into_iter().map(|it| it.id).collect();
        assert!(ids.contains(&"here".to_string()), "kept alive");
        if ids == ["here"] {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{ids:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(begun.elapsed() > Duration::from_secs(8), "not before its lease has ended");
}

/// A revision of the head that is over.
struct Past {
    store: Client,
    head: String,
    revision: i64,
}

impl Past {
    /// The head's revision now, which the next append leaves behind.
    async fn of(mut store: Client, url: &EtcdUrl) -> Self {
        let head = format!("{}/@head", url.prefix());
        let found = store.get(head.clone(), None).await.expect("it reads");
        let revision = found.kvs()[0].mod_revision();
        Self { store, head, revision }
    }

    async fn is_remembered(&mut self) -> bool {
        let past = GetOptions::new().with_revision(self.revision);
        let read = self.store.get(self.head.clone(), Some(past)).await;
        if let Err(error) = &read {
            assert!(error.to_string().contains("compacted"), "{error}");
        }
        read.is_ok()
    }

    /// Appends until etcd has forgotten it.
    async fn is_compacted(&mut self, log: &EtcdLog, chain: &mut Chain) {
        let begun = Instant::now();
        while self.is_remembered().await {
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing was compacted");
            let count = chain.entries().len() + 1;
            chain.grow(log, count).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_left_alone_where_somebody_else_compacts() {
    // A cluster of its own: the other tests' logs have the shared one compacted.
    let own = Own::start(Options { members: 1, ..Options::default() });
    let url = fresh_url(&own.cluster);
    let options = EtcdOptions { history: Duration::from_millis(20), ..unpaced() };
    let log = open_with(&url, EtcdOptions { compact: false, ..options.clone() }).await;
    let mut chain = Chain::default();
    chain.grow(&log, 2).await;
    let store = Client::connect(own.cluster.endpoints(), None).await.expect("it connects");
    let mut past = Past::of(store, &url).await;
    let begun = Instant::now();
    // Fifty times as long as another engine keeps any.
    while begun.elapsed() < Duration::from_secs(1) {
        let count = chain.entries().len() + 1;
        chain.grow(&log, count).await;
    }
    assert!(past.is_remembered().await, "nobody has asked for a compaction");
    // And one that may compact does so.
    let log = open_with(&url, options).await;
    past.is_compacted(&log, &mut chain).await;
    chain.assert_is(&log, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_history_is_compacted_by_who_appends() {
    let url = fresh_url(shared());
    let log =
        open_with(&url, EtcdOptions { history: Duration::from_millis(100), ..unpaced() }).await;
    let mut chain = Chain::default();
    chain.grow(&log, 2).await;
    Past::of(store().await, &url).await.is_compacted(&log, &mut chain).await;
    assert_eq!(log.status().await.compaction_error, None);
    chain.assert_is(&log, 1).await;
}

async fn compact_all(mut store: Client, count: Arc<AtomicU64>) {
    let key = fresh_prefix();
    loop {
        let put = store.put(key.clone(), "", None).await.expect("it writes");
        let now = put.header().expect("it tells its revision").revision();
        match store.compact(now, None).await {
            Ok(_) => count.fetch_add(1, Ordering::Relaxed),
            // Another test's log has compacted meanwhile.
            Err(error) if error.to_string().contains("has been compacted") => continue,
            Err(error) => panic!("it compacts: {error}"),
        };
    }
}

/// Somebody who keeps no history at all: each revision is compacted as soon as it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_compacted_up_to_now_is_read_all_the_same() {
    let url = fresh_url(shared());
    let log = open_with(&url, unpaced()).await;
    let mut chain = Chain::default();
    chain.grow(&log, 9).await;
    let compacted = Arc::new(AtomicU64::new(0));
    let compacting = tokio::spawn(compact_all(store().await, Arc::clone(&compacted)));
    for position in 2..9 {
        log.save_snapshot(chain.snapshot(position, 600_000)).await.expect("it saves");
        assert_eq!(log.latest_snapshot().await, Ok(Some(chain.snapshot(position, 600_000))));
    }
    let begun = compacted.load(Ordering::Relaxed);
    while compacted.load(Ordering::Relaxed) < begun + 100 {
        assert_eq!(log.usage().await.expect("it looks").first, Position(1));
        let opened = open(&url).await;
        chain.assert_is(&opened, 1).await;
    }
    assert_eq!(log.trim(Position(5)).await, Ok(Position(6)));
    chain.grow(&log, 12).await;
    chain.assert_is(&log, 6).await;
    compacting.abort();
    assert!(compacting.await.is_err_and(|error| error.is_cancelled()), "it went on to the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_tells_of_every_member() {
    let url = shared().log_url(&fresh_prefix()).replacen("/test", ",127.0.0.1:1/test", 1);
    let log = open(&url.parse().expect("it is a URL")).await;
    let status = log.status().await;
    assert_eq!(status.members.len(), 4);
    assert_eq!(status.healthy(), 3);
    assert!(status.members[3].health.is_err());
    let leading = status.members.iter().filter(|it| it.health.as_ref().is_ok_and(|it| it.leads));
    assert_eq!(leading.count(), 1, "{status:?}");
    assert!(status.version().starts_with("3."), "{status:?}");
    assert!(status.db_used_bytes() > 0 && status.db_bytes() >= status.db_used_bytes());
    assert!(!status.no_space());
    let usage = log.usage().await.expect("it tells");
    assert!(usage.bytes > 0);
}

/// On a log where nothing happens a wait ends all the same, and tells nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_is_bounded() {
    let url = fresh_url(shared());
    let log = open(&url).await;
    let mut chain = Chain::default();
    chain.grow(&log, 2).await;
    let begun = Instant::now();
    log.wait_past(Position(2)).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(log.head().await, Ok(chain.head()));
}

/// Entries of very different sizes, in one read: pages are cut by what came before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_entries_before_large_ones_are_read() {
    let url = fresh_url(shared());
    let log = open(&url).await;
    let mut chain = Chain::default();
    chain.grow(&log, 300).await;
    for tag in 0..130 {
        let entry = entry_after(&chain.head(), tag, 520_000);
        chain.append(&log, entry).await;
    }
    let reader = open(&url).await;
    chain.assert_is(&reader, 1).await;
    let Ok(Read::Entries(all)) = reader.read(Position(1), usize::MAX).await else {
        panic!("it reads")
    };
    assert_eq!(all, chain.entries());
}
