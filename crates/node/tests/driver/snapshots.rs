//! Snapshots, trims, and a start from what is left.

use crate::support::{
    Place, acquire, chain, config, decided, granted, rehearsals, release, renew, start, start_with,
    until,
};
use sereno_core::{ids::Position, outcome::Done};
use sereno_log::{Log, Read};
use sereno_node::{driver::Config, handle::NodeHandle, node::Rehearsal};
use tokio::sync::mpsc::UnboundedReceiver;

/// Traffic until so many snapshots are saved. Gives the position of the last.
async fn traffic(
    node: &NodeHandle,
    rehearsed: &mut UnboundedReceiver<Rehearsal>,
    snapshots: usize,
    first: u64,
) -> Position {
    let (mut saved, mut n) = (0, first);
    loop {
        n += 1;
        let resource = format!("r{}", n % 100);
        decided(node, acquire(&resource, n)).await;
        if n % 2 == 0 {
            decided(node, release(&resource, n)).await;
        }
        match rehearsed.try_recv() {
            Ok(Rehearsal::Saved(head)) => {
                saved += 1;
                if saved == snapshots {
                    return head.position;
                }
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => {}
        }
    }
}

async fn first_position(log: &dyn Log) -> Position {
    log.usage().await.expect("it can be read").first
}

#[tokio::test]
async fn snapshot_trim_restart() {
    for place in Place::both() {
        let often = Config { snapshot_bytes: 20_000, ..config() };
        let (observer, mut rehearsed) = rehearsals();
        let log = place.open();
        let node = start_with(log.clone(), often.clone(), Vec::new(), observer).await;
        granted(&node, acquire("kept", 1_000_000)).await;
        let position = traffic(&node, &mut rehearsed, 4, 0).await;
        until(&node, |status| status.snapshot >= Some(position)).await;
        // The next rehearsal begins after the trim of this one was asked for.
        traffic(&node, &mut rehearsed, 1, 100_000).await;
        let first = first_position(&*log).await;
        assert!(first > Position(1) && first <= position.next(), "{first}");
        assert!(matches!(log.read(Position(1), 1).await, Ok(Read::Trimmed { .. })));
        let (head, _) = chain(&node).await;
        node.stop().await;
        drop(log);

        // A rehearsal of the first node may still come to its end: it is refused, being older.
        let (observer, mut rehearsed) = rehearsals();
        let node = start_with(place.open(), often, Vec::new(), observer).await;
        let status = until(&node, |status| status.position > head.position).await;
        assert!(status.snapshot >= Some(position), "it began from a snapshot");
        let renewed = decided(&node, renew("kept", 1_000_000)).await;
        assert!(matches!(renewed.result, Ok(Done::Renewed(_))));
        // Rehearsals start from the saved snapshot: they check it against the live state.
        traffic(&node, &mut rehearsed, 2, 200_000).await;
        node.stop().await;
    }
}

#[tokio::test]
async fn without_a_trim_the_whole_log_leads_to_the_snapshots_state() {
    let place = Place::memory();
    let often = Config { snapshot_bytes: 10_000, ..config() };
    let (observer, mut rehearsed) = rehearsals();
    let node = start_with(place.open(), often, Vec::new(), observer).await;
    // One snapshot: two are needed before anything is trimmed.
    traffic(&node, &mut rehearsed, 1, 0).await;
    let (head, outcome_chain) = chain(&node).await;
    node.stop().await;
    let log = place.open();
    let fresh = sereno_core::State::new();
    let whole =
        sereno_node::replay::to(&*log, fresh, head, |_, _, _| {}).await.expect("it is whole");
    let (state, _) = sereno_node::replay::last_snapshot(&*log).await.expect("it can be read");
    let from = sereno_node::replay::to(&*log, state, head, |_, _, _| {}).await.expect("it goes on");
    assert_eq!(whole.outcome_chain(), outcome_chain);
    assert_eq!(from.outcome_chain(), outcome_chain);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_rehearsal_and_a_start_does_not_need_it() {
    for place in Place::both() {
        let eager = Config { snapshot_bytes: 1, ..config() };
        let node = start(place.open(), eager).await;
        for n in 0..30 {
            granted(&node, acquire(&format!("r{n}"), n)).await;
        }
        node.stop().await;
        let node = place.start().await;
        assert_eq!(until(&node, |_| true).await.leases, 30);
        node.stop().await;
    }
}
