//! Consistent reads ride on an append sent after they arrived, never on the one in flight (section 6).

use super::world::{World, acquire, release};
use crate::handle::{Consistency, Undecided};

#[test]
fn an_idle_leader_sends_an_empty_append_for_a_read() {
    let mut world = World::leading();
    let position = world.log.head().position;
    let read = world.read(Consistency::Consistent);
    assert!(world.sent.as_ref().unwrap().commands().is_empty());
    assert!(!world.reads.contains_key(&read));
    world.land();
    assert_eq!(world.reads[&read], Ok(position.next()));
}

#[test]
fn a_read_never_rides_on_the_append_in_flight_and_all_that_wait_share_one() {
    let mut world = World::leading();
    world.call(acquire("a", 1));
    let in_flight = world.sent.as_ref().unwrap().entry.head.position;
    let reads: Vec<_> = (0..50).map(|_| world.read(Consistency::Consistent)).collect();
    world.land();
    assert!(world.reads.is_empty(), "its append was sent before they arrived");
    let late = world.read(Consistency::Consistent);
    world.land();
    for read in reads {
        assert_eq!(world.reads[&read], Ok(in_flight.next()));
    }
    world.land();
    assert_eq!(world.reads[&late], Ok(in_flight.next().next()));
    assert!(world.sent.is_none());
}

#[test]
fn a_read_sees_the_commands_of_the_append_that_carries_it() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.pass(500);
    let release = world.call(release("a", 1));
    let read = world.read(Consistency::Consistent);
    world.land();
    world.land();
    world.outcome(release);
    assert_eq!(world.reads[&read], Ok(world.log.head().position));
}

#[test]
fn a_stale_read_is_answered_at_once_with_its_age() {
    let mut world = World::leading();
    let position = world.log.head().position;
    world.pass(3_000);
    let read = world.read(Consistency::Stale);
    assert_eq!(world.reads[&read], Ok(position));
    let at = world.node.read_at(world.now.mono);
    assert_eq!((at.age_ms, at.revision), (3_000, world.node.state().revision()));
}

#[test]
fn a_read_that_nothing_confirms_in_time_is_told_so() {
    let mut world = World::leading();
    world.call(acquire("a", 1));
    let read = world.read(Consistency::Consistent);
    world.pass(10_101);
    assert!(matches!(world.reads[&read], Err(Undecided::Unavailable { .. })));
    world.settle();
}

#[test]
fn reads_wait_for_the_announce_of_a_node_that_does_not_lead_yet() {
    let mut world = World::new();
    let early = world.read(Consistency::Consistent);
    let late = world.read(Consistency::Consistent);
    assert!(!world.reads.contains_key(&early));
    world.settle();
    assert!(world.reads[&early].is_ok() && world.reads[&late].is_ok());
}
