//! Cluster time (section 3): it flows while the service commits, at the rate of real time, and stands still while
//! it cannot (S8).

use super::world::{World, acquire, acquire_for, queue_for, renew};
use sereno_core::{ids::ClusterTime, limits};
use sereno_log::Append;

#[test]
fn an_idle_leader_appends_each_half_second() {
    let mut world = World::leading();
    let (sendings, time) = (world.sendings, world.time());
    world.run(10_000);
    assert_eq!(world.sendings - sendings, 20);
    assert_eq!(world.time(), time.plus(10_000));
}

/// Closed loop: the next command arrives when the entry before has landed.
fn time_per_second_at(entries_per_second: u64) -> u64 {
    let mut world = World::leading();
    let step_ns = 1_000_000_000 / entries_per_second;
    let (began, from) = (world.now.mono, world.time());
    for n in 0..3 * entries_per_second {
        world.call(renew("nobody", n));
        // It lands some time later; the rest of the step nothing happens.
        world.forward_ns(step_ns * 2 / 3);
        world.land();
        world.forward_ns(step_ns - step_ns * 2 / 3);
    }
    assert_eq!(world.now.mono.since_ns(began), 3 * entries_per_second * step_ns);
    world.call(renew("nobody", 0));
    world.land();
    from.until(world.time())
}

#[test]
fn time_runs_at_one_at_any_rate_of_entries() {
    for entries_per_second in [2_000, 3_000, 7_001, 20_000] {
        let ms = time_per_second_at(entries_per_second);
        assert!((2_999..=3_000).contains(&ms), "{entries_per_second} entries/s: {ms} ms in 3 s");
    }
}

#[test]
fn a_deadline_that_is_due_gets_its_entry_at_once() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 1_700));
    let waiter = world.done(queue_for("a", 2).held(20_000));
    let granted_at = world.time();
    world.run(1_699);
    assert!(world.is_open(waiter), "not before its time: to the millisecond");
    world.run(1);
    world.granted(waiter);
    assert_eq!(world.time(), granted_at.plus(1_700));
}

#[test]
fn while_objects_are_due_the_next_entry_follows_at_once() {
    let mut world = World::leading();
    for n in 0..2_500 {
        world.queue(acquire_for(&format!("r{n}"), n, 5_000));
    }
    world.advance();
    world.settle();
    assert_eq!(world.node.state().leases(), 2_500);
    world.latency_ns = 1_000_000;
    world.run(5_010);
    assert_eq!(world.node.state().leases(), 0, "1,000 an entry, three entries in a row");
    assert_eq!(world.node.state().due().objects, 0);
}

/// A lease of 3 s and an outage of an hour: afterwards it has all that the outage did not see of it.
fn outlives(outage: impl Fn(&mut World)) {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 3_000));
    world.run(500);
    let before = world.time();
    outage(&mut world);
    world.settle();
    let time = world.time();
    // What was in flight carries its own stamp; the entry after it carries the step.
    assert!(time <= before.plus(500 + limits::MAX_STEP_MS), "{before} to {time}");
    assert_eq!(world.holder("a").as_deref(), Some("owner-1"));
    let id = world.done(renew("a", 1));
    assert!(world.outcome(id).result.is_ok());
}

#[test]
fn an_hour_of_refused_appends_adds_one_step() {
    outlives(|world| {
        let (before, end) = (world.time(), world.now.mono.plus_ms(3_600_000));
        while world.now.mono < end {
            world.pass(500);
            if world.sent.is_some() {
                world.refuse();
            }
        }
        assert_eq!(world.time(), before);
        world.pass(500);
        let after = world.sent.as_ref().unwrap().decoded().time;
        assert_eq!(after, before.plus(limits::MAX_STEP_MS), "the clamp is lost, not caught up");
    });
}

#[test]
fn an_hour_without_an_answer_adds_one_step_also_when_the_entry_lands_at_last() {
    for lands in [true, false] {
        outlives(|world| {
            world.pass(500);
            let sent = world.lose();
            let bytes = sent.entry.bytes.clone();
            for _ in 0..3_600 {
                world.pass(1_000);
                if let Some(again) = world.sent.take() {
                    assert_eq!(again.entry.bytes, bytes, "the same bytes, with the same stamp");
                    world.give(crate::node::Input::Appended(Append::Unknown("lost".into())));
                }
            }
            if lands {
                assert_eq!(world.deliver(&sent), Append::Committed);
            }
            world.pass(1_000);
            world.land();
        });
    }
}

#[test]
fn a_paused_process_ends_nobodys_lease_either() {
    let mut world = World::leading();
    world.done(acquire_for("a", 1, 2_000));
    let time = world.time();
    world.forward_ns(3_600_000_000_000);
    world.advance();
    world.settle();
    assert_eq!(world.time(), time.plus(limits::MAX_STEP_MS));
    assert_eq!(world.holder("a").as_deref(), Some("owner-1"));
}

#[test]
fn a_lease_ends_when_its_ttl_has_passed_since_the_stamp_of_its_entry_never_before() {
    // S8 with every latency: the client counts from when it sent, the service from the stamp, which is later.
    for latency_ns in [0, 1, 333_333, 999_999, 40_000_000, 450_000_000] {
        let mut world = World::leading();
        world.latency_ns = latency_ns;
        world.run(777);
        let id = world.call(acquire_for("a", 1, 1_000));
        // Stamped with the next entry, be it in flight or not.
        while world.is_open(id) {
            world.run(1);
        }
        let granted_at = world.outcome(id).time;
        let sent_at = world.now.mono;
        let mut ended_at = None;
        for _ in 0..4_000 {
            world.run(1);
            if world.holder("a").is_none() {
                ended_at = Some(world.now.mono);
                break;
            }
        }
        let ended_at = ended_at.expect("it ends");
        assert!(world.time() >= granted_at.plus(1_000));
        // The answer came at most one latency and 1 ms after the stamp.
        let lived_ns = ended_at.since_ns(sent_at) + latency_ns + 2_000_000;
        assert!(lived_ns >= 1_000_000_000, "latency {latency_ns} ns: lived {lived_ns} ns");
        assert!(lived_ns <= 1_010_000_000 + 3 * latency_ns, "latency {latency_ns}: {lived_ns} ns");
    }
}

#[test]
fn no_entry_ever_says_more_than_the_entry_before_plus_the_step() {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    for gap_ms in [0, 1, 499, 500, 999, 1_000, 1_001, 5_000] {
        let before = world.time();
        world.forward_ns(gap_ms * 1_000_000);
        world.call(renew("a", 1));
        world.settle();
        assert_eq!(world.time(), before.plus(gap_ms.min(1_000)));
    }
    assert!(world.time() > ClusterTime(0));
}
