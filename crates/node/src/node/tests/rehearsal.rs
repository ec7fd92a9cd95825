//! Snapshots by rehearsal (section 7): planned by time and by bytes, and what follows when one differs.

use super::world::{World, acquire, queue_for, release, settings};
use crate::{
    handle::{Consistency, Role, Undecided},
    node::{CallId, Input, Rehearsal, Settings},
};
use sereno_core::{
    State,
    command::Operation,
    entry::{Body, EntryHash, Head},
};

fn rehearsed(world: &mut World, make: impl FnOnce(Head) -> Rehearsal) {
    let (head, _) = *world.rehearsals.last().expect("a rehearsal runs");
    world.give(Input::Rehearsed(make(head)));
}

#[test]
fn a_rehearsal_is_due_after_its_time_at_the_head_with_the_live_chain() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.run(299_999);
    assert!(world.rehearsals.is_empty());
    let state = world.node.state();
    let live = (state.head(), state.outcome_chain());
    world.run(1);
    assert_eq!(world.rehearsals, [live]);
    world.run(600_000);
    assert_eq!(world.rehearsals.len(), 1, "one at a time");
}

#[test]
fn or_after_so_many_bytes_of_log() {
    let mut world = World::leading_with(Settings { snapshot_bytes: 10_000, ..settings() });
    let mut n = 0;
    while world.rehearsals.is_empty() {
        n += 1;
        world.done(acquire(&format!("r{n}"), n));
    }
    let bytes = world.node.status(world.now.mono).log_bytes_since_snapshot;
    assert!((10_000..10_600).contains(&bytes), "{bytes}");
}

#[test]
fn saved_is_followed_by_a_trim_and_the_next_one_is_planned() {
    let mut world = World::leading();
    world.run(300_000);
    // Half a minute of log is written meanwhile: it belongs to the next snapshot.
    world.run(30_000);
    rehearsed(&mut world, Rehearsal::Saved);
    let head = world.rehearsals[0].0;
    assert_eq!(world.trims, [head.position]);
    let status = world.node.status(world.now.mono);
    assert_eq!(status.snapshot, Some(head.position));
    assert!(status.log_bytes_since_snapshot > 60 * 80, "{}", status.log_bytes_since_snapshot);
    world.run(299_999);
    assert_eq!(world.rehearsals.len(), 1);
    world.run(1);
    assert_eq!(world.rehearsals.len(), 2);
    assert_eq!(world.node.status(world.now.mono).snapshot_age_ms, Some(300_000));
}

#[test]
fn failed_is_tried_again_a_minute_later_also_above_the_bytes() {
    let mut world = World::leading_with(Settings { snapshot_bytes: 1_000, ..settings() });
    world.run(20_000);
    assert_eq!(world.rehearsals.len(), 1);
    rehearsed(&mut world, |_| Rehearsal::Failed("disk full".into()));
    assert!(world.trims.is_empty());
    assert_eq!(world.not_ready(), None, "the service goes on");
    world.run(59_999);
    assert_eq!(world.rehearsals.len(), 1);
    world.run(1);
    assert_eq!(world.rehearsals.len(), 2);
    let status = world.node.status(world.now.mono);
    assert!(status.log_bytes_since_snapshot > 1_000, "nothing was saved");
}

#[test]
fn a_due_rehearsal_without_anything_new_waits_for_the_next_entry_and_does_not_spin() {
    let mut world = World::leading();
    world.run(300_000);
    let head = world.log.head();
    rehearsed(&mut world, |_| Rehearsal::Saved(head));
    // From here on no entry lands for longer than the interval; the world checks that the node sleeps.
    world.pass(700_000);
    assert_eq!(world.rehearsals.len(), 1);
    world.run(1_000);
    assert_eq!(world.rehearsals.len(), 2);
}

/// Differs at a rehearsal while one call is in flight, one queued, one held and reads wait.
struct Suspected {
    world: World,
    in_flight: CallId,
}

fn suspected() -> Suspected {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.run(300_000);
    world.done(acquire("a", 2));
    let held = world.done(queue_for("a", 3).held(20_000));
    let in_flight = world.call(acquire("b", 4));
    let queued = world.call(acquire("c", 5));
    let read = world.read(Consistency::Consistent);
    rehearsed(&mut world, Rehearsal::Differs);
    assert_eq!(world.undecided(held), &Undecided::HeldCallEnded);
    assert!(world.is_unavailable(queued) && world.reads[&read].is_err());
    assert_eq!(world.node.status(world.now.mono).role, Role::Suspect);
    Suspected { world, in_flight }
}

#[test]
fn a_node_whose_rehearsal_differs_answers_nothing_and_resigns() {
    let Suspected { mut world, in_flight } = suspected();
    assert!(world.is_open(in_flight));
    let held = world.call(queue_for("a", 6).held(20_000));
    assert!(world.is_unavailable(held));
    world.land();
    assert_eq!(world.undecided(in_flight), &Undecided::Unknown, "its state is in doubt");
    assert!(world.not_ready().unwrap().contains("differed"), "a commit does not make it ready");
    for consistency in [Consistency::Consistent, Consistency::Stale] {
        let read = world.read(consistency);
        assert!(matches!(world.reads[&read], Err(Undecided::Unavailable { .. })));
    }
    assert_eq!(world.sent.as_ref().unwrap().decoded().body, Body::Resign);
    assert!(world.reloads.is_empty());
    world.land();
    assert_eq!(world.reloads, [world.log.head()]);
    assert!(world.not_ready().unwrap().contains("differed"));
    world.run(5_000);
    assert!(world.sent.is_none(), "nothing is appended meanwhile");
}

#[test]
fn a_wait_or_a_read_in_flight_is_not_held_either() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.run(300_000);
    world.done(acquire("a", 2));
    let wait = world.queue(queue_for("a", 3).held(20_000));
    let read = world.read(Consistency::Consistent);
    rehearsed(&mut world, Rehearsal::Differs);
    world.land();
    assert_eq!(world.undecided(wait), &Undecided::Unknown);
    assert!(world.reads[&read].is_err());
    world.run(60_000);
}

fn reload(world: &mut World, state: State, agree: bool) {
    let again = if agree { state.outcome_chain() } else { EntryHash([1; 32]) };
    world.give(Input::Reloaded { state: Box::new(state), again });
}

#[test]
fn equal_replays_become_the_state_and_the_node_goes_on() {
    let Suspected { mut world, .. } = suspected();
    world.settle();
    let state = world.replayed();
    let time = state.time();
    reload(&mut world, state, true);
    assert!(matches!(world.sent.as_ref().unwrap().decoded().body, Body::Announce(_)));
    let early = world.call(acquire("d", 7));
    world.settle();
    assert_eq!((world.leads, world.not_ready()), (2, None));
    assert!(world.time() >= time);
    world.granted(early);
    let id = world.done(release("a", 2));
    world.outcome(id);
    // Three waits were in the log; those whose calls were ended have their grace from the announce on.
    world.run(11_000);
    assert_eq!(world.waiters().len(), 0);
    world.run(300_000);
    assert_eq!(world.rehearsals.len(), 2, "and it rehearses again");
}

#[test]
fn differing_replays_hold_the_trim_for_all_and_the_node_stays_unready() {
    let Suspected { mut world, .. } = suspected();
    world.settle();
    let state = world.replayed();
    reload(&mut world, state, false);
    assert!(matches!(world.sent.as_ref().unwrap().decoded().body, Body::Announce(_)));
    world.land();
    assert_eq!(world.sent.as_ref().unwrap().commands(), [Operation::HoldTrim]);
    assert!(world.not_ready().unwrap().contains("two replays"), "{:?}", world.not_ready());
    // Even if the log is slow to take it.
    world.refuse();
    world.run(1_000);
    assert!(world.node.state().is_trim_held());
    assert_eq!(world.leads, 1, "it does not serve");
    assert!(world.not_ready().unwrap().contains("two replays"), "{:?}", world.not_ready());
    let id = world.call(acquire("d", 7));
    assert!(world.is_unavailable(id));
    let read = world.read(Consistency::Stale);
    assert!(world.reads[&read].is_err());
    let position = world.log.head().position;
    world.run(600_000);
    assert_eq!(world.log.head().position, position);
    assert!(world.trims.is_empty());
    // It can still be stopped.
    world.give(Input::Stop);
    world.settle();
    assert!(world.stopped);
}

#[test]
fn a_held_trim_outlives_the_node_and_saved_snapshots() {
    let Suspected { mut world, .. } = suspected();
    world.settle();
    let state = world.replayed();
    reload(&mut world, state, false);
    world.settle();
    let writer = sereno_core::entry::Writer { node_id: "n1".into(), start: 2 };
    let mut world =
        World::with(Settings { writer, ..settings() }, world.log, super::world::WALL_US);
    world.run(300_000);
    assert!(world.node.status(world.now.mono).trim_held);
    rehearsed(&mut world, Rehearsal::Saved);
    assert!(world.trims.is_empty(), "an operator has to look first");
}

#[test]
fn a_rehearsal_that_ends_while_the_node_stops_is_of_no_account() {
    let mut world = World::leading();
    world.run(300_000);
    world.give(Input::Stop);
    rehearsed(&mut world, Rehearsal::Differs);
    world.settle();
    assert!(world.stopped && world.reloads.is_empty());
}
