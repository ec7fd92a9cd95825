//! The world: everything there is in a run, and the loop that lets it happen.

mod liveness;
mod phases;
mod scenarios;

use crate::{
    agenda::Agenda,
    client::Client,
    clock::{Clock, Real},
    config::Config,
    event::{Arrival, Event},
    guard::Guards,
    host::Host,
    links::Network,
    presence::Records,
    random::Random,
    service::LogService,
    trace::Trace,
    truth::Truth,
};
use sereno_core::{
    LEVEL_MAX,
    names::{NamespaceName, ResourceName},
};

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
    pub(crate) guards: Guards,
    pub(crate) truth: Truth,
    /// The one that always is, and one that operators make.
    pub(crate) namespaces: Vec<NamespaceName>,
    pub(crate) resources: Vec<ResourceName>,
    pub(crate) requests: u64,
    /// Counts the logs: one that replaces another knows nothing of what that was asked.
    pub(crate) logs: u64,
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
                is_of_old_log: false,
                level_max: config.upgraded_from.unwrap_or(LEVEL_MAX),
            }
        };
        let hosts = (0..config.nodes).map(|_| host(&mut random)).collect();
        let client = |number| Client::new(number, Clock::new(&mut random, 0));
        let clients = (0..config.clients).map(client).collect();
        let namespace = |name| NamespaceName::new(name).expect("a valid name");
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
            guards: Guards::default(),
            truth: Truth::default(),
            namespaces: [NamespaceName::DEFAULT, "orders"].map(namespace).into(),
            resources,
            requests: 0,
            logs: 0,
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

    fn is_over(&self) -> bool {
        self.trace.events >= self.steps
    }

    pub(crate) fn run_until(&mut self, end: Real) {
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
            Event::CopyReaches(node, call) => {
                let to = self.to(node);
                self.arrive(to, Arrival::Call(call));
            }
            Event::WriteReaches(write) => self.write_reaches(write),
            Event::CrowdComes => self.crowd_comes(),
            Event::CrowdAsks(to) => self.crowd_asks(to),
            Event::UpgradeDue(node) => self.upgrade_due(node),
            Event::LeftBehind(node) => self.left_behind(node),
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
}
