//! The reference's commands of operators, leaders and guards.

use super::{
    reference::{Reference, Space},
    requests::{for_good, invalid},
};
use sereno_core::{
    command::{Family, Operation, PutNamespace, ReportGuard, SetTokenFloor},
    event::{Event, EventKind},
    ids::{Revision, Token},
    names::Caller,
    outcome::{Code, Detail, Done, Outcome, Refusal},
    policy::HoldPolicy,
};

impl Reference {
    pub(super) fn put_namespace(
        &mut self,
        caller: &Caller,
        op: &PutNamespace,
        holds: Option<&HoldPolicy>,
    ) -> Outcome {
        self.revision += 1;
        let holds = holds.cloned().unwrap_or_default();
        if op.policy.check(self.min_ttl_ms).is_err() || holds.check().is_err() {
            return self.answer(None, Err(invalid()));
        }
        let known = self.space(&op.namespace);
        let current = known.map_or(0, |space| self.spaces[space].version);
        if current != op.expected_version {
            let refusal = Refusal::new(Code::VersionConflict).with(Detail::Version { current });
            return self.answer(None, Err(refusal));
        }
        let (name, version, policy) = (op.namespace.clone(), current + 1, op.policy.clone());
        let space = Space { name, version, policy, holds };
        match known {
            Some(index) => self.spaces[index] = space,
            None => self.spaces.push(space),
        }
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Lock,
            namespace: Some(op.namespace.clone()),
            resource: None,
            owner: None,
            caller: caller.clone(),
            lease_hash: None,
            kind: EventKind::NamespacePut { version },
        });
        self.answer(None, Ok(Done::NamespacePut { version }))
    }

    pub(super) fn set_token_floor(&mut self, caller: &Caller, op: &SetTokenFloor) -> Outcome {
        let name = self.spaces[0].name.clone();
        let scope = (name, caller.clone(), Family::Admin, op.request_id.clone());
        let content = Operation::SetTokenFloor(op.clone());
        self.write(
            scope,
            content,
            |_, _| {},
            |state, _| {
                let year_us = 366 * 24 * 3_600 * 1_000_000;
                if op.floor.0 > state.clock + year_us {
                    return Err(for_good(invalid()));
                }
                let rises = op.floor.0 > state.last_token + 1;
                state.last_token = state.last_token.max(op.floor.0.saturating_sub(1));
                let floor = Token(state.last_token + 1);
                if rises || state.level == 1 {
                    state.admin_event(caller, EventKind::TokenFloorSet { floor });
                }
                Ok(Done::TokenFloorSet { floor })
            },
        )
    }

    pub(super) fn report_guard(&mut self, caller: &Caller, op: &ReportGuard) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), Family::Admin, op.request_id.clone());
        let content = Operation::ReportGuard(op.clone());
        self.write(
            scope,
            content,
            |_, _| {},
            |state, space| {
                let kind = match op.token {
                    Some(token) => EventKind::FenceRefused { token, highest: op.highest },
                    None => EventKind::GuardSeen,
                };
                state.out.events.push(Event {
                    revision: Revision(state.revision),
                    family: op.family,
                    namespace: Some(state.spaces[space].name.clone()),
                    resource: Some(op.resource.clone()),
                    owner: Some(op.guard.clone()),
                    caller: caller.clone(),
                    lease_hash: None,
                    kind,
                });
                Ok(Done::GuardReported)
            },
        )
    }

    pub(super) fn raise_level(&mut self, caller: &Caller, level: u32) -> Outcome {
        self.revision += 1;
        if level > self.level {
            self.level = level;
            self.admin_event(caller, EventKind::LevelRaised { level });
        }
        self.answer(None, Ok(Done::LevelRaised { level: self.level }))
    }

    fn admin_event(&mut self, caller: &Caller, kind: EventKind) {
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: Family::Admin,
            namespace: None,
            resource: None,
            owner: None,
            caller: caller.clone(),
            lease_hash: None,
            kind,
        });
    }
}
