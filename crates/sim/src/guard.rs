//! What the locks protect: resources that keep the highest token they have seen, and take no write of a lower one.
//! They know nothing of nodes, logs and leases, and outlive every wiped log.

use crate::{
    clock::{MS, S},
    event::{Event, Write},
    place::Place,
    world::World,
};
use sereno_core::{
    ids::Token,
    planted::{self, Planted},
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Guards {
    highest: BTreeMap<Place, Token>,
}

impl Guards {
    /// Whether the write is taken.
    fn takes(&mut self, write: &Write) -> bool {
        let highest = self.highest.entry(write.place.clone()).or_default();
        if write.token < *highest && !planted::has(Planted::FenceIgnored) {
            return false;
        }
        *highest = write.token.max(*highest);
        true
    }
}

impl World {
    /// A write goes on its way; now and then a network keeps it, or a copy of it, for a while.
    pub(crate) fn send_write(&mut self, write: Write) {
        let most = if self.random.in_1000(40) { 15 * S } else { 30 * MS };
        let delay = self.random.skewed(MS / 5, most);
        if self.random.in_1000(self.config.copies) {
            let later = delay + self.random.between(0, 15 * S);
            self.agenda.after(later, Event::WriteReaches(write.clone()));
        }
        self.agenda.after(delay, Event::WriteReaches(write));
    }

    pub(crate) fn write_reaches(&mut self, write: Write) {
        let is_taken = self.guards.takes(&write);
        self.trace.mix(&[7, write.token.0, u64::from(is_taken)]);
        self.say(|| {
            let how = if is_taken { "takes" } else { "refuses" };
            format!("   {} {how} a write of {}", write.place, write.token)
        });
        self.truth.checks.wrote(&write, is_taken, self.agenda.now);
    }
}
