//! What makes up an entry: everything that has arrived, in the order of section 6, within the bounds of section 13.

use super::world::{
    Ask, World, abandon, acquire, acquire_for, acquire_in, put_namespace, release, renew,
    renew_many,
};
use crate::handle::Undecided;
use sereno_core::{
    command::{Acquire, Operation},
    entry::Body,
    limits,
    names::Labels,
    outcome::Done,
    policy::Policy,
    testing,
};

/// Which commands stand in the entry in flight, in short.
fn kinds(world: &World) -> Vec<String> {
    let name = |operation: &Operation| match operation {
        Operation::Acquire(op) => op.request_id.as_str().replace("request-", "acquire "),
        Operation::Renew(op) => format!("renew {}", op.lease.resource),
        Operation::RenewMany(op) => format!("renew-many {}", op.leases.len()),
        Operation::Release(op) => format!("release {}", op.lease.resource),
        Operation::Abandon(op) => op.request_id.as_str().replace("request-", "abandon "),
        other => format!("{other:?}"),
    };
    world.sent.as_ref().expect("an append is in flight").commands().iter().map(name).collect()
}

/// Puts a heartbeat in flight, so that what comes next has to share the next entry.
fn busy(world: &mut World) {
    world.settle();
    world.pass(500);
    assert_eq!(kinds(world), Vec::<String>::new());
}

#[test]
fn what_arrives_while_an_append_is_in_flight_shares_the_next_entry() {
    let mut world = World::leading();
    let first = world.call(acquire("a", 1));
    let rest: Vec<_> = (2..100).map(|n| world.call(acquire(&format!("r{n}"), n))).collect();
    assert_eq!(kinds(&world), ["acquire 1"], "one append at a time");
    assert!(world.is_open(first));
    world.land();
    world.granted(first);
    assert_eq!(kinds(&world).len(), 98);
    world.land();
    for id in rest {
        world.granted(id);
    }
    assert!(world.sent.is_none());
}

#[test]
fn an_entry_is_bounded_by_count() {
    let mut world = World::leading();
    busy(&mut world);
    let ids: Vec<_> = (0..2_500).map(|n| world.call(acquire(&format!("r{n}"), n))).collect();
    let mut sizes = Vec::new();
    world.land();
    while world.sent.is_some() {
        sizes.push(kinds(&world).len());
        world.land();
    }
    assert_eq!(sizes, [1_024, 1_024, 452]);
    for id in ids {
        world.granted(id);
    }
}

#[test]
fn an_entry_is_bounded_by_bytes() {
    let mut world = World::leading();
    busy(&mut world);
    let value = "v".repeat(limits::LABEL_VALUE_BYTES_MAX);
    let labels = (0..limits::LABELS_MAX).map(|key| (format!("key-{key}"), value.clone()));
    let labels = Labels::new(labels).unwrap();
    for n in 0..1_000 {
        let acquire = testing::acquire(&format!("r{n}"), n);
        world.call(Ask::new(Operation::Acquire(Acquire { labels: labels.clone(), ..acquire })));
    }
    world.land();
    let mut commands = 0;
    while let Some(sent) = &world.sent {
        assert!(sent.entry.bytes.len() <= limits::BATCH_BYTES_MAX + 256);
        commands += sent.commands().len();
        assert!(commands == 1_000 || sent.entry.bytes.len() > limits::BATCH_BYTES_MAX / 2);
        world.land();
    }
    assert_eq!(commands, 1_000);
}

#[test]
fn one_command_above_its_bound_is_told_so_and_goes_nowhere() {
    let mut world = World::leading();
    let leases = (0..1_000).map(|n| testing::lease(&"x".repeat(256), n)).collect();
    let id = world.call(renew_many(leases));
    assert!(
        matches!(world.undecided(id), Undecided::TooLarge { bytes } if *bytes > 256 * 1_000),
        "the door cuts such a list"
    );
    assert!(world.sent.is_none());
}

#[test]
fn renewals_nearest_to_expiry_go_first_then_releases_and_abandons_then_the_rest() {
    let mut world = World::leading();
    for (resource, n, ttl_ms) in [("late", 1, 9_000), ("soon", 2, 3_000), ("mid", 3, 6_000)] {
        world.done(acquire_for(resource, n, ttl_ms));
    }
    busy(&mut world);
    world.call(acquire("x", 10));
    world.call(release("y", 11));
    world.call(renew("unknown", 99));
    world.call(renew("late", 1));
    world.call(abandon(12));
    world.call(acquire("z", 13));
    world.call(renew("soon", 2));
    world.call(renew_many(vec![testing::lease("late", 1), testing::lease("mid", 3)]));
    world.land();
    let order = [
        "renew soon",
        "renew-many 2",
        "renew late",
        "renew unknown",
        "release y",
        "abandon 12",
        "acquire 10",
        "acquire 13",
    ];
    assert_eq!(kinds(&world), order);
}

#[test]
fn the_rest_is_fair_over_namespace_and_caller_and_first_come_within() {
    let mut world = World::leading();
    world.done(put_namespace("other", 0, Policy::default()));
    busy(&mut world);
    for n in 0..1_500 {
        world.call(acquire(&format!("r{n}"), n).by("greedy"));
    }
    for n in 2_000..2_003 {
        world.call(acquire(&format!("r{n}"), n).by("modest"));
        world.call(acquire_in("other", &format!("r{n}"), n + 1_000).by("greedy"));
    }
    world.land();
    let kinds = kinds(&world);
    assert_eq!(kinds.len(), 1_024);
    let first = [0, 2_000, 3_000, 1, 2_001, 3_001, 2, 2_002, 3_002, 3, 4, 5];
    assert_eq!(kinds[..12], first.map(|n| format!("acquire {n}")));
}

#[test]
fn an_operators_write_does_not_wait_behind_a_tenants_queue() {
    let mut world = World::leading();
    busy(&mut world);
    for n in 0..5_000 {
        world.call(acquire(&format!("r{n}"), n).by("greedy"));
    }
    let id = world.call(put_namespace("new", 0, Policy::default()).by("operator"));
    world.land();
    world.land();
    assert!(matches!(world.outcome(id).result, Ok(Done::NamespacePut { version: 1 })));
}

#[test]
fn a_call_whose_caller_has_gone_is_dropped_before_it_is_appended() {
    let mut world = World::leading();
    busy(&mut world);
    let gone = world.call(acquire("a", 1));
    world.call(acquire("b", 2));
    world.cancel(gone);
    world.land();
    assert_eq!(kinds(&world), ["acquire 2"]);
    world.land();
    assert!(world.is_open(gone) && world.holder("a").is_none());
}

#[test]
fn a_call_whose_deadline_has_passed_is_dropped_and_told_that_nothing_was_done() {
    let mut world = World::leading();
    busy(&mut world);
    let late = world.call(acquire("a", 1).within(50));
    let renewal = world.call(renew("b", 2).within(50));
    world.call(acquire("c", 3).within(70));
    world.forward_ns(60_000_000);
    world.land();
    assert_eq!(kinds(&world), ["acquire 3"]);
    assert!(world.is_unavailable(late) && world.is_unavailable(renewal));
}

#[test]
fn releases_and_abandons_are_never_dropped() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.done(acquire("b", 2));
    world.done(acquire("c", 3));
    busy(&mut world);
    let gone = world.call(release("a", 1));
    world.cancel(gone);
    let late = world.call(release("b", 2).within(50));
    let abandoned = world.call(abandon(3));
    world.cancel(abandoned);
    world.forward_ns(60_000_000);
    world.land();
    assert_eq!(kinds(&world), ["release a", "release b", "abandon 3"]);
    world.land();
    assert_eq!(world.node.state().leases(), 0);
    // Its caller may or may not still listen; what it is told is true either way.
    assert!(world.is_open(late) || matches!(world.outcome(late).result, Ok(Done::Released { .. })));
}

#[test]
fn a_release_past_its_deadline_is_unknown_for_it_will_still_be_applied() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    busy(&mut world);
    let late = world.call(release("a", 1).within(300));
    world.pass(500);
    assert_eq!(world.undecided(late), &Undecided::Unknown, "not `notApplied`");
    world.settle();
    assert_eq!(world.holder("a"), None);
}

#[test]
fn releases_of_an_append_that_failed_for_certain_go_into_the_next() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.done(acquire("b", 2));
    busy(&mut world);
    let gone = world.call(release("a", 1));
    let heard = world.call(abandon(2));
    let other = world.call(acquire("c", 3));
    world.land();
    world.cancel(gone);
    world.refuse();
    assert!(world.is_unavailable(other), "certainly not applied");
    assert!(world.is_open(heard), "not answered: it will be applied");
    let later = world.call(release("d", 4));
    world.run(1_000);
    assert_eq!(world.node.state().leases(), 0, "never dropped");
    assert!(world.outcome(heard).revision < world.outcome(later).revision, "in their order");
}

#[test]
fn what_is_queued_goes_out_as_soon_as_the_log_may_be_tried_again() {
    let mut world = World::leading();
    world.call(acquire("a", 1));
    world.refuse();
    let next = world.call(acquire("b", 2));
    // The node itself asks to be woken then: neither earlier, to hammer a log that refuses, nor at its heartbeat.
    assert_eq!(world.node.wake_at(), Some(world.now.mono.plus_ms(200)));
    world.run(200);
    world.granted(next);
}

#[test]
fn a_heartbeat_is_an_empty_batch() {
    let mut world = World::leading();
    world.pass(500);
    let heartbeat = world.sent.as_ref().unwrap().decoded();
    assert_eq!(heartbeat.body, Body::Batch(Vec::new()));
}
