//! Waits and hand-overs that nobody asks for (section 6): ended after the grace, 10 s of cluster time from the end
//! of the last call, and never while somebody can rely on them (S8).

use super::world::{WALL_US, World, acquire_for, queue_for, release, renew, settings};
use crate::{
    calls::GRACE_MS,
    node::{CallId, Input, Settings},
};
use sereno_core::{
    entry::Writer,
    outcome::{Code, Detail, Done, End, WaitEnd},
};

/// `a` is held by 1 for a minute.
fn held() -> World {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 60_000));
    world
}

fn is_deserted(world: &mut World, n: u64) -> bool {
    let id = world.done(queue_for("a", n));
    let outcome = world.outcome(id).result.clone();
    matches!(outcome, Err(refusal) if refusal.code == Code::WaitTimeout
        && refusal.detail == Detail::Wait(WaitEnd::Deserted))
}

#[test]
fn a_waiter_whose_call_was_cancelled_is_removed_after_the_grace() {
    let mut world = held();
    let waiter = world.done(queue_for("a", 2).held(20_000));
    let other = world.done(queue_for("a", 3).held(40_000));
    world.run(5_000);
    world.cancel(waiter);
    world.run(GRACE_MS - 1);
    assert_eq!(world.waiters().len(), 2);
    world.run(1_000);
    assert_eq!(world.waiters().len(), 1);
    assert!(is_deserted(&mut world, 2), "`WAIT_TIMEOUT` with reason abandoned");
    assert!(world.is_open(other));
}

#[test]
fn the_grace_runs_in_cluster_time() {
    let mut world = held();
    let waiter = world.done(queue_for("a", 2).held(20_000));
    world.cancel(waiter);
    for _ in 0..600 {
        world.pass(100);
        if world.sent.is_some() {
            world.refuse();
        }
    }
    world.run(1_000);
    assert_eq!(world.waiters().len(), 1, "an outage eats nobody's grace");
}

#[test]
fn asking_again_within_the_grace_keeps_the_place() {
    let mut world = held();
    world.done(queue_for("a", 2));
    let other = world.done(queue_for("a", 3));
    assert_eq!(world.waiting(other).place, 2);
    for _ in 0..4 {
        world.run(9_000);
        let again = world.done(queue_for("a", 2));
        assert_eq!(world.waiting(again).place, 1);
        world.done(queue_for("a", 3));
    }
    world.run(GRACE_MS + 1_000);
    assert_eq!(world.waiters().len(), 0);
}

#[test]
fn a_held_call_counts_as_asking_and_the_end_of_the_last_one_begins_the_grace() {
    let mut world = held();
    let one = world.done(queue_for("a", 2).held(30_000));
    let two = world.done(queue_for("a", 2).held(15_000));
    world.cancel(one);
    world.run(15_000);
    world.waiting(two);
    assert_eq!(world.waiters().len(), 1, "held for 15 s by the other call");
    world.run(GRACE_MS - 1);
    assert_eq!(world.waiters().len(), 1);
    world.run(1_000);
    assert_eq!(world.waiters().len(), 0);
}

#[test]
fn a_call_cancelled_in_flight_begins_the_grace_with_its_commit() {
    let mut world = held();
    let waiter = world.call(queue_for("a", 2).held(20_000));
    world.cancel(waiter);
    world.land();
    world.run(GRACE_MS - 1);
    assert_eq!(world.waiters().len(), 1);
    world.run(1_000);
    assert_eq!(world.waiters().len(), 0);
}

#[test]
fn at_an_announce_all_graces_begin_afresh() {
    let mut world = held();
    world.done(queue_for("a", 2));
    world.run(9_000);
    let other = Settings { writer: Writer { node_id: "n2".into(), start: 2 }, ..settings() };
    let mut world = World::with(other, world.log, WALL_US);
    world.advance();
    world.land();
    world.run(GRACE_MS - 1);
    assert_eq!(world.waiters().len(), 1, "as long to ask again as if its call had ended now");
    world.run(1_000);
    assert_eq!(world.waiters().len(), 0);
}

#[test]
fn a_hand_over_that_went_to_no_open_call_is_taken_back_after_the_grace() {
    let mut world = held();
    world.done(minute(2));
    let next = world.done(queue_for("a", 3).held(30_000));
    world.done(release("a", 1));
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
    world.run(GRACE_MS - 1);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
    world.run(1_000);
    world.granted(next);
    let late = world.done(minute(2));
    let Err(refusal) = &world.outcome(late).result else { panic!("it has ended") };
    assert!(matches!(refusal.detail, Detail::Ended { end: End::Abandoned, .. }), "{refusal:?}");
}

#[test]
fn a_hand_over_asked_for_within_the_grace_stays() {
    let mut world = held();
    world.done(queue_for("a", 2));
    world.done(release("a", 1));
    world.run(9_000);
    let id = world.done(queue_for("a", 2));
    world.granted(id);
    let renewed = world.done(renew("a", 2));
    assert!(world.outcome(renewed).result.is_ok());
    world.run(9_500);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
}

/// A lease of a minute, handed over to 2.
fn handed_over(deaf: impl Fn(&mut World) -> Vec<CallId>) -> World {
    let mut world = held();
    let ids = deaf(&mut world);
    world.deaf.extend(ids);
    world.done(release("a", 1));
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
    world
}

fn minute(n: u64) -> super::world::Ask {
    let mut ask = queue_for("a", n);
    if let sereno_core::command::Operation::Acquire(acquire) = &mut ask.operation {
        acquire.lease_ttl_ms = Some(60_000);
    }
    ask
}

#[test]
fn a_hand_over_whose_answer_reached_nobody_is_taken_back() {
    let mut world = handed_over(|world| vec![world.done(minute(2).held(20_000))]);
    world.run(GRACE_MS + 1_000);
    assert_eq!(world.holder("a"), None);
}

#[test]
fn a_hand_over_that_one_of_several_calls_heard_stays() {
    // S8: its owner relies on that answer, whatever became of the other copies of the call.
    let mut world = handed_over(|world| {
        world.done(minute(2).held(20_000));
        vec![world.done(minute(2).held(20_000))]
    });
    world.run(GRACE_MS * 3);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
}

#[test]
fn a_hand_over_that_none_of_several_calls_heard_is_taken_back() {
    let mut world = handed_over(|world| {
        vec![world.done(minute(2).held(20_000)), world.done(minute(2).held(20_000))]
    });
    world.run(GRACE_MS + 1_000);
    assert_eq!(world.holder("a"), None);
}

#[test]
fn a_copy_that_nobody_hears_does_not_take_back_what_was_heard_before() {
    let mut world = handed_over(|world| {
        world.done(minute(2).held(20_000));
        Vec::new()
    });
    world.run(1_000);
    let copy = world.call(minute(2));
    world.deaf.insert(copy);
    world.settle();
    world.granted(copy);
    world.run(GRACE_MS * 3);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
}

#[test]
fn a_copy_cancelled_in_flight_does_not_either() {
    let mut world = handed_over(|world| {
        world.done(minute(2).held(20_000));
        Vec::new()
    });
    let copy = world.call(minute(2));
    world.cancel(copy);
    world.settle();
    world.run(GRACE_MS * 3);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
}

#[test]
fn a_repeat_that_nobody_hears_has_the_grace_from_its_end() {
    // Never heard by anybody: asked for after 9 s, whose answer is lost too.
    let mut world = handed_over(|world| vec![world.done(minute(2).held(20_000))]);
    world.run(9_000);
    let repeat = world.call(minute(2));
    world.deaf.insert(repeat);
    world.settle();
    world.run(GRACE_MS - 1);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
    world.run(1_000);
    assert_eq!(world.holder("a"), None);
}

#[test]
fn an_answer_found_unheard_late_begins_the_grace_then() {
    let mut world = handed_over(|world| {
        world.done(minute(2).held(20_000));
        Vec::new()
    });
    let claim = world.granted(CallId(2)).claim;
    world.run(3_000);
    world.give(Input::Unheard(claim));
    world.run(GRACE_MS - 1);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"));
    world.run(1_000);
    assert_eq!(world.holder("a"), None);
}

#[test]
fn a_hand_over_and_the_repeat_that_hears_of_it_in_one_entry() {
    // The sweep of an entry hands over to 2, nobody's call being open; a command of the same entry is 2's repeat.
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 2_000));
    world.done(minute(2));
    world.run(1_999);
    world.forward_ns(1_000_000);
    let repeat = world.call(minute(2).held(20_000));
    world.settle();
    world.granted(repeat);
    world.run(GRACE_MS * 3);
    assert_eq!(world.holder("a").as_deref(), Some("owner-2"), "it was heard (S8)");
}

#[test]
fn what_was_granted_at_once_is_never_taken_back_by_a_grace() {
    let mut world = World::leading();
    let id = world.call(acquire_for("a", 1, 60_000));
    world.deaf.insert(id);
    world.settle();
    let gone = world.call(acquire_for("b", 2, 60_000));
    world.cancel(gone);
    world.settle();
    world.run(GRACE_MS * 3);
    assert_eq!(world.node.state().leases(), 2);
}

#[test]
fn an_end_whose_entry_was_refused_is_said_again() {
    let mut world = held();
    let waiter = world.done(queue_for("a", 2).held(20_000));
    world.cancel(waiter);
    let is_end = |world: &World| {
        let commands = world.sent.as_ref().map(super::world::Sent::commands).unwrap_or_default();
        commands.iter().any(|op| matches!(op, sereno_core::command::Operation::EndDeserted(_)))
    };
    while !is_end(&world) {
        if world.sent.is_some() {
            world.land();
        } else {
            world.pass(500);
        }
    }
    world.refuse();
    world.run(1_000);
    assert_eq!(world.waiters().len(), 0);
}

#[test]
fn a_hand_over_by_the_sweep_of_an_announce_has_its_grace_too() {
    // More is due than one entry sweeps, so the announce finds the rest.
    let mut world = World::leading();
    for n in 0..1_200 {
        world.queue(acquire_for(&format!("r{n:04}"), n, 1_000));
    }
    world.advance();
    world.settle();
    let waiter = super::world::acquire_for("r1199", 5_000, 60_000);
    let mut waiter = waiter;
    if let sereno_core::command::Operation::Acquire(acquire) = &mut waiter.operation {
        acquire.wait_timeout_ms = 60_000;
    }
    world.done(waiter);
    world.run(999);
    world.pass(1);
    world.land();
    assert_eq!(world.node.state().due().objects, 200, "one entry swept 1,000");

    let other = Settings { writer: Writer { node_id: "n2".into(), start: 2 }, ..settings() };
    let mut world = World::with(other, world.log, WALL_US);
    world.advance();
    world.land();
    assert_eq!(world.holder("r1199").as_deref(), Some("owner-5000"));
    world.run(GRACE_MS + 1_000);
    assert_eq!(world.holder("r1199"), None);
}

#[test]
fn ends_do_not_hold_up_renewals() {
    let mut world = held();
    for n in 2..5_000 {
        world.queue(queue_for("a", n));
    }
    world.advance();
    world.settle();
    world.run(GRACE_MS - 1);
    world.forward_ns(600_000_000);
    world.advance();
    world.land();
    assert!(world.sent.is_some(), "thousands of ends are due");
    let renewal = world.call(renew("a", 1));
    world.land();
    world.land();
    assert!(matches!(world.outcome(renewal).result, Ok(Done::Renewed(_))));
    world.settle();
    assert_eq!(world.waiters().len(), 0);
}
