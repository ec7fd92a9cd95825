//! A node's process: the node itself, and what its driver keeps. It does with the node's outputs what the tokio
//! driver does (`crates/node/src/driver`), over a network that is simulated.

use crate::{
    clock::{Clock, MS, Real},
    event::{Arrival, Attempt, Call, Event, Healing, Seen, To, ToClient},
    world::World,
};
use sereno_core::{
    LEVEL_MAX,
    command::Operation,
    entry::Writer,
    ids::{LeaseId, LogId, ObjectId, Position},
    names::{Caller, ResourceName},
    outcome::{Done, Outcome},
};
use sereno_node::{
    clock::Now,
    handle::{Consistency, Reply, Undecided},
    node::{CallId, Input, Node, NodeCall, Output, ReadId, Recovered, Settings},
    peer::Response,
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
}

#[derive(Clone, Debug)]
pub(crate) enum Reading {
    Client { attempt: Attempt, resource: ResourceName },
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

    pub(crate) fn mark(&mut self, what: &'static str) {
        self.truth.checks.mark(what);
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
        let (state, snapshot, log_bytes) = self.log.recover();
        let host = &mut self.hosts[node];
        host.start += 1;
        host.clock.restart(&mut self.random, now);
        host.halted = None;
        (host.is_paused, host.backlog) = (false, Vec::new());
        let settings = Settings {
            writer: Writer { node_id: format!("n{node}"), start: start_bits },
            address: address(node),
            new_log_id: log_id,
            min_ttl_ms: 1_000,
            snapshot_interval_ms: self.config.snapshot_interval_ms,
            snapshot_bytes: 1 << 30,
            is_shared: true,
            seed,
            level_max: LEVEL_MAX,
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

    /// Something has reached a process.
    pub(crate) fn arrive(&mut self, to: To, what: Arrival) {
        let host = &mut self.hosts[to.node];
        if host.start != to.start || host.process.is_none() {
            return;
        }
        if host.is_paused {
            host.backlog.push(what);
            return;
        }
        self.take(to.node, what);
        self.advance(to.node);
    }

    /// It goes on, and finds everything that has arrived.
    pub(crate) fn resume(&mut self, node: usize) {
        if !std::mem::take(&mut self.hosts[node].is_paused) {
            return;
        }
        self.say(|| format!("n{node} goes on"));
        for what in std::mem::take(&mut self.hosts[node].backlog) {
            self.take(node, what);
        }
        self.advance(node);
    }

    pub(crate) fn wake(&mut self, to: To) {
        let (now, host) = (self.agenda.now, &mut self.hosts[to.node]);
        let Some(process) = host.process.as_mut().filter(|_| host.start == to.start) else {
            return;
        };
        if process.wake_at != Some(now) {
            return; // Planned anew meanwhile.
        }
        process.wake_at = None;
        if !host.is_paused {
            self.advance(to.node);
        }
    }

    pub(crate) fn input(&mut self, node: usize, input: Input) {
        let now = self.now_of(node);
        let Some(process) = self.process(node) else { return };
        let mut out = Vec::new();
        process.node.handle(now, input, &mut out);
        self.carry_out(node, out);
    }

    fn advance(&mut self, node: usize) {
        let now = self.now_of(node);
        let Some(process) = self.process(node) else { return };
        let mut out = Vec::new();
        process.node.advance(now, &mut out);
        self.carry_out(node, out);
        let real_now = self.agenda.now;
        let host = &mut self.hosts[node];
        let Some(process) = host.process.as_mut() else { return };
        let Some(wake_at) = process.node.wake_at() else { return };
        assert!(
            wake_at > now.mono,
            "a node that has done what is due sleeps: n{node} wants to be woken at {wake_at:?}, it is {:?}",
            now.mono
        );
        let wake_at = host.clock.real(wake_at).max(real_now);
        if process.wake_at.is_none_or(|at| wake_at < at) {
            process.wake_at = Some(wake_at);
            let to = self.to(node);
            self.agenda.at(wake_at, Event::Wake(to));
        }
    }

    fn take(&mut self, node: usize, what: Arrival) {
        match what {
            Arrival::Appended(result) => {
                self.say(|| format!("n{node} <- {result:?}"));
                if let Some(process) = self.process(node) {
                    process.has_append = false;
                }
                self.input(node, Input::Appended(result));
            }
            Arrival::Fetched(fetched) => self.input(node, Input::Fetched(fetched)),
            Arrival::Present(records) => {
                if let Some(process) = self.process(node) {
                    process.is_publishing = false;
                }
                self.input(node, Input::Present(records));
            }
            Arrival::NotPublished => {
                if let Some(process) = self.process(node) {
                    process.is_publishing = false;
                }
            }
            Arrival::Rehearsed(rehearsal) => self.input(node, Input::Rehearsed(rehearsal)),
            Arrival::Reloaded(state, again) => self.input(node, Input::Reloaded { state, again }),
            Arrival::Call(call) => self.call(node, *call),
            Arrival::Cancelled(attempt) => self.cancelled(node, attempt),
            Arrival::Read { attempt, timeout_ms, resource } => {
                let reading = Reading::Client { attempt, resource };
                self.read(node, reading, timeout_ms, false);
            }
            Arrival::Stop => self.input(node, Input::Stop),
            Arrival::Dial(generation) => self.dial(node, generation),
            Arrival::Dialled(connection) => self.dialled(node, connection),
            Arrival::Ping(connection) => self.ping(node, connection),
            Arrival::Response(connection, response) => self.response(node, connection, response),
            Arrival::Request(connection, request) => self.request(node, connection, request),
            Arrival::Closed(connection) => self.closed(node, connection),
        }
    }

    fn call(&mut self, node: usize, call: Call) {
        let who = For::Client(call.attempt);
        let caller = self.clients[call.attempt.client].caller.clone();
        self.open_call(node, who, caller, call, false);
    }

    /// Takes a call as a door, or a link, does.
    pub(crate) fn open_call(
        &mut self,
        node: usize,
        who: For,
        caller: Caller,
        call: Call,
        is_passed: bool,
    ) -> Option<CallId> {
        let deadline = self.now_of(node).mono.plus_ms(call.timeout_ms);
        let process = self.process(node)?;
        let id = CallId(process.next_call);
        process.next_call += 1;
        process.calls.insert(id, who);
        if let Operation::Acquire(acquire) = &call.operation {
            process.acquires.insert(id, acquire.lease_id);
        }
        let Call { operation, born_at, hold_ms, .. } = call;
        let call = NodeCall { id, caller, operation, born_at, deadline, hold_ms, is_passed };
        self.input(node, Input::Call(call));
        Some(id)
    }

    fn cancelled(&mut self, node: usize, attempt: Attempt) {
        let Some(process) = self.process(node) else { return };
        let is_it = |who: &For| matches!(who, For::Client(of) if *of == attempt);
        let id = process.calls.iter().find(|(_, who)| is_it(who)).map(|(&id, _)| id);
        if let Some(id) = id {
            self.cancel(node, id);
        }
    }

    /// Nobody listens to this call any more.
    pub(crate) fn cancel(&mut self, node: usize, id: CallId) {
        let Some(process) = self.process(node) else { return };
        if process.calls.remove(&id).is_some() {
            self.input(node, Input::Cancelled(id));
        }
    }

    pub(crate) fn read(&mut self, node: usize, reading: Reading, timeout_ms: u64, is_passed: bool) {
        let deadline = self.now_of(node).mono.plus_ms(timeout_ms);
        let Some(process) = self.process(node) else { return };
        let id = ReadId(process.next_read);
        process.next_read += 1;
        process.reads.insert(id, reading);
        let consistency = Consistency::Consistent;
        self.input(node, Input::Read { id, consistency, deadline, is_passed });
    }

    fn carry_out(&mut self, node: usize, out: Vec<Output>) {
        self.check_state(node);
        let mut unheard = Vec::new();
        for output in out {
            match output {
                Output::Append { expected, entry } => self.append(node, expected, entry),
                Output::Reply(id, reply) => unheard.extend(self.reply(node, id, reply)),
                Output::ReadReady(id) => self.read_done(node, id, None),
                Output::ReadFailed(id, undecided) => self.read_done(node, id, Some(undecided)),
                Output::Committed(_) => {}
                Output::Rehearse { head, outcome_chain } => {
                    let delay = self.random.skewed(5 * MS, 3_000 * MS);
                    let to = self.to(node);
                    self.agenda.after(delay, Event::Rehearse(to, head, outcome_chain));
                }
                Output::Fetch(from) => self.fetch(node, from),
                Output::Jumped => {
                    self.mark("a node goes on from a snapshot");
                    self.say(|| format!("n{node} goes on from a snapshot"));
                }
                Output::Link(leader) => self.link_to(node, leader),
                Output::Send(request) => self.send_request(node, request),
                Output::Publish(record) => self.publish(node, record),
                Output::Trim(position) => {
                    let (to, delay) = (self.to(node), self.random.skewed(MS, 500 * MS));
                    self.agenda.after(delay, Event::Trim(to, position));
                }
                Output::Reload(head) => {
                    let (to, delay) = (self.to(node), self.random.skewed(5 * MS, 500 * MS));
                    self.agenda.after(delay, Event::Reload(to, head));
                }
                Output::Leads { .. } => self.leads(node),
                Output::Halt(message) => {
                    self.halted(node, message);
                    return;
                }
                Output::Stopped => {
                    let to = self.to(node);
                    self.agenda.after(MS, Event::Withdraw(to));
                    self.kill(node);
                    // Whoever stops a node starts it again.
                    let delay = self.random.between(500 * MS, 5_000 * MS);
                    self.agenda.after(delay, Event::Heal(Healing::Start(node)));
                    return;
                }
            }
        }
        for claim in unheard {
            self.mark("a grant reaches nobody");
            self.input(node, Input::Unheard(claim));
        }
    }

    /// Every node that has applied a position has come to the same there (S1).
    fn check_state(&mut self, node: usize) {
        let Some(process) = self.hosts[node].process.as_mut() else { return };
        let state = process.node.state();
        let head = state.head();
        if head.position == process.checked {
            return;
        }
        process.checked = head.position;
        self.truth.check_node(node, head, state.outcome_chain());
        self.trace.mix(&[1, node as u64, head.position.0]);
    }

    fn leads(&mut self, node: usize) {
        let Some(process) = self.hosts[node].process.as_ref() else { return };
        let head = process.node.state().head();
        self.say(|| format!("n{node} leads in epoch {}", head.epoch));
        self.truth.leads(node, head);
        self.leads += 1;
    }

    fn halted(&mut self, node: usize, message: String) {
        self.say(|| format!("n{node} halts: {message}"));
        assert!(self.log.was_restored, "only damage is a reason to halt: n{node} says {message}");
        self.mark("a node halts");
        self.hosts[node].halted = Some(message);
        self.kill(node);
    }

    /// Answers a call. Gives the claim of a grant that reached nobody.
    fn reply(&mut self, node: usize, id: CallId, reply: Reply) -> Option<ObjectId> {
        let acquire = self.process(node).and_then(|process| process.acquires.remove(&id));
        match (&reply, acquire) {
            (Reply::Decided(outcome), _) => self.truth.check_answer(outcome),
            (Reply::Undecided(Undecided::Unknown), _) => self.mark("an outcome is unknown"),
            (Reply::Undecided(Undecided::HeldCallEnded), _) => self.mark("a held call is ended"),
            (Reply::Undecided(_), Some(lease_id)) => {
                self.truth.checks.leases.refused(lease_id);
            }
            (Reply::Undecided(_), None) => {}
        }
        let who = self.process(node).and_then(|process| process.calls.remove(&id));
        match who {
            None => granted_claim(&reply),
            // The connection is closed, and the door finds out.
            Some(For::Client(attempt))
                if !self.clients[attempt.client].listens(attempt) && self.random.in_1000(700) =>
            {
                granted_claim(&reply)
            }
            Some(For::Client(attempt)) => {
                self.tell_client(node, attempt, ToClient::Reply(attempt, reply));
                None
            }
            Some(For::Link(connection, remote)) => {
                self.answered_over_link(connection, remote);
                self.send_response(node, connection, Response::Reply(remote, reply));
                None
            }
        }
    }

    fn tell_client(&mut self, node: usize, attempt: Attempt, what: ToClient) {
        if self.net.client_cut.contains(&(attempt.client, node)) {
            return;
        }
        let delay = self.random.skewed(MS / 5, 30 * MS);
        self.agenda.after(delay, Event::Client(attempt.client, attempt.life, what));
    }

    fn read_done(&mut self, node: usize, id: ReadId, failed: Option<Undecided>) {
        let Some(process) = self.hosts[node].process.as_mut() else { return };
        let reading = process.reads.remove(&id).expect("a read is answered once");
        let state = process.node.state();
        let (head, revision) = (state.head(), state.revision());
        match reading {
            Reading::Client { attempt, resource } => {
                let namespace = &self.namespace;
                let view = state.lock(namespace, &resource).and_then(|view| view.holder);
                let token = view.map(|holder| holder.holder.token);
                if failed.is_none() && self.leader_now() != Some(node) {
                    self.mark("a standby answers a consistent read");
                }
                let seen = failed.map_or(Ok(Seen { revision, token }), Err);
                self.tell_client(node, attempt, ToClient::Read(attempt, seen));
            }
            Reading::Barrier { connection, number, came_at } => {
                if failed.is_none() {
                    self.truth.check_barrier(node, head, came_at);
                }
                let up_to = failed.map_or(Ok(head.position), Err);
                self.send_response(node, connection, Response::Barrier { number, up_to });
            }
        }
    }
}

fn granted_claim(reply: &Reply) -> Option<ObjectId> {
    match reply {
        Reply::Decided(Outcome { result: Ok(Done::Granted(grant)), .. }) => Some(grant.claim),
        _ => None,
    }
}
