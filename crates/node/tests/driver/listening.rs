//! Callers who go away.

use crate::support::{
    Place, acquire, config, decided, grant_in, granted, last_body, queue_for, release, start, until,
};
use sereno_core::entry::Body;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longer than the grace.
const LONG: Duration = Duration::from_secs(12);

#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_up_its_place_after_the_grace() {
    let node = Place::memory().start().await;
    granted(&node, acquire("a", 1)).await;
    let waiting = tokio::spawn({
        let node = node.clone();
        async move { node.call(queue_for("a", 2)).await }
    });
    until(&node, |status| status.waiters == 1).await;
    let begun = Instant::now();
    waiting.abort();
    until(&node, |status| status.waiters == 0).await;
    let ms = begun.elapsed().as_millis();
    assert!((10_000..10_200).contains(&ms), "{ms} ms");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_lies_there_unread_when_its_caller_goes_was_not_heard() {
    let node = Place::memory().start().await;
    granted(&node, acquire("a", 1)).await;
    let mut waiting = Box::pin(node.call(queue_for("a", 2)));
    tokio::select! {
        biased;
        reply = &mut waiting => panic!("it waits: {reply:?}"),
        status = until(&node, |status| status.waiters == 1) => assert_eq!(status.leases, 1),
    }
    decided(&node, release("a", 1)).await;
    // The grant has been sent to `waiting`, which is not polled any more.
    drop(waiting);
    sleep(LONG).await;
    granted(&node, acquire("a", 3)).await;
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_read_holds_for_its_whole_ttl() {
    let node = Place::memory().start().await;
    granted(&node, acquire("a", 1)).await;
    let waiting = tokio::spawn({
        let node = node.clone();
        async move { node.call(queue_for("a", 2)).await }
    });
    until(&node, |status| status.waiters == 1).await;
    decided(&node, release("a", 1)).await;
    let grant = grant_in(waiting.await.expect("it is answered"));
    sleep(Duration::from_secs(59)).await;
    let repeat = granted(&node, queue_for("a", 2)).await;
    assert_eq!(repeat.holdings, grant.holdings);
    assert!(repeat.expires_in_ms <= 1_000);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_its_turn_is_not_appended() {
    let node = Place::memory().start().await;
    {
        let mut dropped = Box::pin(node.call(acquire("a", 1)));
        tokio::select! {
            biased;
            reply = &mut dropped => panic!("its message is only just sent: {reply:?}"),
            () = std::future::ready(()) => {}
        }
    }
    granted(&node, acquire("a", 2)).await;
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_nobody_can_reach_any_more_resigns_and_frees_its_log() {
    for place in Place::both() {
        let node = start(place.open(), config()).await;
        granted(&node, acquire("a", 1)).await;
        let mut status = node.status();
        drop(node);
        while status.changed().await.is_ok() {}
        // Opening a folder that somebody still has would fail.
        assert_eq!(last_body(&*place.open()).await, Body::Resign);
    }
}
