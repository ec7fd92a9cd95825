//! The commands about locks that were asked for before (DESIGN.md section 8): renewals, releases, abandons, forced
//! releases, and the end of deserted waits. Each decides, and leaves the doing to `lifecycle`.

use super::{
    State,
    memory::{Fate, RecordId},
    request::{No, Request, lease_ended},
};
use crate::{
    command::{Abandon, EndDeserted, Family, ForceRelease, LeaseRef, Release, Renew, RenewMany},
    event::EventKind,
    ids::{LeaseId, ObjectId},
    limits,
    names::{Caller, Invalid, NamespaceName, ResourceName},
    outcome::{
        AbandonedWas, Code, Detail, Done, End, NotReleased, Outcome, Refusal, Renewed, WaitEnd,
    },
    planted::{self, Planted},
    policy::within,
};

impl State {
    pub(super) fn renew(&mut self, caller: &Caller, family: Family, op: &Renew) -> Outcome {
        self.touch_lease(&op.lease);
        self.next_revision();
        let result = self.renew_one(caller, family, &op.namespace, &op.lease, op.lease_ttl_ms);
        self.decided(None, result.map(Done::Renewed))
    }

    pub(super) fn renew_many(&mut self, caller: &Caller, op: &RenewMany) -> Outcome {
        op.leases.iter().for_each(|lease| self.touch_lease(lease));
        self.next_revision();
        let count = op.leases.len() as u64;
        if let Err(invalid) = within("leases", count, 1..=limits::RENEW_MANY_LEASES_MAX as u64) {
            return self.decided(None, Err(invalid.into()));
        }
        let (of, ttl_ms) = (&op.namespace, op.lease_ttl_ms);
        let renew = |lease| self.renew_one(caller, Family::Lock, of, lease, ttl_ms);
        let results = op.leases.iter().map(renew).collect();
        self.decided(None, Ok(Done::RenewedMany(results)))
    }

    pub(super) fn touch_lease(&mut self, lease: &LeaseRef) {
        if let Some(Fate::Live(claim)) = self.fate_of(lease.lease_id) {
            self.touch_claim(claim);
        }
    }

    fn fate_of(&self, lease_id: LeaseId) -> Option<Fate> {
        self.memory.find_lease(lease_id).map(|record| self.memory.get(record).fate)
    }

    fn renew_one(
        &mut self,
        caller: &Caller,
        family: Family,
        namespace: &NamespaceName,
        lease: &LeaseRef,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let not_found = || Refusal::new(Code::NotFound);
        let namespace = self.namespace_id(namespace).ok_or_else(not_found)?;
        let found = self.find_holding(namespace, family, lease);
        let planted = Planted::RenewalOfAnother;
        let (id, index) = self.or_anothers(planted, namespace, family, &lease.resource, found)?;
        let check = |ttl_ms| self.check_ttl(namespace, "leaseTtl", ttl_ms);
        let ttl_ms = ttl_ms.map(check).transpose()?;
        self.extend(caller, id, index, ttl_ms)
    }

    /// Moves the deadline of a live lease forward, by the TTL last granted or this one.
    ///
    /// # Errors
    /// `MAX_HOLD_REACHED` when its bound leaves nothing to add.
    pub(super) fn extend(
        &mut self,
        caller: &Caller,
        id: ObjectId,
        index: usize,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let (now, revision) = (self.time, self.revision);

        let claim = self.claims.get_mut(&id).expect("its place was just found");
        let ttl_ms = ttl_ms.unwrap_or(claim.ttl_ms);
        let token = claim.holdings[index].token;
        let held = claim.held.as_mut().expect("a holding is held");
        let wanted = now.plus(ttl_ms);
        let allowed = held.final_deadline.map_or(wanted, |end| end.min(wanted));
        claim.asked_at = revision;
        if held.final_deadline == Some(claim.deadline) {
            let detail = Detail::FinalDeadline { in_ms: now.until(claim.deadline), token };
            let code = Code::MaxHoldReached;
            let (owner, family, namespace) = (claim.owner.clone(), claim.family(), claim.namespace);
            let (resource, lease_hash) =
                (claim.holdings[index].resource.clone(), claim.lease_id.public_hash());
            let subject = (&resource, &owner, lease_hash);
            self.event(caller, namespace, family, Some(subject), EventKind::Refused { code });
            return Err(Refusal::new(code).with(detail));
        }
        held.renewed_at = now;
        claim.ttl_ms = ttl_ms;
        // Never nearer than it was: the owner may rely on every answer it has had (S8).
        let deadline = allowed.max(claim.deadline);
        assert!(self.deadlines.remove(&(claim.deadline, id)), "every claim has its deadline");
        self.deadlines.insert((deadline, id));
        claim.deadline = deadline;
        Ok(Renewed {
            token,
            expires_in_ms: now.until(deadline),
            final_deadline_in_ms: claim.final_deadline_in_ms(now),
            clipped: allowed < wanted,
        })
    }

    /// The live holding that `lease` names.
    ///
    /// # Errors
    /// `LEASE_ENDED` for one that has ended, `NOT_HOLDER` for one never heard of, or of another resource.
    pub(super) fn find_holding(
        &self,
        namespace: u32,
        family: Family,
        lease: &LeaseRef,
    ) -> Result<(ObjectId, usize), Refusal> {
        let stranger = || Refusal::new(Code::NotHolder);
        let record = self.memory.find_lease(lease.lease_id).ok_or_else(stranger)?;
        let record = self.memory.get(record);
        if record.namespace != namespace {
            return Err(stranger());
        }
        match record.fate {
            Fate::Live(id) => {
                let claim = &self.claims[&id];
                let (index, holding) = claim
                    .holding(&lease.resource)
                    .filter(|_| claim.held.is_some() && claim.family() == family)
                    .ok_or_else(stranger)?;
                match holding.ended {
                    Some(end) => Err(lease_ended(end, holding.token)),
                    None => Ok((id, index)),
                }
            }
            _ => match record.ended(&lease.resource) {
                Some((end, token)) => Err(lease_ended(end, token)),
                None => Err(stranger()),
            },
        }
    }

    pub(super) fn release(&mut self, caller: &Caller, family: Family, op: &Release) -> Outcome {
        self.touch_lease(&op.lease);
        self.next_revision();
        let Some(namespace) = self.namespace_id(&op.namespace) else {
            return self.decided(None, Err(Refusal::new(Code::NotFound)));
        };
        let found = self.find_holding(namespace, family, &op.lease);
        let (planted, resource) = (Planted::ReleaseOfAnother, &op.lease.resource);
        let found = self.or_anothers(planted, namespace, family, resource, found);
        let already = match found {
            Ok((id, index)) => {
                self.end_holding(id, index, End::Released, self.time, Some((caller, None)));
                None
            }
            Err(Refusal { detail: Detail::Ended { end, .. }, .. }) => Some(NotReleased::Ended(end)),
            Err(_) => Some(NotReleased::Unknown),
        };
        self.decided(None, Ok(Done::Released { already }))
    }

    pub(super) fn abandon(&mut self, caller: &Caller, op: &Abandon) -> Outcome {
        if op.family == Family::Admin {
            self.next_revision();
            let invalid = Invalid::new("family", "operators' writes are decided at once, and stay");
            return self.decided(None, Err(invalid.into()));
        }
        let known = self.recall_by_id(caller, &op.namespace, op.family, &op.request_id);
        self.next_revision();
        let was = match known {
            Some(record) => self.abandon_known(record),
            None => self
                .forbid(caller, &op.namespace, op.family, &op.request_id)
                .map(|()| AbandonedWas::Unseen),
        };
        self.decided(None, was.map(|was| Done::Abandoned { was }))
    }

    fn abandon_known(&mut self, record: RecordId) -> Result<AbandonedWas, Refusal> {
        Ok(match self.memory.get(record).fate {
            Fate::Live(id) if self.quotas.has(id) => self.abandon_reservation(id)?,
            Fate::Live(_) if self.is_repeat(record) => AbandonedWas::Done,
            Fate::Live(id) if self.claims[&id].held.is_some() => {
                self.end_lease(id, End::Abandoned, self.time);
                AbandonedWas::Granted
            }
            Fate::Live(id) => {
                self.end_wait(id, None);
                AbandonedWas::Waiting
            }
            Fate::Ended(end) => AbandonedWas::Ended(end),
            Fate::Refused(code) => AbandonedWas::Refused(code),
            Fate::TooManyWaiters => AbandonedWas::Refused(Code::LimitReached),
            Fate::WaitEnded(_) => AbandonedWas::Refused(Code::WaitTimeout),
            Fate::Forbidden => AbandonedWas::Refused(Code::Abandoned),
            Fate::Done | Fate::RunFinished { .. } => AbandonedWas::Done,
        })
    }

    pub(super) fn force_release(
        &mut self,
        caller: &Caller,
        family: Family,
        op: &ForceRelease,
    ) -> Outcome {
        self.force_release_at(caller, family, op, &op.resource)
    }

    /// The same where what is named is leased by another name (an overlapping run).
    pub(super) fn force_release_at(
        &mut self,
        caller: &Caller,
        family: Family,
        op: &ForceRelease,
        resource: &ResourceName,
    ) -> Outcome {
        let content = (family, op);
        let request = self.request(caller, &op.namespace, Family::Admin, &op.request_id, &content);
        let known = self.recall(&request);
        if let Some(namespace) = request.namespace {
            self.touch_resource(namespace, family, resource);
        }
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let done = |token| Done::ForceReleased { token };
            return self.replay(known, done, |_, _, code| Refusal::new(code));
        }
        let result = self.force_release_anew(caller, family, &request, op, resource);
        self.conclude(&request, result)
    }

    fn force_release_anew(
        &mut self,
        caller: &Caller,
        family: Family,
        request: &Request,
        op: &ForceRelease,
        name: &ResourceName,
    ) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        let resources = &self.namespaces[namespace as usize].space(family).resources;
        let holder = resources.get(name).and_then(|resource| resource.holder);
        let holding = holder.and_then(|id| {
            let (index, holding) = self.claims[&id].holding(name)?;
            let is_it = holding.token == op.token || planted::has(Planted::ForceReleaseOfAnother);
            is_it.then_some((id, index))
        });
        let (id, index) = holding.ok_or_else(|| Refusal::new(Code::NotHolder))?;
        self.end_holding(id, index, End::Forced, self.time, Some((caller, Some(&op.reason))));
        self.remember_done(request, op.token);
        Ok(Done::ForceReleased { token: op.token })
    }

    pub(super) fn end_deserted(&mut self, op: &EndDeserted) -> Outcome {
        self.touch_claim(op.claim);
        self.next_revision();
        let ended = match self.claims.get(&op.claim) {
            Some(claim) if claim.asked_at <= op.asked_at => match claim.held {
                None => {
                    self.end_wait(op.claim, Some(WaitEnd::Deserted));
                    true
                }
                // Whoever was granted at once has its answer, or can ask for it: only hand-overs are taken back.
                Some(held) if held.waited => {
                    self.end_lease(op.claim, End::Abandoned, self.time);
                    true
                }
                Some(_) => false,
            },
            Some(_) => false,
            None => self.end_deserted_reservation(op),
        };
        self.decided(None, Ok(Done::DesertedEnded(ended)))
    }
}
