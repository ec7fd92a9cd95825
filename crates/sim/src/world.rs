//! The world: everything there is in a run, and the loop that lets it happen.

use crate::{
    agenda::Agenda,
    client::Client,
    clock::{Clock, MS, Real, S},
    config::{Config, Scenario},
    event::{Arrival, Event},
    host::Host,
    links::Network,
    presence::Records,
    random::Random,
    service::LogService,
    trace::Trace,
    truth::Truth,
};
use sereno_core::{
    ids::Revision,
    names::{NamespaceName, ResourceName},
};
use sereno_node::handle::Role;

/// The first fault comes no earlier.
const CALM_NS: u64 = 2 * S;
/// After all is healed, a leader is there and every node is ready within this.
const READY_NS: u64 = 12 * S;
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
/// Every node that knew more than a restored log has halted within this.
const HALT_NS: u64 = 30 * S;

pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) random: Random,
    pub(crate) agenda: Agenda<Event>,
    pub(crate) trace: Trace,
    pub(crate) hosts: Vec<Host>,
    pub(crate) log: LogService,
    pub(crate) net: Network,
    pub(crate) records: Records,
    pub(crate) clients: Vec<Client>,
    pub(crate) truth: Truth,
    pub(crate) namespace: NamespaceName,
    pub(crate) resources: Vec<ResourceName>,
    pub(crate) requests: u64,
    /// The newest revision that any client has been told.
    pub(crate) told_floor: Revision,
    pub(crate) is_healing: bool,
    pub(crate) leads: u64,
    pub(crate) landings: u64,
    pub(crate) snapshots: u64,
    pub(crate) answers: u64,
    pub(crate) reads: u64,
    pub(crate) faults: u64,
    pub(crate) takeover_ms: u64,
    /// Whose wall clock is minutes ahead, as all have seen.
    skewed: Option<usize>,
    steps: u64,
}

impl World {
    pub(crate) fn new(config: Config, steps: u64, trace: Trace) -> Self {
        let mut random = Random::new(config.seed);
        let off_ms = config.wall_off_ms;
        let host = |random: &mut Random| {
            let mut clock = Clock::new(random, 0);
            clock.wall_offset_us = (random.between(0, 2 * off_ms) as i64 - off_ms as i64) * 1_000;
            Host {
                clock,
                process: None,
                start: 0,
                is_paused: false,
                backlog: Vec::new(),
                halted: None,
            }
        };
        let hosts = (0..config.nodes).map(|_| host(&mut random)).collect();
        let client = |number| Client::new(number, Clock::new(&mut random, 0));
        let clients = (0..config.clients).map(client).collect();
        let resource = |name| ResourceName::new(name).expect("a valid name");
        let resources = ["a", "b", "c", "d"].map(resource).into();
        Self {
            random,
            agenda: Agenda::new(),
            trace,
            hosts,
            log: LogService::default(),
            net: Network::default(),
            records: Records::default(),
            clients,
            truth: Truth::default(),
            namespace: NamespaceName::new(NamespaceName::DEFAULT).expect("a valid name"),
            resources,
            requests: 0,
            told_floor: Revision(0),
            is_healing: false,
            leads: 0,
            landings: 0,
            snapshots: 0,
            answers: 0,
            reads: 0,
            faults: 0,
            takeover_ms: 0,
            skewed: None,
            steps,
            config,
        }
    }

    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        self.trace.say(self.agenda.now, line);
    }

    /// The whole run.
    pub(crate) fn run(&mut self) {
        for node in 0..self.hosts.len() {
            let at = self.random.between(0, 300 * MS);
            self.agenda.at(at, Event::Heal(crate::event::Healing::Start(node)));
        }
        for client in 0..self.clients.len() {
            self.client_turn(client);
        }
        self.agenda.at(CALM_NS, Event::FaultDue);
        let mut faulty = self.config.faulty_ms * MS;
        match self.config.scenario {
            Scenario::Plain | Scenario::Restored => self.run_until(faulty),
            Scenario::Wiped => {
                // Clocks may be off by a minute, and a log's first tokens are ahead of all clocks: the promise is
                // for logs that have lived longer than that.
                faulty += WIPED_NS;
                self.run_until(WIPED_NS);
                self.wipe();
                self.run_until(faulty);
            }
        }
        self.heal_all();
        self.run_until(faulty + READY_NS);
        self.check_ready();
        if self.config.scenario == Scenario::Restored {
            return self.restore();
        }
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

    fn is_over(&self) -> bool {
        self.trace.events >= self.steps
    }

    fn run_until(&mut self, end: Real) {
        while !self.is_over()
            && let Some(event) = self.agenda.next(end)
        {
            self.trace.events += 1;
            self.happen(event);
        }
        self.agenda.now = self.agenda.now.max(end);
    }

    fn happen(&mut self, event: Event) {
        let now = self.agenda.now;
        match event {
            Event::Arrive(to, what) => {
                self.trace.mix(&[5, now, to.node as u64]);
                self.arrive(to, what);
            }
            Event::Wake(to) => self.wake(to),
            Event::AppendReaches(copy) => self.append_reaches(*copy),
            Event::FetchReaches(to, from) => self.fetch_reaches(to, from),
            Event::Rehearse(to, head, chain) => self.rehearse(to, head, chain),
            Event::Reload(to, head) => self.reload(to, head),
            Event::Trim(to, position) => self.trim(to, position),
            Event::PresenceReaches(to, record) => self.presence_reaches(to, record),
            Event::Withdraw(to) => self.withdraw(to),
            Event::Client(client, life, what) => {
                self.trace.mix(&[6, now, client as u64]);
                self.client(client, life, what);
            }
            Event::LateCopy(call) => {
                let to = self.to(self.requests as usize % self.hosts.len());
                self.arrive(to, Arrival::Call(call));
            }
            Event::FaultDue => self.fault_due(),
            Event::Heal(healing) => self.heal(healing),
        }
    }

    /// Whom the log names as leader, if its process is there.
    pub(crate) fn leader_now(&self) -> Option<usize> {
        let leader = self.truth.state.leader()?;
        let node = leader.writer.node_id.strip_prefix('n')?.parse().ok()?;
        let host: &Host = self.hosts.get(node)?;
        host.process.is_some().then_some(node)
    }

    /// Everybody stops, the log is gone, and everybody comes back; clients are others.
    fn wipe(&mut self) {
        self.say(|| "** the log is wiped".into());
        for node in 0..self.hosts.len() {
            self.kill(node);
        }
        for client in 0..self.clients.len() {
            self.client_dies(client);
        }
        self.wipe_log();
        self.told_floor = Revision(0);
        // What was on its way to the old log would meet another one: those nodes are gone.
        for node in 0..self.hosts.len() {
            let at = self.agenda.now + self.random.between(S, 3 * S);
            self.agenda.at(at, Event::Heal(crate::event::Healing::Start(node)));
        }
    }

    /// The log is put back under running nodes: every one of them halts.
    fn restore(&mut self) {
        let older = self.log.memory.clone();
        self.run_until(self.agenda.now + 4 * S);
        self.say(|| "** the log is put back".into());
        self.put_back(older);
        self.run_until(self.agenda.now + HALT_NS);
        for (node, host) in self.hosts.iter().enumerate() {
            assert!(
                host.halted.is_some() || self.is_over(),
                "a node that meets a head below what it has applied halts: n{node}"
            );
        }
    }

    /// L2, as far as it goes: one leader, and every node ready and caught up.
    fn check_ready(&self) {
        if self.is_over() {
            return;
        }
        let head = self.log.memory.head().position;
        let mut leaders = 0;
        for (node, host) in self.hosts.iter().enumerate() {
            let process = host.process.as_ref();
            let process = process.unwrap_or_else(|| panic!("liveness: n{node} runs"));
            let status = process.node.status(host.clock.mono(self.agenda.now));
            leaders += usize::from(matches!(status.role, Role::Leader { .. }));
            assert!(
                status.not_ready.is_none(),
                "liveness: n{node} is ready, long after all was healed: {status:?}"
            );
            assert!(
                status.position.0 + 40 > head.0,
                "liveness: n{node} has caught up: {} of {head}",
                status.position
            );
        }
        assert!(leaders == 1, "liveness: one leader, not {leaders}");
    }

    fn is_quiet(&self) -> bool {
        self.is_over() || self.unrest().is_empty()
    }

    /// What has not come to its end.
    fn unrest(&self) -> String {
        let mut unrest = String::new();
        for (number, client) in self.clients.iter().enumerate() {
            if !client.is_idle() {
                unrest += &format!("liveness: client {number} comes to an end: {:?}\n", client.job);
            }
        }
        let (waiters, leases) = (self.truth.state.waiters(), self.truth.state.leases());
        if waiters + leases > 0 {
            unrest += &format!("liveness: {leases} leases and {waiters} waits end\n");
        }
        for (node, host) in self.hosts.iter().enumerate() {
            let Some(process) = &host.process else { continue };
            let status = process.node.status(host.clock.mono(self.agenda.now));
            if status.intake > 0 || !process.calls.is_empty() || !process.reads.is_empty() {
                let (calls, reads) = (&process.calls, &process.reads);
                unrest += &format!("liveness: n{node} has open calls {calls:?}, {reads:?}\n");
            }
        }
        unrest
    }
}
