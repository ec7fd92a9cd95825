//! The events of the log, for watchers who come, go, and come back.

use crate::support::{Place, acquire, decided, granted, release};
use sereno_core::{
    event::EventKind,
    ids::{LogId, Revision},
    limits,
};
use sereno_node::events::{Cursor, EventHub};

/// All events after `cursor` that are there already, with their revisions.
async fn events_after(hub: &EventHub, mut cursor: Cursor) -> Vec<(Revision, String)> {
    let (mut found, now) = (Vec::new(), hub.now());
    while cursor.revision < now.revision {
        for batch in hub.after(cursor).await.expect("it is remembered") {
            let new = batch.events.iter().filter(|event| event.revision > cursor.revision);
            found.extend(new.map(|event| {
                let kind = match &event.kind {
                    EventKind::Granted { .. } => "granted",
                    EventKind::Ended { .. } => "ended",
                    other => panic!("{other:?}"),
                };
                let resource = event.resource.as_ref().expect("it is about a lock");
                (event.revision, format!("{kind} {resource}"))
            }));
            cursor.revision = batch.revision;
        }
        if found.last().is_some_and(|(revision, _)| *revision == now.revision) {
            break;
        }
    }
    found
}

#[tokio::test]
async fn a_watcher_resumes_where_it_was_without_gap_or_repeat() {
    let node = Place::memory().start().await;
    let hub = node.events();
    let start = hub.now();
    let mut cursors = vec![start];
    for n in 0..20 {
        granted(&node, acquire("a", n)).await;
        cursors.push(hub.now());
        decided(&node, release("a", n)).await;
    }
    let all = events_after(hub, start).await;
    assert_eq!(all.len(), 40);
    assert!(all.is_sorted());
    assert_eq!(all[0].1, "granted a");
    assert_eq!(all[1].1, "ended a");
    for cursor in cursors {
        let rest = events_after(hub, cursor).await;
        let due: Vec<_> =
            all.iter().filter(|(revision, _)| *revision > cursor.revision).cloned().collect();
        assert_eq!(rest, due);
    }
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_who_waits_is_woken_by_the_next_event() {
    let node = Place::memory().start().await;
    let watchers: Vec<_> = (0..10)
        .map(|_| {
            let hub = node.events().clone();
            tokio::spawn(async move { hub.after(hub.now()).await })
        })
        .collect();
    tokio::task::yield_now().await;
    // Heartbeats are no events.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert!(watchers.iter().all(|watcher| !watcher.is_finished()));
    granted(&node, acquire("a", 1)).await;
    for watcher in watchers {
        let batches = watcher.await.expect("it ends").expect("it is remembered");
        assert_eq!(batches.len(), 1);
        assert!(matches!(batches[0].events[0].kind, EventKind::Granted { .. }));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_cursor_of_another_log_or_ahead_has_to_read_afresh() {
    let node = Place::memory().start().await;
    granted(&node, acquire("a", 1)).await;
    let hub = node.events();
    let now = hub.now();
    let ahead = Cursor { revision: Revision(now.revision.0 + 1), ..now };
    let other = Cursor { log_id: LogId([1; 16]), ..now };
    for cursor in [ahead, other] {
        assert_eq!(hub.after(cursor).await.expect_err("it cannot go on").now, now);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_cursor_before_what_is_remembered_has_to_read_afresh() {
    let node = Place::memory().start().await;
    let hub = node.events().clone();
    let start = hub.now();
    // Each is a grant and an end: more than the hub remembers.
    let clients: Vec<_> = (0..500)
        .map(|client| {
            let node = node.clone();
            tokio::spawn(async move {
                for round in 0..220 {
                    let (n, resource) = (client * 1_000 + round, format!("r{client}"));
                    decided(&node, acquire(&resource, n)).await;
                    decided(&node, release(&resource, n)).await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("it has gone through");
    }
    let now = hub.now();
    assert!(now.revision.0 > limits::EVENTS_REMEMBERED_MAX as u64);
    let resync = hub.after(start).await.expect_err("it is forgotten");
    assert_eq!(resync.now, now);
    let recent = Cursor { revision: Revision(now.revision.0 - 190_000), ..now };
    assert!(hub.after(recent).await.is_ok(), "nearly all that is promised is there");
    node.stop().await;
}

#[tokio::test]
async fn a_cursor_outlives_a_restart() {
    for place in Place::both() {
        let node = place.start().await;
        granted(&node, acquire("a", 1)).await;
        let cursor = node.events().now();
        granted(&node, acquire("b", 2)).await;
        node.stop().await;
        let node = place.start().await;
        let batches = node.events().after(cursor).await.expect("the log still has it");
        assert_eq!(batches[0].events[0].revision, Revision(cursor.revision.0 + 1));
        node.stop().await;
    }
}
