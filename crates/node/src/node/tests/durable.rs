//! Nothing is answered before the log holds the entry that it rests on (S5, S11).

use super::world::{Ask, World, acquire, acquire_for, put_namespace, queue_for, release, renew};
use crate::{
    handle::{Consistency, Undecided},
    node::{CallId, Input},
};
use sereno_core::{
    entry::{Body, Entry, Writer},
    ids::{ClusterTime, Position},
    outcome::{Code, Done},
    policy::Policy,
};
use sereno_log::{Append, Conflict, Slot};

#[test]
fn grants_refusals_and_everything_else_wait_for_their_entry() {
    let mut world = World::leading();
    world.done(acquire("held", 1));
    world.pass(500);
    world.land();
    let asks = [
        acquire("free", 2),
        acquire("held", 3),
        acquire("held", 1),
        acquire_for("x", 4, 1),
        queue_for("held", 5),
        renew("held", 1),
        renew("nobody", 6),
        release("nobody", 7),
        put_namespace("n", 7, Policy::default()),
    ];
    let ids: Vec<_> = asks.into_iter().map(|ask| world.queue(ask)).collect();
    let read = world.read(Consistency::Consistent);
    world.pass(3_000);
    assert!(ids.iter().all(|id| world.is_open(*id)), "nothing is answered");
    assert!(!world.reads.contains_key(&read));
    world.land();
    world.granted(ids[0]);
    assert_eq!(world.refused(ids[1]), Code::Locked);
    assert!(world.outcome(ids[2]).replayed.is_some(), "a replayed answer rides along");
    assert_eq!(world.refused(ids[3]), Code::InvalidArgument);
    assert_eq!(world.waiting(ids[4]).place, 1);
    assert!(matches!(world.outcome(ids[5]).result, Ok(Done::Renewed(_))));
    assert_eq!(world.refused(ids[6]), Code::NotHolder);
    assert!(matches!(world.outcome(ids[7]).result, Ok(Done::Released { .. })));
    assert_eq!(world.refused(ids[8]), Code::VersionConflict);
    assert!(world.reads[&read].is_ok());
}

#[test]
fn expires_in_is_counted_from_an_entry_appended_after_the_call_arrived() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 10_000));
    world.run(2_000);
    let repeat = world.done(acquire_for("a", 1, 10_000));
    assert_eq!(world.granted(repeat).expires_in_ms, 8_000, "a replayed answer too");
}

#[test]
fn born_at_is_the_callers_or_the_time_of_its_arrival_and_too_old_ones_are_refused_by_the_log() {
    let mut world = World::leading();
    world.run(40_000);
    let time = world.time();
    let born = |ms: u64| Ask { born_at: Some(ClusterTime(ms)), ..acquire("a", ms) };
    let old = world.done(born(time.0 - 30_001));
    assert_eq!(world.refused(old), Code::Unavailable, "a copy this late is dead (S7)");
    let younger = world.done(born(time.0 - 30_000));
    world.granted(younger);
    let ahead = world.done(born(time.0 + 5_001));
    assert!(matches!(world.undecided(ahead), Undecided::Invalid(_)), "told by another log");
    // Its queue may be as long as it likes: the time of arrival is what counts.
    world.pass(500);
    let queued = world.call(release("a", time.0 - 30_000));
    let sent = world.sent.clone().unwrap();
    assert!(sent.commands().is_empty());
    world.land();
    let Body::Batch(commands) = world.sent.as_ref().unwrap().decoded().body else {
        panic!("the release is on its way")
    };
    assert_eq!(commands[0].born_at, time, "what it had applied then");
    world.settle();
    world.outcome(queued);
}

#[test]
fn a_standby_may_have_read_the_entry_in_flight_before_its_leader_hears_of_it() {
    let mut world = World::leading();
    world.run(2_000);
    let applied = world.time();
    world.pass(500);
    let in_flight = world.sent.as_ref().unwrap().decoded().time;
    assert!(in_flight > applied);
    let born = |at: ClusterTime, n| Ask { born_at: Some(at), ..acquire("a", n) };
    let passed_on = world.call(born(in_flight, 1));
    let ahead = world.call(born(in_flight.plus(1), 2));
    assert!(matches!(world.undecided(ahead), Undecided::Invalid(_)), "nobody can have read that");
    world.settle();
    world.granted(passed_on);
}

#[test]
fn an_append_that_certainly_failed_is_told_as_not_applied_and_leaves_no_trace() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    let read = world.read(Consistency::Consistent);
    world.refuse();
    assert!(world.is_unavailable(id));
    assert_eq!(world.not_ready().unwrap(), "the log takes no entries");
    assert_eq!(world.node.state().leases(), 0);
    world.run(1_000);
    assert_eq!(world.not_ready(), None);
    assert!(world.reads[&read].is_ok(), "it came after that append was sent");
    // The same request again is as new.
    let id = world.done(acquire("a", 1));
    assert_eq!(world.outcome(id).replayed, None);
    world.granted(id);
}

#[test]
fn nothing_is_granted_renewed_or_acknowledged_without_the_log() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    let (revision, mut calls) = (world.node.state().revision(), Vec::new());
    for n in 2..200 {
        calls.push(world.call(if n % 3 == 0 { renew("a", 1) } else { acquire("b", n) }));
        world.pass(50);
        if world.sent.is_some() {
            world.refuse();
        }
    }
    assert_eq!(world.node.state().revision(), revision);
    let undecided = |id: &CallId| world.is_open(*id) || world.is_unavailable(*id);
    assert!(calls.iter().all(undecided));
}

#[test]
fn a_conflict_with_the_own_entry_in_the_slot_is_a_commit_whatever_the_head_is() {
    let mut world = World::leading();
    let id = world.call(acquire("a", 1));
    let sent = world.sent.take().unwrap();
    assert_eq!(world.deliver(&sent), Append::Committed);
    let mut head = world.log.head();
    head.position = Position(head.position.0 + 40);
    let slot = Slot::Entry(sent.entry.head.hash);
    world.give(Input::Appended(Append::Conflict(Conflict { head, slot })));
    world.granted(id);
    assert_eq!(world.halted, None);
}

/// What the caller is told when somebody else's entry is found; the node stops.
fn told_after_conflict(slot: impl Fn(&World) -> Slot, was_unknown: bool) -> Undecided {
    let mut world = World::leading();
    world.done(acquire("held", 2));
    let held = world.done(queue_for("held", 3).held(20_000));
    let id = world.call(acquire("a", 1));
    let queued = world.call(acquire("b", 4));
    if was_unknown {
        world.lose();
        world.pass(100);
    }
    let sent = world.sent.take().expect("it is sent (again)");
    let rival = Entry {
        writer: Writer { node_id: "rival".into(), start: 7 },
        body: Body::Batch(Vec::new()),
        ..sent.decoded()
    };
    let rival = rival.seal(sent.entry.head.log_id);
    let conflict = Conflict { head: rival.head, slot: slot(&world) };
    world.hand(Input::Appended(Append::Conflict(conflict)));
    assert!(world.halted.as_ref().unwrap().contains("written by somebody else"));
    assert_eq!(world.node.state().leases(), 1);
    assert!(world.is_unavailable(queued), "this one was never sent");
    assert_eq!(world.undecided(held), &Undecided::HeldCallEnded);
    assert_eq!(world.node.wake_at(), None, "it appends nothing any more");
    world.undecided(id).clone()
}

#[test]
fn a_conflict_with_another_entry_in_the_slot_is_lost_for_certain() {
    for was_unknown in [false, true] {
        let other = |_: &World| Slot::Entry(sereno_core::entry::EntryHash([7; 32]));
        let told = told_after_conflict(other, was_unknown);
        assert!(matches!(told, Undecided::Unavailable { .. }), "{told:?}");
    }
}

#[test]
fn a_conflict_with_a_trimmed_slot_is_unknown_for_good() {
    assert_eq!(told_after_conflict(|_| Slot::Trimmed, true), Undecided::Unknown);
    assert_eq!(told_after_conflict(|_| Slot::Empty, true), Undecided::Unknown);
}
