//! Elections (DESIGN.md section 9): a lock with a face. What is about the lease is decided as for locks; here is what
//! a leader says, and to whom it hands over.

use super::{
    State,
    acquire::Ask,
    claim::Face,
    memory::{Content, Fingerprint, encode},
    request::{No, Request},
};
use crate::{
    command::{Campaign, ElectionCommand, Family, Handoff, Proclaim},
    event::EventKind,
    ids::{ObjectId, Revision, Token},
    names::{Caller, Owner},
    outcome::{Code, Detail, Done, End, Missing, Outcome, Refusal},
    planted::{self, Planted},
};
use borsh::BorshSerialize as _;

impl State {
    pub(super) fn election(&mut self, caller: &Caller, op: &ElectionCommand) -> Outcome {
        const FAMILY: Family = Family::Election;
        match op {
            ElectionCommand::Campaign(op) => self.campaign(caller, op),
            ElectionCommand::Renew(op) => self.renew(caller, FAMILY, op),
            ElectionCommand::Proclaim(op) => self.proclaim(caller, op),
            ElectionCommand::Resign(op) => self.release(caller, FAMILY, op),
            ElectionCommand::Handoff(op) => self.hand_off(caller, op),
            ElectionCommand::ForceRelease(op) => self.force_release(caller, FAMILY, op),
        }
    }

    fn campaign(&mut self, caller: &Caller, op: &Campaign) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Election, &op.request_id, op);
        let ask = Ask {
            face: Face::Candidate { value: op.value.clone(), version: Revision(0) },
            caller,
            resources: std::slice::from_ref(&op.election),
            owner: &op.candidate,
            lease_id: op.lease_id,
            lease_ttl_ms: op.lease_ttl_ms,
            wait_timeout_ms: op.wait_timeout_ms,
            max_hold_ms: op.max_hold_ms,
            fencing: op.fencing,
            labels: &op.labels,
        };
        self.ask(&request, &ask)
    }

    /// A candidate waits once: its new campaign takes the place of its earlier one (that of a process that died, say).
    pub(super) fn replaced_wait(&self, namespace: u32, ask: &Ask) -> Option<ObjectId> {
        match ask.face.family() {
            Family::Election if !planted::has(Planted::ReplacedCampaignWaits) => {
                self.waiting_candidate(namespace, &ask.resources[0], ask.owner)
            }
            _ => None,
        }
    }

    /// The wait of a candidate whose own deadline is not due.
    fn waiting_candidate(
        &self,
        namespace: u32,
        election: &crate::names::ResourceName,
        candidate: &Owner,
    ) -> Option<ObjectId> {
        let resources = &self.namespaces[namespace as usize].space(Family::Election).resources;
        let queue = &resources.get(election)?.queue;
        let is_it = |id: &&ObjectId| {
            let claim = &self.claims[*id];
            claim.owner == *candidate && claim.deadline > self.time
        };
        queue.iter().find(is_it).copied()
    }

    fn proclaim(&mut self, caller: &Caller, op: &Proclaim) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Election, &op.request_id, op);
        let known = self.recall(&request);
        self.touch_lease(&op.lease);
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let done = |version: Token| Done::Proclaimed { version: version.0 };
            return self.replay(known, done, |state, _, code| state.write_again(code, op));
        }
        let result = self.proclaim_anew(caller, &request, op);
        self.conclude(&request, result)
    }

    fn proclaim_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &Proclaim,
    ) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        let (id, index) = self.find_holding(namespace, Family::Election, &op.lease)?;
        let current = self.version_of(id);
        if op.version.is_some_and(|version| version != current.0) {
            let detail = Detail::Version { current: current.0 };
            return Err(Refusal::new(Code::VersionConflict).with(detail).into());
        }
        let now = self.revision;
        let claim = self.claims.get_mut(&id).expect("its place was just found");
        let Face::Candidate { value, version } = &mut claim.face else {
            unreachable!("an election is held by a candidate")
        };
        (*value, *version) = (op.value.clone(), now);
        let (term, owner) = (claim.holdings[index].token, claim.owner.clone());
        self.remember_done(request, Token(now.0));
        let subject = (&op.lease.resource, &owner, op.lease.lease_id.public_hash());
        let kind = EventKind::Proclaimed { term, version: now.0 };
        self.event(caller, namespace, Family::Election, Some(subject), kind);
        Ok(Done::Proclaimed { version: now.0 })
    }

    /// A refused proclaim once more, with the version of now.
    fn write_again(&self, code: Code, op: &Proclaim) -> Refusal {
        let refusal = Refusal::new(code);
        let namespace = self.namespace_id(&op.namespace);
        let found = namespace.map(|of| self.find_holding(of, Family::Election, &op.lease));
        match (code, found) {
            (Code::VersionConflict, Some(Ok((id, _)))) => {
                refusal.with(Detail::Version { current: self.version_of(id).0 })
            }
            (Code::LeaseEnded, Some(Err(ended))) if ended.code == code => ended,
            _ => refusal,
        }
    }

    fn version_of(&self, id: ObjectId) -> Revision {
        match &self.claims[&id].face {
            Face::Candidate { version, .. } => *version,
            _ => unreachable!("an election is held by a candidate"),
        }
    }

    fn hand_off(&mut self, caller: &Caller, op: &Handoff) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Election, &op.request_id, op);
        let known = self.recall(&request);
        self.touch_lease(&op.lease);
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let done = |term| Done::HandedOff { term };
            return self.replay(known, done, |state, _, code| {
                let namespace = state.namespace_id(&op.namespace);
                let found = namespace.map(|of| state.find_holding(of, Family::Election, &op.lease));
                match (code, found) {
                    (Code::NotFound, Some(_)) => missing_candidate(),
                    (Code::LeaseEnded, Some(Err(ended))) if ended.code == code => ended,
                    _ => Refusal::new(code),
                }
            });
        }
        let result = self.hand_off_anew(caller, &request, op);
        self.conclude(&request, result)
    }

    fn hand_off_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &Handoff,
    ) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        let election = &op.lease.resource;
        let found = self.find_holding(namespace, Family::Election, &op.lease);
        let planted = Planted::HandOffOfAnother;
        let (id, index) =
            self.or_anothers(planted, namespace, Family::Election, election, found)?;
        let heir = self.waiting_candidate(namespace, election, &op.to);
        let heir = heir.ok_or_else(missing_candidate)?;
        let by = Some((caller, None));
        self.end_without_heir(id, index, End::HandedOff, self.time, by);
        let of = &mut self.namespaces[namespace as usize];
        let resources = &mut of.space_mut(Family::Election).resources;
        resources.get_mut(election).expect("what is waited for is known").leave(heir);
        of.waiters -= 1;
        self.grant_waiter(heir);
        let term = self.claims[&heir].holdings[0].token;
        self.remember_done(request, term);
        Ok(Done::HandedOff { term })
    }
}

fn missing_candidate() -> Refusal {
    Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Candidate))
}

impl Content for Campaign {
    fn fingerprint(&self) -> Fingerprint {
        let terms = (&self.lease_ttl_ms, self.max_hold_ms, self.fencing, &self.labels);
        let what = (&self.election, &self.candidate, &self.value);
        encode(|buffer| (5_u8, what, terms).serialize(buffer))
    }
}

impl Content for Proclaim {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (6_u8, &self.lease, &self.value, self.version).serialize(buffer))
    }
}

impl Content for Handoff {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (7_u8, &self.lease, &self.to).serialize(buffer))
    }
}
