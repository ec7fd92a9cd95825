//! Sinks: every entry, in order; and no snapshot before they are durable.

use crate::support::{
    Place, acquire, chain, config, decided, granted, rehearsals, release, start_with, until,
};
use sereno_core::{
    entry::{Body, Head},
    ids::{LogId, Position},
    testing::Scribe,
};
use sereno_log::{
    Snapshot,
    memory::{Memory, MemoryLog},
};
use sereno_node::{
    driver::Config,
    events::{EventBatch, Sink},
    node::Rehearsal,
};
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, mpsc};

struct Recorder {
    seen: Mutex<Vec<Arc<EventBatch>>>,
    /// Each permit lets one `durable` through.
    lets: Semaphore,
    asked: mpsc::UnboundedSender<Position>,
    answer: Mutex<Result<(), String>>,
    /// Up to where it had what was applied, before this start.
    knows: Option<Position>,
}

impl Recorder {
    fn new(permits: usize) -> (Arc<Self>, mpsc::UnboundedReceiver<Position>) {
        let (asked, asks) = mpsc::unbounded_channel();
        let (seen, answer) = (Mutex::default(), Mutex::new(Ok(())));
        let lets = Semaphore::new(permits);
        (Arc::new(Self { seen, lets, asked, answer, knows: None }), asks)
    }

    fn positions(&self) -> Vec<u64> {
        self.seen
            .lock()
            .expect("no thread panicked with it")
            .iter()
            .map(|batch| batch.position.0)
            .collect()
    }
}

#[async_trait::async_trait]
impl Sink for Recorder {
    fn applied(&self, batch: &Arc<EventBatch>) {
        self.seen.lock().expect("no thread panicked with it").push(batch.clone());
    }

    fn seen(&self, _log_id: LogId) -> Option<Position> {
        self.knows
    }

    async fn durable(&self, position: Position) -> Result<(), String> {
        self.asked.send(position).expect("the test listens");
        self.lets.acquire().await.expect("it stays open").forget();
        self.answer.lock().expect("no thread panicked with it").clone()
    }
}

#[tokio::test]
async fn a_sink_gets_every_entry_in_order_and_from_the_last_snapshot_on_at_each_start() {
    for place in Place::both() {
        let (first, _asks) = Recorder::new(usize::MAX >> 4);
        let node = start_with(place.open(), config(), vec![first.clone()], Arc::new(())).await;
        for n in 0..20 {
            granted(&node, acquire("a", n)).await;
            decided(&node, release("a", n)).await;
        }
        node.stop().await;
        let positions = first.positions();
        assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>());

        let (second, _asks) = Recorder::new(0);
        let node = start_with(place.open(), config(), vec![second.clone()], Arc::new(())).await;
        let before = first.seen.lock().expect("no thread panicked with it").clone();
        let again =
            second.seen.lock().expect("no thread panicked with it")[..before.len()].to_vec();
        assert_eq!(again, before, "the same batches, hashes and events");
        assert_eq!(second.positions().len(), before.len() + 1, "and the announce");
        node.stop().await;
    }
}

/// The log reaches back to the older of two snapshots: whoever has not seen what came after that is given it.
#[tokio::test]
async fn a_start_goes_back_to_the_snapshot_that_a_sink_needs() {
    let (mut memory, mut scribe) = (Memory::default(), Scribe::new());
    memory.append(&Head::EMPTY, &Scribe::genesis().seal(scribe.state.log_id()));
    for position in 2..=9 {
        let entry = scribe.entry(1, Body::Batch(Vec::new()));
        let sealed = entry.seal(scribe.state.log_id());
        memory.append(&memory.head(), &sealed);
        scribe.push(entry, sealed.head.hash);
        if [4, 7].contains(&position) {
            let bytes = scribe.state.to_snapshot().into();
            let saved = memory.save_snapshot(Snapshot { head: scribe.state.head(), bytes });
            saved.expect("it is of this log");
        }
    }
    let mut trimmed = memory.clone();
    assert_eq!(trimmed.trim(Position(4)), Position(5));
    for (memory, knows, after) in [
        (&memory, None, 7),
        (&memory, Some(9), 7),
        (&memory, Some(7), 7),
        (&memory, Some(6), 4),
        (&memory, Some(4), 4),
        // Nothing was trimmed yet, so there is nothing that it has to miss.
        (&memory, Some(3), 0),
        (&trimmed, Some(4), 4),
        // What lies before the older one is gone: the newest will do.
        (&trimmed, Some(3), 7),
    ] {
        let (mut recorder, _asks) = Recorder::new(0);
        Arc::get_mut(&mut recorder).expect("nobody else has it yet").knows = knows.map(Position);
        let log = Arc::new(MemoryLog::of(memory.clone()));
        let node = start_with(log, config(), vec![recorder.clone()], Arc::new(())).await;
        assert_eq!(node.replayed_after(), Position(after), "it knew {knows:?}");
        assert_eq!(recorder.positions()[0], after + 1);
        node.stop().await;
    }
}

#[tokio::test]
async fn a_snapshot_waits_until_every_sink_is_durable() {
    for place in Place::both() {
        let (slow, mut asks) = Recorder::new(0);
        let (observer, mut rehearsed) = rehearsals();
        let log = place.open();
        let often = Config { snapshot_bytes: 2_000, ..config() };
        let node = start_with(log.clone(), often, vec![slow.clone()], observer).await;
        let mut n = 0;
        let position = loop {
            n += 1;
            granted(&node, acquire(&format!("r{n}"), n)).await;
            if let Ok(position) = asks.try_recv() {
                break position;
            }
        };
        // The service goes on meanwhile.
        for n in 1_000..1_050 {
            granted(&node, acquire(&format!("r{n}"), n)).await;
        }
        assert_eq!(log.latest_snapshot().await, Ok(None));
        assert!(rehearsed.try_recv().is_err());
        slow.lets.add_permits(1);
        let Some(Rehearsal::Saved(head)) = rehearsed.recv().await else { panic!("it is saved") };
        assert_eq!(head.position, position);
        let snapshot = log.latest_snapshot().await.expect("it can be read");
        assert_eq!(snapshot.expect("it is there").head, head);
        until(&node, |status| status.snapshot == Some(position)).await;
        slow.lets.add_permits(1_000);
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_cannot_is_asked_again_later_and_nothing_is_saved_meanwhile() {
    let place = Place::memory();
    let (broken, mut asks) = Recorder::new(1_000);
    *broken.answer.lock().expect("no thread panicked with it") = Err("the disk is full".into());
    let (observer, mut rehearsed) = rehearsals();
    let log = place.open();
    let node = start_with(log.clone(), config(), vec![broken.clone()], observer).await;
    let Some(Rehearsal::Failed(reason)) = rehearsed.recv().await else { panic!("it fails") };
    assert_eq!(reason, "the disk is full");
    asks.recv().await.expect("it was asked");
    assert_eq!(log.latest_snapshot().await, Ok(None));
    granted(&node, acquire("a", 1)).await;
    *broken.answer.lock().expect("no thread panicked with it") = Ok(());
    assert!(matches!(rehearsed.recv().await, Some(Rehearsal::Saved(_))));
    let (head, _) = chain(&node).await;
    assert!(log.latest_snapshot().await.unwrap().unwrap().head.position <= head.position);
    node.stop().await;
}
