//! Appends of which nobody knows what became of them (section 5): sent again, and told by the slot.

use super::world::{World, acquire, acquire_for, queue_for, release};
use crate::{
    handle::{Consistency, Undecided},
    node::{CallId, Input},
};
use sereno_log::Append;

#[test]
fn the_same_bytes_are_sent_again_with_growing_pauses() {
    let mut world = World::leading();
    world.call(acquire("a", 1));
    let first = world.lose();
    assert_eq!(world.not_ready().unwrap(), "the log does not answer");
    let mut sent_at = vec![first.at];
    for _ in 0..8 {
        world.call(acquire("other", 2));
        while world.sent.is_none() {
            world.pass(1);
        }
        let again = world.sent.clone().unwrap();
        assert_eq!((again.expected, &again.entry), (first.expected, &first.entry));
        sent_at.push(again.at);
        world.lose();
    }
    let pauses: Vec<_> =
        sent_at.windows(2).map(|two| two[1].since_ns(two[0]) / 1_000_000).collect();
    assert_eq!(pauses, [50, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
}

#[test]
fn a_reply_that_was_lost_is_found_in_the_slot() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    world.land_unheard();
    assert!(world.is_open(id), "no outcome is claimed meanwhile");
    world.pass(100);
    world.land();
    world.granted(id);
    assert_eq!(world.not_ready(), None);
}

#[test]
fn a_copy_that_lands_later_or_a_second_copy_make_one_entry() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    let first = world.lose();
    world.pass(50);
    assert!(world.sent.is_some(), "sent again");
    assert_eq!(world.deliver(&first), Append::Committed, "now the first copy arrives");
    world.land();
    world.granted(id);
    let revision = world.node.state().revision();

    let id = world.call(release("a", 1));
    let first = world.lose();
    world.run(1_000);
    world.outcome(id);
    assert!(matches!(world.deliver(&first), Append::Conflict(_)), "a late copy changes nothing");
    assert_eq!(world.node.state().revision(), revision.next_is(1));
}

trait NextIs {
    fn next_is(self, more: u64) -> Self;
}

impl NextIs for sereno_core::ids::Revision {
    fn next_is(self, more: u64) -> Self {
        Self(self.0 + more)
    }
}

#[test]
fn a_certain_failure_of_the_second_copy_says_nothing_about_the_first() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    let first = world.lose();
    world.pass(50);
    world.refuse();
    assert!(world.is_open(id), "still nobody knows");
    assert_eq!(world.deliver(&first), Append::Committed);
    world.run(1_000);
    world.granted(id);
}

#[test]
fn a_caller_past_its_deadline_gets_unknown_and_the_commit_is_applied_without_a_second_answer() {
    let mut world = World::leading();
    let short = world.call(acquire("a", 1).within(400));
    let read = world.read(Consistency::Consistent);
    let sent = world.lose();
    let queued = world.call(acquire("b", 2).within(400));
    world.pass(399);
    assert!(world.is_open(short));
    world.pass(101);
    assert_eq!(world.undecided(short), &Undecided::Unknown);
    assert!(world.is_unavailable(queued), "this one was never sent");
    assert!(!world.reads.contains_key(&read));
    assert_eq!(world.deliver(&sent), Append::Committed);
    // The world would not take a second answer.
    world.run(2_000);
    assert_eq!(world.holder("a").as_deref(), Some("owner-1"));
    assert_eq!(world.holder("b"), None);
    assert!(world.reads[&read].is_ok());
    // A repeat learns what became of it (S6).
    let repeat = world.done(acquire("a", 1));
    assert!(world.outcome(repeat).replayed.is_some());
    world.granted(repeat);
}

#[test]
fn deadlines_are_kept_also_while_the_log_does_not_answer_at_all() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1).within(400));
    let read = world.read(Consistency::Consistent);
    world.pass(501);
    assert_eq!(world.undecided(id), &Undecided::Unknown);
    world.pass(10_000);
    assert!(world.reads[&read].is_err(), "a read too has its deadline");
    world.land();
}

#[test]
fn a_read_in_flight_is_told_at_its_deadline_while_nobody_knows_what_became_of_the_append() {
    let mut world = World::leading();
    world.call(acquire("a", 1));
    world.land();
    let read = world.read(Consistency::Consistent);
    assert!(world.sent.is_some(), "it has an append of its own");
    world.lose();
    for _ in 0..120 {
        world.pass(100);
        if world.sent.is_some() {
            world.lose();
        }
    }
    assert!(matches!(world.reads[&read], Err(Undecided::Unavailable { .. })));
    world.run(2_000);
}

#[test]
fn a_wait_whose_call_was_told_unknown_begins_its_grace() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 60_000));
    let waiter = world.call(queue_for("a", 2).within(300));
    world.land_unheard();
    world.pass(40);
    for _ in 0..10 {
        world.pass(40);
        if world.sent.take().is_some() {
            world.give(Input::Appended(Append::Unknown("lost".into())));
        }
    }
    assert_eq!(world.undecided(waiter), &Undecided::Unknown);
    world.run(2_000);
    assert_eq!(world.waiters().len(), 1);
    world.run(12_000);
    assert_eq!(world.waiters().len(), 0, "nobody has asked for it during the grace");
    assert_eq!(world.replies.keys().filter(|id| **id == CallId(waiter.0)).count(), 1);
}
