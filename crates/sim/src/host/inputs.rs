//! What reaches a process: results, calls, messages, and its own timer.

use super::{For, Reading};
use crate::{
    checks::lease_id_of,
    event::{Arrival, Attempt, Call, Event, To},
    world::World,
};
use sereno_core::names::Caller;
use sereno_node::{
    handle::Consistency,
    node::{CallId, Input, NodeCall, ReadId},
};

impl World {
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
        self.takes_its_turn(node);
        let Some(process) = self.process(node) else { return };
        let mut out = Vec::new();
        process.node.handle(now, input, &mut out);
        self.carry_out(node, out);
    }

    pub(crate) fn advance(&mut self, node: usize) {
        let now = self.now_of(node);
        self.takes_its_turn(node);
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
            Arrival::Read { attempt, timeout_ms, place } => {
                let reading = Reading::Client { attempt, place };
                self.read(node, reading, timeout_ms, false);
            }
            Arrival::Stop => self.input(node, Input::Stop),
            Arrival::Dial(generation) => self.dial(node, generation),
            Arrival::Dialled(connection) => self.dialled(node, connection),
            Arrival::Ping(connection) => self.ping(node, connection),
            Arrival::Response(connection, response) => self.response(node, connection, response),
            Arrival::Request(connection, request) => self.request(node, connection, request),
            Arrival::Closed(connection) => self.closed(node, connection),
            Arrival::Twice(connection) => self.came_twice(node, connection),
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
        if let Some(lease_id) = lease_id_of(&call.operation) {
            process.acquires.insert(id, lease_id);
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
}
