//! S7: a wait that is over is never granted, nobody is taken for gone before the grace has passed, and a copy that was
//! born too long ago is refused.

use super::{Change, Ledger};
use sereno_core::{
    command::Command,
    event::EventKind,
    ids::ClusterTime,
    outcome::{Code, Detail, Outcome, WaitEnd},
};
use std::collections::BTreeMap;

/// A command is refused when its entry is stamped later than this after its birth.
const BORN_MS: u64 = 30_000;
/// Nobody is taken for gone before this has passed, in cluster time, since it was asked for.
const GRACE_MS: u64 = 10_000;
/// The shortest reply memory.
const MEMORY_MS: u64 = 90_000;

#[derive(Clone, Debug, Default)]
pub(super) struct DeadWaits {
    /// Requests that hold nothing, and when that was decided.
    dead: BTreeMap<String, ClusterTime>,
}

impl DeadWaits {
    pub(super) fn event(&mut self, ledger: &Ledger, change: &Change) {
        match change.kind {
            EventKind::WaitEnded { why, .. } => self.wait_ended(ledger, change, *why),
            EventKind::Granted { waited_ms, .. } => {
                self.granted(ledger, change, waited_ms.is_some());
            }
            _ => {}
        }
    }

    fn wait_ended(&mut self, ledger: &Ledger, change: &Change, why: Option<WaitEnd>) {
        let Change { place, lease, time, .. } = *change;
        let waiter = ledger.waiter(place, lease);
        let waiter = waiter.unwrap_or_else(|| panic!("S7: {place}: a wait ends once, as one"));
        if why == Some(WaitEnd::Deserted) {
            let since = waiter.asked_at.max(ledger.announced_at);
            assert!(
                since.until(time) >= GRACE_MS,
                "S7: {place}: a wait is deserted after its grace: {} ms",
                since.until(time)
            );
        }
        if let Some(request) = ledger.request_of(lease) {
            self.dies(request, time);
        }
    }

    /// From here on, and as long as that is remembered, this request is granted nothing.
    pub(super) fn dies(&mut self, request: &str, time: ClusterTime) {
        self.dead.entry(request.to_owned()).or_insert(time);
    }

    fn granted(&self, ledger: &Ledger, change: &Change, has_waited: bool) {
        let Change { place, lease, time, .. } = *change;
        if has_waited {
            let waiter = ledger.waiter(place, lease);
            let waiter =
                waiter.unwrap_or_else(|| panic!("S7: {place}: only who waits is handed a lock"));
            assert!(
                waiter.deadline > time,
                "S7: {place}: a wait that is over is not granted: {waiter:?}"
            );
        }
        let request = ledger.request_of(lease).unwrap_or_default();
        let died_at = self.dead.get(request);
        assert!(
            died_at.is_none_or(|&at| at.until(time) >= MEMORY_MS),
            "S7: {place}: {request} was over at {died_at:?}, and is granted at {time}"
        );
    }
}

/// Whether the command comes too late. Then it is refused.
pub(super) fn is_too_old(command: &Command, time: ClusterTime, outcome: &Outcome) -> bool {
    if command.born_at.plus(BORN_MS) >= time {
        return false;
    }
    let is_refused = matches!(
        &outcome.result,
        Err(refusal) if refusal.code == Code::Unavailable && refusal.detail == Detail::BornAt
    );
    assert!(
        is_refused,
        "S7: a copy that comes over 30 s after its birth is refused: born at {}, now {time}: {outcome:?}",
        command.born_at
    );
    true
}
