//! Calls held open for a wait (sections 6 and 8).

use super::world::{Ask, World, abandon, acquire, acquire_for, queue_for, release};
use sereno_core::{
    command::{Acquire, Operation},
    outcome::{Code, Detail, WaitEnd},
    testing,
};

fn wait(resource: &str, n: u64, wait_ms: u64) -> Ask {
    let acquire = testing::acquire(resource, n);
    Ask::new(Operation::Acquire(Acquire { wait_timeout_ms: wait_ms, ..acquire }))
}

#[test]
fn a_waiting_call_is_held_until_it_is_granted_and_told_at_once() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let waiter = world.done(queue_for("a", 2).held(20_000));
    assert!(world.is_open(waiter));
    world.run(7_000);
    assert!(world.is_open(waiter));
    world.call(release("a", 1));
    assert!(world.is_open(waiter), "not before the release is durable");
    world.land();
    let grant = world.granted(waiter);
    assert_eq!(grant.expires_in_ms, 10_000);
    world.run(9_000);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"), "it was heard: no grace");
}

#[test]
fn a_waiting_call_is_told_when_its_wait_times_out() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 60_000));
    let waiter = world.done(wait("a", 2, 3_000).held(20_000));
    world.run(2_999);
    assert!(world.is_open(waiter));
    world.run(1);
    assert_eq!(world.refused(waiter), Code::WaitTimeout);
    let detail = &world.outcome(waiter).result.as_ref().unwrap_err().detail;
    assert_eq!(detail, &Detail::Wait(WaitEnd::TimedOut));
}

#[test]
fn when_the_hold_is_over_it_is_told_its_place_and_the_wait_goes_on() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 60_000));
    let first = world.done(queue_for("a", 2).held(30_000));
    let second = world.done(queue_for("a", 3).held(5_000));
    world.run(4_999);
    assert!(world.is_open(second));
    world.run(1);
    let waiting = world.waiting(second);
    assert_eq!(waiting.place, 2);
    // As of the last entry, at most a heartbeat ago.
    assert!((55_000..=55_500).contains(&waiting.wait_expires_in_ms));
    let at = world.now.mono;
    let repeat = world.done(queue_for("a", 3).held(5_000));
    assert!(world.is_open(repeat) && world.now.mono == at, "the same call again is held again");
    world.done(release("a", 1));
    world.granted(first);
    world.done(release("a", 2));
    world.granted(repeat);
}

#[test]
fn a_hold_never_outlasts_the_callers_deadline() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 60_000));
    let waiter = world.done(queue_for("a", 2).held(20_000).within(3_000));
    world.run(3_000);
    assert_eq!(world.waiting(waiter).place, 1, "it still listens, just");
}

#[test]
fn a_call_that_is_not_held_is_told_its_place_at_once() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let waiter = world.done(queue_for("a", 2));
    assert_eq!(world.waiting(waiter).place, 1);
}

#[test]
fn holds_end_also_while_the_log_does_not_answer() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let waiter = world.done(queue_for("a", 2).held(5_000));
    world.pass(5_000);
    assert_eq!(world.waiting(waiter).place, 1);
}

#[test]
fn several_calls_for_one_claim_are_all_answered_by_its_grant() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let calls: Vec<_> = (0..5).map(|_| world.done(queue_for("a", 2).held(20_000))).collect();
    assert_eq!(world.waiters().len(), 1, "one request, one claim");
    world.cancel(calls[2]);
    world.done(release("a", 1));
    for id in [0, 1, 3, 4] {
        let grant = world.granted(calls[id]);
        assert_eq!(grant, world.granted(calls[0]));
    }
    assert!(world.is_open(calls[2]), "nobody listens there");
}

#[test]
fn an_abandon_answers_the_call_that_waits() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let waiter = world.done(queue_for("a", 2).held(20_000));
    world.done(abandon(2));
    assert_eq!(world.refused(waiter), Code::Abandoned);
    assert_eq!(world.waiters().len(), 0);
}

#[test]
fn a_wait_and_its_grant_in_one_entry_are_one_answer() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.pass(500);
    let waiter = world.call(queue_for("a", 2).held(20_000));
    // Releases go first: this one only frees the way for `waiter` in a later command of the same batch.
    let freed = world.call(acquire("b", 3));
    world.call(abandon(4));
    world.land();
    world.land();
    world.granted(freed);
    assert!(world.is_open(waiter));
    world.done(release("a", 1));
    world.granted(waiter);
}

#[test]
fn a_waiters_lease_begins_with_the_entry_that_hands_over() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 2_000));
    let waiter = world.done(wait("a", 2, 60_000).held(20_000));
    world.run(2_000);
    assert_eq!(world.granted(waiter).expires_in_ms, 10_000, "a whole TTL from now");
}
