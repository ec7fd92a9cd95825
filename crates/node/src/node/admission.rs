//! What is taken in, refused, or given up: calls before their entry.

use super::{CallId, Node, NodeCall, OVERDUE_SCAN_MS, Output, Phase};
use crate::{
    calls::{OpenCall, Stage, Urgency},
    clock::{Mono, Now},
    handle::{Consistency, Reply, Undecided},
    intake::{Full, Pending, is_ending, is_rated, is_renewal},
    node::ReadId,
};
use sereno_core::{
    command::{
        Begin, Command, Commit, ElectionCommand, Extend, JobCommand, Operation, QuotaCommand,
    },
    ids::{ClusterTime, LeaseId},
    limits,
    names::{Caller, Invalid},
    planted::{self, Planted},
};

/// A stop waits no longer than this for the log: a resign only spares the others a silence.
const STOP_MS: u64 = 5_000;
/// A log that has not answered for so long is away: whoever waits for it is told what is known.
pub(super) const IN_VAIN_MS: u64 = 3_000;

impl Node {
    /// Why nothing is taken at present.
    pub(super) fn refusal(&self) -> Option<Undecided> {
        let reason = match &self.phase {
            Phase::Following | Phase::Leading => return None,
            Phase::Resigning => "this node lets another lead",
            Phase::Suspect { .. } => "this node checks its state",
            Phase::Distrusted { .. } => "this node's state and its log disagree",
            Phase::Stopping { .. } | Phase::Stopped => "this node stops",
        };
        Some(Undecided::Unavailable { reason: reason.into(), retry_after_ms: 1_000 })
    }

    /// While the log has not answered for some time, whoever asks for something new is told so at once: others may do
    /// better, and nobody has to wait for a deadline. Renewals and endings wait for the log.
    fn refusal_in_vain(&self, now: Mono, call: &NodeCall) -> Option<Undecided> {
        let waits = is_ending(&call.operation) || is_renewal(&call.operation);
        (!waits && self.asks_in_vain(now)).then(log_unavailable)
    }

    fn asks_in_vain(&self, now: Mono) -> bool {
        self.in_flight.as_ref().is_some_and(|in_flight| {
            in_flight.is_doubtful() && now.since_ns(in_flight.sent_at) > IN_VAIN_MS * 1_000_000
        })
    }

    /// Whether the state itself is in doubt, so that no answer may rest on it.
    pub(super) fn is_in_doubt(&self) -> bool {
        matches!(self.phase, Phase::Suspect { .. } | Phase::Distrusted { .. })
    }

    /// Whether it serves, or will once its announce is applied.
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.phase, Phase::Following | Phase::Leading)
    }

    pub(super) fn read(
        &mut self,
        now: Mono,
        id: ReadId,
        consistency: Consistency,
        deadline: Mono,
        out: &mut Vec<Output>,
    ) {
        let in_vain = || self.asks_in_vain(now).then(log_unavailable);
        let refusal = self.refusal().or_else(in_vain);
        if planted::has(Planted::ReadWithoutBarrier) && self.forwards() {
            return out.push(Output::ReadReady(id));
        }
        if planted::has(Planted::ReadOnAppendInFlight)
            && let Some(in_flight) = &mut self.in_flight
        {
            return in_flight.reads.push((id, deadline));
        }
        match (consistency, refusal) {
            (Consistency::Stale, _) if !self.is_in_doubt() => out.push(Output::ReadReady(id)),
            (_, Some(undecided)) => out.push(Output::ReadFailed(id, undecided)),
            _ if self.reads.len() >= limits::INTAKE_ORDINARY_MAX => {
                let retry_after_ms = self.pace.estimate_ms(self.reads.len());
                out.push(Output::ReadFailed(id, Undecided::Overloaded { retry_after_ms }));
            }
            _ => self.reads.push((id, deadline)),
        }
    }

    pub(super) fn call(&mut self, now: Now, call: NodeCall, out: &mut Vec<Output>) {
        let id = call.id;
        if let Err(undecided) = self.queue(now, call) {
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
    }

    pub(super) fn queue(&mut self, now: Now, call: NodeCall) -> Result<(), Undecided> {
        let Now { mono: now, wall_us } = now;
        if let Some(undecided) = self.refusal().or_else(|| self.refusal_in_vain(now, &call)) {
            return Err(undecided);
        }
        self.peers.called(now);
        if let Some(undecided) = self.level_refusal(&call.operation) {
            return Err(undecided);
        }
        check_slot(wall_us, &call.operation)?;
        self.check_rate(now, &call.caller, &call.operation)?;
        if let Operation::RaiseLevel { level } = call.operation {
            self.check_level(now, level).map_err(Undecided::Invalid)?;
        }
        let born_at = self.born_at(call.born_at)?;
        let command = Command { caller: call.caller, born_at, operation: call.operation };
        let bytes = borsh::object_length(&command).expect("a command can be encoded");
        if bytes > limits::COMMAND_BYTES_MAX {
            return Err(Undecided::TooLarge { bytes: bytes as u64 });
        }
        let lease_deadline = self.lease_deadline(&command.operation);
        let urgency = urgency(&command.operation);
        let pending = Pending { call: Some(call.id), command, bytes };
        self.intake.push(pending, lease_deadline).map_err(|Full| Undecided::Overloaded {
            retry_after_ms: self.pace.estimate_ms(self.intake.len()),
        })?;
        let NodeCall { id, deadline, hold_ms, .. } = call;
        let (arrived_at, stage) = (now, Stage::Queued);
        self.calls.open(id, OpenCall { deadline, hold_ms, arrived_at, urgency, stage });
        Ok(())
    }

    /// All cluster time that was ever told comes from entries of this log: a later one was told by another log. A
    /// standby may have applied the entry in flight before this leader knows that it has landed, and have told its
    /// time; the command comes after that entry.
    fn born_at(&self, given: Option<ClusterTime>) -> Result<ClusterTime, Undecided> {
        let now = self.state.time();
        let told = self.in_flight.as_ref().map_or(now, |in_flight| in_flight.entry.time.max(now));
        match given {
            // A leader that does not know yet that another one leads may be told of the other's time.
            Some(given) if given > told && self.settings.is_shared => {
                let reason =
                    format!("bornAt lies ahead of what this node knows, which is {now} ms");
                Err(Undecided::Unavailable { reason, retry_after_ms: 100 })
            }
            Some(given) if given > told => {
                let rule = format!("lies ahead of this log, whose cluster time is {now} ms");
                Err(Undecided::Invalid(Invalid::new("bornAt", rule)))
            }
            given => Ok(given.unwrap_or(now)),
        }
    }

    /// Repeats do not count: who waits has to ask again and again, and whose answer was lost has to.
    pub(super) fn check_rate(
        &mut self,
        now: Mono,
        caller: &Caller,
        operation: &Operation,
    ) -> Result<(), Undecided> {
        let Some(namespace) = operation.namespace().filter(|_| is_rated(operation)) else {
            return Ok(());
        };
        let Some(per_second) = self.state.requests_per_second(namespace) else { return Ok(()) };
        if self.state.remembers(caller, operation) {
            return Ok(());
        }
        self.rates.take(namespace, per_second, now).map_err(|retry_after_ms| {
            Undecided::RateLimited {
                namespace: namespace.clone(),
                requests_per_second: per_second,
                retry_after_ms,
            }
        })
    }

    /// The nearest deadline among the leases to renew: those come first.
    pub(super) fn lease_deadline(&self, operation: &Operation) -> ClusterTime {
        let deadline = |lease_id: LeaseId| {
            let left_ms = self.state.lease_expires_in_ms(lease_id);
            left_ms.map(|ms| self.state.time().plus(ms))
        };
        let nearest = match operation {
            Operation::Renew(op)
            | Operation::Election(ElectionCommand::Renew(op))
            | Operation::Job(JobCommand::RenewRun(op)) => deadline(op.lease.lease_id),
            Operation::Quota(
                QuotaCommand::Extend(Extend { of, .. })
                | QuotaCommand::Begin(Begin { of, .. })
                | QuotaCommand::Commit(Commit { of, .. }),
            ) => deadline(LeaseId(of.reservation.0)),
            Operation::RenewMany(op) => {
                op.leases.iter().filter_map(|lease| deadline(lease.lease_id)).min()
            }
            _ => None,
        };
        nearest.unwrap_or(ClusterTime(u64::MAX))
    }

    /// Closes a call, answered or not.
    pub(super) fn close(&mut self, now: Mono, id: CallId) -> Option<OpenCall> {
        let time = self.cluster_now(now);
        self.calls.close(id, time)
    }

    /// Answers callers whose deadline passes while their command is queued (not applied, unless it is one that
    /// is never dropped) or sent (unknown).
    pub(super) fn end_overdue(&mut self, now: Mono, out: &mut Vec<Output>) {
        if now < self.scan_at {
            return;
        }
        self.scan_at = now.plus_ms(OVERDUE_SCAN_MS);
        for (id, call) in self.calls.overdue(now) {
            self.close(now, id);
            let undecided = match call.stage {
                Stage::Queued if call.urgency != Urgency::Ending => too_late(),
                _ => Undecided::Unknown,
            };
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
        self.end_in_vain(now, out);
        self.end_overdue_passed(now, out);
        let mut is_in_time = |&(id, deadline): &(ReadId, Mono)| {
            let is_in_time = deadline > now;
            if !is_in_time {
                out.push(Output::ReadFailed(id, too_late()));
            }
            is_in_time
        };
        self.reads.retain(&mut is_in_time);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.reads.retain(is_in_time);
        }
    }

    /// The log is away: nobody has to wait for its own deadline to learn what is known by now. What is under way may
    /// land yet; what is queued was certainly not applied. What keeps or ends a lease has as long again, from when it
    /// came, for the log to be back. A call that is held for its turn waits for others, and not for the log.
    fn end_in_vain(&mut self, now: Mono, out: &mut Vec<Output>) {
        if !self.asks_in_vain(now) {
            return;
        }
        for (id, call) in self.calls.waiting_for_the_log() {
            let is_new = now.since_ns(call.arrived_at) <= IN_VAIN_MS * 1_000_000;
            let undecided = match (call.stage, call.urgency) {
                (Stage::Queued, Urgency::Renewal | Urgency::Ending) if is_new => continue,
                (Stage::Queued, Urgency::Ordinary | Urgency::Renewal) => log_unavailable(),
                // An ending stays queued: it will be applied, whoever listens.
                _ => Undecided::Unknown,
            };
            self.close(now, id);
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
        let calls = &self.calls;
        self.intake.forget_unheard(|id| calls.get(id).is_some());
        let in_flight = self.in_flight.as_mut().map(|in_flight| &mut in_flight.reads);
        let of_in_flight = in_flight.map(std::mem::take).unwrap_or_default();
        for (id, _) in std::mem::take(&mut self.reads).into_iter().chain(of_in_flight) {
            out.push(Output::ReadFailed(id, log_unavailable()));
        }
    }

    /// Ends every call that is not part of the append in flight.
    pub(super) fn end_waiting_calls(&mut self, now: Mono, out: &mut Vec<Output>) {
        let undecided = self.refusal().unwrap_or_else(log_unavailable);
        for pending in self.intake.drain() {
            if let Some(id) = pending.call
                && self.close(now, id).is_some()
            {
                out.push(Output::Reply(id, Reply::Undecided(undecided.clone())));
            }
        }
        let held = match planted::has(Planted::HeldCallsForgotten) {
            true => Vec::new(),
            false => self.calls.held(),
        };
        for id in held {
            self.close(now, id);
            out.push(Output::Reply(id, Reply::Undecided(Undecided::HeldCallEnded)));
        }
        self.unlink(out);
        let applying = self.forward.take_applying();
        for (id, _) in std::mem::take(&mut self.reads).into_iter().chain(applying) {
            out.push(Output::ReadFailed(id, undecided.clone()));
        }
    }

    pub(super) fn stop(&mut self, now: Mono, out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Stopping { .. } | Phase::Stopped) {
            return;
        }
        self.phase = Phase::Stopping { until: now.plus_ms(STOP_MS) };
        self.not_ready = Some("stopping".into());
        self.end_waiting_calls(now, out);
    }

    /// Stops without knowing what becomes of the append in flight: the log has not said for too long.
    pub(super) fn give_up(&mut self, now: Mono, out: &mut Vec<Output>) {
        if let Some(in_flight) = self.in_flight.take() {
            self.end_calls(now, &in_flight, &Undecided::Unknown, out);
        }
        self.phase = Phase::Stopped;
        out.push(Output::Stopped);
    }
}

/// The log knows no wall clock: whether a slot lies too far ahead is asked of the leader's, when the claim arrives.
fn check_slot(wall_us: u64, operation: &Operation) -> Result<(), Undecided> {
    let Operation::Job(JobCommand::ClaimRun(op)) = operation else { return Ok(()) };
    let ahead_ms = op.slot.0.saturating_sub(wall_us / 1_000);
    match ahead_ms > limits::SLOT_AHEAD_MS_MAX {
        true => Err(Undecided::TooEarly { ahead_ms }),
        false => Ok(()),
    }
}

fn urgency(operation: &Operation) -> Urgency {
    if is_ending(operation) {
        Urgency::Ending
    } else if is_renewal(operation) {
        Urgency::Renewal
    } else {
        Urgency::Ordinary
    }
}

pub(super) fn too_late() -> Undecided {
    let reason = "the call's deadline passed before its turn came".into();
    Undecided::Unavailable { reason, retry_after_ms: 100 }
}

pub(super) fn log_unavailable() -> Undecided {
    let reason = "the log took no entry".into();
    Undecided::Unavailable { reason, retry_after_ms: 1_000 }
}
