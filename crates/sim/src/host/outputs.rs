//! What a node wants done, as its driver does it.

use super::{For, Reading};
use crate::{
    checks::{check_barrier, kept, levels},
    clock::{MS, S},
    event::{Attempt, Event, Healing, Seen, ToClient},
    world::World,
};
use sereno_core::{ids::ObjectId, outcome::Outcome};
use sereno_node::{
    handle::{Reply, Undecided},
    node::{CallId, Input, Output, ReadId},
    peer::Response,
};

impl World {
    pub(super) fn carry_out(&mut self, node: usize, out: Vec<Output>) {
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
                    self.hosts[node].is_of_old_log = false;
                    self.mark("a node goes on from a snapshot");
                    self.say(|| format!("n{node} goes on from a snapshot"));
                }
                Output::Link(leader) => self.link_to(node, leader),
                Output::Send(request) => self.send_request(node, request),
                Output::Publish(record) => self.publish(node, record),
                Output::Trim(position) => {
                    self.check_may_trim(node);
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
        self.check_level(node);
        for claim in unheard {
            self.mark("a grant reaches nobody");
            self.input(node, Input::Unheard(claim));
        }
    }

    /// Every node that has applied a position has come to the same there (S1).
    fn check_state(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let Some(process) = host.process.as_mut().filter(|_| !host.is_of_old_log) else { return };
        let state = process.node.state();
        let head = state.head();
        if head.position == process.checked {
            return;
        }
        process.checked = head.position;
        self.truth.one_state.applied(node, head, state.outcome_chain());
        self.trace.mix(&[1, node as u64, head.position.0]);
    }

    /// A log that has to be kept is kept.
    fn check_may_trim(&self, node: usize) {
        let process = self.hosts[node].process.as_ref().expect("only a process trims");
        kept::trims(node, process.node.state());
    }

    /// A node that goes on understands the level in force.
    fn check_level(&self, node: usize) {
        let host = &self.hosts[node];
        let Some(process) = &host.process else { return };
        levels::goes_on(node, process.node.state().level(), host.level_max);
    }

    fn leads(&mut self, node: usize) {
        let Some(process) = self.hosts[node].process.as_ref() else { return };
        let head = process.node.state().head();
        self.say(|| format!("n{node} leads in epoch {}", head.epoch));
        self.truth.one_state.leads(node, head);
        self.leads += 1;
    }

    fn halted(&mut self, node: usize, message: String) {
        self.say(|| format!("n{node} halts: {message}"));
        let is_level = self.truth.state.level() > self.hosts[node].level_max;
        assert!(
            self.log.was_put_back || is_level,
            "only damage, or a level it does not understand, is a reason to halt: n{node} says {message}"
        );
        self.kill(node);
        if is_level && !self.log.was_put_back {
            self.mark("a node refuses a level that it does not understand");
            return self.agenda.after(S, Event::Heal(Healing::Start(node)));
        }
        self.mark("a node halts");
        self.hosts[node].halted = Some(message);
    }

    /// Answers a call. Gives the claim of a grant that reached nobody.
    fn reply(&mut self, node: usize, id: CallId, reply: Reply) -> Option<ObjectId> {
        let acquire = self.process(node).and_then(|process| process.acquires.remove(&id));
        match (&reply, acquire) {
            (Reply::Decided(_), _) if self.hosts[node].is_of_old_log => {}
            (Reply::Decided(outcome), _) => self.truth.checks.answered(outcome),
            (Reply::Undecided(Undecided::Unknown), _) => self.mark("an outcome is unknown"),
            (Reply::Undecided(Undecided::HeldCallEnded), _) => self.mark("a held call is ended"),
            (Reply::Undecided(_), Some(lease_id)) => {
                self.truth.checks.refused(lease_id);
            }
            (Reply::Undecided(_), None) => {}
        }
        let who = self.process(node).and_then(|process| process.calls.remove(&id));
        match who {
            None => granted_claim(&reply),
            Some(For::Crowd) => None,
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
            Reading::Client { attempt, place } => {
                let view = state.leased(place.family, &place.namespace, &place.resource);
                let token = view.and_then(|view| view.holder).map(|holder| holder.holder.token);
                let version = state.namespace(&place.namespace).map_or(0, |it| it.version);
                if failed.is_none() && self.leader_now() != Some(node) {
                    self.mark("a standby answers a consistent read");
                }
                let seen = failed.map_or(Ok(Seen { revision, token, version }), Err);
                self.tell_client(node, attempt, ToClient::Read(attempt, seen));
            }
            Reading::Barrier { connection, number, came_at } => {
                if failed.is_none() {
                    check_barrier(node, head, self.truth.sent_at(head.hash), came_at);
                }
                let up_to = failed.map_or(Ok(head.position), Err);
                self.send_response(node, connection, Response::Barrier { number, up_to });
            }
        }
    }
}

/// The object that a grant is kept by.
fn granted_claim(reply: &Reply) -> Option<ObjectId> {
    match reply {
        Reply::Decided(Outcome { result: Ok(done), .. }) => done.held_by(),
        _ => None,
    }
}
