//! 10,000 waiters on one resource, with random cancels and dying clients: order kept, one wake each, no leak (L3).

use super::world::{Ask, World, acquire, queue_for, release};
use crate::{
    calls::GRACE_MS,
    handle::Reply,
    node::{CallId, Input},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sereno_core::{
    command::{Acquire, Operation},
    ids::Token,
    limits,
    outcome::{Code, Done, Outcome},
    testing,
};
use std::collections::{BTreeMap, BTreeSet};

const WAITERS: u64 = limits::WAITERS_PER_RESOURCE_MAX as u64;

fn waiter(n: u64) -> Ask {
    let wait_timeout_ms = limits::WAIT_TIMEOUT_MS_MAX;
    let acquire = Acquire { wait_timeout_ms, ..testing::acquire("hot", n) };
    Ask::new(Operation::Acquire(Acquire { lease_ttl_ms: Some(60_000), ..acquire })).held(700_000)
}

/// Number 0 holds, all others wait.
fn crowd() -> (World, BTreeMap<u64, CallId>) {
    let mut world = World::leading();
    world.done(acquire("hot", 0));
    let mut calls = BTreeMap::new();
    for n in 1..=WAITERS {
        calls.insert(n, world.queue(waiter(n)));
        if n % 700 == 0 {
            world.advance();
            world.settle();
        }
    }
    world.advance();
    world.settle();
    assert_eq!(world.node.state().waiters(), WAITERS);
    let full = world.done(queue_for("hot", WAITERS + 1));
    assert_eq!(world.refused(full), Code::QueueFull);
    (world, calls)
}

#[test]
fn ten_thousand_waiters_are_served_in_order_with_one_wake_each_and_leave_nothing() {
    let mut random = StdRng::seed_from_u64(7);
    let (mut world, calls) = crowd();
    let (mut gone, mut dying) = (BTreeSet::new(), BTreeSet::new());
    for (&n, &id) in &calls {
        match random.random_range(0..1_000) {
            // Its connection closes while it waits.
            0..100 => {
                gone.insert(n);
                world.hand(Input::Cancelled(id));
            }
            // It dies unseen: nobody hears of its grant.
            100..103 => {
                dying.insert(n);
                world.deaf.insert(id);
            }
            _ => {}
        }
    }
    assert!(gone.len() > 900 && dying.len() > 15);
    let mut served: Vec<(u64, Token)> = Vec::new();
    let mut holder = 0;
    while world.node.state().leases() > 0 {
        let before = world.replies.len();
        if dying.contains(&holder) || gone.contains(&holder) {
            // It will not release; the leader takes it back when the grace is over.
            let since = world.time();
            while world.holder("hot") == Some(format!("owner-{holder}")) {
                world.run(500);
            }
            assert!(since.until(world.time()) <= GRACE_MS + 500);
        } else {
            world.done(release("hot", holder));
            assert!(world.replies.len() <= before + 2, "the release, and one wake: no herd");
        }
        let Some(owner) = world.holder("hot") else { break };
        holder = owner.trim_start_matches("owner-").parse().expect("owners are numbered");
        if !gone.contains(&holder) {
            served.push((holder, world.granted(calls[&holder]).holdings[0].1));
        }
    }
    assert!(served.is_sorted(), "in the order of arrival, tokens rising");
    // The first of those whose connection closed may be reached before their grace is over.
    assert_eq!(served.len() as u64, WAITERS - gone.len() as u64, "everybody had a turn");
    let is_grant = |reply: &&Reply| {
        matches!(reply, Reply::Decided(Outcome { result: Ok(Done::Granted(_)), .. }))
    };
    let grants = world.replies.values().filter(is_grant).count();
    assert_eq!(grants, served.len() + 1, "one answer for one grant, and the first holder's");
    assert_empty(&mut world);
}

#[test]
fn a_crowd_whose_clients_all_die_is_gone_after_the_grace() {
    let (mut world, calls) = crowd();
    for &id in calls.values() {
        world.hand(Input::Cancelled(id));
    }
    world.run(GRACE_MS + 500);
    assert_eq!(world.node.state().waiters(), 0);
    // The first holder's lease has ended meanwhile: whoever was next has the grace of a hand-over.
    world.run(GRACE_MS);
    assert_eq!(world.node.state().leases(), 0);
    assert_empty(&mut world);
}

/// Nothing is left: neither in the state nor in what the node remembers of calls.
fn assert_empty(world: &mut World) {
    world.run(GRACE_MS + 500);
    let state = world.node.state();
    assert_eq!((state.leases(), state.waiters()), (0, 0));
    state.check_invariants();
    world.node.calls.check_empty();
    assert_eq!(world.node.intake.len(), 0);
    world.run(limits::REPLY_ENDINGS_MS_DEFAULT);
    assert_eq!(world.node.state().reply_records(), 0);
}
