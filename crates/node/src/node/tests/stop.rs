//! A graceful stop (sections 6 and 12).

use super::world::{World, acquire, queue_for, release};
use crate::{
    handle::{Consistency, Role, Undecided},
    node::Input,
};
use sereno_core::{entry::Body, ids::Position};

#[test]
fn in_flight_is_answered_queued_refused_held_ended_then_it_resigns() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let held = world.done(queue_for("a", 2).held(20_000));
    let in_flight = world.call(acquire("b", 3));
    let riding = world.call(queue_for("a", 4).held(20_000));
    let queued = world.call(acquire("c", 5));
    let read = world.read(Consistency::Consistent);
    world.give(Input::Stop);
    assert_eq!(world.undecided(held), &Undecided::HeldCallEnded);
    assert!(world.is_unavailable(riding) && world.is_unavailable(queued));
    assert!(matches!(world.reads[&read], Err(Undecided::Unavailable { .. })));
    assert_eq!(world.not_ready(), Some("stopping".into()));

    let late = world.call(acquire("d", 6));
    let late_read = world.read(Consistency::Consistent);
    assert!(world.is_unavailable(late) && world.reads[&late_read].is_err());
    world.land();
    world.granted(in_flight);
    assert_eq!(world.not_ready(), Some("stopping".into()), "a commit does not make it ready");
    let resign = world.sent.as_ref().unwrap().decoded();
    assert_eq!(resign.body, Body::Resign);
    assert!(!world.stopped);
    world.land();
    assert!(world.stopped);
    assert_eq!(world.node.state().leader(), None);
    assert_eq!(world.node.status(world.now.mono).role, Role::Stopped);
    assert_eq!(world.not_ready(), Some("stopping".into()));
    world.run(10_000);
    assert!(world.sent.is_none(), "it has stopped");
}

#[test]
fn a_wait_that_was_in_flight_is_answered_and_not_held() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let riding = world.call(queue_for("a", 2).held(20_000));
    world.give(Input::Stop);
    world.land();
    assert_eq!(world.waiting(riding).place, 1, "to be asked for again elsewhere");
    world.land();
    assert!(world.stopped);
}

#[test]
fn a_read_in_flight_is_answered() {
    let mut world = World::leading();
    let read = world.read(Consistency::Consistent);
    world.give(Input::Stop);
    world.land();
    assert!(world.reads[&read].is_ok());
}

#[test]
fn an_idle_node_resigns_at_once_and_a_second_stop_changes_nothing() {
    let mut world = World::leading();
    world.give(Input::Stop);
    world.give(Input::Stop);
    world.land();
    assert!(world.stopped);
}

#[test]
fn a_node_that_does_not_lead_has_nothing_to_resign() {
    let mut world = World::new();
    world.give(Input::Stop);
    assert!(world.stopped && world.sent.is_none());

    let mut world = World::new();
    world.advance();
    world.give(Input::Stop);
    assert!(!world.stopped, "its announce is under way");
    world.land();
    assert_eq!(world.leads, 0);
    world.land();
    assert!(world.stopped);
    assert_eq!(world.log.head().position, Position(2));
}

#[test]
fn a_stop_waits_for_what_became_of_an_unknown_append() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    world.land_unheard();
    world.give(Input::Stop);
    world.run(1_000);
    world.granted(id);
    assert!(world.stopped);
    assert_eq!(world.node.state().leader(), None);
}

#[test]
fn a_stop_does_not_wait_for_a_log_that_is_gone() {
    // A resign spares the others a silence; it is not worth hanging for.
    let mut world = World::leading();
    let id = world.call(acquire("a", 1).within(60_000));
    world.lose();
    world.give(Input::Stop);
    for _ in 0..200 {
        world.pass(50);
        if world.sent.is_some() {
            world.lose();
        }
    }
    assert!(world.stopped);
    assert_eq!(world.undecided(id), &Undecided::Unknown);

    let mut world = World::leading();
    world.give(Input::Stop);
    world.refuse();
    world.run(1_000);
    assert!(world.stopped, "a refused resign is tried again");
    assert_eq!(world.node.state().leader(), None);

    let mut world = World::leading();
    world.give(Input::Stop);
    world.pass(10_000);
    assert!(world.stopped, "no answer at all");
}

#[test]
fn the_next_start_finds_the_resign_and_everything_before_it() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    world.call(release("x", 2));
    world.give(Input::Stop);
    world.settle();
    world.granted(id);
    let state = world.replayed();
    assert_eq!((state.leader(), state.leases()), (None, 1));
}
