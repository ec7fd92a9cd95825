//! Histories of quotas against a naive reference: no sums, no indexes and no lanes, only lists of who has what, and the
//! formulas of DESIGN.md section 11 worked out by recursion each time. Checked after every step: outcomes, who was
//! granted in which order, every figure of every node (`available` by trying amounts one by one), S9, that nothing is
//! lost or returned twice, and that a replay and a snapshot lead to the same state.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p sereno-core --test it quota_model` looks longer.

mod books;
mod chance;
mod compare;
mod decide;
mod line;
mod regions;
mod starvation;
mod world;

use proptest::prelude::*;
use world::World;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_histories(steps in chance::history()) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
        }
        world.finish();
    }
}
