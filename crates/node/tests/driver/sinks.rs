//! Sinks: every entry, in order; and no snapshot before they are durable.

use crate::support::{
    Place, acquire, chain, config, decided, granted, rehearsals, release, start_with, until,
};
use sereno_core::ids::Position;
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
}

impl Recorder {
    fn new(permits: usize) -> (Arc<Self>, mpsc::UnboundedReceiver<Position>) {
        let (asked, asks) = mpsc::unbounded_channel();
        let (seen, answer) = (Mutex::default(), Mutex::new(Ok(())));
        (Arc::new(Self { seen, lets: Semaphore::new(permits), asked, answer }), asks)
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
