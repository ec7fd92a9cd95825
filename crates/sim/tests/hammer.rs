//! Whoever hammers a shared pool delays no guarantee of another's.

use sereno_sim::{Config, run};

/// A hundred times its share, against its share alone: in both, a reserve that lies under its tenant's guarantee is
/// granted in the entry that is under way when it comes, or in the next one.
#[test]
fn a_hundred_times_its_share_delays_no_guarantee() {
    for (seed, times) in [(0, 1), (0, 100), (1, 100), (2, 100)] {
        let report = run(Config::hammered(seed, times), u64::MAX);
        let report = report.unwrap_or_else(|failure| panic!("{times} times: {failure}"));
        let count = |what| report.marks.get(what).copied().unwrap_or(0);
        assert_eq!(count("a tenant hammers"), 250 * times, "{:?}", report.marks);
        assert_eq!(count("a guaranteed reserve is granted at once"), 9, "{:?}", report.marks);
    }
}
