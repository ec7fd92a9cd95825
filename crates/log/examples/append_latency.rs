//! How long an append takes, alone and while a large snapshot is saved and the log is trimmed.
//!
//! `cargo run --release -p sereno-log --example append_latency [FOLDER]`

use bytes::Bytes;
use sereno_core::{
    entry::{EntryHash, Head, SealedEntry},
    ids::{Epoch, LogId},
};
use sereno_log::{Append, Log, Snapshot, memory::MemoryLog, sqlite};
use std::{path::PathBuf, sync::Arc, time::Instant};

#[tokio::main]
async fn main() {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    measure("memory", Arc::new(MemoryLog::new())).await;
    let dir = tempfile::tempdir_in(dir).expect("a folder can be made");
    let log = sqlite::open(dir.path(), sqlite::Options::default()).expect("a new log opens");
    measure("sqlite", Arc::new(log)).await;
    let start = Instant::now();
    let log = sqlite::open(dir.path(), sqlite::Options::default()).expect("the log opens again");
    let usage = log.usage().await.expect("it tells its usage");
    println!("sqlite: opening it again, {} MB, took {:?}", usage.bytes >> 20, start.elapsed());
}

async fn measure(name: &str, log: Arc<dyn Log>) {
    for bytes in [200, 20_000] {
        run(name, &format!("{bytes} B"), &log, bytes, 3_000).await;
    }
    let head = log.head().await.expect("it has a head");
    let saving = {
        let log = log.clone();
        let bytes = Bytes::from(vec![7; 100 << 20]);
        tokio::spawn(async move { log.save_snapshot(Snapshot { head, bytes }).await })
    };
    let start = Instant::now();
    run(name, "20 kB, saving 100 MiB", &log, 20_000, 2_000).await;
    saving.await.expect("it does not panic").expect("it saves");
    println!("{name}: the snapshot took {:?} at most", start.elapsed());
    let head = log.head().await.expect("it has a head");
    log.save_snapshot(Snapshot { head, bytes: Bytes::from_static(b"small") }).await.expect("saves");
    let trimming = {
        let log = log.clone();
        tokio::spawn(async move { log.trim(head.position).await })
    };
    run(name, "20 kB, trimming", &log, 20_000, 2_000).await;
    trimming.await.expect("it does not panic").expect("it trims");
}

async fn run(name: &str, what: &str, log: &Arc<dyn Log>, bytes: usize, count: usize) {
    let mut head = log.head().await.expect("it has a head");
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = entry_after(&head, bytes);
        let next = entry.head;
        let start = Instant::now();
        assert_eq!(log.append(head, entry).await, Append::Committed);
        times.push(start.elapsed());
        head = next;
    }
    times.sort();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000];
    println!(
        "{name}: {what}: p50 {:?} p99 {:?} p99.9 {:?} max {:?}",
        at(500),
        at(990),
        at(999),
        at(1000)
    );
}

fn entry_after(head: &Head, bytes: usize) -> SealedEntry {
    let bytes = Bytes::from(vec![head.position.0 as u8; bytes]);
    let head = Head {
        log_id: LogId([1; 16]),
        position: head.position.next(),
        epoch: Epoch(1),
        hash: EntryHash::of(&bytes),
    };
    SealedEntry { head, bytes }
}
