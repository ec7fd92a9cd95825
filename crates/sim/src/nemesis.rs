//! Faults: which, where, for how long.

use crate::{
    clock::{MS, S},
    config::Fault,
    event::{Arrival, Event, Healing},
    host::Process,
    world::World,
};
use sereno_node::handle::Role;

impl World {
    pub(crate) fn plan_fault(&mut self) {
        let gap_ms = self.random.between(1, 2 * self.config.gap_ms);
        self.agenda.after(gap_ms * MS, Event::FaultDue);
    }

    pub(crate) fn fault_due(&mut self) {
        if self.is_healing || self.config.faults.is_empty() {
            return;
        }
        let fault = self.config.faults[self.random.below(self.config.faults.len())];
        let node = self.random.below(self.hosts.len());
        self.strike(fault, node);
        self.plan_fault();
    }

    fn strike(&mut self, fault: Fault, node: usize) {
        let node_of_leader = self.leader_now();
        // The leader is worth more than its share of faults.
        let node = match node_of_leader {
            Some(leader) if self.random.in_1000(300) => leader,
            _ => node,
        };
        let mut other = self.random.below(self.hosts.len());
        // Some are over before anybody notices; others outlast a takeover, and leases.
        let longest = if self.random.in_1000(350) { 14 * S } else { 2 * S };
        let lasts = self.random.between(50 * MS, longest);
        match fault {
            Fault::Crash => self.kill(node),
            Fault::Pause => {
                let host = &mut self.hosts[node];
                host.is_paused = host.process.is_some();
            }
            Fault::Stop => {
                let to = self.to(node);
                self.agenda.after(0, Event::Arrive(to, Arrival::Stop));
            }
            Fault::LogCut => {
                self.log.cut.insert(node);
                self.break_waits();
            }
            Fault::Outage => {
                self.log.is_out = true;
                self.break_waits();
            }
            Fault::Full => self.log.is_full = true,
            Fault::LogFlaky => {
                let mut rate = || self.random.between(0, 180);
                self.log.flaky = [rate(), rate(), rate(), rate(), rate()];
            }
            Fault::LogSlow => {
                self.log.slow.insert(node);
            }
            Fault::LinkCut => {
                self.net.cut.insert((node, other));
            }
            Fault::FramesTwice => self.net.twice = self.random.between(1, 60),
            Fault::Alone => {
                for there in 0..self.hosts.len() {
                    self.net.cut.insert((node, there));
                    self.net.cut.insert((there, node));
                }
            }
            Fault::WallStep => {
                let step_ms = self.random.between(0, 2 * self.config.wall_off_ms);
                let offset_ms = step_ms as i64 - self.config.wall_off_ms as i64;
                self.hosts[node].clock.wall_offset_us = offset_ms * 1_000;
            }
            Fault::ClientPause => {
                other = self.random.below(self.clients.len());
                self.clients[other].is_paused = true;
            }
            Fault::ClientDeath => {
                other = self.random.below(self.clients.len());
                self.client_dies(other);
            }
            Fault::ClientCut => {
                other = self.random.below(self.clients.len());
                self.net.client_cut.insert((other, node));
            }
            Fault::Doubt => {
                self.log.doubts.insert(node);
            }
            Fault::PresenceCut => {
                self.net.presence_cut.insert(node);
            }
        }
        self.faults += 1;
        self.say(|| format!("** {fault:?} n{node} ({other}) for {} ms", lasts / MS));
        self.trace.mix(&[4, fault as u64, node as u64, lasts]);
        self.agenda.after(lasts, Event::Heal(Healing::of(fault, node, other)));
    }

    pub(crate) fn heal(&mut self, healing: Healing) {
        self.say(|| format!("** healed: {healing:?}"));
        match healing {
            // On a log that was put back only the scenario starts a node.
            Healing::Start(_) if self.log.was_put_back => {}
            Healing::Start(node) => self.start(node),
            Healing::Resume(node) => self.resume(node),
            Healing::LogCut(node) => {
                self.log.cut.remove(&node);
            }
            Healing::LogSlow(node) => {
                self.log.slow.remove(&node);
            }
            Healing::Outage => self.log.is_out = false,
            Healing::Full => self.log.is_full = false,
            Healing::Link(node, other) => {
                self.net.cut.remove(&(node, other));
            }
            Healing::Alone(node) => {
                self.net.cut.retain(|&(from, to)| from != node && to != node);
            }
            Healing::Client(client) => self.client_resume(client),
            Healing::ClientCut(client, node) => {
                self.net.client_cut.remove(&(client, node));
            }
            Healing::Presence(node) => {
                self.net.presence_cut.remove(&node);
            }
            Healing::FramesTwice => self.net.twice = 0,
            Healing::Flaky => self.log.flaky = [0; 5],
        }
    }

    /// Nothing is wrong any more. Skewed wall clocks are set.
    pub(crate) fn heal_all(&mut self) {
        self.say(|| "** all is healed".into());
        self.is_healing = true;
        (self.log.is_out, self.log.is_full) = (false, false);
        self.log.flaky = [0; 5];
        self.log.cut.clear();
        self.log.slow.clear();
        self.net.cut.clear();
        self.net.client_cut.clear();
        self.net.presence_cut.clear();
        self.net.twice = 0;
        self.log.doubts.clear();
        for node in 0..self.hosts.len() {
            self.hosts[node].clock.wall_offset_us = 0;
            self.resume(node);
            self.start(node);
        }
        for client in 0..self.clients.len() {
            self.client_resume(client);
        }
    }

    /// Whether a node has doubts about its state.
    pub(crate) fn is_suspect(&self, node: usize) -> bool {
        let now = self.now_of(node).mono;
        let status = |process: &Process| process.node.status(now).role;
        self.hosts[node].process.as_ref().map(status) == Some(Role::Suspect)
    }

    /// An operator looks after the nodes whose state and log disagree: what they may need to find out why is there.
    pub(crate) fn look_after_suspects(&mut self) {
        let (suspects, sound): (Vec<_>, Vec<_>) =
            (0..self.hosts.len()).partition(|&node| self.is_suspect(node));
        if suspects.is_empty() {
            return;
        }
        if !sound.is_empty() || self.config.is_embedded {
            self.check_kept();
        }
        for node in suspects {
            self.kill(node);
            self.start(node);
        }
    }
}
