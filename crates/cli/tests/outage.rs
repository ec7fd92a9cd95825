//! Three etcd members and three nodes as real processes, and holders by the Rust library: an outage of etcd that is
//! longer than a lease stops them by their own clocks and lets nobody else in, and after it they acquire anew; a leader
//! that hangs costs none of them its lease.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use sereno_client::{Client, Error, Guard, GuardState, Loss, Moment, NotHeld};
use std::{thread, time::Duration};
use support::{signal, zones::Zones};

/// The shortest lease that is allowed where a takeover is possible.
const TTL: Duration = Duration::from_secs(5);
/// Longer than the outage and everything around it, on a busy machine.
const WAIT: Duration = Duration::from_secs(120);

/// One process of an application.
fn client(zones: &Zones, owner: &str) -> Client {
    Client::builder().servers(zones.urls().join(",")).owner(owner).build().unwrap()
}

async fn acquire(client: &Client, resource: &str) -> Guard {
    client.lock(resource).ttl(TTL).wait(WAIT).acquire().await.unwrap()
}

async fn until_one_waits(client: &Client, resource: &str) {
    while client.get_lock(None, resource).await.unwrap().waiters != 1 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn holders_that_had_to_stop_acquire_anew_and_nobody_else_was_let_in_meanwhile() {
    let mut zones = Zones::start();
    // The cluster's tools block, so the holders have a runtime of their own beside them.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (holder, rival) = (client(&zones, "holder"), client(&zones, "rival"));
    let (own, shared) = runtime
        .block_on(async { (acquire(&holder, "own").await, acquire(&holder, "shared").await) });
    // Somebody stands in the queue all the time, ready to be let in.
    let waits = rival.clone();
    let waiting = runtime.spawn(async move { (acquire(&waits, "shared").await, Moment::now()) });
    runtime.block_on(until_one_waits(&holder, "shared"));

    let outage = Moment::now();
    zones.etcd.kill(0);
    zones.etcd.kill(1);
    // The guards find out by themselves.
    let mut lost_at = Vec::new();
    for guard in [&own, &shared] {
        assert_eq!(runtime.block_on(guard.lost()), Loss::Deadline);
        assert_eq!(guard.check(), Err(NotHeld::Lost(Loss::Deadline)));
        lost_at.push(guard.watch().borrow().deadline);
    }
    assert!(!waiting.is_finished(), "cluster time stands still: nobody is let in");
    // For as long as another lease nothing is granted to anybody, not even what is free.
    let free = rival.lock("free").ttl(TTL).timeout(TTL).acquire();
    let refused = runtime.block_on(free).unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_) | Error::Unknown(_)), "{refused}");
    assert!(!waiting.is_finished());

    let back = Moment::now();
    assert!(back.since(outage) > TTL, "the outage was longer than the lease");
    // The holder goes on asking meanwhile, as an application does.
    let asks = holder.clone();
    let anew = runtime.spawn(async move { acquire(&asks, "own").await });
    zones.etcd.restart(0).unwrap();
    zones.etcd.restart(1).unwrap();
    zones.etcd.wait_until_healthy().unwrap();

    // What nobody else wanted is the same process's again; whoever comes later gets in only after it.
    let anew = runtime.block_on(anew).unwrap();
    let first = own.grant().holdings[0].fencing_token;
    assert!(anew.token().unwrap() > first, "{anew:?} after {own:?}");
    let waits = rival.clone();
    let later = runtime.spawn(async move { acquire(&waits, "own").await });
    runtime.block_on(until_one_waits(&holder, "own"));
    assert_eq!(anew.state(), GuardState::Held);
    let last = anew.token().unwrap();
    runtime.block_on(anew.release()).unwrap();
    assert!(runtime.block_on(later).unwrap().token().unwrap() > last);

    // Who stood in the queue before the outage is served first, long after the holder had stopped.
    let (rivals, let_in) = runtime.block_on(waiting).unwrap();
    assert!(lost_at[1] < back && back < let_in, "lost {lost_at:?}, back {back:?}, in {let_in:?}");
    let between = rivals.token().unwrap();
    assert!(between > shared.grant().holdings[0].fencing_token);
    runtime.block_on(rivals.release()).unwrap();
    let again = runtime.block_on(acquire(&holder, "shared"));
    assert!(again.token().unwrap() > between);
    drop((own, shared, again));
    runtime.block_on(holder.settled());
}

/// docs/leases.md says so. The worst moment for a leader to hang is that before a renewal: a third of the lease is gone.
#[test]
fn a_lease_of_ten_seconds_outlives_a_leader_that_hangs() {
    const LEASE: Duration = Duration::from_secs(10);
    let zones = Zones::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut urls, leader) = (zones.urls(), zones.leader());
    // Each asks another address first: that of the leader, or one that passes on to it.
    let guards = [0, 1, 2].map(|n| {
        urls.rotate_left(1);
        let client = Client::builder().servers(urls.join(",")).build().unwrap();
        let acquiring = client.lock(format!("held-{n}")).ttl(LEASE).wait(WAIT).acquire();
        runtime.block_on(acquiring).unwrap()
    });
    thread::sleep(LEASE / 3 - LEASE / 30); // Time itself brings the moment about.
    let hung = Moment::now();
    signal("-STOP", zones.node(leader).child.id());
    for guard in &guards {
        // What was sent before does not count longer than that.
        let sent_before = hung.plus(LEASE);
        let mut watch = guard.watch();
        let decided = watch
            .wait_for(|it| it.deadline > sent_before || matches!(it.state, GuardState::Lost(_)));
        runtime.block_on(decided).unwrap();
        assert_eq!(guard.check(), Ok(()), "{guard:?}");
    }
    signal("-CONT", zones.node(leader).child.id());
    for guard in guards {
        runtime.block_on(guard.release()).unwrap();
    }
}
