//! Histories against a naive reference (DESIGN.md section 17): random ones here, all short ones of a lock in
//! `exhaustive`, of an election, a hold and a job in `short_faces`.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p sereno-core --test it model` looks longer.

mod acts;
mod chance;
mod commands;
mod compare;
mod elections;
mod endings;
mod exhaustive;
mod faces;
mod history;
mod holds;
mod ledger;
mod lifecycle;
mod operators;
mod reference;
mod requests;
mod runs;
mod short_faces;
mod slots;
mod told;
mod watcher;
mod world;

use proptest::prelude::*;
use world::World;

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    // Each family has its share of them.
    ProptestConfig { failure_persistence: None, cases: 2 * default.cases, ..default }
}

proptest! {
    #![proptest_config(config())]

    /// Outcomes, settled waits, events and reads are the reference's; the promises hold as seen from outside; a
    /// replay and a snapshot in the middle lead to the same state.
    #[test]
    fn random_histories(history in chance::history()) {
        let mut world = World::new(history.level);
        for step in &history.steps {
            world.play(step);
        }
        world.finish();
    }
}
