//! Histories against a naive reference (DESIGN.md section 17): random ones here, all short ones in `exhaustive`.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p sereno-core --test it model` looks longer.

mod acts;
mod commands;
mod endings;
mod exhaustive;
mod history;
mod reference;
mod watcher;
mod world;

use proptest::prelude::*;
use world::World;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Outcomes, settled waits, events and reads are the reference's; the promises hold as seen from outside; a
    /// replay and a snapshot in the middle lead to the same state.
    #[test]
    fn random_histories(history in history::history()) {
        let mut world = World::new();
        for step in &history {
            world.play(step);
        }
        world.finish();
    }
}
