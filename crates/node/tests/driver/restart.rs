//! A restart finds everything that was acknowledged, and comes to the same outcomes.

use crate::support::{
    Place, acquire, chain, collect_panics, config, decided, entries, granted, panicked_with,
    queue_for, release, renew, start,
};
use sereno_core::{
    State,
    entry::{Body, EntryHash, Head},
    ids::Position,
    outcome::Done,
};
use sereno_log::Log;
use sereno_node::{handle::NodeHandle, replay};
use tokio::runtime::Runtime;

/// Some of everything; gives what a replay has to come to.
async fn traffic(node: &NodeHandle, from: u64) -> (Head, EntryHash) {
    let at_once: Vec<_> = (from..from + 100)
        .map(|n| {
            let node = node.clone();
            tokio::spawn(async move {
                let resource = format!("r{}", n % 60);
                decided(&node, acquire(&resource, n)).await;
                if n % 3 == 0 {
                    decided(&node, release(&resource, n)).await;
                } else {
                    decided(&node, renew(&resource, n)).await;
                }
            })
        })
        .collect();
    for client in at_once {
        client.await.expect("it has gone through");
    }
    chain(node).await
}

async fn check_replay(log: &dyn Log, (head, outcome_chain): (Head, EntryHash)) {
    let state = replay::to(log, State::new(), head, |_, _, _| {}).await.expect("it leads there");
    assert_eq!(state.outcome_chain(), outcome_chain);
    state.check_invariants();
}

#[tokio::test]
async fn a_restart_replays_to_the_same_outcome_chain() {
    for place in Place::both() {
        let node = place.start().await;
        let first = traffic(&node, 0).await;
        let kept = granted(&node, acquire("kept", 1_000)).await;
        node.stop().await;

        let log = place.open();
        check_replay(&*log, first).await;
        let node = start(log, config()).await;
        let renewed = decided(&node, renew("kept", 1_000)).await;
        assert!(matches!(renewed.result, Ok(Done::Renewed(_))));
        let replayed = decided(&node, acquire("kept", 1_000)).await;
        assert!(replayed.replayed.is_some(), "S6 over a restart");
        let later = granted(&node, acquire("new", 1_001)).await;
        assert!(later.holdings[0].1 > kept.holdings[0].1, "S2 over a restart");
        let second = traffic(&node, 2_000).await;
        node.stop().await;
        check_replay(&*place.open(), second).await;
    }
}

#[test]
fn a_node_that_is_killed_loses_nothing_it_has_answered() {
    for place in Place::both() {
        for round in 0..3 {
            let runtime = Runtime::new().expect("a runtime starts");
            runtime.block_on(async {
                let node = place.start().await;
                for n in 0..round * 20 {
                    // The same request, answered before the kill: granted then, and still.
                    let again = decided(&node, acquire(&format!("r{n}"), n)).await;
                    assert!(again.replayed.is_some() && again.result.is_ok(), "{again:?}");
                }
                for n in round * 20..(round + 1) * 20 {
                    granted(&node, acquire(&format!("r{n}"), n)).await;
                }
                // Work is under way when it ends.
                for n in 5_000..5_100 {
                    let node = node.clone();
                    tokio::spawn(async move { node.call(queue_for("r0", n)).await });
                }
            });
            drop(runtime);
        }
    }
}

/// As when a process quits while it is stopping. The runtime ends its tasks in any order.
#[test]
fn a_runtime_dropped_under_a_node_that_is_stopping_makes_it_end_quietly() {
    collect_panics();
    let place = Place::memory();
    for _ in 0..100 {
        let runtime = Runtime::new().expect("a runtime starts");
        let node = runtime.block_on(place.start());
        let stopping = node.clone();
        runtime.spawn(async move { stopping.stop().await });
        drop(runtime);
    }
    assert!(!panicked_with("Cancelled"), "the driver took the runtime's end for its own fault");
}

#[tokio::test]
async fn each_start_is_another_writer_with_an_epoch_of_its_own() {
    for place in Place::both() {
        for _ in 0..3 {
            place.start().await.stop().await;
        }
        let log = place.open();
        let announces = entries(&*log, Position(1)).await;
        let announces: Vec<_> =
            announces.iter().filter(|entry| matches!(entry.body, Body::Announce(_))).collect();
        assert_eq!(announces.len(), 3);
        assert!(announces.windows(2).all(|two| two[0].writer != two[1].writer));
        assert!(announces.windows(2).all(|two| two[0].epoch < two[1].epoch));
    }
}
