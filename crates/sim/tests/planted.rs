//! Every planted bug is found, within the seeds that stand beside it: so the silence of all seeds without one says
//! something.

use sereno_core::planted::{self, Planted};
use sereno_sim::{Config, run};

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        planted::plant(Some(bug));
        let found = (0..400).find_map(|seed| Some((seed, run(Config::of(seed), u64::MAX).err()?)));
        planted::plant(None);
        match found {
            Some((seed, failure)) => println!("{bug:?}: seed {seed}: {}", failure.message),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
