//! A thousand slots on the real state machine, several replicas, and everything that goes wrong with them: no slot is
//! lost, none that is finished begins again, and no two attempts work at the same time (asserted in `world.rs`, whenever
//! something begins).

mod ledger;
mod replica;
mod world;

use ledger::Service;
use replica::Replica;
use sereno_api::{Missed, Overlap, RunState};
use sereno_schedule::Schedule;
use world::{EPOCH, World};

const SLOTS: u64 = 1_000;
/// Milliseconds of a step.
const STEP: u64 = 10;
const SEEDS: u64 = 6;

#[derive(Clone, Copy)]
struct Case {
    missed: Missed,
    overlap: Overlap,
    retries: u32,
    work_max: u64,
    /// Operators pause and resume it, put new definitions, ask for extra runs.
    operated: bool,
    /// One outage is longer than slots are claimed late.
    long_outage: bool,
}

/// Each slot, one after the other, with retries enough for anything.
const ALL: Case = Case {
    missed: Missed::All,
    overlap: Overlap::Forbid,
    retries: 100,
    work_max: 1_200,
    operated: true,
    long_outage: false,
};

/// Every second a slot, until all are through.
fn simulate(seed: u64, case: &Case) -> (Service, World) {
    let schedule = Schedule::parse("* * * * * *", "UTC").unwrap();
    let mut service = Service::new(case.missed, case.overlap, case.retries);
    let mut world = World::new(seed, schedule, case.work_max, 0.02);
    let mut replicas: Vec<Replica> = Vec::new();
    for _ in 0..3 {
        let skew = i64::try_from(world.some(0..4_000)).unwrap() - 2_000;
        replicas.push(Replica::new(skew));
    }
    let mut down_until = 0;
    while !is_through(&service) {
        assert!(world.now < 40 * SLOTS * 1_000, "seed {seed}: stuck at {}", world.now);
        world.now += STEP;
        let is_calm = world.now > SLOTS * 1_000;
        if !is_calm && world.chance(0.0002) {
            down_until = down_until.max(world.now + world.some(500..15_000));
        }
        if case.long_outage && world.now == 200_000 {
            down_until = 700_000;
        }
        world.is_up = world.now >= down_until;
        if world.is_up {
            service.tick(STEP, world.wall());
        }
        if case.operated {
            operate(&mut world, &mut service, is_calm);
        }
        for replica in &mut replicas {
            if !is_calm {
                replica.suffer(&mut world);
            }
            replica.act(&mut world, &mut service);
        }
    }
    (service, world)
}

fn operate(world: &mut World, service: &mut Service, is_calm: bool) {
    if !world.is_up {
        return;
    }
    if is_calm {
        if service.paused {
            service.pause(false);
        }
    } else if world.chance(if service.paused { 0.003 } else { 0.0002 }) {
        service.pause(!service.paused);
    } else if world.chance(0.0003) {
        service.put();
    } else if world.chance(0.0003) && !world.now.is_multiple_of(1_000) {
        service.run_now(world.wall());
    }
}

fn slots() -> impl Iterator<Item = u64> {
    (1..=SLOTS).map(|second| EPOCH + second * 1_000)
}

/// Nothing that is due may still run.
fn is_through(service: &Service) -> bool {
    let last = EPOCH + SLOTS * 1_000;
    // From the end, where what is open usually is.
    (1..=SLOTS).rev().all(|second| service.is_over(EPOCH + second * 1_000))
        && service.rows.range(..last).all(|(_, row)| !row.is_open())
}

fn each_seed(case: &Case, check: impl Fn(u64, &Service, &World)) {
    for seed in 0..SEEDS {
        let (service, world) = simulate(seed, case);
        check(seed, &service, &world);
    }
}

#[test]
fn all_slots_are_done() {
    each_seed(&ALL, |seed, service, world| {
        for slot in slots() {
            assert_eq!(service.state(slot), Some(RunState::Succeeded), "seed {seed}: {slot}");
            assert!(world.done[&slot] >= 1, "seed {seed}: {slot}");
        }
        let asked = service.succeeded.iter().filter(|slot| *slot % 1_000 != 0).count();
        assert!(asked > 5, "seed {seed}: operators have asked");
        assert!(world.begun.values().any(|&count| count > 1), "seed {seed}: things went wrong");
    });
}

#[test]
fn without_retries_nothing_begins_twice_and_nothing_is_passed_over() {
    let case = Case { retries: 0, ..ALL };
    each_seed(&case, |seed, service, world| {
        for slot in slots() {
            assert!(service.state(slot).is_some(), "seed {seed}: {slot} was never claimed");
            assert!(world.begun.get(&slot).copied().unwrap_or(0) <= 1, "seed {seed}: {slot}");
        }
        let done = service.succeeded.len();
        assert!(done > 700, "seed {seed}: only {done} were done");
    });
}

#[test]
fn slots_that_may_overlap_are_all_done_and_each_once_at_a_time() {
    let case = Case { overlap: Overlap::Allow, work_max: 2_500, ..ALL };
    each_seed(&case, |seed, service, _| {
        for slot in slots() {
            assert_eq!(service.state(slot), Some(RunState::Succeeded), "seed {seed}: {slot}");
        }
    });
}

#[test]
fn the_latest_slot_is_done_and_older_ones_are_left_out() {
    let case = Case { missed: Missed::Latest, work_max: 2_500, ..ALL };
    each_seed(&case, |seed, service, world| {
        let begun = slots().filter(|slot| world.begun.contains_key(slot)).count();
        assert!((200..900).contains(&begun), "seed {seed}: {begun} of {SLOTS}");
        assert!(slots().all(|slot| service.is_over(slot)), "seed {seed}");
    });
}

#[test]
fn slots_that_are_too_late_are_left_out() {
    let case = Case { missed: Missed::Skip, long_outage: true, work_max: 600, ..ALL };
    each_seed(&case, |seed, service, world| {
        let begun = |from: u64, to: u64| {
            let seconds = (from..to).map(|second| EPOCH + second * 1_000);
            seconds.filter(|slot| world.begun.contains_key(slot)).count()
        };
        // Down from 200 s to 700 s: what was due before 400 s was too late then.
        assert_eq!(begun(210, 380), 0, "seed {seed}");
        // The rest is worked off while it gets too late too, and replicas die at it.
        assert!(begun(420, 700) > 100, "seed {seed}: {}", begun(420, 700));
        assert!(service.watermark > EPOCH + 900_000, "seed {seed}");
    });
}
