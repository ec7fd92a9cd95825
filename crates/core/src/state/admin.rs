//! Operators' commands: namespaces, the floor of tokens, levels, the hold on trimming.

use super::{State, claim::Namespace, request::No};
use crate::{
    command::{Family, PutHoldPolicy, PutNamespace, SetTokenFloor},
    event::{Event, EventKind},
    ids::Token,
    limits,
    names::{Caller, Invalid, NamespaceName},
    outcome::{Code, Detail, Done, Outcome, Refusal},
    planted::{self, Planted},
    policy::{HoldPolicy, Policy},
};

/// A floor further ahead of the leader's clock than this would only be a mistake, and cannot be undone.
const FLOOR_AHEAD_US_MAX: u64 = 366 * 24 * 3_600 * 1_000_000;

impl State {
    pub(super) fn put_namespace(&mut self, caller: &Caller, op: &PutNamespace) -> Outcome {
        self.next_revision();
        let result = self.try_put_namespace(caller, op, &HoldPolicy::default());
        self.decided(None, result)
    }

    pub(super) fn put_hold_policy(&mut self, caller: &Caller, op: &PutHoldPolicy) -> Outcome {
        self.next_revision();
        let result = self.try_put_namespace(caller, &op.put, &op.holds);
        self.decided(None, result)
    }

    fn try_put_namespace(
        &mut self,
        caller: &Caller,
        op: &PutNamespace,
        holds: &HoldPolicy,
    ) -> Result<Done, Refusal> {
        op.policy.check(self.service_min_ttl_ms)?;
        holds.check()?;
        let known = self.namespace_id(&op.namespace);
        let current = known.map_or(0, |id| self.namespaces[id as usize].version);
        if current != op.expected_version {
            let detail = Detail::Version { current };
            return Err(Refusal::new(Code::VersionConflict).with(detail));
        }
        let id = match known {
            Some(id) => {
                let namespace = &mut self.namespaces[id as usize];
                namespace.version += 1;
                namespace.policy = op.policy.clone();
                self.cut_leases(id, op.policy.max_ttl_ms);
                id
            }
            None => self.create_namespace(&op.namespace, &op.policy)?,
        };
        let namespace = &mut self.namespaces[id as usize];
        namespace.hold_policy = holds.clone();
        let version = namespace.version;
        self.event(caller, id, Family::Lock, None, EventKind::NamespacePut { version });
        Ok(Done::NamespacePut { version })
    }

    pub(super) fn create_namespace(
        &mut self,
        name: &NamespaceName,
        policy: &Policy,
    ) -> Result<u32, Refusal> {
        if self.namespaces.len() >= limits::NAMESPACES_MAX {
            let max = limits::NAMESPACES_MAX as u64;
            let detail = Detail::Limit { limit: "namespaces".into(), max, sweep_pending: false };
            return Err(Refusal::new(Code::LimitReached).with(detail));
        }
        let id = u32::try_from(self.namespaces.len()).expect("fewer than 2^32 namespaces");
        self.namespaces.push(Namespace::new(name.clone(), policy.clone()));
        self.namespace_index.insert(name.clone(), id);
        Ok(id)
    }

    pub(super) fn set_token_floor(&mut self, caller: &Caller, op: &SetTokenFloor) -> Outcome {
        let namespace = NamespaceName::new(NamespaceName::DEFAULT).expect("the default is valid");
        let request = self.request(caller, &namespace, Family::Admin, &op.request_id, op);
        let known = self.recall(&request);
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let done = |floor| Done::TokenFloorSet { floor };
            return self.replay(known, done, |state, _, code| match state.check_floor(op.floor) {
                Err(invalid) => invalid.into(),
                Ok(()) => Refusal::new(code),
            });
        }
        let result = self.admit(&request).and_then(|_| {
            self.check_floor(op.floor).map_err(|invalid| No::Remember(invalid.into()))?;
            let before = self.last_token;
            let last_token = before.max(Token(op.floor.0.saturating_sub(1)));
            if !planted::has(Planted::FloorIgnored) {
                self.last_token = last_token;
            }
            let floor = Token(last_token.0 + 1);
            self.remember_done(&request, floor);
            // Level 1 told of a floor that changed nothing, too.
            if last_token > before || self.level_to_go_by() < 2 {
                self.service_event(caller, EventKind::TokenFloorSet { floor });
            }
            Ok(Done::TokenFloorSet { floor })
        });
        self.conclude(&request, result)
    }

    fn check_floor(&self, floor: Token) -> Result<(), Invalid> {
        let max = (self.token_clock_us + FLOOR_AHEAD_US_MAX).min(limits::TOKEN_MAX);
        if floor.0 <= max {
            return Ok(());
        }
        let rule = format!("must not be above {max}, a year ahead of the leader's clock");
        Err(Invalid::new("floor", rule))
    }

    pub(super) fn raise_level(&mut self, caller: &Caller, level: u32) -> Outcome {
        self.next_revision();
        if level > self.level {
            self.level = level;
            self.service_event(caller, EventKind::LevelRaised { level });
        }
        self.decided(None, Ok(Done::LevelRaised { level: self.level }))
    }

    pub(super) fn hold_trim(&mut self, caller: &Caller) -> Outcome {
        self.next_revision();
        self.trim_held = true;
        self.service_event(caller, EventKind::TrimHeld);
        self.decided(None, Ok(Done::TrimHeld))
    }

    pub(super) fn service_event(&mut self, caller: &Caller, kind: EventKind) {
        self.applied.events.push(Event {
            revision: self.revision,
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
