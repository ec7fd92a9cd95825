//! Histories of quotas that hold, each played twice to the same end. `SEEDS=10000` plays more of them; and so does
//! `cargo run --release -p sereno-sim -- --quotas --seeds 10000`, once each.

use sereno_sim::{Config, Report, explain, run, seeds_wanted};
use std::{collections::BTreeMap, thread};

const HISTORIES: u64 = 500;

/// What all histories together must have seen.
const MUST_COME_ABOUT: [&str; 34] = [
    "a backup is restored",
    "a debt shows",
    "a leader is overtaken",
    "a node goes on from a snapshot",
    "a node of a quota is removed",
    "a part is committed",
    "a quarantined reservation is settled",
    "a rehearsal differs",
    "a reservation expires",
    "a reservation grows",
    "a reservation is abandoned",
    "a reservation is quarantined",
    "a reservation is used by expiry",
    "a reservation shrinks",
    "a reservation that reached nobody is taken back",
    "a reserve has waited in vain",
    "a reserve is granted after a wait",
    "a reserve waits",
    "a share is lent",
    "a share is reclaimed",
    "a late copy meets another head",
    "an abandon comes before its acquire",
    "an answer is repeated",
    "an append lands and its answer is lost",
    "an expired reservation is admitted again",
    "an expired reservation is refused for want of room",
    "drift is compensated",
    "more is named than there is",
    "of a share something comes back",
    "outside work begins",
    "quota is exhausted",
    "the level is raised",
    "use is given back",
    "what is of a later level is refused",
];

fn holds(seed: u64) -> Report {
    let config = Config::quotas(seed);
    run(config.clone(), u64::MAX).unwrap_or_else(|silent| {
        // Once more with words: it is the same run.
        panic!("{}", explain(config, u64::MAX, false).err().unwrap_or(silent))
    })
}

fn all(seeds: u64) -> Vec<Report> {
    (0..seeds).map(holds).collect()
}

#[test]
fn every_history_of_quotas_holds_and_is_one() {
    let seeds = seeds_wanted(HISTORIES).unwrap_or_else(|message| panic!("{message}"));
    let (reports, again) = thread::scope(|scope| {
        let again = scope.spawn(|| all(seeds));
        let reports = all(seeds);
        (reports, again.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    for (seed, (report, again)) in reports.iter().zip(&again).enumerate() {
        assert_eq!(report, again, "seed {seed}");
    }
    let mut marks = BTreeMap::new();
    for (what, times) in reports.iter().flat_map(|report| &report.marks) {
        *marks.entry(what).or_insert(0) += times;
    }
    let missing: Vec<_> =
        MUST_COME_ABOUT.iter().filter(|what| !marks.contains_key(*what)).collect();
    assert!(missing.is_empty() || seeds < HISTORIES, "never came about: {missing:?} of {marks:?}");
}
