//! The rules of DESIGN.md, each as a script with the answers written below each line. `script` has the language.

mod bounds;
mod delays;
mod deserted;
mod elections;
mod ends;
mod faces;
mod holds;
mod jobs;
mod line;
mod locks;
mod memory;
mod misfits;
mod namespaces;
mod print;
mod quota_books;
mod quota_ends;
mod quota_limits;
mod quota_print;
mod quota_regions;
mod quota_reserve;
mod quota_waits;
mod quota_words;
mod reads;
mod renewals;
mod restore;
mod run_history;
mod runs;
mod script;
mod several;
mod time;
mod tokens;
mod waiting;

use script::World;

/// The same at level 3, to which elections, holds and jobs belong.
fn check_faces(script: &str, expected: expect_test::Expect) {
    let mut world = World::new();
    world.raise(3);
    world.run(script);
    expected.assert_eq(world.printed());
}

/// The same at level 4, to which quotas belong.
fn check_quotas(script: &str, expected: expect_test::Expect) {
    let mut world = World::new();
    world.raise(4);
    world.run(script);
    expected.assert_eq(world.printed());
}

/// Runs a script in a fresh log and compares what it prints.
fn check(script: &str, expected: expect_test::Expect) {
    let mut world = World::new();
    world.run(script);
    expected.assert_eq(world.printed());
}
