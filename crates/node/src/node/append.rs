//! The one append in flight: what goes into the next entry, and what its result means.

use super::{
    CallId, HEARTBEAT_MS, Node, OVERDUE_SCAN_MS, Output, Phase, ReadId, Settings,
    admission::{log_unavailable, too_late},
};
use crate::{
    calls::Stage,
    clock::{ClusterClock, Mono, Now, TokenClock, wall_clock_fault},
    handle::{Reply, Undecided},
    intake::{Pending, is_kept},
};
use sereno_core::{
    State,
    command::{Command, EndDeserted, Operation},
    entry::{Announce, Body, Entry, Genesis, Head, SealedEntry},
    ids::{ClusterTime, Epoch},
    limits,
    outcome::Done,
    planted::{self, Planted},
};
use sereno_log::{Append, Conflict, Slot};

/// First wait before an append is sent again; doubled up to [`RESEND_MS_MAX`].
const RESEND_MS_MIN: u64 = 50;
const RESEND_MS_MAX: u64 = 1_000;
/// Wait after an append that certainly failed, or a wall clock that forbids to lead.
const RETRY_MS: u64 = 200;

/// The leader's two clocks at its last stamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    cluster: ClusterClock,
    tokens: TokenClock,
}

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) entry: Entry,
    pub(super) sealed: SealedEntry,
    pub(super) expected: Head,
    pub(super) calls: Vec<Option<CallId>>,
    pub(super) reads: Vec<(ReadId, Mono)>,
    pub(super) stamps: Stamps,
    pub(super) sent_at: Mono,
    /// Its first copy may be, or arrive, in the log.
    ever_unknown: bool,
    pub(super) resend_at: Option<Mono>,
    resend_ms: u64,
}

impl InFlight {
    /// Whether nobody knows whether it is in the log.
    pub(super) fn is_doubtful(&self) -> bool {
        self.ever_unknown
    }
}

impl Node {
    pub(super) fn next_append_at(&self) -> Mono {
        let clock = self.stamps.expect("a leader has stamped its announce").cluster;
        let heartbeat_at = clock.stamped_at().plus_ms(HEARTBEAT_MS);
        let deadlines = [self.state.next_deadline(), self.calls.next_deserted()];
        match deadlines.into_iter().flatten().min() {
            Some(deadline) => heartbeat_at.min(clock.reaches(deadline)),
            None => heartbeat_at,
        }
    }

    /// The cluster time of an entry stamped now, as far as can be known: what ends now ends at that time.
    pub(super) fn cluster_now(&self, now: Mono) -> ClusterTime {
        let in_flight = self.in_flight.as_ref().map(|in_flight| in_flight.stamps);
        match in_flight.or(self.stamps) {
            Some(stamps) => stamps.cluster.stamp(now).time(),
            None => self.state.time(),
        }
    }

    /// Whether anything waits for the next entry.
    pub(super) fn has_work(&self) -> bool {
        !self.intake.is_empty() || !self.reads.is_empty()
    }

    pub(super) fn next_append(&mut self, now: Now, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Following if self.announce_at().is_some_and(|at| at <= now.mono) => {
                self.announce(now, out);
            }
            Phase::Leading => {
                self.queue_deserted(now.mono);
                if self.has_work() || self.next_append_at() <= now.mono {
                    self.append_batch(now.mono, out);
                }
            }
            Phase::Suspect { reloading: false } => {
                if self.is_leader() {
                    self.append_body(now.mono, Body::Resign, Vec::new(), out);
                } else {
                    self.phase = Phase::Suspect { reloading: true };
                    out.push(Output::Reload(self.state.head()));
                }
            }
            // Those who share the log read it in this node's presence record.
            Phase::Distrusted { .. } if self.settings.is_shared => {}
            Phase::Distrusted { told: false } if self.is_leader() => {
                self.phase = Phase::Distrusted { told: true };
                let hold = self.own(Operation::HoldTrim);
                self.append_body(now.mono, Body::Batch(vec![hold]), vec![None], out);
            }
            Phase::Distrusted { told: false } => self.announce(now, out),
            Phase::Stopping { .. } | Phase::Resigning if self.is_leader() => {
                self.append_body(now.mono, Body::Resign, Vec::new(), out);
            }
            Phase::Stopping { .. } => {
                self.phase = Phase::Stopped;
                out.push(Output::Stopped);
            }
            _ => {}
        }
    }

    /// Whether the log says that this node, in this start, leads, as far as it knows the log.
    pub(super) fn is_leader(&self) -> bool {
        self.stamps.is_some()
            && self.state.leader().is_some_and(|leader| leader.writer == self.settings.writer)
    }

    pub(super) fn own(&self, operation: Operation) -> Command {
        Command { caller: self.anonymous.clone(), born_at: self.state.time(), operation }
    }

    /// Claims whose grace is over at the time that the next entry will have.
    pub(super) fn queue_deserted(&mut self, now: Mono) {
        let time = self.cluster_now(now);
        for _ in 0..limits::BATCH_COMMANDS_MAX {
            let Some(claim) = self.calls.take_deserted(time) else { break };
            let Some(asked_at) = self.state.asked_at(claim) else { continue };
            let command = self.own(Operation::EndDeserted(EndDeserted { claim, asked_at }));
            self.intake.push_own(pending(None, command));
        }
    }

    pub(super) fn announce(&mut self, now: Now, out: &mut Vec<Output>) {
        if let Some(fault) = wall_clock_fault(now.wall_us).or_else(|| self.peers_fault(now)) {
            self.not_ready = Some(fault);
            self.retry_at = now.mono.plus_ms(RETRY_MS);
            return;
        }
        let is_first = self.state.head() == Head::EMPTY;
        let Settings { new_log_id: log_id, min_ttl_ms, .. } = self.settings;
        let genesis = is_first.then_some(Genesis { log_id, min_ttl_ms });
        let mut time = self.state.time();
        if planted::has(Planted::WallClockAtTakeover) {
            let passed_us = now.wall_us.saturating_sub(self.state.token_clock_us());
            time = time.plus((passed_us / 1_000).min(limits::MAX_STEP_MS));
        }
        let clock = ClusterClock::at_announce(time, now.mono);
        let tokens = TokenClock::new(now.wall_us, now.mono);
        let address = self.settings.address.clone();
        let body = Body::Announce(Announce { address, genesis });
        let stamps = Stamps { cluster: clock, tokens };
        self.append_stamped(now.mono, stamps, body, Vec::new(), out);
        if planted::has(Planted::ActsBeforeOwnAnnounce) {
            self.lead(now.mono, self.progress.moved_at, out);
        }
    }

    pub(super) fn append_batch(&mut self, now: Mono, out: &mut Vec<Output>) {
        let calls = &self.calls;
        let mut dropped = Vec::new();
        let batch = self.intake.take_batch(|pending| {
            let Some(id) = pending.call else { return true };
            match calls.get(id) {
                None => false,
                Some(call) if call.deadline <= now => {
                    dropped.push(id);
                    false
                }
                Some(_) => true,
            }
        });
        for id in dropped {
            self.close(now, id);
            out.push(Output::Reply(id, Reply::Undecided(too_late())));
        }
        let (ids, commands): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|pending| (pending.call, pending.command)).unzip();
        for id in ids.iter().flatten() {
            self.calls.set_stage(*id, Stage::Sent);
        }
        self.append_body(now, Body::Batch(commands), ids, out);
    }

    pub(super) fn append_body(
        &mut self,
        now: Mono,
        body: Body,
        calls: Vec<Option<CallId>>,
        out: &mut Vec<Output>,
    ) {
        let Stamps { cluster, tokens } = self.stamps.expect("a leader has stamped its announce");
        self.append_stamped(now, Stamps { cluster: cluster.stamp(now), tokens }, body, calls, out);
    }

    pub(super) fn append_stamped(
        &mut self,
        now: Mono,
        stamps: Stamps,
        body: Body,
        calls: Vec<Option<CallId>>,
        out: &mut Vec<Output>,
    ) {
        assert!(self.in_flight.is_none(), "one append at a time");
        let expected = self.state.head();
        let position = expected.position.next();
        let (epoch, log_id) = match &body {
            Body::Announce(Announce { genesis: Some(genesis), .. }) => {
                (Epoch(position.0), genesis.log_id)
            }
            Body::Announce(_) => (Epoch(position.0), expected.log_id),
            _ => (expected.epoch, expected.log_id),
        };
        let entry = Entry {
            position,
            epoch,
            writer: self.settings.writer.clone(),
            time: stamps.cluster.time(),
            token_clock_us: stamps.tokens.at(now),
            previous: expected.hash,
            body,
        };
        let sealed = entry.seal(log_id);
        out.push(Output::Append { expected, entry: sealed.clone() });
        if planted::has(Planted::AnsweredBeforeDurable) {
            self.answer_ahead(now, &entry, &sealed, &calls, out);
        }
        self.scan_at = now.plus_ms(OVERDUE_SCAN_MS);
        self.in_flight = Some(InFlight {
            entry,
            sealed,
            expected,
            calls,
            // Reads that arrive from now on wait for the next append.
            reads: std::mem::take(&mut self.reads),
            stamps,
            sent_at: now,
            ever_unknown: false,
            resend_at: None,
            resend_ms: RESEND_MS_MIN,
        });
    }

    /// A planted bug: answers what the entry will lead to, if it lands.
    fn answer_ahead(
        &mut self,
        now: Mono,
        entry: &Entry,
        sealed: &SealedEntry,
        calls: &[Option<CallId>],
        out: &mut Vec<Output>,
    ) {
        let mut ahead = State::from_snapshot(&self.state.to_snapshot()).expect("it is sound");
        let applied = ahead.apply(entry, sealed.head.hash).expect("it follows on the state");
        for (id, outcome) in calls.iter().zip(applied.outcomes) {
            let is_waiting = matches!(outcome.result, Ok(Done::Waiting(_)));
            let id = id.filter(|_| !is_waiting);
            if let Some(id) = id.filter(|&id| self.close(now, id).is_some()) {
                out.push(Output::Reply(id, Reply::Decided(outcome)));
            }
        }
    }

    pub(super) fn resend(&mut self, now: Mono, out: &mut Vec<Output>) {
        let in_flight = self.in_flight.as_mut().expect("only what is in flight is sent again");
        in_flight.resend_at = None;
        in_flight.resend_ms = (in_flight.resend_ms * 2).min(RESEND_MS_MAX);
        self.scan_at = now.plus_ms(OVERDUE_SCAN_MS);
        let (expected, entry) = (in_flight.expected, in_flight.sealed.clone());
        out.push(Output::Append { expected, entry });
    }

    pub(super) fn appended(&mut self, now: Now, result: Append, out: &mut Vec<Output>) {
        let Some(mut in_flight) = self.in_flight.take() else {
            assert!(self.phase == Phase::Stopped, "a result belongs to an append");
            return; // It had given up.
        };
        let is_announce = matches!(in_flight.entry.body, Body::Announce(_));
        match result {
            Append::Committed => self.commit(now, in_flight, out),
            Append::Unknown(_) if is_announce && planted::has(Planted::ActsOnUnknownAnnounce) => {
                self.commit(now, in_flight, out);
            }
            Append::Unknown(_) if !is_announce && planted::has(Planted::UnknownIsCommitted) => {
                self.commit(now, in_flight, out);
            }
            Append::Unknown(_) if planted::has(Planted::UnknownIsNotApplied) => {
                self.not_appended(now.mono, in_flight, out);
            }
            Append::NotAppended(_) if planted::has(Planted::RefusedAfterUnknown) => {
                self.not_appended(now.mono, in_flight, out);
            }
            Append::Conflict(conflict) if planted::has(Planted::ConflictIsLost) => {
                self.lost(now.mono, &in_flight, &conflict, out);
            }
            Append::Conflict(Conflict { head, .. })
                if in_flight.ever_unknown
                    && head.position >= in_flight.sealed.head.position
                    && planted::has(Planted::HeadAloneResolves) =>
            {
                self.commit(now, in_flight, out);
            }
            // Its first copy may have landed: that is told by the slot, never by the head alone.
            Append::Conflict(Conflict { slot: Slot::Entry(hash), .. })
                if hash == in_flight.sealed.head.hash =>
            {
                self.commit(now, in_flight, out);
            }
            Append::Conflict(conflict) => self.lost(now.mono, &in_flight, &conflict, out),
            Append::NotAppended(_) if !in_flight.ever_unknown => {
                self.not_appended(now.mono, in_flight, out);
            }
            Append::NotAppended(_) | Append::Unknown(_) => {
                in_flight.ever_unknown = true;
                in_flight.resend_at = Some(now.mono.plus_ms(in_flight.resend_ms));
                self.say_not_ready("the log does not answer");
                self.in_flight = Some(in_flight);
            }
        }
    }

    /// The entry is certainly not in the log: its commands were not applied, and time has not passed.
    pub(super) fn not_appended(
        &mut self,
        now: Mono,
        mut in_flight: InFlight,
        out: &mut Vec<Output>,
    ) {
        self.say_not_ready("the log takes no entries");
        self.keep_endings(&mut in_flight);
        self.end_calls(now, &in_flight, &log_unavailable(), out);
        self.retry_at = now.plus_ms(RETRY_MS);
        // What a batch of its own was to say is said again.
        if let Phase::Distrusted { told } = &mut self.phase {
            *told = false;
        }
    }

    /// A leader's releases, abandons and own commands go into the next entry: those are never dropped.
    fn keep_endings(&mut self, in_flight: &mut InFlight) {
        let Body::Batch(commands) = &mut in_flight.entry.body else { return };
        if self.phase != Phase::Leading {
            return;
        }
        let calls = std::mem::take(&mut in_flight.calls);
        let sent = calls.into_iter().zip(std::mem::take(commands));
        let (kept, dropped): (Vec<_>, Vec<_>) =
            sent.map(|(call, command)| pending(call, command)).partition(is_kept);
        for id in kept.iter().filter_map(|pending| pending.call) {
            self.calls.set_stage(id, Stage::Queued);
        }
        self.intake.put_back(kept);
        in_flight.calls = dropped.into_iter().map(|pending| pending.call).collect();
    }

    /// A node that serves does not at present; one that does not has a better reason.
    fn say_not_ready(&mut self, reason: &str) {
        if self.is_serving() {
            self.not_ready = Some(reason.into());
        }
    }

    pub(super) fn end_calls(
        &mut self,
        now: Mono,
        in_flight: &InFlight,
        undecided: &Undecided,
        out: &mut Vec<Output>,
    ) {
        for &id in in_flight.calls.iter().flatten() {
            if self.close(now, id).is_some() {
                out.push(Output::Reply(id, Reply::Undecided(undecided.clone())));
            }
        }
        let unread = self.refusal().unwrap_or_else(log_unavailable);
        for &(id, _) in &in_flight.reads {
            out.push(Output::ReadFailed(id, unread.clone()));
        }
    }
}

pub(super) fn pending(call: Option<CallId>, command: Command) -> Pending {
    let bytes = borsh::object_length(&command).expect("a command can be encoded");
    Pending { call, command, bytes }
}
