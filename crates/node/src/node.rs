//! The node as a sans-I/O state machine: inputs in, outputs out, time passed in. It has at most one append in
//! flight; what arrives meanwhile makes up the next entry.
//!
//! ```text
//! Following ──announce──► Leading ──► Stopping ──resign──► Stopped
//!                          │   ▲
//!        rehearsal differs ▼   │ equal after a reload
//!                         Suspect
//! ```

use crate::{
    calls::{Calls, Stage},
    clock::{ClusterClock, Mono, Now, TokenClock, wall_clock_fault},
    events::EventBatch,
    handle::{Consistency, Reply, Undecided},
    intake::{Full, Intake, Pending, Rates, is_rated},
};
use sereno_core::{
    Applied, State,
    command::{Command, EndDeserted, Operation},
    entry::{Announce, Body, Entry, EntryHash, Genesis, Head, SealedEntry, Writer},
    ids::{ClusterTime, Epoch, LeaseId, LogId, ObjectId, Position},
    limits,
    names::Caller,
    outcome::{Done, Outcome},
};
use sereno_log::{Append, Conflict, Slot};
use std::sync::Arc;

/// The leader appends at least one entry in this time: cluster time flows.
pub const HEARTBEAT_MS: u64 = 500;
/// First wait before an append is sent again; doubled up to [`RESEND_MS_MAX`].
const RESEND_MS_MIN: u64 = 50;
const RESEND_MS_MAX: u64 = 1_000;
/// Wait after an append that certainly failed, or a wall clock that forbids to lead.
const RETRY_MS: u64 = 200;
/// How long an append may be under way before its callers' deadlines are looked at.
const OVERDUE_SCAN_MS: u64 = 100;
/// A failed rehearsal is tried again after this.
const REHEARSAL_RETRY_MS: u64 = 60_000;

/// Numbers calls as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Numbers reads as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadId(pub u64);

/// What a node has to know of itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This node, in this start of its process.
    pub writer: Writer,
    /// Where it can be reached.
    pub address: String,
    /// The identity that a new log would get: random bits.
    pub new_log_id: LogId,
    /// Shortest TTL of a new log's namespaces that set none.
    pub min_ttl_ms: u64,
    /// A rehearsal and snapshot after this time,
    pub snapshot_interval_ms: u64,
    /// or after so many bytes of log.
    pub snapshot_bytes: u64,
}

/// A call as the node sees it.
#[derive(Clone, Debug)]
pub struct NodeCall {
    /// Its number.
    pub id: CallId,
    /// Who asks.
    pub caller: Caller,
    /// What for.
    pub operation: Operation,
    /// The client's `bornAt`.
    pub born_at: Option<ClusterTime>,
    /// When it stops listening.
    pub deadline: Mono,
    /// How long an answer `Waiting` is held back.
    pub hold_ms: u64,
}

/// What happens to a node.
#[derive(Debug)]
pub enum Input {
    /// A door has taken a request.
    Call(NodeCall),
    /// Nobody listens to this call any more.
    Cancelled(CallId),
    /// A grant reached nobody.
    Unheard(ObjectId),
    /// A read that must not be older than its arrival.
    Read {
        /// Its number.
        id: ReadId,
        /// How fresh.
        consistency: Consistency,
        /// When it stops listening.
        deadline: Mono,
    },
    /// The result of the append in flight.
    Appended(Append),
    /// A rehearsal has come to an end.
    Rehearsed(Rehearsal),
    /// Two fresh states, made from the last snapshot and the log; `again` is the second one's outcome chain.
    Reloaded {
        /// The first.
        state: Box<State>,
        /// The second's chain.
        again: EntryHash,
    },
    /// An operator wants it to stop.
    Stop,
}

/// How a rehearsal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// The replay came to the same; its snapshot is saved.
    Saved(Head),
    /// The replay came to something else.
    Differs(Head),
    /// It could not be done; try again later.
    Failed(String),
}

/// What the driver has to do, in this order.
#[derive(Debug)]
pub enum Output {
    /// Send the one append; its result comes back as an input.
    Append {
        /// The head it must follow.
        expected: Head,
        /// The entry.
        entry: SealedEntry,
    },
    /// Answer a call.
    Reply(CallId, Reply),
    /// Run a read on the state, as it is before the next input.
    ReadReady(ReadId),
    /// The read cannot be confirmed.
    ReadFailed(ReadId, Undecided),
    /// An entry was committed and applied.
    Committed(Committed),
    /// Replay from the last snapshot to `head` in the background and compare.
    Rehearse {
        /// Where to stop.
        head: Head,
        /// What the outcome chain must be there.
        outcome_chain: EntryHash,
    },
    /// Trim the log; only what two snapshots cover goes.
    Trim(Position),
    /// Make two fresh states up to `head`.
    Reload(Head),
    /// This node leads from here on; the time since it began to try, in nanoseconds.
    Leads {
        /// How long it took.
        took_ns: u64,
    },
    /// Stop the process with this message: going on would be wrong.
    Halt(String),
    /// The node has stopped as asked.
    Stopped,
}

/// An entry that this node wrote, or follows.
#[derive(Debug)]
pub struct Committed {
    /// From sending to knowing.
    pub took_ns: u64,
    /// How many commands.
    pub commands: usize,
    /// How many bytes.
    pub bytes: usize,
    /// What it changed.
    pub batch: Arc<EventBatch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not leading; announces.
    Following,
    /// Has applied its own announce.
    Leading,
    /// A rehearsal differed: answers nothing. Resigns, reloads, and compares again.
    Suspect { reloading: bool },
    /// It differed again: only an operator can say what is right.
    Distrusted { told: bool },
    /// Ends what is under way, then resigns.
    Stopping,
    /// Has stopped.
    Stopped,
}

#[derive(Debug)]
struct InFlight {
    entry: Entry,
    sealed: SealedEntry,
    expected: Head,
    calls: Vec<Option<CallId>>,
    reads: Vec<ReadId>,
    clock: ClusterClock,
    tokens: TokenClock,
    sent_at: Mono,
    /// Its first copy may be, or arrive, in the log.
    ever_unknown: bool,
    resend_at: Option<Mono>,
    resend_ms: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Node {
    pub(crate) settings: Settings,
    state: State,
    pub(crate) phase: Phase,
    pub(crate) not_ready: Option<String>,
    /// The stamps of the last committed entry, if this node wrote it.
    clocks: Option<(ClusterClock, TokenClock)>,
    in_flight: Option<InFlight>,
    pub(crate) intake: Intake,
    rates: Rates,
    calls: Calls,
    reads: Vec<(ReadId, Mono)>,
    anonymous: Caller,
    /// Nothing is appended before this moment.
    retry_at: Mono,
    began_to_try: Mono,
    pub(crate) applied_at: Mono,
    scan_at: Mono,
    pub(crate) snapshot: SnapshotPlan,
    /// Commands committed and nanoseconds spent on it, lately: for `retryAfterMs`.
    pace: Pace,
}

#[derive(Debug)]
pub(crate) struct SnapshotPlan {
    at: Mono,
    pub(crate) bytes: u64,
    rehearsing: bool,
    pub(crate) position: Option<Position>,
    pub(crate) saved_at: Option<Mono>,
}

#[derive(Debug, Default)]
struct Pace {
    commands: u64,
    ns: u64,
}

impl Pace {
    fn add(&mut self, commands: usize, ns: u64) {
        // Halving forgets the past quickly enough to follow a change of load.
        if self.ns > 1_000_000_000 {
            (self.commands, self.ns) = (self.commands / 2, self.ns / 2);
        }
        self.commands += commands as u64;
        self.ns += ns;
    }

    /// How long `queued` commands will take.
    fn estimate_ms(&self, queued: usize) -> u64 {
        let per_command_ns = self.ns / self.commands.max(1);
        (per_command_ns.saturating_mul(queued as u64) / 1_000_000).clamp(50, 5_000)
    }
}

impl Node {
    /// A node whose state is that of the log's head as read at the start.
    pub fn new(settings: Settings, state: State, snapshot: Option<Position>, now: Now) -> Self {
        let snapshot = SnapshotPlan {
            at: now.mono.plus_ms(settings.snapshot_interval_ms),
            bytes: 0,
            rehearsing: false,
            position: snapshot,
            saved_at: None,
        };
        Self {
            settings,
            state,
            phase: Phase::Following,
            not_ready: Some("starting".into()),
            clocks: None,
            in_flight: None,
            intake: Intake::default(),
            rates: Rates::default(),
            calls: Calls::default(),
            reads: Vec::new(),
            anonymous: Caller::new("").expect("anonymous is a caller"),
            retry_at: now.mono,
            began_to_try: now.mono,
            applied_at: now.mono,
            scan_at: now.mono,
            snapshot,
            pace: Pace::default(),
        }
    }

    /// The state after the last applied entry.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes one input. What follows from all inputs together is decided by [`Self::advance`].
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Call(call) => self.call(now.mono, call, out),
            Input::Cancelled(id) => {
                self.calls.close(id, self.state.time());
            }
            Input::Unheard(claim) => {
                if self.phase == Phase::Leading && !self.calls.is_asked_for(claim) {
                    self.calls.begin_grace(claim, self.state.time());
                }
            }
            Input::Read { id, consistency, deadline } => match consistency {
                Consistency::Stale => out.push(Output::ReadReady(id)),
                Consistency::Consistent => match self.refusal() {
                    Some(undecided) => out.push(Output::ReadFailed(id, undecided)),
                    None => self.reads.push((id, deadline)),
                },
            },
            Input::Appended(result) => self.appended(now, result, out),
            Input::Rehearsed(rehearsal) => self.rehearsed(now.mono, rehearsal, out),
            Input::Reloaded { state, again } => self.reloaded(now.mono, *state, again),
            Input::Stop => self.stop(out),
        }
    }

    /// Does what is due: call it after inputs, and at [`Self::wake_at`].
    pub fn advance(&mut self, now: Now, out: &mut Vec<Output>) {
        while let Some((id, claim)) = self.calls.take_hold_over(now.mono, self.state.time()) {
            let waiting = self.state.waiting_answer(claim);
            let outcome = waiting.expect("a claim whose call is held waits until it is settled");
            out.push(Output::Reply(id, Reply::Decided(outcome)));
        }
        self.end_overdue(now.mono, out);
        match &self.in_flight {
            Some(in_flight) if in_flight.resend_at.is_some_and(|at| at <= now.mono) => {
                self.resend(now.mono, out);
            }
            Some(_) => {}
            None if self.retry_at <= now.mono => self.next_append(now, out),
            None => {}
        }
        self.plan_snapshot(now.mono, out);
    }

    /// When [`Self::advance`] has something to do even if no input comes.
    pub fn wake_at(&self) -> Option<Mono> {
        let append_at = match (&self.in_flight, &self.phase) {
            (Some(in_flight), _) => in_flight.resend_at,
            (None, Phase::Leading) => Some(self.next_append_at().max(self.retry_at)),
            (None, Phase::Following | Phase::Suspect { reloading: false } | Phase::Stopping) => {
                Some(self.retry_at)
            }
            (None, Phase::Distrusted { told: false }) => Some(self.retry_at),
            (None, _) => None,
        };
        let scan_at = self.in_flight.is_some().then_some(self.scan_at);
        let snapshot_at = self.may_rehearse().then_some(self.snapshot.at);
        let times = [append_at, scan_at, snapshot_at, self.calls.next_hold_over()];
        times.into_iter().flatten().min()
    }

    /// Why nothing is taken at present.
    fn refusal(&self) -> Option<Undecided> {
        let reason = match &self.phase {
            Phase::Following | Phase::Leading => return None,
            Phase::Suspect { .. } => "this node checks its state",
            Phase::Distrusted { .. } => "this node's state and its log disagree",
            Phase::Stopping | Phase::Stopped => "this node stops",
        };
        Some(Undecided::Unavailable { reason: reason.into(), retry_after_ms: 1_000 })
    }

    fn call(&mut self, now: Mono, call: NodeCall, out: &mut Vec<Output>) {
        let id = call.id;
        if let Err(undecided) = self.queue(now, call) {
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
    }

    fn queue(&mut self, now: Mono, call: NodeCall) -> Result<(), Undecided> {
        if let Some(undecided) = self.refusal() {
            return Err(undecided);
        }
        self.check_rate(now, &call.operation)?;
        let born_at = call.born_at.unwrap_or(self.state.time());
        let command = Command { caller: call.caller, born_at, operation: call.operation };
        let bytes = borsh::object_length(&command).expect("a command can be encoded");
        if bytes > limits::COMMAND_BYTES_MAX {
            return Err(Undecided::TooLarge { bytes });
        }
        let lease_deadline = self.lease_deadline(&command.operation);
        let pending = Pending { call: Some(call.id), command, bytes };
        self.intake.push(pending, lease_deadline).map_err(|Full| Undecided::Overloaded {
            retry_after_ms: self.pace.estimate_ms(self.intake.len()),
        })?;
        self.calls.open(call.id, call.deadline, call.hold_ms);
        Ok(())
    }

    fn check_rate(&mut self, now: Mono, operation: &Operation) -> Result<(), Undecided> {
        let Some(namespace) = operation.namespace().filter(|_| is_rated(operation)) else {
            return Ok(());
        };
        let Some(per_second) = self.state.requests_per_second(namespace) else { return Ok(()) };
        self.rates.take(namespace, per_second, now).map_err(|retry_after_ms| {
            Undecided::RateLimited {
                namespace: namespace.clone(),
                requests_per_second: per_second,
                retry_after_ms,
            }
        })
    }

    /// The nearest deadline among the leases to renew: those come first.
    fn lease_deadline(&self, operation: &Operation) -> ClusterTime {
        let deadline = |lease_id: LeaseId| {
            let left_ms = self.state.lease_expires_in_ms(lease_id);
            left_ms.map(|ms| self.state.time().plus(ms))
        };
        let nearest = match operation {
            Operation::Renew(op) => deadline(op.lease.lease_id),
            Operation::RenewMany(op) => {
                op.leases.iter().filter_map(|lease| deadline(lease.lease_id)).min()
            }
            _ => None,
        };
        nearest.unwrap_or(ClusterTime(u64::MAX))
    }

    /// Answers callers whose deadline passes while their command is queued (not applied) or sent (unknown).
    fn end_overdue(&mut self, now: Mono, out: &mut Vec<Output>) {
        if now < self.scan_at {
            return;
        }
        self.scan_at = now.plus_ms(OVERDUE_SCAN_MS);
        for (id, stage) in self.calls.overdue(now) {
            self.calls.close(id, self.state.time());
            let undecided = match stage {
                Stage::Sent => Undecided::Unknown,
                _ => too_late(),
            };
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
        self.reads.retain(|&(id, deadline)| {
            let keep = deadline > now;
            if !keep {
                out.push(Output::ReadFailed(id, too_late()));
            }
            keep
        });
    }

    fn next_append_at(&self) -> Mono {
        let (clock, _) = self.clocks.expect("a leader has stamped its announce");
        let heartbeat_at = clock.stamped_at().plus_ms(HEARTBEAT_MS);
        match self.state.next_deadline() {
            Some(deadline) => heartbeat_at.min(clock.reaches(deadline)),
            None => heartbeat_at,
        }
    }

    fn next_append(&mut self, now: Now, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Following => self.announce(now, out),
            Phase::Leading => {
                self.queue_deserted();
                let due = self.next_append_at() <= now.mono;
                if due || !self.intake.is_empty() || !self.reads.is_empty() {
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
            Phase::Distrusted { told: false } if self.is_leader() => {
                self.phase = Phase::Distrusted { told: true };
                let hold = self.own(Operation::HoldTrim);
                self.append_body(now.mono, Body::Batch(vec![hold]), vec![None], out);
            }
            Phase::Distrusted { told: false } => self.announce(now, out),
            Phase::Stopping if self.is_leader() => {
                self.append_body(now.mono, Body::Resign, Vec::new(), out);
            }
            Phase::Stopping => {
                self.phase = Phase::Stopped;
                out.push(Output::Stopped);
            }
            _ => {}
        }
    }

    /// Whether the log says that this node, in this start, leads.
    fn is_leader(&self) -> bool {
        self.state.leader().is_some_and(|leader| leader.writer == self.settings.writer)
    }

    fn own(&self, operation: Operation) -> Command {
        Command { caller: self.anonymous.clone(), born_at: self.state.time(), operation }
    }

    fn queue_deserted(&mut self) {
        for _ in 0..limits::BATCH_COMMANDS_MAX {
            let Some(claim) = self.calls.take_deserted(self.state.time()) else { break };
            let Some(asked_at) = self.state.asked_at(claim) else { continue };
            let command = self.own(Operation::EndDeserted(EndDeserted { claim, asked_at }));
            let bytes = borsh::object_length(&command).expect("a command can be encoded");
            self.intake.push_own(Pending { call: None, command, bytes });
        }
    }

    fn announce(&mut self, now: Now, out: &mut Vec<Output>) {
        if let Some(fault) = wall_clock_fault(now.wall_us) {
            self.not_ready = Some(fault);
            self.retry_at = now.mono.plus_ms(RETRY_MS);
            return;
        }
        let is_first = self.state.head() == Head::EMPTY;
        let genesis = is_first.then(|| Genesis {
            log_id: self.settings.new_log_id,
            min_ttl_ms: self.settings.min_ttl_ms,
        });
        let headroom_us = if is_first { limits::TOKEN_HEADROOM_US } else { 0 };
        let clock = ClusterClock::at_announce(self.state.time(), now.mono);
        let tokens = TokenClock::new(now.wall_us + headroom_us, now.mono);
        let address = self.settings.address.clone();
        let body = Body::Announce(Announce { address, genesis });
        self.append_stamped(now.mono, (clock, tokens), body, Vec::new(), out);
    }

    fn append_batch(&mut self, now: Mono, out: &mut Vec<Output>) {
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
            self.calls.close(id, self.state.time());
            out.push(Output::Reply(id, Reply::Undecided(too_late())));
        }
        let (ids, commands): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|pending| (pending.call, pending.command)).unzip();
        for id in ids.iter().flatten() {
            self.calls.sent(*id);
        }
        self.append_body(now, Body::Batch(commands), ids, out);
    }

    fn append_body(
        &mut self,
        now: Mono,
        body: Body,
        calls: Vec<Option<CallId>>,
        out: &mut Vec<Output>,
    ) {
        let (clock, tokens) = self.clocks.expect("a leader has stamped its announce");
        self.append_stamped(now, (clock.stamp(now), tokens), body, calls, out);
    }

    fn append_stamped(
        &mut self,
        now: Mono,
        (clock, tokens): (ClusterClock, TokenClock),
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
            time: clock.time(),
            token_clock_us: tokens.at(now),
            previous: expected.hash,
            body,
        };
        let sealed = entry.seal(log_id);
        out.push(Output::Append { expected, entry: sealed.clone() });
        self.scan_at = now.plus_ms(OVERDUE_SCAN_MS);
        self.in_flight = Some(InFlight {
            entry,
            sealed,
            expected,
            calls,
            // Reads that arrive from now on wait for the next append.
            reads: std::mem::take(&mut self.reads).into_iter().map(|(id, _)| id).collect(),
            clock,
            tokens,
            sent_at: now,
            ever_unknown: false,
            resend_at: None,
            resend_ms: RESEND_MS_MIN,
        });
    }

    fn resend(&mut self, now: Mono, out: &mut Vec<Output>) {
        let in_flight = self.in_flight.as_mut().expect("only what is in flight is sent again");
        in_flight.resend_at = None;
        in_flight.resend_ms = (in_flight.resend_ms * 2).min(RESEND_MS_MAX);
        self.scan_at = now.plus_ms(OVERDUE_SCAN_MS);
        let (expected, entry) = (in_flight.expected, in_flight.sealed.clone());
        out.push(Output::Append { expected, entry });
    }

    fn appended(&mut self, now: Now, result: Append, out: &mut Vec<Output>) {
        let mut in_flight = self.in_flight.take().expect("a result belongs to an append");
        match result {
            Append::Committed => self.commit(now, in_flight, out),
            // Its first copy may have landed: that is told by the slot, never by the head alone.
            Append::Conflict(Conflict { slot: Slot::Entry(hash), .. })
                if hash == in_flight.sealed.head.hash =>
            {
                self.commit(now, in_flight, out);
            }
            Append::Conflict(conflict) => self.lost(in_flight, &conflict, out),
            Append::NotAppended(_) if !in_flight.ever_unknown => {
                self.not_appended(now.mono, in_flight, out);
            }
            Append::NotAppended(_) | Append::Unknown(_) => {
                in_flight.ever_unknown = true;
                in_flight.resend_at = Some(now.mono.plus_ms(in_flight.resend_ms));
                self.not_ready = Some("the log does not answer".into());
                self.in_flight = Some(in_flight);
            }
        }
    }

    /// The entry is certainly not in the log: its commands were not applied, and time has not passed.
    fn not_appended(&mut self, now: Mono, in_flight: InFlight, out: &mut Vec<Output>) {
        self.not_ready = Some("the log takes no entries".into());
        self.end_calls(&in_flight, &log_unavailable(), out);
        self.retry_at = now.plus_ms(RETRY_MS);
        // What a batch of its own was to say is said again.
        if let Phase::Distrusted { told } = &mut self.phase {
            *told = false;
        }
    }

    fn end_calls(&mut self, in_flight: &InFlight, undecided: &Undecided, out: &mut Vec<Output>) {
        for &id in in_flight.calls.iter().flatten() {
            if self.calls.close(id, self.state.time()).is_some() {
                out.push(Output::Reply(id, Reply::Undecided(undecided.clone())));
            }
        }
        for &id in &in_flight.reads {
            out.push(Output::ReadFailed(id, log_unavailable()));
        }
    }

    /// Somebody else's entry follows on the head that this node knew.
    fn lost(&mut self, in_flight: InFlight, conflict: &Conflict, out: &mut Vec<Output>) {
        let undecided = match conflict.slot {
            // Another entry stands there, so this one never will.
            Slot::Entry(_) => log_unavailable(),
            // Trimmed, or another log: nobody can know.
            Slot::Trimmed | Slot::Empty => Undecided::Unknown,
        };
        self.end_calls(&in_flight, &undecided, out);
        let (ours, theirs) = (in_flight.expected, conflict.head);
        out.push(Output::Halt(format!(
            "the log was written by somebody else: this node knows head {ours:?}, the log has {theirs:?}"
        )));
    }

    fn commit(&mut self, now: Now, in_flight: InFlight, out: &mut Vec<Output>) {
        let InFlight { entry, sealed, calls, reads, clock, tokens, sent_at, .. } = in_flight;
        let applied = self.apply(now.mono, &entry, &sealed);
        self.clocks = Some((clock, tokens));
        self.not_ready = None;
        let took_ns = now.mono.since_ns(sent_at);
        self.pace.add(calls.len(), took_ns);

        assert!(applied.outcomes.len() == calls.len(), "one outcome for one command");
        for (id, outcome) in calls.iter().zip(applied.outcomes) {
            self.conclude(now.mono, *id, outcome, out);
        }
        for settled in applied.settled {
            self.settle(settled.claim, &settled.outcome, out);
        }
        out.extend(reads.into_iter().map(Output::ReadReady));
        if matches!(entry.body, Body::Announce(_)) {
            self.lead(now.mono, out);
        }
        out.push(Output::Committed(Committed {
            took_ns,
            commands: calls.len(),
            bytes: sealed.bytes.len(),
            batch: Arc::new(EventBatch {
                position: entry.position,
                hash: sealed.head.hash,
                time: entry.time,
                token_clock_us: entry.token_clock_us,
                revision: self.state.revision(),
                events: applied.events,
            }),
        }));
    }

    fn apply(&mut self, now: Mono, entry: &Entry, sealed: &SealedEntry) -> Applied {
        let applied = self.state.apply(entry, sealed.head.hash);
        let applied = applied.expect("a committed entry of this node follows on what it applied");
        self.applied_at = now;
        self.snapshot.bytes += sealed.bytes.len() as u64;
        applied
    }

    fn lead(&mut self, now: Mono, out: &mut Vec<Output>) {
        if self.phase == Phase::Following {
            self.phase = Phase::Leading;
            out.push(Output::Leads { took_ns: now.since_ns(self.began_to_try) });
            // Whoever waits has as long to ask again as if its call had ended now.
            let time = self.state.time();
            self.calls.clear_graces();
            for claim in self.state.waiting_claims() {
                if !self.calls.is_asked_for(claim) {
                    self.calls.begin_grace(claim, time);
                }
            }
        }
    }

    /// Answers one command's call, or holds it back while its claim waits.
    fn conclude(&mut self, now: Mono, id: Option<CallId>, outcome: Outcome, out: &mut Vec<Output>) {
        let call = id.and_then(|id| self.calls.get(id).map(|call| (id, *call)));
        match (&outcome.result, call) {
            (Ok(Done::Waiting(waiting)), Some((id, call))) if call.hold_ms > 0 => {
                let until = now.plus_ms(call.hold_ms).min(call.deadline);
                self.calls.hold(id, waiting.claim, until);
                return;
            }
            (Ok(Done::Waiting(waiting)), _) => {
                if !self.calls.is_asked_for(waiting.claim) {
                    self.calls.begin_grace(waiting.claim, self.state.time());
                }
            }
            (Ok(Done::Granted(grant)), _) => self.calls.end_grace(grant.claim),
            _ => {}
        }
        if let Some((id, _)) = call {
            self.calls.close(id, self.state.time());
            out.push(Output::Reply(id, Reply::Decided(outcome)));
        }
    }

    fn settle(&mut self, claim: ObjectId, outcome: &Outcome, out: &mut Vec<Output>) {
        let calls = self.calls.settle(claim);
        if calls.is_empty() && matches!(outcome.result, Ok(Done::Granted(_))) {
            self.calls.begin_grace(claim, self.state.time());
        }
        for id in calls {
            out.push(Output::Reply(id, Reply::Decided(outcome.clone())));
        }
    }

    fn may_rehearse(&self) -> bool {
        self.phase == Phase::Leading && !self.snapshot.rehearsing
    }

    fn plan_snapshot(&mut self, now: Mono, out: &mut Vec<Output>) {
        let plan = &self.snapshot;
        let enough = plan.at <= now || plan.bytes >= self.settings.snapshot_bytes;
        if !self.may_rehearse() || !enough || plan.position == Some(self.state.head().position) {
            return;
        }
        self.snapshot.rehearsing = true;
        let (head, outcome_chain) = (self.state.head(), self.state.outcome_chain());
        out.push(Output::Rehearse { head, outcome_chain });
    }

    fn rehearsed(&mut self, now: Mono, rehearsal: Rehearsal, out: &mut Vec<Output>) {
        let plan = &mut self.snapshot;
        (plan.rehearsing, plan.bytes) = (false, 0);
        plan.at = now.plus_ms(self.settings.snapshot_interval_ms);
        match rehearsal {
            Rehearsal::Saved(head) => {
                (plan.position, plan.saved_at) = (Some(head.position), Some(now));
                if !self.state.is_trim_held() {
                    out.push(Output::Trim(head.position));
                }
            }
            Rehearsal::Failed(_) => plan.at = now.plus_ms(REHEARSAL_RETRY_MS),
            Rehearsal::Differs(head) => {
                self.not_ready = Some(format!("a rehearsal differed at {}", head.position));
                if self.phase == Phase::Leading {
                    self.phase = Phase::Suspect { reloading: false };
                    self.end_waiting_calls(out);
                }
            }
        }
    }

    fn reloaded(&mut self, now: Mono, state: State, again: EntryHash) {
        let Phase::Suspect { reloading: true } = self.phase else { return };
        assert!(state.head() == self.state.head(), "nothing was appended meanwhile");
        let is_sound = state.outcome_chain() == again;
        self.state = state;
        self.clocks = None;
        self.began_to_try = now;
        self.phase = if is_sound {
            Phase::Following
        } else {
            self.not_ready = Some("two replays of the log differ: see docs/operating.md".into());
            Phase::Distrusted { told: false }
        };
    }

    /// Ends every call that is not part of the append in flight.
    fn end_waiting_calls(&mut self, out: &mut Vec<Output>) {
        let undecided = self.refusal().unwrap_or_else(log_unavailable);
        for pending in self.intake.drain() {
            if let Some(id) = pending.call
                && self.calls.close(id, self.state.time()).is_some()
            {
                out.push(Output::Reply(id, Reply::Undecided(undecided.clone())));
            }
        }
        for id in self.calls.held() {
            self.calls.close(id, self.state.time());
            out.push(Output::Reply(id, Reply::Undecided(Undecided::HeldCallEnded)));
        }
        for (id, _) in std::mem::take(&mut self.reads) {
            out.push(Output::ReadFailed(id, undecided.clone()));
        }
    }

    fn stop(&mut self, out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Stopping | Phase::Stopped) {
            return;
        }
        self.phase = Phase::Stopping;
        self.not_ready = Some("stopping".into());
        self.end_waiting_calls(out);
    }
}

fn too_late() -> Undecided {
    let reason = "the call's deadline passed before its turn came".into();
    Undecided::Unavailable { reason, retry_after_ms: 100 }
}

fn log_unavailable() -> Undecided {
    let reason = "the log took no entry".into();
    Undecided::Unavailable { reason, retry_after_ms: 1_000 }
}
