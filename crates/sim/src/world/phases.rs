//! The phases of a run: faults, all healed, a takeover, and the end of everything.

use super::World;
use crate::{
    clock::{MS, Real, S},
    config::Scenario,
    event::Event,
};

/// The first fault comes no earlier.
const CALM_NS: u64 = 2 * S;
/// After all is healed, a leader is there and every node is ready within this.
const READY_NS: u64 = 12 * S;
/// An operator comes after this: by then somebody leads, and all nodes know of each other.
const OPERATOR_NS: u64 = 12 * S;
/// Cluster time is measured for so long.
const FLOW_NS: u64 = 10 * S;
/// A takeover under no faults comes within this.
const TAKEOVER_NS: u64 = 10 * S;
/// So long do clients go on with new work after that moment.
const WORK_NS: u64 = 15 * S;
/// By then everything has come to its end.
const END_NS: u64 = 120 * S;
/// A log that is wiped has lived so long.
const WIPED_NS: u64 = 61 * S;
/// After a restore there are faults for so long: longer than nothing is granted.
const RESTORED_NS: u64 = 35 * S;

impl World {
    /// The whole run.
    pub(crate) fn run(&mut self) {
        if self.config.hammered > 0 {
            return self.run_hammered();
        }
        for node in 0..self.hosts.len() {
            let at = self.random.between(0, 300 * MS);
            self.agenda.at(at, Event::Heal(crate::event::Healing::Start(node)));
        }
        for client in 0..self.clients.len() {
            self.client_turn(client);
        }
        self.agenda.at(CALM_NS, Event::FaultDue);
        if self.config.has_crowd {
            self.plan_crowd();
        }
        if self.config.upgraded_from.is_some() {
            self.plan_upgrade();
        }
        let mut faulty = self.faults();
        self.heal_all();
        faulty += self.wait_for_an_operator();
        self.run_until(faulty + READY_NS);
        self.check_ready();
        match self.config.scenario {
            Scenario::PutBack => self.put_back(),
            Scenario::PutBackAndLed => self.put_back_and_led(),
            Scenario::Plain | Scenario::Wiped | Scenario::Backup => self.calm(faulty),
        }
    }

    /// Where nodes have doubts, an operator comes some time after all else is well. Gives how long that took.
    fn wait_for_an_operator(&mut self) -> Real {
        if !(0..self.hosts.len()).any(|node| self.is_suspect(node)) {
            return 0;
        }
        self.run_until(self.agenda.now + OPERATOR_NS);
        self.look_after_suspects();
        OPERATOR_NS
    }

    /// The time of faults. Gives its end.
    fn faults(&mut self) -> Real {
        let faulty = self.config.faulty_ms * MS;
        match self.config.scenario {
            Scenario::Plain | Scenario::PutBack | Scenario::PutBackAndLed => {
                self.run_until(faulty);
                faulty
            }
            Scenario::Wiped => {
                // Clocks may be off by a minute, and a log's first tokens are ahead of all clocks: the promise is
                // for logs that have lived longer than that.
                self.run_until(WIPED_NS);
                self.wipe();
                self.run_until(WIPED_NS + faulty);
                WIPED_NS + faulty
            }
            Scenario::Backup => {
                self.run_until(faulty / 2);
                self.back_up_and_restore();
                let end = self.agenda.now + RESTORED_NS;
                self.run_until(end);
                end
            }
        }
    }

    /// All is well: what has been asked for comes about in time, and everything comes to its end.
    fn calm(&mut self, faulty: Real) {
        self.skew_one();
        self.take_over();
        self.check_flow();
        self.run_until(faulty + READY_NS + WORK_NS);
        for client in &mut self.clients {
            client.is_closing = true;
        }
        while !self.is_quiet() {
            let end = self.agenda.now + S;
            assert!(end < faulty + READY_NS + WORK_NS + END_NS, "{}", self.unrest());
            self.run_until(end);
        }
        self.check_ready();
        self.truth.checks.of_log.slots.check_asked(&self.truth.state);
    }

    /// A standby's wall clock runs minutes ahead, and all nodes have time to see it.
    fn skew_one(&mut self) {
        let others: Vec<_> =
            (0..self.hosts.len()).filter(|&node| Some(node) != self.leader_now()).collect();
        if self.hosts.len() < 3 {
            return;
        }
        let node = others[self.random.below(others.len())];
        self.say(|| format!("** n{node} is minutes ahead"));
        self.hosts[node].clock.wall_offset_us = 300_000_000;
        self.run_until(self.agenda.now + 4 * S);
        self.skewed = Some(node);
    }

    /// Cluster time keeps up with real time while the service can commit.
    fn check_flow(&mut self) {
        let (begun, time) = (self.agenda.now, self.truth.state.time());
        self.run_until(begun + FLOW_NS);
        let passed_ms = time.until(self.truth.state.time());
        let due_ms = (self.agenda.now - begun) / MS;
        assert!(
            passed_ms + 900 + due_ms / 50 >= due_ms || self.is_over(),
            "L1: cluster time flows: {passed_ms} ms in {due_ms} ms"
        );
        if let Some(node) = self.skewed.take() {
            self.hosts[node].clock.wall_offset_us = 0;
        }
    }

    /// The leader dies while all else is well: another is there soon (L2).
    fn take_over(&mut self) {
        let Some(leader) = self.leader_now() else { return };
        let (begun, before) = (self.agenda.now, self.leads);
        self.kill(leader);
        self.agenda.after(3 * S, Event::Heal(crate::event::Healing::Start(leader)));
        while self.leads == before && !self.is_over() {
            self.run_until(self.agenda.now + 50 * MS);
            let took = self.agenda.now - begun;
            assert!(
                self.leader_now().is_none_or(|leader| Some(leader) != self.skewed),
                "S2: a node whose wall clock is over a minute ahead does not begin to lead"
            );
            assert!(took < TAKEOVER_NS, "L2: somebody leads soon after the leader's death");
        }
        self.takeover_ms = (self.agenda.now - begun) / MS;
    }
}
