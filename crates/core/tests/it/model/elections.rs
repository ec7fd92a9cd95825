//! The reference's elections, as section 9 has them: a lock whose holder says something, and may choose its heir.

use super::{
    commands::Ask,
    reference::{At, Face, Reference},
    requests::{No, for_good},
};
use sereno_core::{
    command::{Acquire, Campaign, ElectionCommand, Family, Handoff, Operation, Proclaim},
    event::EventKind,
    ids::LeaseId,
    names::{Caller, Owner, ResourceName},
    outcome::{Code, Detail, Done, End, Missing, Outcome, Refusal, WaitEnd},
};

const FAMILY: Family = Family::Election;

impl Reference {
    pub(super) fn election(&mut self, caller: &Caller, op: &ElectionCommand) -> Outcome {
        match op {
            ElectionCommand::Campaign(op) => self.campaign(caller, op),
            ElectionCommand::Renew(op) => self.renew(caller, FAMILY, op),
            ElectionCommand::Proclaim(op) => self.proclaim(caller, op),
            ElectionCommand::Resign(op) => self.release(caller, FAMILY, &op.namespace, &op.lease),
            ElectionCommand::Handoff(op) => self.hand_off(caller, op),
            ElectionCommand::ForceRelease(_) => unreachable!("is done elsewhere"),
        }
    }

    fn campaign(&mut self, caller: &Caller, op: &Campaign) -> Outcome {
        let first = Campaign { lease_id: LeaseId::default(), wait_timeout_ms: 0, ..op.clone() };
        let like = Acquire {
            namespace: op.namespace.clone(),
            resource: op.election.clone(),
            request_id: op.request_id.clone(),
            owner: op.candidate.clone(),
            lease_id: op.lease_id,
            lease_ttl_ms: op.lease_ttl_ms,
            wait_timeout_ms: op.wait_timeout_ms,
            max_hold_ms: op.max_hold_ms,
            fencing: op.fencing,
            labels: op.labels.clone(),
        };
        let ask = Ask {
            family: FAMILY,
            face: Face::Candidate { value: op.value.clone(), version: 0 },
            like: &like,
            resources: std::slice::from_ref(&op.election),
            content: Operation::Election(ElectionCommand::Campaign(first)),
        };
        self.ask(caller, &ask)
    }

    /// The wait of a candidate of that name, whose own deadline is not due. Only candidates wait once.
    pub(super) fn earlier_wait(
        &self,
        at: At,
        resource: &ResourceName,
        candidate: &Owner,
    ) -> Option<usize> {
        let is_it = |&index: &usize| {
            let claim = self.requests[index].claim();
            claim.owner == *candidate && claim.deadline > self.time
        };
        let queue = if at.family == FAMILY { self.queue(at, resource) } else { Vec::new() };
        queue.into_iter().find(is_it)
    }

    /// Of the record of a candidate.
    pub(super) fn version_of(&self, index: usize) -> u64 {
        match self.requests[index].claim().face {
            Face::Candidate { version, .. } => version,
            _ => unreachable!("an election is held by a candidate"),
        }
    }

    pub(super) fn replace_wait(&mut self, index: usize) {
        self.end_wait(index, Some(WaitEnd::Replaced));
    }

    fn proclaim(&mut self, caller: &Caller, op: &Proclaim) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let content = Operation::Election(ElectionCommand::Proclaim(op.clone()));
        let touch = |state: &mut Self, _| state.touch_lease(&op.lease);
        self.write(scope, content, touch, |state, space| {
            let (index, part) =
                state.named(At { space, family: FAMILY }, &op.lease).map_err(for_good)?;
            let now = state.revision;
            let claim = state.requests[index].claim_mut();
            let term = claim.parts[part].token;
            let Face::Candidate { value, version } = &mut claim.face else {
                unreachable!("leaders are candidates")
            };
            if op.version.is_some_and(|expected| expected != *version) {
                let detail = Detail::Version { current: *version };
                return Err(for_good(Refusal::new(Code::VersionConflict).with(detail)));
            }
            (*value, *version) = (op.value.clone(), now);
            state.event(index, part, Some(caller), EventKind::Proclaimed { term, version: now });
            Ok(Done::Proclaimed { version: now })
        })
    }

    fn hand_off(&mut self, caller: &Caller, op: &Handoff) -> Outcome {
        let scope = (op.namespace.clone(), caller.clone(), FAMILY, op.request_id.clone());
        let content = Operation::Election(ElectionCommand::Handoff(op.clone()));
        let touch = |state: &mut Self, _| state.touch_lease(&op.lease);
        self.write(scope, content, touch, |state, space| {
            let at = At { space, family: FAMILY };
            let (index, part) = state.named(at, &op.lease).map_err(for_good)?;
            let heir = state.earlier_wait(at, &op.lease.resource, &op.to);
            let heir = heir.ok_or_else(no_candidate)?;
            let (now, by) = (state.time, Some(caller));
            state.end_without_heir(index, part, End::HandedOff, now, by, None);
            state.grant_waiter(heir);
            Ok(Done::HandedOff { term: state.requests[heir].claim().parts[0].token })
        })
    }
}

fn no_candidate() -> No {
    for_good(Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Candidate)))
}
