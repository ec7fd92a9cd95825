//! Levels: the one in force only rises, and no node goes on at one that it does not understand.

use sereno_core::{
    command::Operation,
    outcome::{Done, Outcome},
};

#[derive(Clone, Debug)]
pub(crate) struct Levels {
    in_force: u32,
}

impl Default for Levels {
    fn default() -> Self {
        Self { in_force: 1 }
    }
}

impl Levels {
    pub(super) fn outcome(&mut self, operation: &Operation, outcome: &Outcome) {
        let (Operation::RaiseLevel { level: asked }, Ok(done)) = (operation, &outcome.result)
        else {
            return;
        };
        let due = self.in_force.max(*asked);
        assert!(
            *done == Done::LevelRaised { level: due },
            "levels: {asked} is asked for at {}, and the answer is {done:?}",
            self.in_force
        );
        self.in_force = due;
    }
}

/// A node has applied an entry, and goes on.
pub(crate) fn goes_on(node: usize, level: u32, level_max: u32) {
    assert!(
        level <= level_max,
        "levels: n{node} goes on at level {level}, and understands {level_max}"
    );
}
