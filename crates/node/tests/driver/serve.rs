//! What clients see, over both engines.

use crate::support::{
    Place, acquire, call, chain, decided, grant_in, granted, last_body, queue_for, release, renew,
    undecided, until,
};
use sereno_core::{
    entry::Body,
    outcome::{Code, Done, Outcome},
    testing,
};
use sereno_node::handle::{Consistency, Reply, Role, Undecided};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn acquire_renew_release() {
    for place in Place::both() {
        let node = place.start().await;
        let grant = granted(&node, acquire("a", 1)).await;
        assert_eq!(grant.lease_id, testing::lease_id(1));
        let refused = decided(&node, acquire("a", 2)).await;
        assert_eq!(refused.result.unwrap_err().code, Code::Locked);
        let renewed = decided(&node, renew("a", 1)).await;
        assert!(matches!(renewed.result, Ok(Done::Renewed(_))));
        let released = decided(&node, release("a", 1)).await;
        assert_eq!(released.result, Ok(Done::Released { already: None }));
        let next = granted(&node, acquire("a", 3)).await;
        assert!(next.holdings[0].1 > grant.holdings[0].1);
        node.stop().await;
    }
}

#[tokio::test]
async fn a_waiter_is_told_of_the_hand_over_at_once() {
    for place in Place::both() {
        let node = place.start().await;
        granted(&node, acquire("a", 1)).await;
        let waiting = tokio::spawn({
            let node = node.clone();
            async move { node.call(queue_for("a", 2)).await }
        });
        until(&node, |status| status.waiters == 1).await;
        let begun = Instant::now();
        decided(&node, release("a", 1)).await;
        let grant = grant_in(waiting.await.expect("it is answered"));
        assert_eq!(grant.holdings[0].0, testing::resource_name("a"));
        assert!(begun.elapsed() < Duration::from_secs(5), "not at the end of its hold");
        node.stop().await;
    }
}

#[tokio::test]
async fn a_consistent_read_sees_what_was_answered_before() {
    for place in Place::both() {
        let node = place.start().await;
        let deadline = || Instant::now() + Duration::from_secs(60);
        for n in 0..50 {
            let outcome = decided(&node, acquire(&format!("r{n}"), n)).await;
            let read = node.read(Consistency::Consistent, deadline(), sereno_core::State::leases);
            let (leases, at) = read.await.expect("the log confirms it");
            assert_eq!(leases, n + 1);
            assert!(at.revision >= outcome.revision && at.time >= outcome.time);
        }
        let read = node.read(Consistency::Stale, deadline(), sereno_core::State::leases);
        assert_eq!(read.await.expect("it is there").0, 50);
        node.stop().await;
    }
}

#[tokio::test]
async fn many_clients_at_once_are_all_answered() {
    for place in Place::both() {
        let node = place.start().await;
        let clients: Vec<_> = (0..64)
            .map(|client| {
                let node = node.clone();
                tokio::spawn(async move {
                    for round in 0..50 {
                        let (n, resource) = (client * 1_000 + round, format!("r{}", client / 2));
                        grant_in(node.call(queue_for(&resource, n)).await);
                        decided(&node, release(&resource, n)).await;
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.expect("it has gone through");
        }
        let (head, _) = chain(&node).await;
        let status = until(&node, |status| status.position >= head.position).await;
        assert_eq!((status.leases, status.waiters, status.intake), (0, 0, 0));
        assert_eq!(status.revision.0, 64 * 50 * 2);
        node.stop().await;
    }
}

#[tokio::test]
async fn a_stop_ends_held_calls_resigns_and_leaves_nobody_without_an_answer() {
    for place in Place::both() {
        let log = place.open();
        let node = crate::support::start(log.clone(), crate::support::config()).await;
        granted(&node, acquire("a", 1)).await;
        let waiting = tokio::spawn({
            let node = node.clone();
            async move { node.call(queue_for("a", 2)).await }
        });
        until(&node, |status| status.waiters == 1).await;
        // Calls race with the stop: each is decided, or certainly not applied.
        let racing: Vec<_> = (10..200)
            .map(|n| {
                let node = node.clone();
                tokio::spawn(async move { node.call(acquire(&format!("r{n}"), n)).await })
            })
            .collect();
        tokio::join!(node.stop(), node.stop());
        let held = waiting.await.expect("it is answered");
        assert_eq!(held, Reply::Undecided(Undecided::HeldCallEnded));
        let mut leases = 1;
        for reply in racing {
            match reply.await.expect("it is answered") {
                Reply::Decided(Outcome { result: Ok(Done::Granted(_)), .. }) => leases += 1,
                Reply::Undecided(Undecided::Unavailable { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(last_body(&*log).await, Body::Resign);
        assert_eq!(node.status().borrow().role, Role::Stopped);
        assert_eq!(node.status().borrow().leases, leases);
        let late = undecided(&node, acquire("late", 3)).await;
        assert!(matches!(late, Undecided::Unavailable { .. }));
        let deadline = Instant::now() + Duration::from_secs(1);
        let read = node.read(Consistency::Stale, deadline, |_| ()).await;
        assert!(matches!(read, Err(Undecided::Unavailable { .. })));
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_follows_within_a_tenth_of_a_second_also_when_nothing_more_happens() {
    let node = Place::memory().start().await;
    let begun = Instant::now();
    granted(&node, acquire("a", 1)).await;
    until(&node, |status| status.leases == 1).await;
    assert!(begun.elapsed() <= Duration::from_millis(101), "{:?}", begun.elapsed());
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_beats_and_otherwise_sleeps() {
    let place = Place::memory();
    let log = place.open();
    let node = place.start().await;
    let before = chain(&node).await.0.position.0;
    let begun = Instant::now();
    until(&node, |status| status.position.0 >= before + 20).await;
    let ms = begun.elapsed().as_millis();
    assert!((9_900..10_200).contains(&ms), "{ms} ms for 20 heartbeats");
    let (head, _) = chain(&node).await;
    assert!(head.position.0 <= before + 22, "and nothing else");
    assert_eq!(log.head().await.expect("it can be read"), head);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_on_time_without_any_call() {
    let node = Place::memory().start().await;
    let begun = Instant::now();
    granted(&node, call(sereno_core::command::Operation::Acquire(testing::acquire("a", 1)))).await;
    let waiter = queue_for("a", 2);
    grant_in(node.call(waiter).await);
    let ms = begun.elapsed().as_millis();
    assert!((9_999..10_010).contains(&ms), "a TTL of 10 s, {ms} ms");
    node.stop().await;
}
