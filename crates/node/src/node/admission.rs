//! What is taken in, refused, or given up: calls before their entry.

use super::{Node, NodeCall, OVERDUE_SCAN_MS, Output, Phase};
use crate::{
    calls::Stage,
    clock::Mono,
    handle::{Reply, Undecided},
    intake::{Full, Pending, is_rated},
};
use sereno_core::{
    command::{Command, Operation},
    ids::{ClusterTime, LeaseId},
    limits,
};

impl Node {
    /// Why nothing is taken at present.
    pub(super) fn refusal(&self) -> Option<Undecided> {
        let reason = match &self.phase {
            Phase::Following | Phase::Leading => return None,
            Phase::Suspect { .. } => "this node checks its state",
            Phase::Distrusted { .. } => "this node's state and its log disagree",
            Phase::Stopping | Phase::Stopped => "this node stops",
        };
        Some(Undecided::Unavailable { reason: reason.into(), retry_after_ms: 1_000 })
    }

    pub(super) fn call(&mut self, now: Mono, call: NodeCall, out: &mut Vec<Output>) {
        let id = call.id;
        if let Err(undecided) = self.queue(now, call) {
            out.push(Output::Reply(id, Reply::Undecided(undecided)));
        }
    }

    pub(super) fn queue(&mut self, now: Mono, call: NodeCall) -> Result<(), Undecided> {
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

    pub(super) fn check_rate(&mut self, now: Mono, operation: &Operation) -> Result<(), Undecided> {
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
    pub(super) fn lease_deadline(&self, operation: &Operation) -> ClusterTime {
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
    pub(super) fn end_overdue(&mut self, now: Mono, out: &mut Vec<Output>) {
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

    /// Ends every call that is not part of the append in flight.
    pub(super) fn end_waiting_calls(&mut self, out: &mut Vec<Output>) {
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

    pub(super) fn stop(&mut self, out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Stopping | Phase::Stopped) {
            return;
        }
        self.phase = Phase::Stopping;
        self.not_ready = Some("stopping".into());
        self.end_waiting_calls(out);
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
