//! Seeds that hold, and the proof that a seed decides everything. `SEEDS=5000` runs more of them.

use sereno_sim::{Config, Report, explain, run, seeds_wanted};
use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

/// What all seeds together must have seen: a promise about what never comes about is worth nothing.
const MUST_COME_ABOUT: [&str; 65] = [
    "a backup is restored",
    "a candidate campaigns anew",
    "a candidate comes to lead",
    "a client finds its lease lost by its own clock",
    "a command finds its resource due and unswept",
    "a copy comes after the reply memory",
    "a copy meets a trimmed slot",
    "a copy meets its own first one",
    "a copy that is too old is refused",
    "a finished run is told so",
    "a frame that came twice ends its link",
    "a full log takes no append",
    "a grant is taken back",
    "a grant reaches nobody",
    "a grant that was passed on reaches nobody",
    "a held call is ended",
    "a hold is its owner's already",
    "a hold is replaced",
    "a hold's owner has to wait for another",
    "a late copy meets another head",
    "a leader is overtaken",
    "a leader resigns",
    "a leader says something else",
    "a lease expires",
    "a lease is ended by force",
    "a lock is handed over",
    "a log is kept whole for a node that disagrees with it",
    "a node goes on from a snapshot",
    "a node halts",
    "a node refuses a level that it does not understand",
    "a payment begins",
    "a policy changes",
    "a policy refuses",
    "a rehearsal differs",
    "a renewal is cut short by maxHold",
    "a run is asked for",
    "a run is finished",
    "a run is left out",
    "a run is lost",
    "a run is somebody else's",
    "a run is tried again",
    "a spent request, or lease, is told so",
    "a standby answers a consistent read",
    "a term is handed off",
    "a wait ends",
    "a wait is deserted",
    "a zombie writes before its successor does",
    "all are granted",
    "an abandon comes before its acquire",
    "an acquire comes after its abandon",
    "an answer is repeated",
    "an append lands and its answer is lost",
    "an old leader meets a log that was put back and is as long",
    "an outcome is unknown",
    "an ownership is used up",
    "it differs again",
    "none is granted, for some are held",
    "nothing is granted after a restore",
    "one of many is not renewed",
    "the floor of tokens is raised",
    "the level is raised",
    "the log is wiped",
    "what is held is taken",
    "what is of a later level is refused",
    "without the fence a zombie's write would have landed",
];

fn holds(seed: u64) -> Report {
    let config = Config::of(seed);
    run(config.clone(), u64::MAX).unwrap_or_else(|silent| {
        // Once more with words: it is the same run.
        panic!("{}", explain(config, u64::MAX, false).err().unwrap_or(silent))
    })
}

fn all(seeds: u64) -> Vec<Report> {
    (0..seeds).map(holds).collect()
}

/// Each seed twice, side by side: what differs would be a thread, an address or the order of a hash table.
#[test]
fn every_seed_holds_and_is_one_history() {
    let seeds = seeds_wanted(200).unwrap_or_else(|message| panic!("{message}"));
    let (reports, again) = thread::scope(|scope| {
        let again = scope.spawn(|| all(seeds));
        let reports = all(seeds);
        (reports, again.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    for (seed, (report, again)) in reports.iter().zip(&again).enumerate() {
        assert_eq!(report, again, "seed {seed}");
    }
    let distinct: BTreeSet<_> = reports.iter().map(|report| report.hash).collect();
    assert_eq!(distinct.len(), reports.len(), "other seeds are other histories");
    let mut marks = BTreeMap::new();
    for (what, times) in reports.iter().flat_map(|report| &report.marks) {
        *marks.entry(what).or_insert(0) += times;
    }
    let missing: Vec<_> =
        MUST_COME_ABOUT.iter().filter(|what| !marks.contains_key(*what)).collect();
    assert!(missing.is_empty() || seeds < 200, "never came about: {missing:?} of {marks:?}");
}
