//! Calls and reads of a node that follows: passed to the leader over a link, and answered for it.

use super::{
    CallId, Node, NodeCall, Output, Phase, ReadId,
    admission::IN_VAIN_MS,
    passed::{Passed, PassedCalls},
};
use crate::{
    clock::Mono,
    handle::{Reply, Undecided},
    intake::{kind, may_wait},
    peer::{PeerCall, Request, Response},
};
use sereno_core::{
    command::Operation,
    ids::{ClusterTime, ObjectId, Position},
};

/// A door further behind the leader than this answers nothing that changes the state.
const BEHIND_MS_MAX: u64 = 5_000;
/// When a client should try again that came while nobody led.
const RETRY_AFTER_MS: u64 = 200;

/// The link to the leader, and what was passed over it.
#[derive(Debug, Default)]
pub(super) struct Forward {
    /// Whose link is wanted: the leader's address.
    leader: Option<String>,
    is_up: bool,
    /// The leader's cluster time when it was last heard of.
    leader_time: ClusterTime,
    pub(super) heard_at: Option<Mono>,
    calls: PassedCalls,
    /// The barrier under way, and the reads that rest on it.
    barrier: Option<(u64, Vec<(ReadId, Mono)>)>,
    barriers: u64,
    /// Reads that wait until this node has applied what their barrier said.
    applying: Vec<Applying>,
}

/// A read that is confirmed, and rests on entries that this node has not applied yet.
#[derive(Clone, Copy, Debug)]
struct Applying {
    id: ReadId,
    deadline: Mono,
    up_to: Position,
    since: Mono,
}

impl Forward {
    pub(super) fn is_linked(&self) -> bool {
        self.is_up
    }

    pub(super) fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    /// The reads that wait for entries to come.
    pub(super) fn take_applying(&mut self) -> Vec<(ReadId, Mono)> {
        let applying = std::mem::take(&mut self.applying).into_iter();
        applying.map(|read| (read.id, read.deadline)).collect()
    }

    /// How many calls the leader has of this node.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }
}

impl Node {
    /// Whether calls are for somebody else: this node shares its log and does not lead.
    pub(super) fn forwards(&self) -> bool {
        self.settings.is_shared && self.phase == Phase::Following
    }

    /// Has the link go to whom the log names as leader.
    pub(super) fn leader_changed(&mut self, out: &mut Vec<Output>) {
        let is_other = |leader: &&sereno_core::Leader| leader.writer != self.settings.writer;
        let leader = self.state.leader().filter(is_other).map(|leader| leader.address.clone());
        if self.phase != Phase::Following || self.forward.leader == leader {
            return;
        }
        self.unlinked(out);
        self.forward.leader = leader.clone();
        self.forward.heard_at = None;
        // What another has told of its time says nothing about this one's.
        self.forward.leader_time = ClusterTime(0);
        out.push(Output::Link(leader));
    }

    /// This node leads, or stops: it needs no link.
    pub(super) fn unlink(&mut self, out: &mut Vec<Output>) {
        self.unlinked(out);
        if self.forward.leader.take().is_some() {
            out.push(Output::Link(None));
        }
    }

    pub(super) fn linked(&mut self, now: Mono, address: &str, out: &mut Vec<Output>) {
        if self.forward.leader.as_deref() != Some(address) {
            return; // Of a leader before this one.
        }
        self.forward.is_up = true;
        self.forward.heard_at = Some(now);
        if self.phase == Phase::Following {
            self.not_ready = None;
        }
        self.send_barrier(now, out);
    }

    pub(super) fn link_lost(&mut self, address: &str, out: &mut Vec<Output>) {
        if self.forward.leader.as_deref() == Some(address) {
            self.unlinked(out);
        }
    }

    /// Nobody knows what became of the calls that were passed on.
    fn unlinked(&mut self, out: &mut Vec<Output>) {
        self.forward.is_up = false;
        if self.forwards() {
            self.not_ready = Some("the leader is not reached".into());
        }
        for (id, passed) in std::mem::take(&mut self.forward.calls) {
            let undecided =
                if passed.is_held { Undecided::HeldCallEnded } else { Undecided::Unknown };
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
        let waiting = self.forward.barrier.take().map_or(Vec::new(), |(_, reads)| reads);
        for (id, _) in waiting {
            out.push(Output::ReadFailed(id, no_leader()));
        }
    }

    /// Passes a call on, or says why it cannot.
    pub(super) fn pass_on(&mut self, now: Mono, call: NodeCall, out: &mut Vec<Output>) {
        let NodeCall { id, caller, operation, born_at, deadline, hold_ms, is_passed } = call;
        // Two nodes that take each other for the leader must not play ball.
        let refused = is_passed.then(no_leader).or_else(|| self.cannot_pass(&operation));
        // An older leader could not even read it.
        let refused = refused.or_else(|| self.level_refusal(&operation));
        if let Some(undecided) = refused {
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
            return;
        }
        let born_at = born_at.unwrap_or(self.state.time());
        let timeout_ms = deadline.since_ns(now) / 1_000_000;
        let (is_held, kind) = (hold_ms > 0 && may_wait(&operation), kind(&operation));
        self.forward.calls.insert(id, Passed { deadline, is_held, kind });
        let call = PeerCall { id, caller, operation, born_at, timeout_ms, hold_ms };
        out.push(Output::Send(Request::Call(call)));
    }

    /// How far this node's cluster time is behind what the leader last told.
    pub(super) fn behind_ms(&self) -> u64 {
        if self.forwards() { self.state.time().until(self.forward.leader_time) } else { 0 }
    }

    fn cannot_pass(&self, operation: &Operation) -> Option<Undecided> {
        if !self.forward.is_up {
            return Some(no_leader());
        }
        let behind_ms = self.behind_ms();
        if behind_ms > BEHIND_MS_MAX {
            let reason = format!("this node is {behind_ms} ms behind the leader");
            return Some(Undecided::Unavailable { reason, retry_after_ms: 1_000 });
        }
        // A flood of acquires must not keep anybody's renewal or release from the leader.
        let is_full = self.forward.calls.is_full(kind(operation));
        is_full.then_some(Undecided::Overloaded { retry_after_ms: RETRY_AFTER_MS })
    }

    /// Nobody listens to a call that was passed on.
    pub(super) fn pass_cancelled(&mut self, id: CallId, out: &mut Vec<Output>) {
        if self.forward.calls.remove(id).is_some() && self.forward.is_up {
            out.push(Output::Send(Request::Cancelled(id)));
        }
    }

    pub(super) fn pass_unheard(&mut self, claim: ObjectId, out: &mut Vec<Output>) {
        if self.forward.is_up {
            out.push(Output::Send(Request::Unheard(claim)));
        }
    }

    /// The leader has answered.
    pub(super) fn responded(&mut self, now: Mono, response: Response, out: &mut Vec<Output>) {
        self.forward.heard_at = Some(now);
        match response {
            Response::Reply(id, reply) => {
                if self.forward.calls.remove(id).is_some() {
                    out.push(Output::Reply(id, reply));
                } else if let Some(claim) = crate::handle::granted_claim(&reply) {
                    // Its caller had gone; whoever leads now finds it by the same number.
                    self.pass_unheard(claim, out);
                }
            }
            Response::Barrier { number, up_to } => self.barrier_came(now, number, up_to, out),
            Response::Pong(time) => {
                self.forward.leader_time = self.forward.leader_time.max(time);
            }
        }
    }

    fn barrier_came(
        &mut self,
        now: Mono,
        number: u64,
        up_to: Result<Position, Undecided>,
        out: &mut Vec<Output>,
    ) {
        match self.forward.barrier.take() {
            Some((asked, reads)) if asked == number => match up_to {
                Ok(up_to) => {
                    let applies = |(id, deadline)| Applying { id, deadline, up_to, since: now };
                    self.forward.applying.extend(reads.into_iter().map(applies));
                    self.release_reads(out);
                }
                Err(undecided) => {
                    let failed = |(id, _)| Output::ReadFailed(id, undecided.clone());
                    out.extend(reads.into_iter().map(failed));
                }
            },
            // Of a link before this one.
            other => self.forward.barrier = other,
        }
        self.send_barrier(now, out);
    }

    /// Reads that came while a barrier was under way share the next one: it is sent after they arrived.
    pub(super) fn send_barrier(&mut self, now: Mono, out: &mut Vec<Output>) {
        if !self.forwards() || self.forward.barrier.is_some() || self.reads.is_empty() {
            return;
        }
        let reads = std::mem::take(&mut self.reads);
        if !self.forward.is_up {
            out.extend(reads.into_iter().map(|(id, _)| Output::ReadFailed(id, no_leader())));
            return;
        }
        let longest = reads.iter().map(|&(_, deadline)| deadline).max().unwrap_or(now);
        self.forward.barriers += 1;
        let (number, timeout_ms) = (self.forward.barriers, longest.since_ns(now) / 1_000_000);
        self.forward.barrier = Some((number, reads));
        out.push(Output::Send(Request::Barrier { number, timeout_ms }));
    }

    /// Runs the reads whose barrier this node has reached.
    pub(super) fn release_reads(&mut self, out: &mut Vec<Output>) {
        let applied = self.applied();
        self.forward.applying.retain(|read| {
            if read.up_to <= applied {
                out.push(Output::ReadReady(read.id));
            }
            read.up_to > applied
        });
    }

    /// Answers callers whose deadline has passed while the leader has their call.
    pub(super) fn end_overdue_passed(&mut self, now: Mono, out: &mut Vec<Output>) {
        for id in self.forward.calls.take_overdue(now) {
            out.push(Output::Reply(id, Reply::Undecided(Undecided::Unknown)));
        }
        let mut is_in_time = |id: ReadId, deadline: Mono| {
            let is_in_time = deadline > now;
            if !is_in_time {
                out.push(Output::ReadFailed(id, super::admission::too_late()));
            }
            is_in_time
        };
        if let Some((_, reads)) = &mut self.forward.barrier {
            reads.retain(|&(id, deadline)| is_in_time(id, deadline));
        }
        // Entries that do not come for so long do not because the log cannot be read.
        self.forward.applying.retain(|read| {
            let given_up_at = read.since.plus_ms(IN_VAIN_MS);
            is_in_time(read.id, read.deadline.min(given_up_at))
        });
    }

    pub(super) fn leader_heard_ms(&self, now: Mono) -> Option<u64> {
        let heard_at = self.forward.heard_at.filter(|_| self.forward.is_linked());
        heard_at.map(|at| now.since_ns(at) / 1_000_000)
    }

    /// Whether anything waits for the leader, and so for its deadline.
    pub(super) fn has_passed(&self) -> bool {
        let forward = &self.forward;
        !forward.calls.is_empty() || forward.barrier.is_some() || !forward.applying.is_empty()
    }
}

pub(super) fn no_leader() -> Undecided {
    let reason = "no leader is reached".into();
    Undecided::Unavailable { reason, retry_after_ms: RETRY_AFTER_MS }
}
