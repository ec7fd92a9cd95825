//! Links between nodes: what `driver/link.rs` does on both ends, over connections that delay, stall and break.
//! A direction that has lost something is stalled for good, as a stream is: silence ends it.

use crate::{
    clock::{MS, Real},
    event::{Arrival, Call, Event, To},
    host::{For, Reading, address},
    world::World,
};
use sereno_node::{
    handle::Role,
    node::{CallId, Input},
    peer::{PeerCall, Request, Response},
};
use std::collections::{BTreeMap, BTreeSet};

const PING_NS: u64 = 500 * MS;
const SILENCE_NS: u64 = 1_500 * MS;
const DIAL_NS: u64 = 200 * MS;

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    is_stalled: bool,
    /// What was sent last arrives then: nothing overtakes it.
    arrives_at: Real,
}

#[derive(Debug)]
pub(crate) struct Connection {
    standby: To,
    leader: To,
    is_linked: bool,
    /// The leader's end is closed.
    is_over: bool,
    heard_at: Real,
    asking: Way,
    answering: Way,
    /// The standby's calls by its number, and the leader's number for each.
    calls: BTreeMap<CallId, CallId>,
}

/// The network beside the log's.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) connections: BTreeMap<u64, Connection>,
    next: u64,
    /// Directions between nodes that are cut.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    /// Clients and the nodes they do not reach.
    pub(crate) client_cut: BTreeSet<(usize, usize)>,
    /// Frames, in a thousand, that arrive twice.
    pub(crate) twice: u64,
    /// Nodes whose presence is neither written nor read.
    pub(crate) presence_cut: BTreeSet<usize>,
}

impl World {
    fn link_delay(&mut self) -> u64 {
        self.random.skewed(MS / 5, 60 * MS)
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        !self.net.cut.contains(&(from, to))
    }

    pub(crate) fn link_to(&mut self, node: usize, leader: Option<String>) {
        self.hang_up(node);
        let leader = leader.map(|at| (0..self.hosts.len()).find(|&other| address(other) == at));
        let leader = leader.map(|found| found.expect("a leader is one of the nodes"));
        let to = self.to(node);
        let process = self.hosts[node].process.as_mut().expect("only a process has links");
        process.leader = leader;
        process.link_generation += 1;
        let generation = process.link_generation;
        if leader.is_some() {
            self.agenda.after(0, Event::Arrive(to, Arrival::Dial(generation)));
        }
    }

    /// The standby's end is closed.
    fn hang_up(&mut self, node: usize) {
        let process = self.hosts[node].process.as_mut();
        let Some(id) = process.and_then(|process| process.connection.take()) else { return };
        self.tell_leader_closed(id);
    }

    fn tell_leader_closed(&mut self, id: u64) {
        let Some(connection) = self.net.connections.get(&id) else { return };
        let (standby, leader) = (connection.standby.node, connection.leader);
        if self.reaches(standby, leader.node) {
            let at = connection.asking.arrives_at.max(self.agenda.now + MS);
            self.agenda.at(at, Event::Arrive(leader, Arrival::Closed(id)));
        }
    }

    pub(crate) fn dial(&mut self, node: usize, generation: u64) {
        let to = self.to(node);
        let process = self.hosts[node].process.as_ref().expect("only a process dials");
        if process.link_generation != generation || process.connection.is_some() {
            return;
        }
        let Some(leader) = process.leader else { return };
        let is_heard = self.reaches(node, leader) && self.reaches(leader, node);
        let other = &self.hosts[leader];
        if !is_heard || other.is_paused || other.process.is_none() {
            let is_refused = is_heard && other.process.is_none();
            let delay = if is_refused { DIAL_NS } else { SILENCE_NS + DIAL_NS };
            return self.agenda.after(delay, Event::Arrive(to, Arrival::Dial(generation)));
        }
        self.net.next += 1;
        let id = self.net.next;
        let connection = Connection {
            standby: to,
            leader: self.to(leader),
            is_linked: false,
            is_over: false,
            heard_at: self.agenda.now,
            asking: Way::default(),
            answering: Way::default(),
            calls: BTreeMap::new(),
        };
        self.net.connections.insert(id, connection);
        if let Some(process) = self.process(node) {
            process.connection = Some(id);
        }
        let delay = 2 * self.link_delay();
        self.agenda.after(delay, Event::Arrive(to, Arrival::Dialled(id)));
    }

    pub(crate) fn dialled(&mut self, node: usize, id: u64) {
        if let Some(connection) = self.net.connections.get_mut(&id) {
            connection.heard_at = self.agenda.now;
        }
        self.ping(node, id);
    }

    fn is_own(&self, node: usize, id: u64) -> bool {
        self.hosts[node].process.as_ref().is_some_and(|process| process.connection == Some(id))
    }

    pub(crate) fn ping(&mut self, node: usize, id: u64) {
        if !self.is_own(node, id) {
            return;
        }
        let Some(connection) = self.net.connections.get(&id) else { return };
        let heard_at = connection.heard_at;
        if self.agenda.now - heard_at > SILENCE_NS {
            return self.link_broke(node, id);
        }
        self.send_over(id, Request::Ping);
        let to = self.to(node);
        self.agenda.after(PING_NS, Event::Arrive(to, Arrival::Ping(id)));
    }

    /// The standby's end has found out.
    fn link_broke(&mut self, node: usize, id: u64) {
        self.tell_leader_closed(id);
        let to = self.to(node);
        let process = self.hosts[node].process.as_mut().expect("only a process has links");
        process.connection = None;
        let (generation, leader) = (process.link_generation, process.leader);
        self.say(|| format!("n{node} has lost its link to {leader:?}"));
        self.agenda.after(DIAL_NS, Event::Arrive(to, Arrival::Dial(generation)));
        if let Some(leader) = leader {
            self.input(node, Input::LinkLost(address(leader)));
        }
    }

    pub(crate) fn send_request(&mut self, node: usize, request: Request) {
        let process = self.hosts[node].process.as_ref().expect("only a process sends");
        if let Some(id) = process.connection {
            self.send_over(id, request);
        }
    }

    fn send_over(&mut self, id: u64, request: Request) {
        let delay = self.link_delay();
        let Some(connection) = self.net.connections.get(&id) else { return };
        let (from, to) = (connection.standby.node, connection.leader);
        let is_heard = self.reaches(from, to.node);
        let at = self.on_way(id, is_heard, delay, true);
        if let Some(at) = at {
            if self.is_sent_twice() {
                self.agenda.at(at + MS, Event::Arrive(to, Arrival::Twice(id)));
            }
            self.agenda.at(at, Event::Arrive(to, Arrival::Request(id, request)));
        }
    }

    /// When something sent now arrives; `None`: it does not, nor does what follows it.
    fn on_way(&mut self, id: u64, is_heard: bool, delay: u64, is_asking: bool) -> Option<Real> {
        let connection = self.net.connections.get_mut(&id)?;
        let way = if is_asking { &mut connection.asking } else { &mut connection.answering };
        way.is_stalled |= !is_heard;
        way.arrives_at = way.arrives_at.max(self.agenda.now + delay);
        (!way.is_stalled).then_some(way.arrives_at)
    }

    pub(crate) fn send_response(&mut self, node: usize, id: u64, response: Response) {
        let delay = self.link_delay();
        let Some(connection) = self.net.connections.get(&id) else { return };
        let to = connection.standby;
        let is_heard = self.reaches(node, to.node);
        let at = self.on_way(id, is_heard, delay, false);
        if let Some(at) = at {
            if self.is_sent_twice() {
                self.agenda.at(at + MS, Event::Arrive(to, Arrival::Twice(id)));
            }
            self.agenda.at(at, Event::Arrive(to, Arrival::Response(id, response)));
        }
    }

    fn is_sent_twice(&mut self) -> bool {
        self.net.twice > 0 && self.random.in_1000(self.net.twice)
    }

    /// A frame has come a second time. Its proof is not that of the next one, which ends the connection.
    pub(crate) fn came_twice(&mut self, node: usize, id: u64) {
        let connection = self.net.connections.get(&id);
        if connection.is_some_and(|connection| !connection.is_over) {
            self.mark("a frame that came twice ends its link");
            self.closed(node, id);
        }
    }

    pub(crate) fn response(&mut self, node: usize, id: u64, response: Response) {
        if !self.is_own(node, id) {
            return;
        }
        let now = self.agenda.now;
        let Some(connection) = self.net.connections.get_mut(&id) else { return };
        connection.heard_at = now;
        let leader = address(connection.leader.node);
        if !std::mem::replace(&mut connection.is_linked, true) {
            self.say(|| format!("n{node} is linked to {leader}"));
            self.input(node, Input::Linked(leader.clone()));
        }
        self.input(node, Input::Responded(leader, response));
    }

    /// The leader's end: as `serve_link`.
    pub(crate) fn request(&mut self, node: usize, id: u64, request: Request) {
        if self.net.connections.get(&id).is_none_or(|connection| connection.is_over) {
            return;
        }
        match request {
            Request::Call(call) => self.call_over_link(node, id, call),
            Request::Cancelled(remote) => {
                let connection = self.net.connections.get_mut(&id);
                let local = connection.and_then(|connection| connection.calls.remove(&remote));
                if let Some(local) = local {
                    self.cancel(node, local);
                }
            }
            Request::Unheard(claim) => {
                self.mark("a grant that was passed on reaches nobody");
                self.input(node, Input::Unheard(claim));
            }
            Request::Barrier { number, timeout_ms } => {
                let came_at = self.agenda.now;
                let reading = Reading::Barrier { connection: id, number, came_at };
                self.read(node, reading, timeout_ms, true);
            }
            Request::Ping => self.pinged(node, id),
        }
    }

    fn call_over_link(&mut self, node: usize, id: u64, call: PeerCall) {
        let PeerCall { id: remote, caller, operation, born_at, timeout_ms, hold_ms } = call;
        // The attempt is the standby's affair.
        let attempt = crate::event::Attempt { client: usize::MAX, life: 0, number: 0 };
        let call = Call { attempt, operation, born_at: Some(born_at), timeout_ms, hold_ms };
        let local = self.open_call(node, For::Link(id, remote), caller, call, true);
        let is_open = |local: &CallId| {
            let process = self.hosts[node].process.as_ref();
            process.is_some_and(|process| process.calls.contains_key(local))
        };
        if let Some(local) = local.filter(is_open)
            && let Some(connection) = self.net.connections.get_mut(&id)
        {
            connection.calls.insert(remote, local);
        }
    }

    pub(crate) fn answered_over_link(&mut self, id: u64, remote: CallId) {
        if let Some(connection) = self.net.connections.get_mut(&id) {
            connection.calls.remove(&remote);
        }
    }

    fn pinged(&mut self, node: usize, id: u64) {
        let mono = self.now_of(node).mono;
        let Some(process) = self.process(node) else { return };
        let status = process.node.status(mono);
        if !matches!(status.role, Role::Leader { .. }) {
            return self.close_at_leader(node, id);
        }
        self.input(node, Input::Reached);
        self.send_response(node, id, Response::Pong(status.time));
    }

    /// The leader's end is closed: nobody listens to the standby's calls any more.
    fn close_at_leader(&mut self, node: usize, id: u64) {
        let Some(connection) = self.net.connections.get_mut(&id) else { return };
        connection.is_over = true;
        let (standby, calls) = (connection.standby, std::mem::take(&mut connection.calls));
        let at = connection.answering.arrives_at.max(self.agenda.now + MS);
        if self.reaches(node, standby.node) {
            self.agenda.at(at, Event::Arrive(standby, Arrival::Closed(id)));
        }
        for local in calls.into_values() {
            self.cancel(node, local);
        }
    }

    /// The other end has gone.
    pub(crate) fn closed(&mut self, node: usize, id: u64) {
        if self.is_own(node, id) {
            return self.link_broke(node, id);
        }
        let is_leader = |connection: &Connection| connection.leader.node == node;
        if self.net.connections.get(&id).is_some_and(is_leader) {
            self.close_at_leader(node, id);
        }
    }

    /// A process has ended, and its machine closes what it had open.
    pub(crate) fn close_links_of(&mut self, node: usize) {
        let now = self.agenda.now;
        let mut gone = Vec::new();
        for (&id, connection) in &mut self.net.connections {
            if connection.leader.node == node && !connection.is_over {
                connection.is_over = true;
                gone.push((id, connection.standby));
            } else if connection.standby.node == node && !connection.is_over {
                gone.push((id, connection.leader));
            }
        }
        for (id, other) in gone {
            if self.reaches(node, other.node) {
                self.agenda.at(now + MS, Event::Arrive(other, Arrival::Closed(id)));
            }
        }
    }
}
