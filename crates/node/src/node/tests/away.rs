//! A log that does not answer: after three seconds whoever waits for it is told what is known, whatever its own deadline
//! is; and never more than that.

use super::world::{World, acquire, queue_for, release, renew};
use crate::{
    handle::{Consistency, Undecided},
    node::CallId,
};
use sereno_core::command::Operation;

/// Time passes, and every append is answered with *nobody knows*.
fn lose_for(world: &mut World, ms: u64) {
    for _ in 0..ms / 20 {
        if world.sent.is_some() {
            world.lose();
        }
        world.pass(20);
    }
}

/// The log answers again: what was under way lands as soon as it is sent again, and all that follows on it.
fn is_back(world: &mut World) {
    resend(world);
    world.settle();
}

fn resend(world: &mut World) {
    while world.sent.is_none() {
        world.pass(20);
    }
}

#[test]
fn a_call_under_way_is_unknown_and_one_that_is_queued_was_not_applied() {
    let mut world = World::leading();
    world.done(acquire("kept", 1));
    let under_way = world.call(acquire("a", 2).within(30_000));
    let sent = world.lose();
    let queued = world.call(acquire("b", 3).within(30_000));
    let read = world.read(Consistency::Consistent);
    lose_for(&mut world, 2_900);
    assert!(world.is_open(under_way) && world.is_open(queued), "it may be back soon");
    assert!(!world.reads.contains_key(&read));
    lose_for(&mut world, 300);
    assert_eq!(world.undecided(under_way), &Undecided::Unknown);
    assert!(world.is_unavailable(queued), "it was never sent");
    assert!(matches!(world.reads[&read], Err(Undecided::Unavailable { .. })));
    // It had landed, though: what was told was honest, and a repeat finds it.
    world.deliver(&sent);
    world.run(2_000);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
    assert_eq!(world.holder("b"), None, "what was told not to be applied never is");
    let again = world.done(acquire("a", 2));
    assert!(world.outcome(again).replayed.is_some());
}

#[test]
fn what_keeps_or_ends_a_lease_has_three_seconds_of_its_own() {
    let mut world = World::leading();
    world.done(acquire("kept", 1));
    world.done(acquire("over", 2));
    world.call(acquire("a", 3));
    world.lose();
    lose_for(&mut world, 4_000);
    let renewal = world.call(renew("kept", 1).within(30_000));
    let ending = world.call(release("over", 2).within(30_000));
    lose_for(&mut world, 2_900);
    assert!(world.is_open(renewal) && world.is_open(ending), "the log may be back soon");
    lose_for(&mut world, 300);
    assert!(world.is_unavailable(renewal), "it was not sent, and will not be");
    assert_eq!(world.undecided(ending), &Undecided::Unknown, "it will be, whoever listens");
    // The log is back: first what was under way, then the release alone.
    resend(&mut world);
    world.land();
    let next = world.sent.as_ref().expect("the release is on its way").commands();
    assert!(matches!(next[..], [Operation::Release(_)]), "{next:?}");
    world.settle();
    assert_eq!(world.holder("over"), None);
}

/// Each repeat of a renewal takes the place of the one before it, or an outage of minutes would fill the intake.
#[test]
fn renewals_that_nobody_waits_for_any_more_leave_the_queue() {
    let mut world = World::leading();
    world.done(acquire("kept", 1));
    world.call(acquire("a", 2));
    world.lose();
    let mut last = CallId(0);
    for _ in 0..50 {
        last = world.call(renew("kept", 1).within(30_000));
        lose_for(&mut world, 1_000);
    }
    let queued = world.node.status(world.now.mono).intake;
    assert!(queued <= 4, "{queued} are queued, and those of the last three seconds are asked for");
    is_back(&mut world);
    world.outcome(last);
}

/// Whoever waits for its turn waits for others: its call is held as long as it asked for, and its place stays.
#[test]
fn a_call_that_is_held_for_its_turn_is_held_on() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let waiter = world.done(queue_for("a", 2).held(15_000));
    world.call(acquire("b", 3));
    world.lose();
    lose_for(&mut world, 10_000);
    assert!(world.is_open(waiter));
    is_back(&mut world);
    world.done(release("a", 1));
    world.granted(waiter);
}
