//! What goes wrong in a log, and what the driver makes of it.

use crate::support::{
    Place, acquire, chain, collect_panics, config, decided, entries, failed_with, granted,
    rehearsals, release, start, start_with, undecided, until,
};
use sereno_core::{
    entry::{Body, Entry, Writer},
    ids::{ClusterTime, Position},
};
use sereno_log::{
    Append, Log, LogError,
    memory::{AppendFault, Memory, MemoryLog},
};
use sereno_node::{
    driver::{self, Config, Observer},
    handle::Undecided,
    node::Rehearsal,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[tokio::test(start_paused = true)]
async fn every_result_of_an_append_comes_to_one_outcome_for_one_command() {
    let log = MemoryLog::new();
    let node = start(Arc::new(log.clone()), config()).await;
    let faults = [
        AppendFault::ReplyLost,
        AppendFault::Lost,
        AppendFault::Late { after: 1 },
        AppendFault::Late { after: 2 },
        AppendFault::Pass,
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        let n = n as u64;
        chain(&node).await;
        log.plan_append(fault);
        granted(&node, acquire("a", n)).await;
        decided(&node, release("a", n)).await;
        log.deliver_late();
    }
    log.plan_append(AppendFault::Refused);
    let refused = undecided(&node, acquire("a", 100)).await;
    assert!(matches!(refused, Undecided::Unavailable { .. }));
    granted(&node, acquire("a", 101)).await;
    // As many grants and ends as were answered: nothing was applied twice, nothing unacknowledged.
    let status = until(&node, |status| status.leases == 1).await;
    assert_eq!(status.revision.0, 2 * 5 + 1);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn several_unknown_appends_in_a_row_and_a_caller_who_does_not_wait() {
    let log = MemoryLog::new();
    let node = start(Arc::new(log.clone()), config()).await;
    for _ in 0..20 {
        log.plan_append(AppendFault::Lost);
    }
    let mut call = acquire("a", 1);
    call.deadline = tokio::time::Instant::now() + Duration::from_secs(2);
    assert_eq!(undecided(&node, call).await, Undecided::Unknown);
    until(&node, |status| status.not_ready.is_none() && status.leases == 1).await;
    granted(&node, acquire("a", 1)).await;
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_storage_failure_stops_the_driver_with_its_message() {
    collect_panics();
    for error in
        [LogError::Storage("sector 7 is gone".into()), LogError::Damaged("page 12 lies".into())]
    {
        let log = MemoryLog::new();
        let node = start(Arc::new(log.clone()), config()).await;
        granted(&node, acquire("a", 1)).await;
        log.plan_write_error(error.clone());
        assert!(failed_with(&node, &error.to_string()).await);
        let late = undecided(&node, acquire("b", 2)).await;
        assert!(matches!(late, Undecided::Unavailable { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_that_fails_has_the_storage_looked_at_at_once() {
    collect_panics();
    let log = MemoryLog::new();
    let node = start(Arc::new(log.clone()), config()).await;
    chain(&node).await;
    log.plan_append(AppendFault::Lost);
    log.plan_write_error(LogError::Storage("the cable is out".into()));
    let begun = tokio::time::Instant::now();
    let told = undecided(&node, acquire("a", 1)).await;
    assert_eq!(told, Undecided::Unknown, "the driver is gone, and nobody knows");
    assert!(begun.elapsed() < Duration::from_millis(50));
    assert!(failed_with(&node, "the cable is out").await);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_reached_for_a_while_stops_nothing() {
    let log = MemoryLog::new();
    let node = start(Arc::new(log.clone()), config()).await;
    for _ in 0..3 {
        log.plan_write_error(LogError::Unreachable("no route".into()));
    }
    let position = chain(&node).await.0.position;
    until(&node, |status| status.position.0 > position.0 + 10).await;
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_entry_stops_the_driver() {
    collect_panics();
    let log = MemoryLog::new();
    let node = start(Arc::new(log.clone()), config()).await;
    let (head, _) = chain(&node).await;
    log.plan_append(AppendFault::Overtaken(Box::new(|head| {
        let rival = Entry {
            position: head.position.next(),
            epoch: head.epoch,
            writer: Writer { node_id: "rival".into(), start: 9 },
            time: ClusterTime(0),
            token_clock_us: 0,
            previous: head.hash,
            body: Body::Batch(Vec::new()),
        };
        rival.seal(head.log_id)
    })));
    let told = undecided(&node, acquire("a", 1)).await;
    assert!(matches!(told, Undecided::Unavailable { .. }), "certainly not applied: {told:?}");
    let said = format!("this node has written it up to position {}", head.position);
    assert!(failed_with(&node, &said).await);
}

/// A log that ends with an entry that chains to nothing.
async fn forked_log() -> MemoryLog {
    let place = Place::memory();
    let node = place.start().await;
    granted(&node, acquire("a", 1)).await;
    node.stop().await;
    let mut entries = entries(&*place.open(), Position(1)).await;
    let log_id = place.open().head().await.expect("it can be read").log_id;
    // A bit of history is changed and sealed anew: what follows does not chain to it.
    entries[1].token_clock_us += 1;
    let mut memory = Memory::default();
    for entry in entries {
        let sealed = entry.seal(log_id);
        assert_eq!(memory.append(&memory.head(), &sealed), Append::Committed);
    }
    MemoryLog::of(memory)
}

#[tokio::test]
async fn a_damaged_log_refuses_to_start() {
    let forked = forked_log().await;
    let started = driver::start(Arc::new(forked), config(), Vec::new(), Arc::new(())).await;
    let message = started.err().expect("it does not start").to_string();
    assert!(message.contains("does not chain"), "{message}");

    let unreadable = MemoryLog::new();
    unreadable.plan_read_error(LogError::Damaged("page 3".into()));
    let started = driver::start(Arc::new(unreadable), config(), Vec::new(), Arc::new(())).await;
    assert!(started.err().expect("it does not start").to_string().contains("page 3"));
}

#[tokio::test]
async fn a_damaged_file_refuses_to_start() {
    let place = Place::sqlite();
    let node = place.start().await;
    for n in 0..50 {
        granted(&node, acquire(&format!("resource-{n}"), n)).await;
    }
    node.stop().await;
    let Place::Sqlite(dir) = &place else { unreachable!("it was made so") };
    for name in ["log.db", "log.db-wal"] {
        let path = dir.path().join(name);
        let Ok(mut bytes) = std::fs::read(&path) else { continue };
        let text = b"resource-25";
        let Some(at) = bytes.windows(text.len()).position(|window| window == text) else {
            continue;
        };
        bytes[at + 3] ^= 1;
        std::fs::write(&path, bytes).expect("it can be written");
    }
    let opened = sereno_log::sqlite::open(dir.path(), sereno_log::sqlite::Options::default());
    assert!(matches!(opened, Err(LogError::Damaged(_))), "never served from");
}

#[tokio::test]
async fn a_rehearsal_that_finds_the_log_damaged_stops_the_driver() {
    collect_panics();
    let log = MemoryLog::new();
    let often = Config { snapshot_bytes: 5_000, ..config() };
    let node = start(Arc::new(log.clone()), often).await;
    log.plan_read_error(LogError::Damaged("a flipped bit in entry 3".into()));
    for n in 0..10_000 {
        match node.call(acquire(&format!("r{n}"), n)).await {
            sereno_node::handle::Reply::Decided(_) => {}
            sereno_node::handle::Reply::Undecided(_) => break,
        }
    }
    assert!(failed_with(&node, "a flipped bit in entry 3").await);
}

#[tokio::test]
async fn a_rehearsal_of_a_log_out_of_reach_is_tried_again() {
    let log = MemoryLog::new();
    let often = Config { snapshot_bytes: 5_000, ..config() };
    let (observer, mut rehearsed) = rehearsals();
    let node = start_with(Arc::new(log.clone()), often, Vec::new(), observer).await;
    log.plan_read_error(LogError::Unreachable("no route".into()));
    let mut n = 0;
    let rehearsal = loop {
        n += 1;
        granted(&node, acquire(&format!("r{n}"), n)).await;
        if let Ok(rehearsal) = rehearsed.try_recv() {
            break rehearsal;
        }
    };
    assert_eq!(rehearsal, Rehearsal::Failed("no route".into()));
    granted(&node, acquire("on", 1_000_000)).await;
    node.stop().await;
}

#[derive(Default)]
struct Counts {
    committed: AtomicUsize,
    commands: AtomicUsize,
    leads: AtomicUsize,
    failed: AtomicUsize,
}

impl Observer for Counts {
    fn committed(&self, _took: Duration, commands: usize, bytes: usize) {
        assert!(bytes > 0);
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(commands, Ordering::Relaxed);
    }

    fn leads(&self, _took: Duration) {
        self.leads.fetch_add(1, Ordering::Relaxed);
    }

    fn append_failed(&self, result: &Append) {
        assert!(matches!(result, Append::NotAppended(_) | Append::Unknown(_)));
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_what_metrics_need() {
    let (log, counts) = (MemoryLog::new(), Arc::new(Counts::default()));
    let node = start_with(Arc::new(log.clone()), config(), Vec::new(), counts.clone()).await;
    chain(&node).await;
    log.plan_append(AppendFault::ReplyLost);
    granted(&node, acquire("a", 1)).await;
    log.plan_append(AppendFault::Refused);
    undecided(&node, acquire("b", 2)).await;
    node.stop().await;
    let head = log.head().await.expect("it can be read");
    assert_eq!(counts.committed.load(Ordering::Relaxed) as u64, head.position.0);
    assert_eq!(counts.commands.load(Ordering::Relaxed), 1);
    assert_eq!(counts.leads.load(Ordering::Relaxed), 1);
    assert_eq!(counts.failed.load(Ordering::Relaxed), 2);
}
