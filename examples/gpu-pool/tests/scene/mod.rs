//! A day of the pool in some seconds: what the test holds true, and what the play shows.
//!
//! Each step waits for what it is about, as all have written it down, and for no clock. Only what jobs do, and how long the
//! pool waits for a crashed one, takes its time.

#![allow(dead_code, unreachable_pub)] // The test and the play each use their part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod world;

use gpu_pool::{
    lives::{Life, Lives, Stop},
    pool,
    table::Report,
};
use std::{fs, path::Path, time::Duration};
use world::{World, running, waiting};

/// A wait that ends before its time.
const LONG: &str = "5m";
const URGENT: &str = "research-urgent";
/// The one that needs all that is promised to nobody.
const LARGE: &str = "research-large";
const LARGE_GPUS: &str = "24";
/// So many small jobs a tenant has waiting, while the large one waits.
const CROWD: usize = 3;
/// The large one has to get through before so many of them have come.
const CROWD_MAX: usize = 400;
/// Jobs of these end when the file is there.
const RESEARCH_MAY_END: &str = "research-may-end";
const OTHERS_MAY_END: &str = "others-may-end";

/// Plays it all, and gives the report. `given`: the service; else one of its own.
pub async fn play(given: Option<String>, picture: &Path) -> String {
    let mut world = World::new(given);
    guarantees(&mut world).await;
    everybody_wants_more(&mut world).await;
    crashes(&mut world).await;
    urgent_first(&world).await;
    a_large_one_is_not_starved(&mut world).await;
    world.all_have_ended().await;
    let lives = world.lives();
    crashed_jobs_gave_all_back(&world, &lives);
    let report = world.report(picture);
    // The workers' own record: no more than there are, and all of them at some time.
    assert_eq!(Report::of(&lives).peak().1, pool::GPUS, "{report}");
    report
}

fn say(what: &str) {
    println!("  {what}");
}

/// Who is promised nothing gets what is promised to nobody, however much they want; and who is promised something gets
/// that at once, although others wait.
async fn guarantees(world: &mut World) {
    say("research wants 56 GPUs: it gets the 24 that are promised to nobody");
    start(world, "research", 1..=6, &["--wait", LONG, "--until", RESEARCH_MAY_END]);
    world.until("24 GPUs of research", |lives| running(lives, "research").count() == 6).await;
    start(world, "research", 7..=14, &["--wait", LONG, "--work", "1s"]);
    let all_wait = |lives: &Lives| waiting(lives, "research").count() == 8;
    world.until("the rest of research in the queue", all_wait).await;

    say("vision and speech get what they are promised at once, without waiting");
    start(world, "vision", 1..=6, &["--until", OTHERS_MAY_END]);
    start(world, "speech", 1..=4, &["--until", OTHERS_MAY_END]);
    let answered = |lives: &Lives| {
        let others = lives.all.iter().filter(|life| life.tenant != "research");
        others.filter(|life| life.began_us.is_some() || life.stopped.is_some()).count() == 10
    };
    let lives = world.until("the answers to the ten", answered).await;
    let refused: Vec<&Life> = lives.all.iter().filter(|life| life.is(Stop::Refused)).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(all_wait(&lives), "nothing of it went to those who waited");
}

/// Jobs of a tenant, numbered so.
fn start(
    world: &mut World,
    tenant: &str,
    numbers: std::ops::RangeInclusive<u32>,
    options: &[&str],
) {
    for number in numbers {
        world.start(tenant, &format!("{tenant}-{number:02}"), options);
    }
}

/// The pool is full, and all want more; somebody in research is in a hurry.
async fn everybody_wants_more(world: &mut World) {
    say("all 64 are in use, everybody wants more, and one job of research is urgent");
    start(world, "vision", 7..=11, &["--wait", LONG, "--until", OTHERS_MAY_END]);
    start(world, "speech", 5..=8, &["--wait", LONG, "--until", OTHERS_MAY_END]);
    let queued = |lives: &Lives| lives.all.iter().filter(|life| life.is_queued).count();
    world.until("a long queue", |lives| queued(lives) == 17).await;
    world.start("research", URGENT, &["--wait", LONG, "--work", "1s", "--priority", "9"]);
    let lives = world.until("the urgent one in it", |lives| queued(lives) == 18).await;
    let used: u64 = lives.all.iter().filter(|life| life.is_running()).map(|life| life.gpus).sum();
    assert_eq!(used, pool::GPUS);
}

/// Jobs that die without a word, with their GPUs or in the queue.
async fn crashes(world: &mut World) {
    let ttl = world.ttl();
    say(&format!(
        "five jobs crash, and one that waits: in {ttl:?} at most the pool has it all back"
    ));
    let lives = world.lives();
    let mut dead: Vec<Life> = Vec::new();
    for (tenant, count) in [("research", 2), ("vision", 2), ("speech", 1)] {
        dead.extend(running(&lives, tenant).take(count).cloned());
    }
    let waits = waiting(&lives, "research").find(|life| life.job != URGENT);
    dead.extend(waits.cloned());
    assert_eq!(dead.len(), 6);
    dead.iter().for_each(|life| world.crash(life));

    say("vision and speech have what they are promised again; the rest goes to the smallest share");
    // 24 and 8 of vision, 16 of speech; for research's own share, 16 by weight 1, is as large as speech's.
    let shared = |lives: &Lives| {
        let is_gone = |it: &Life| lives.job(&it.job).is_some_and(|life| life.gone_us.is_some());
        let count = |tenant| running(lives, tenant).count();
        dead.iter().all(is_gone) && (count("vision"), count("speech")) == (8, 4)
    };
    let lives = world.until("what crashed jobs had, with those who wait", shared).await;
    assert_eq!(running(&lives, "research").count(), 4);
    assert_eq!(waiting(&lives, "research").count(), 8);
}

/// Inside a tenant priority decides.
async fn urgent_first(world: &World) {
    say("jobs of research end: the urgent one is next, before those that have waited longer");
    let before = world.lives();
    let waits: Vec<&Life> =
        waiting(&before, "research").filter(|life| life.job != URGENT).collect();
    fs::write(world.file(RESEARCH_MAY_END), "").unwrap();
    let began = |lives: &Lives, name: &str| lives.job(name).is_some_and(|life| life.fence > 0);
    let all =
        |lives: &Lives| began(lives, URGENT) && waits.iter().all(|life| began(lives, &life.job));
    let lives = world.until("all of research that waited", all).await;
    let fence = |name: &str| lives.job(name).map_or(0, |life| life.fence);
    // Tokens rise with each grant.
    for life in waits {
        assert!(fence(URGENT) < fence(&life.job), "{} was granted before the urgent one", life.job);
    }
}

/// Small ones come and come, those of the same tenant with a higher priority: and a large one gets through all the same.
async fn a_large_one_is_not_starved(world: &mut World) {
    say("small jobs come and come, all with a higher priority than one that needs 24 GPUs");
    world.put_limits("2s");
    fs::write(world.file(OTHERS_MAY_END), "").unwrap();
    let mut count = 0;
    // First a crowd, and then the large one.
    while !crowd(world, &mut count).await {}
    world.start("research", LARGE, &["--gpus", LARGE_GPUS, "--wait", LONG, "--work", "1s"]);
    let large = loop {
        crowd(world, &mut count).await;
        let large = world.lives().job(LARGE).cloned();
        if let Some(large) = large.filter(|large| large.fence > 0) {
            break large;
        }
    };
    say(&format!("it got them after {:.1} s", large.waited_us().unwrap_or(0) as f64 / 1e6));
    // Who waited then, and had asked before it was granted, came after it.
    let overtaken = move |lives: &Lives| {
        let mut small = lives.of_tenant("research").filter(|life| life.job.contains("small"));
        small.any(|life| Some(life.asked_us) < large.began_us && life.fence > large.fence)
    };
    world.until("a small one that it has overtaken", overtaken).await;
}

/// Starts small jobs until enough of them wait. Whether there were enough.
async fn crowd(world: &mut World, count: &mut usize) -> bool {
    let lives = world.lives();
    let mut is_crowded = true;
    for tenant in ["vision", "research"] {
        let small = format!("{tenant}-small-");
        let of = |life: &&Life| life.job.starts_with(&small);
        let waiting = waiting(&lives, tenant).filter(of).count();
        // Those that were started and have not asked yet are on their way.
        let started = world.count(&small);
        let under_way = started - lives.of_tenant(tenant).filter(of).count();
        is_crowded &= waiting >= CROWD;
        for number in started..started + CROWD.saturating_sub(waiting + under_way) {
            let options = ["--wait", LONG, "--work", "700ms", "--priority", "1"];
            world.start(tenant, &format!("{small}{number:03}"), &options);
            *count += 1;
        }
    }
    assert!(*count < CROWD_MAX, "the large one is starved");
    tokio::time::sleep(Duration::from_millis(20)).await;
    is_crowded
}

/// Each of them, and in time.
fn crashed_jobs_gave_all_back(world: &World, lives: &Lives) {
    /// For a busy machine, and for looking.
    const SLACK: Duration = Duration::from_secs(5);
    let crashed: Vec<&Life> = lives.all.iter().filter(|life| life.is(Stop::Crashed)).collect();
    assert_eq!(crashed.len(), 6);
    for life in crashed {
        let Some((crashed, back)) = life.orphaned_us(lives.end_us) else { continue };
        let after = Duration::from_micros(back - crashed);
        assert!(after < world.ttl() + SLACK, "{}: after {after:?}", life.job);
    }
}
