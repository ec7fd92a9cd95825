//! Presence records: a store beside the log that forgets what is not written again.

use crate::{
    clock::{MS, Real, S},
    event::{Arrival, Event, To},
    world::World,
};
use sereno_node::node::Presence;
use std::collections::BTreeMap;

/// As long does a record live.
const LIFE_NS: u64 = 10 * S;

pub(crate) type Records = BTreeMap<String, (Presence, Real)>;

impl World {
    fn reaches_presence(&self, node: usize) -> bool {
        let is_cut = self.log.is_out || self.log.is_full || self.log.cut.contains(&node);
        !is_cut && !self.net.presence_cut.contains(&node)
    }

    /// One at a time, as the driver does.
    pub(crate) fn publish(&mut self, node: usize, record: Presence) {
        let process = self.hosts[node].process.as_mut().expect("only a process publishes");
        if std::mem::replace(&mut process.is_publishing, true) {
            return;
        }
        let (to, delay) = (self.to(node), self.random.skewed(MS / 2, 400 * MS));
        self.agenda.after(delay, Event::PresenceReaches(to, record));
    }

    pub(crate) fn presence_reaches(&mut self, to: To, record: Presence) {
        if !self.reaches_presence(to.node) {
            return self.agenda.after(2 * S, Event::Arrive(to, Arrival::NotPublished));
        }
        let now = self.agenda.now;
        self.records.insert(record.node_id.clone(), (record, now));
        self.records.retain(|_, (_, written_at)| now - *written_at < LIFE_NS);
        let present = self.records.values().map(|(record, _)| record.clone()).collect();
        let delay = self.random.skewed(MS / 2, 100 * MS);
        self.agenda.after(delay, Event::Arrive(to, Arrival::Present(present)));
    }

    pub(crate) fn withdraw(&mut self, to: To) {
        if self.reaches_presence(to.node) {
            self.records.remove(&format!("n{}", to.node));
        }
    }
}
