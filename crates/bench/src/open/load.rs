//! The load itself: takes the leases that are held all the time, then follows the agenda.

use super::{
    alarm::Alarm,
    book::{Book, Mark},
    calls::{Call, Job},
    pool::Shared,
    schedule::{Agenda, Due, Kind},
    settings::{Settings, duration},
    standing,
    world::World,
};
use crate::{
    error::Error,
    stats::{Operation, Verdict},
    target::SerenoTarget,
};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::time::{Duration, Instant};
use tokio::task::{LocalSet, yield_now};

/// An agenda that is behind lets the answers in after so many calls.
const YIELD_AFTER: u32 = 32;

/// Runs a load to its end; `on_start` is called when the leases are taken and the agenda begins.
pub(super) async fn run(
    settings: &Settings,
    servers: Vec<SerenoTarget>,
    on_start: impl FnOnce() -> Result<(), Error>,
) -> Result<(Book, usize), Error> {
    let phases = settings.phases();
    let book = Book::new(Instant::now(), phases.len());
    let rng = SmallRng::seed_from_u64(settings.seed);
    let shared = Shared::new(World::new(settings.clone(), servers, rng, book));
    let local = LocalSet::new();
    let load = async {
        standing::take(&shared).await?;
        let start = Instant::now();
        shared.world().book = Book::new(start, phases.len());
        on_start()?;
        let lengths: Vec<(Duration, f64)> =
            phases.iter().map(|phase| (phase.length, phase.factor)).collect();
        let agenda = Agenda::new(settings.rates(), &lengths, settings.arrivals, settings.seed);
        follow(&shared, agenda, start).await?;
        finish(&shared).await;
        let held = shared.world().holdings.len();
        let book = std::mem::replace(&mut shared.world().book, Book::new(start, phases.len()));
        standing::give_back(&shared).await;
        Ok((book, held))
    };
    local.run_until(load).await
}

async fn follow(shared: &Shared, agenda: Agenda, start: Instant) -> Result<(), Error> {
    let (alarm, mut behind) = (Alarm::new()?, 0);
    for due in agenda {
        if alarm.until(start + due.at).await? {
            behind = 0;
        } else {
            behind += 1;
            if behind % YIELD_AFTER == 0 {
                yield_now().await;
            }
        }
        send(shared, due, start);
    }
    Ok(())
}

/// Chooses what an arrival does, and sends it.
fn send(shared: &Shared, due: Due, start: Instant) {
    let (operation, job) = {
        let mut world = shared.world();
        match due.kind {
            Kind::Acquire => acquire(&mut world),
            Kind::Release => (Operation::Release, release(&mut world)),
            Kind::Renew => {
                let most = world.settings.renew_batch;
                let leases = world.holdings.start_renewal(most);
                let operation = if most > 1 { Operation::RenewMany } else { Operation::Renew };
                (operation, (!leases.is_empty()).then_some(Job::Renew { leases }))
            }
        }
    };
    let mark = Mark { operation, phase: due.phase, due: start + due.at };
    match job {
        Some(job) => shared.submit(Call { job, mark }),
        None => {
            let mut world = shared.world();
            world.book.offer(mark);
            world.book.count(mark, Verdict::Skipped, Instant::now());
        }
    }
}

fn acquire(world: &mut World) -> (Operation, Option<Job>) {
    let draw = world.rng.random::<f64>();
    let (contended, cancelled) = (world.settings.contended, world.settings.cancelled);
    let waiting = if draw < cancelled {
        let patience = duration(world.settings.cancel_after);
        let later = world.later();
        world.holdings.want(later, &mut world.rng).map(|name| (name, Some(patience)))
    } else if draw < cancelled + contended {
        let soon = world.soon();
        world.holdings.want(soon, &mut world.rng).map(|name| (name, None))
    } else {
        None
    };
    if let Some((name, cancel_after)) = waiting {
        world.names.claim(name);
        return (Operation::AcquireWaiting, Some(Job::Wait { name, cancel_after }));
    }
    let name = world.names.claim_free(&mut world.rng, Instant::now());
    (Operation::Acquire, name.map(|name| Job::Acquire { name }))
}

fn release(world: &mut World) -> Option<Job> {
    if world.holdings.len() <= world.settings.active {
        return None;
    }
    world.holdings.take_oldest().map(|holding| Job::Release { holding })
}

/// Lets those who wait have their turn, and waits for all answers that are still to come.
async fn finish(shared: &Shared) {
    loop {
        let Some(holding) = shared.world().holdings.take_wanted() else { break };
        // Not measured: counted with the warm-up.
        let mark = Mark { operation: Operation::Release, phase: 0, due: Instant::now() };
        shared.submit(Call { job: Job::Release { holding }, mark });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let longest = {
        let settings = &shared.world().settings;
        duration(settings.timeout) + duration(settings.wait)
    };
    let until = Instant::now() + longest;
    loop {
        {
            let mut world = shared.world();
            if world.running == 0 || Instant::now() > until {
                world.drop_queued();
                world.book.close(longest);
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
