//! A rolling upgrade: one node after the other comes back with a program that knows a higher level, while clients go
//! on; and an operator asks for that level again and again, until all understand it.

use crate::{
    clock::{MS, S},
    event::{Arrival, Event, Healing},
    world::World,
};
use sereno_core::LEVEL_MAX;

impl World {
    pub(crate) fn plan_upgrade(&mut self) {
        let mut at = self.random.between(2 * S, 12 * S);
        let mut nodes = 0..self.hosts.len();
        // The level is raised once all that are there understand it.
        if self.hosts.len() > 2 && self.random.in_1000(400) {
            self.agenda.at(at, Event::LeftBehind(nodes.start));
            nodes.start += 1;
        }
        for node in nodes {
            self.agenda.at(at, Event::UpgradeDue(node));
            at += self.random.between(500 * MS, 7 * S);
        }
    }

    pub(crate) fn left_behind(&mut self, node: usize) {
        if self.is_healing {
            return;
        }
        self.say(|| format!("** n{node} is left behind"));
        let lasts = self.random.between(15 * S, 40 * S);
        if self.random.in_1000(500) {
            self.kill(node);
            return self.agenda.after(lasts, Event::Heal(Healing::Start(node)));
        }
        let host = &mut self.hosts[node];
        host.is_paused = host.process.is_some();
        self.agenda.after(lasts, Event::Heal(Healing::Resume(node)));
    }

    /// Its next start is one of the newer program.
    pub(crate) fn upgrade_due(&mut self, node: usize) {
        if self.is_healing {
            return; // It stays what it is.
        }
        self.say(|| format!("** n{node} is upgraded"));
        if self.hosts[node].process.is_none() {
            // It is down already, and somebody will start it.
            return self.upgrade(node);
        }
        if self.random.in_1000(500) {
            self.kill(node);
            self.upgrade(node);
            let delay = self.random.between(300 * MS, 3 * S);
            return self.agenda.after(delay, Event::Heal(Healing::Start(node)));
        }
        // It stops in its own time.
        let to = self.to(node);
        self.agenda.after(0, Event::Arrive(to, Arrival::Stop));
        self.agenda.after(S, Event::UpgradeDue(node));
    }

    /// A process that runs goes on with what it knew: this is for one that does not.
    pub(crate) fn upgrade(&mut self, node: usize) {
        assert!(self.hosts[node].process.is_none(), "a program is replaced while it does not run");
        self.hosts[node].level_max = LEVEL_MAX;
    }
}
