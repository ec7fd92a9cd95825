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
    names::{Caller, Invalid, NamespaceName},
    outcome::{
        AbandonedWas, Code, Detail, Done, End, NotReleased, Outcome, Refusal, Renewed, WaitEnd,
    },
    planted::{self, Planted},
    policy::within,
};

impl State {
    pub(super) fn renew(&mut self, caller: &Caller, op: &Renew) -> Outcome {
        self.touch_lease(&op.lease);
        self.next_revision();
        let result = self.renew_one(caller, &op.namespace, &op.lease, op.lease_ttl_ms);
        self.decided(None, result.map(Done::Renewed))
    }

    pub(super) fn renew_many(&mut self, caller: &Caller, op: &RenewMany) -> Outcome {
        op.leases.iter().for_each(|lease| self.touch_lease(lease));
        self.next_revision();
        let count = op.leases.len() as u64;
        if let Err(invalid) = within("leases", count, 1..=limits::RENEW_MANY_LEASES_MAX as u64) {
            return self.decided(None, Err(invalid.into()));
        }
        let renew = |lease| self.renew_one(caller, &op.namespace, lease, op.lease_ttl_ms);
        let results = op.leases.iter().map(renew).collect();
        self.decided(None, Ok(Done::RenewedMany(results)))
    }

    fn touch_lease(&mut self, lease: &LeaseRef) {
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
        namespace: &NamespaceName,
        lease: &LeaseRef,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Refusal> {
        let not_found = || Refusal::new(Code::NotFound);
        let namespace = self.namespace_id(namespace).ok_or_else(not_found)?;
        let found = self.find_holding(namespace, lease);
        let (id, index) =
            self.or_anothers(Planted::RenewalOfAnother, namespace, &lease.resource, found)?;
        let ttl_ms = ttl_ms.map(|ttl_ms| self.check_ttl(namespace, ttl_ms)).transpose()?;
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
            let (code, owner) = (Code::MaxHoldReached, claim.owner.clone());
            let subject = (&lease.resource, &owner, lease.lease_id.public_hash());
            self.event(caller, namespace, Some(subject), EventKind::Refused { code });
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
    fn find_holding(&self, namespace: u32, lease: &LeaseRef) -> Result<(ObjectId, usize), Refusal> {
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
                    .filter(|_| claim.held.is_some())
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

    pub(super) fn release(&mut self, caller: &Caller, op: &Release) -> Outcome {
        self.touch_lease(&op.lease);
        self.next_revision();
        let Some(namespace) = self.namespace_id(&op.namespace) else {
            return self.decided(None, Err(Refusal::new(Code::NotFound)));
        };
        let found = self.find_holding(namespace, &op.lease);
        let resource = &op.lease.resource;
        let found = self.or_anothers(Planted::ReleaseOfAnother, namespace, resource, found);
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
        if op.family != Family::Lock {
            self.next_revision();
            let invalid = Invalid::new("family", "operators' writes are decided at once, and stay");
            return self.decided(None, Err(invalid.into()));
        }
        let known = self.recall_by_id(caller, &op.namespace, op.family, &op.request_id);
        self.next_revision();
        let was = match known {
            Some(record) => Ok(self.abandon_known(record)),
            None => self
                .forbid(caller, &op.namespace, op.family, &op.request_id)
                .map(|()| AbandonedWas::Unseen),
        };
        self.decided(None, was.map(|was| Done::Abandoned { was }))
    }

    fn abandon_known(&mut self, record: RecordId) -> AbandonedWas {
        match self.memory.get(record).fate {
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
            Fate::Done => unreachable!("operators' writes are another family"),
        }
    }

    pub(super) fn force_release(&mut self, caller: &Caller, op: &ForceRelease) -> Outcome {
        let request = self.request(caller, &op.namespace, Family::Admin, &op.request_id, op);
        let known = self.recall(&request);
        if let Some(namespace) = request.namespace {
            self.touch_resource(namespace, &op.resource);
        }
        self.next_revision();
        if let Some(known) = known {
            if !self.is_same_content(known, &request) {
                return self.reused();
            }
            let done = |token| Done::ForceReleased { token };
            return self.replay(known, done, |_, _, code| Refusal::new(code));
        }
        let result = self.force_release_anew(caller, &request, op);
        self.conclude(&request, result)
    }

    fn force_release_anew(
        &mut self,
        caller: &Caller,
        request: &Request,
        op: &ForceRelease,
    ) -> Result<Done, No> {
        let namespace = self.admit(request)?;
        let resources = &self.namespaces[namespace as usize].resources;
        let holder = resources.get(&op.resource).and_then(|resource| resource.holder);
        let holding = holder.and_then(|id| {
            let (index, holding) = self.claims[&id].holding(&op.resource)?;
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
            _ => false,
        };
        self.decided(None, Ok(Done::DesertedEnded(ended)))
    }
}
