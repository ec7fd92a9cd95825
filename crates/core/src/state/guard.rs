//! What fence guards report (DESIGN.md section 16): for the audit trail and metrics. Nothing is decided by it.

use super::{
    State,
    memory::{Content, Fingerprint, encode},
};
use crate::{
    command::{Family, ReportGuard},
    event::EventKind,
    ids::Token,
    names::Caller,
    outcome::{Done, Outcome, Refusal},
};
use borsh::BorshSerialize as _;

impl State {
    pub(super) fn report_guard(&mut self, caller: &Caller, op: &ReportGuard) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Admin, &op.request_id, op);
        let known = self.recall(&request);
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            return self.replay(known, |_| Done::GuardReported, |_, _, code| Refusal::new(code));
        }
        let result = self.admit(&request).map(|namespace| {
            self.remember_done(&request, Token(0));
            self.namespaces[namespace as usize].proven = true;
            let kind = match op.token {
                Some(token) => EventKind::FenceRefused { token, highest: op.highest },
                None => EventKind::GuardSeen,
            };
            self.guard_event(caller, namespace, op, kind);
            Done::GuardReported
        });
        self.conclude(&request, result)
    }

    fn guard_event(&mut self, caller: &Caller, namespace: u32, op: &ReportGuard, kind: EventKind) {
        self.applied.events.push(crate::event::Event {
            revision: self.revision,
            family: op.family,
            namespace: Some(self.namespaces[namespace as usize].name.clone()),
            resource: Some(op.resource.clone()),
            owner: Some(op.guard.clone()),
            caller: caller.clone(),
            lease_hash: None,
            kind,
        });
    }
}

impl Content for ReportGuard {
    fn fingerprint(&self) -> Fingerprint {
        let what = (self.family, &self.resource, &self.guard, self.token, self.highest);
        encode(|buffer| (12_u8, what).serialize(buffer))
    }
}
