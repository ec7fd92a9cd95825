//! A node's process: the node itself, and what its driver keeps. It does with the node's outputs what the tokio
//! driver does (`crates/node/src/driver`), over a network that is simulated.

mod inputs;
mod outputs;

use crate::{
    clock::{Clock, MS, Real},
    event::{Arrival, Attempt, Event, To, ToClient},
    place::Place,
    world::World,
};
use sereno_core::{
    entry::Writer,
    ids::{LeaseId, LogId, Position},
    planted,
};
use sereno_node::{
    clock::Now,
    node::{CallId, LevelTooHigh, Node, ReadId, Recovered, Settings},
};
use std::collections::BTreeMap;

/// One machine.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) clock: Clock,
    /// `None`: it does not run.
    pub(crate) process: Option<Process>,
    /// Counts the starts of its process.
    pub(crate) start: u64,
    pub(crate) is_paused: bool,
    /// What has arrived at a process that stands still.
    pub(crate) backlog: Vec<Arrival>,
    /// Why it halted.
    pub(crate) halted: Option<String>,
    /// What it has applied is not in the log any more: an older one was put back.
    pub(crate) is_of_old_log: bool,
    /// What its program understands.
    pub(crate) level_max: u32,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) node: Node,
    next_call: u64,
    next_read: u64,
    pub(crate) calls: BTreeMap<CallId, For>,
    /// The lease ids that acquires drew.
    acquires: BTreeMap<CallId, LeaseId>,
    pub(crate) reads: BTreeMap<ReadId, Reading>,
    /// Where its link goes, and in which generation.
    pub(crate) leader: Option<usize>,
    pub(crate) link_generation: u64,
    pub(crate) connection: Option<u64>,
    pub(crate) is_publishing: bool,
    pub(crate) has_append: bool,
    wake_at: Option<Real>,
    checked: Position,
    pub(crate) fetched_in_vain: u32,
    pub(crate) fetched_from: Position,
}

/// Who asked.
#[derive(Clone, Debug)]
pub(crate) enum For {
    Client(Attempt),
    /// Another node, over this connection, by its own number.
    Link(u64, CallId),
    /// A crowd: nobody listens.
    Crowd,
}

#[derive(Clone, Debug)]
pub(crate) enum Reading {
    Client { attempt: Attempt, place: Place },
    Barrier { connection: u64, number: u64, came_at: Real },
}

pub(crate) fn address(node: usize) -> String {
    format!("node-{node}")
}

impl World {
    pub(crate) fn to(&self, node: usize) -> To {
        To { node, start: self.hosts[node].start }
    }

    pub(crate) fn now_of(&self, node: usize) -> Now {
        self.hosts[node].clock.now(self.agenda.now)
    }

    /// What runs from here on runs on this machine.
    pub(crate) fn takes_its_turn(&self, node: usize) {
        planted::set_machine(self.now_of(node).wall_us, self.hosts[node].level_max);
    }

    pub(crate) fn mark(&mut self, what: &'static str) {
        self.truth.checks.marks.mark(what);
    }

    pub(crate) fn process(&mut self, node: usize) -> Option<&mut Process> {
        self.hosts[node].process.as_mut()
    }

    /// Starts a node's process: it reads the log, as far as it goes.
    pub(crate) fn start(&mut self, node: usize) {
        if self.hosts[node].process.is_some() {
            return;
        }
        self.say(|| format!("n{node} starts"));
        let now = self.agenda.now;
        let (start_bits, log_id, seed) =
            (self.random.bits(), LogId(self.random.id()), self.random.bits());
        self.takes_its_turn(node);
        let (state, snapshot, log_bytes) = self.log.recover();
        if LevelTooHigh::check(&state, self.hosts[node].level_max).is_err() {
            // It refuses to start, and its operator finds out why.
            self.mark("a node refuses a level that it does not understand");
            self.upgrade(node);
        }
        let host = &mut self.hosts[node];
        host.start += 1;
        host.clock.restart(&mut self.random, now);
        (host.halted, host.is_of_old_log) = (None, false);
        (host.is_paused, host.backlog) = (false, Vec::new());
        let settings = Settings {
            writer: Writer { node_id: format!("n{node}"), start: start_bits },
            address: address(node),
            new_log_id: log_id,
            min_ttl_ms: 1_000,
            snapshot_interval_ms: self.config.snapshot_interval_ms,
            snapshot_bytes: 1 << 30,
            is_shared: !self.config.is_embedded,
            seed,
            level_max: host.level_max,
            new_log_level: host.level_max,
            region: None,
        };
        let recovered = Recovered { snapshot, log_bytes };
        host.process = Some(Process {
            node: Node::new(settings, state, recovered, host.clock.now(now)),
            next_call: 1,
            next_read: 1,
            calls: BTreeMap::new(),
            acquires: BTreeMap::new(),
            reads: BTreeMap::new(),
            leader: None,
            link_generation: 0,
            connection: None,
            is_publishing: false,
            has_append: false,
            wake_at: None,
            checked: Position(0),
            fetched_in_vain: 0,
            fetched_from: Position(0),
        });
        self.advance(node);
    }

    /// The process is gone, with everything in its memory.
    pub(crate) fn kill(&mut self, node: usize) {
        let Some(process) = self.hosts[node].process.take() else { return };
        self.say(|| format!("n{node} is gone"));
        self.hosts[node].is_paused = false;
        self.hosts[node].backlog.clear();
        for who in process.calls.into_values() {
            if let For::Client(attempt) = who {
                self.break_call(attempt);
            }
        }
        for reading in process.reads.into_values() {
            if let Reading::Client { attempt, .. } = reading {
                self.break_call(attempt);
            }
        }
        self.close_links_of(node);
    }

    /// The client's machine learns that the process is gone.
    fn break_call(&mut self, attempt: Attempt) {
        let delay = self.random.skewed(MS / 5, 50 * MS);
        let event = Event::Client(attempt.client, attempt.life, ToClient::Broken(attempt));
        self.agenda.after(delay, event);
    }
}
