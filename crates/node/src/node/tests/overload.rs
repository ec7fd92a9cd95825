//! Overload (section 6) and request rates (section 13).

use super::{
    quotas::{
        begin, commit, extend, put_limit, release_reservation, reserve, return_use, settle,
        share_return,
    },
    world::{
        Ask, World, abandon, acquire, acquire_in, put_namespace, queue_for, release, renew,
        settings,
    },
};
use crate::{
    handle::{Consistency, Undecided},
    node::Settings,
};
use sereno_core::{
    LEVEL_MAX,
    command::{Acquire, Operation},
    limits,
    policy::Policy,
};

fn overloaded_ms(undecided: &Undecided) -> u64 {
    match undecided {
        Undecided::Overloaded { retry_after_ms } => *retry_after_ms,
        other => panic!("overloaded, not {other:?}"),
    }
}

#[test]
fn beyond_the_bound_a_call_is_refused_at_once_and_told_when_to_try_again() {
    let mut world = World::leading();
    world.pass(500);
    for n in 0..limits::INTAKE_ORDINARY_MAX as u64 {
        world.queue(acquire("a", n));
    }
    let beyond = world.call(acquire("a", 1_000_000));
    assert!((50..=5_000).contains(&overloaded_ms(world.undecided(beyond))));
    // Those that keep or free what was granted have their own room.
    let renewal = world.call(renew("a", 0));
    let release = world.call(release("a", 0));
    let abandoned = world.call(abandon(1_000_001));
    world.land();
    world.land();
    for id in [renewal, release, abandoned] {
        world.outcome(id);
    }
    let again = world.call(acquire("a", 1_000_000));
    world.settle();
    world.outcome(again);
}

#[test]
fn what_keeps_or_gives_back_capacity_has_room_where_who_asks_for_it_has_not() {
    // Quotas belong to level 4.
    let settings = Settings { new_log_level: LEVEL_MAX, ..settings() };
    let mut world = World::leading_with(settings);
    world.settle();
    world.pass(500);
    for n in 0..limits::INTAKE_ORDINARY_MAX as u64 {
        world.queue(acquire("a", n));
    }
    for command in [reserve(), put_limit()] {
        let beyond = world.call(Ask::new(Operation::Quota(command)));
        overloaded_ms(world.undecided(beyond));
    }
    for command in
        [begin(), extend(), commit(), release_reservation(), return_use(), settle(), share_return()]
    {
        let id = world.call(Ask::new(Operation::Quota(command)));
        assert!(world.is_open(id), "it is taken in");
    }
}

#[test]
fn renewals_have_a_bound_of_their_own() {
    let mut world = World::leading();
    world.pass(500);
    for n in 0..limits::INTAKE_RENEWALS_MAX as u64 {
        world.queue(renew("a", n));
    }
    let beyond = world.call(renew("a", 1_000_000));
    overloaded_ms(world.undecided(beyond));
    let acquired = world.call(acquire("a", 1));
    world.settle();
    world.granted(acquired);
}

#[test]
fn releases_have_a_wide_bound_for_an_outage_must_not_eat_the_memory() {
    let mut world = World::leading();
    world.pass(500);
    let mut refused = None;
    for n in 0..1_000_000 {
        let id = world.queue(release("a", n));
        if !world.is_open(id) {
            refused = Some((id, n));
            break;
        }
    }
    let (id, n) = refused.expect("there is a bound");
    assert!(n >= 5 * limits::INTAKE_ORDINARY_MAX as u64);
    overloaded_ms(world.undecided(id));
}

#[test]
fn reads_are_bounded_too() {
    let mut world = World::leading();
    world.pass(500);
    let reads: Vec<_> =
        (0..=limits::INTAKE_ORDINARY_MAX).map(|_| world.read(Consistency::Consistent)).collect();
    let last = reads.last().unwrap();
    overloaded_ms(world.reads[last].as_ref().unwrap_err());
    world.settle();
    assert!(world.reads.values().filter(|read| read.is_ok()).count() == reads.len() - 1);
}

#[test]
fn the_estimate_follows_the_pace_of_commits_not_the_idle_heartbeats() {
    let mut world = World::leading();
    world.latency_ns = 5_000_000;
    world.run(60_000);
    // 1,024 commands in 5 ms each time: 20,000 take 100 ms.
    for round in 0..20 {
        for n in 0..1_024 {
            world.queue(acquire("a", 100_000 * round + n));
        }
        world.advance();
        while world.sent.is_some() {
            world.run(1);
        }
    }
    world.pass(500);
    for n in 0..limits::INTAKE_ORDINARY_MAX as u64 {
        world.queue(acquire("a", 10_000_000 + n));
    }
    let beyond = world.call(acquire("a", 1));
    let retry_after_ms = overloaded_ms(world.undecided(beyond));
    assert!((50..=500).contains(&retry_after_ms), "{retry_after_ms} ms");
}

fn rated(per_second: u64) -> World {
    let mut world = World::leading();
    let policy = Policy { requests_per_second: Some(per_second), ..Policy::default() };
    world.done(put_namespace("rated", 0, policy));
    world
}

fn is_rate_limited(world: &World, id: crate::node::CallId) -> Option<u64> {
    match world.replies.get(&id) {
        Some(crate::handle::Reply::Undecided(Undecided::RateLimited {
            namespace,
            requests_per_second,
            retry_after_ms,
        })) => {
            assert_eq!(namespace.as_str(), "rated");
            assert!([10, 1_000].contains(requests_per_second));
            Some(*retry_after_ms)
        }
        _ => None,
    }
}

#[test]
fn a_namespaces_rate_is_kept_and_the_refusal_says_when_there_is_room() {
    let mut world = rated(10);
    let mut passed = 0;
    for n in 0..100 {
        let id = world.done(acquire_in("rated", &format!("r{n}"), n));
        passed += u64::from(is_rate_limited(&world, id).is_none());
    }
    assert_eq!(passed, 10, "a second's worth at once");
    let id = world.done(acquire_in("rated", "x", 200));
    let wait_ms = is_rate_limited(&world, id).unwrap();
    assert_eq!(wait_ms, 100);
    world.run(wait_ms - 1);
    let early = world.done(acquire_in("rated", "x", 201));
    assert!(is_rate_limited(&world, early).is_some());
    world.run(1);
    let id = world.done(acquire_in("rated", "x", 202));
    world.granted(id);
    // Other namespaces are not concerned.
    let id = world.done(acquire("a", 203));
    world.granted(id);
}

#[test]
fn the_rate_holds_over_a_longer_time() {
    let mut world = rated(10);
    let mut passed = 0;
    for n in 0..10_000 {
        let id = world.call(acquire_in("rated", &format!("r{n}"), n));
        passed += u64::from(is_rate_limited(&world, id).is_none());
        world.run(1);
    }
    assert!((109..=110).contains(&passed), "10 at once and 10 a second for 10 s: {passed}");
}

#[test]
fn what_keeps_or_frees_a_lease_is_not_rated_nor_is_an_operator() {
    let mut world = rated(10);
    for n in 0..20 {
        world.done(acquire_in("rated", &format!("r{n}"), n));
    }
    let policy = Policy { requests_per_second: Some(1_000), ..Policy::default() };
    let raised = world.done(put_namespace("rated", 1, policy));
    assert!(
        world.outcome(raised).result.is_ok(),
        "a runaway tenant must not lock the operator out"
    );
    let id = world.done(acquire_in("rated", "y", 300));
    assert!(is_rate_limited(&world, id).is_some(), "the bucket fills at the new rate from now on");
    world.run(1_000);
    let id = world.done(acquire_in("rated", "y", 301));
    world.granted(id);
}

/// Who waits has to ask again and again, and whose answer was lost has to.
#[test]
fn repeats_of_what_is_remembered_are_not_rated() {
    let mut world = rated(10);
    let waits = |n| {
        let Operation::Acquire(op) = acquire_in("rated", "r0", n).operation else { unreachable!() };
        Ask::new(Operation::Acquire(Acquire { wait_timeout_ms: 60_000, ..op }))
    };
    let held = world.done(acquire_in("rated", "r0", 0));
    let waiting = world.done(waits(1));
    let refused = world.done(acquire_in("rated", "r0", 2));
    let holdings = world.granted(held).holdings.clone();
    let (place, code) = (world.waiting(waiting).place, world.refused(refused));
    for n in 3..10 {
        world.done(acquire_in("rated", &format!("r{n}"), n));
    }
    for _ in 0..20 {
        let again = world.done(acquire_in("rated", "r0", 0));
        assert_eq!(world.granted(again).holdings, holdings);
        let again = world.done(waits(1));
        assert_eq!(world.waiting(again).place, place);
        let again = world.done(acquire_in("rated", "r0", 2));
        assert_eq!(world.refused(again), code);
    }
    // The same name from another caller, and another name, are other requests.
    for other in [acquire_in("rated", "r0", 0).by("other"), acquire_in("rated", "r0", 10)] {
        let id = world.done(other);
        assert_eq!(is_rate_limited(&world, id), Some(100), "repeats have not filled the bucket");
    }
    world.run(100);
    let id = world.done(acquire_in("rated", "x", 11));
    world.granted(id);
}

#[test]
fn waiters_beyond_the_policy_are_decided_by_the_log() {
    let mut world = World::leading();
    world.done(acquire("a", 0));
    for n in 1..=3 {
        let id = world.done(queue_for("a", n));
        assert_eq!(world.waiting(id).place, n);
    }
}

/// A memory log of 5 ms an append, and twice as many calls as it can carry out: as many are carried out as with
/// just enough, nobody's renewal or release is among the refused, and the refused are told when to come again.
#[test]
fn at_twice_the_capacity_goodput_stays_at_the_capacity() {
    const TICKS: u64 = 100;
    const TICK_MS: u64 = 5;
    const PER_TICK: u64 = limits::BATCH_COMMANDS_MAX as u64;
    const HOLDERS: u64 = 50;
    let mut world = World::leading();
    world.latency_ns = TICK_MS * 1_000_000;
    for n in 0..HOLDERS {
        world.queue(acquire(&format!("held-{n}"), n));
    }
    world.run(50);
    let (mut acquires, mut kept) = (Vec::new(), Vec::new());
    for tick in 0..TICKS {
        for n in 0..2 * PER_TICK {
            let n = 1_000_000 + tick * 2 * PER_TICK + n;
            acquires.push(world.queue(acquire(&format!("r-{n}"), n).within(500)));
        }
        kept.push(
            world.queue(renew(&format!("held-{}", tick % (HOLDERS / 2)), tick % (HOLDERS / 2))),
        );
        if tick >= TICKS / 2 && tick % 2 == 0 {
            let n = HOLDERS / 2 + (tick - TICKS / 2) / 2;
            kept.push(world.queue(release(&format!("held-{n}"), n)));
        }
        world.run(TICK_MS);
    }
    world.run(200);
    let is_done = |id: &&_| matches!(world.replies[*id], crate::handle::Reply::Decided(_));
    let done = acquires.iter().filter(is_done).count() as u64;
    let capacity = TICKS * PER_TICK;
    assert!(done * 100 >= capacity * 95, "{done} of {capacity} that could be carried out");
    for id in acquires.iter().filter(|id| !is_done(id)) {
        assert!((50..=5_000).contains(&overloaded_ms(world.undecided(*id))));
    }
    assert!(kept.iter().all(|id| is_done(&id)), "renewals and releases survive");
}
