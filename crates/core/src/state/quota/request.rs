//! Writes of quotas: each is decided once, and remembered with its answer (S6).

use super::{FAMILY, State};
use crate::{
    command::{Adjustment, QuotaCommand, ReservationRef, Reserve},
    ids::{ObjectId, Token},
    names::{Caller, Invalid},
    outcome::{Code, Detail, Done, End, Missing, Outcome, QuotaDone, Refusal, Reserved},
    state::{
        memory::{Content, Fate, Fingerprint, RecordId, encode},
        request::{No, Request},
    },
};
use borsh::BorshSerialize as _;

/// What a reservation's name has come to.
pub(super) enum Found {
    /// It holds.
    It(ObjectId),
    /// It has expired, and may be committed late.
    Late(ObjectId),
    /// It has ended, or holds what only an operator ends.
    Over(Refusal),
}

impl State {
    /// Any write but a reserve. `of`: the reservation that it is about, which is ended first if it is due.
    pub(super) fn quota_write(
        &mut self,
        caller: &Caller,
        op: &QuotaCommand,
        of: Option<&ReservationRef>,
        write: impl FnOnce(&mut Self, u32) -> Result<QuotaDone, No>,
    ) -> Outcome {
        let request = self.request(caller, op.namespace(), FAMILY, op.request_id(), op);
        let known = self.recall(&request);
        let named = of.and_then(|of| self.quotas.by_name.get(&of.reservation).copied());
        if let Some(id) = named {
            self.touch_claim(id);
        }
        self.next_revision();
        if let Some(known) = known {
            return self.quota_write_again(known, &request, op);
        }
        let result = self.admit(&request).and_then(|namespace| {
            let done = write(self, namespace)?;
            self.remember_done(&request, Token(0));
            self.quotas.answers.insert(request.id(), done.clone());
            Ok(Done::Quota(done))
        });
        self.conclude(&request, result)
    }

    fn quota_write_again(
        &mut self,
        known: RecordId,
        request: &Request,
        op: &QuotaCommand,
    ) -> Outcome {
        if !self.is_same_content(known, request) {
            return self.reused();
        }
        let key = self.memory.get(known).request;
        let answer = self.quotas.answers.get(&key).cloned().map(|done| self.as_of_now(done));
        let done = |_| Done::Quota(answer.expect("a write that was done has its answer"));
        self.replay(known, done, |state, _, code| state.refused_again(request, op, code))
    }

    /// The same refusal once more, with the figures of now.
    fn refused_again(&self, request: &Request, op: &QuotaCommand, code: Code) -> Refusal {
        let of = match op {
            QuotaCommand::Begin(op) => &op.of,
            QuotaCommand::Commit(op) => &op.of,
            QuotaCommand::Release(op) => &op.of,
            QuotaCommand::Extend(op) => &op.of,
            QuotaCommand::Resize(op) => &op.of,
            QuotaCommand::Settle(op) => &op.of,
            _ => return Refusal::new(code),
        };
        let Some(namespace) = request.namespace.filter(|_| code == Code::ReservationEnded) else {
            return Refusal::new(code);
        };
        match self.find_reservation(namespace, of) {
            Ok(Found::Over(refusal)) => refusal,
            _ => Refusal::new(code),
        }
    }

    /// An answer with the figures of now.
    fn as_of_now(&self, done: QuotaDone) -> QuotaDone {
        let QuotaDone::Reserved(then) = done else { return done };
        match self.quotas.reservations.get(&then.claim) {
            Some(_) => {
                QuotaDone::Reserved(Reserved { clipped: then.clipped, ..self.reserved(then.claim) })
            }
            None => QuotaDone::Reserved(Reserved { expires_in_ms: 0, ..then }),
        }
    }

    /// The reservation that a write names.
    ///
    /// # Errors
    /// `NotHolder` for another fence, `NotFound` for one that is not known, or no more.
    pub(super) fn find_reservation(
        &self,
        namespace: u32,
        of: &ReservationRef,
    ) -> Result<Found, Refusal> {
        let missing = || Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Reservation));
        let Some(&id) = self.quotas.by_name.get(&of.reservation) else {
            return self.find_ended(namespace, of).ok_or_else(missing);
        };
        let (home, fence) = match self.quotas.late.get(&id) {
            Some(late) => (late.namespace, late.fence),
            None => (self.reservation(id).namespace, self.reservation(id).fence),
        };
        if home != namespace {
            return Err(missing());
        }
        if of.fence.is_some_and(|named| named != fence) {
            return Err(Refusal::new(Code::NotHolder));
        }
        Ok(match self.quotas.late.get(&id) {
            Some(late) if late.until <= self.time => Found::Over(ended(End::Expired, fence)),
            Some(_) => Found::Late(id),
            None => Found::It(id),
        })
    }

    fn find_ended(&self, namespace: u32, of: &ReservationRef) -> Option<Found> {
        let lease_id = super::reserve::lease_of(of.reservation);
        let record = self.memory.get(self.memory.find_lease(lease_id)?);
        if record.namespace != namespace || of.fence.is_some_and(|fence| fence != record.token) {
            return None;
        }
        match record.fate {
            Fate::Ended(end) => Some(Found::Over(ended(end, record.token))),
            _ => None,
        }
    }

    /// The reservation that a write names, if it can still be changed by its owner.
    ///
    /// # Errors
    /// As [`Self::find_reservation`]; `ReservationEnded` if it has ended, or waits for an operator.
    pub(super) fn live_reservation(
        &self,
        namespace: u32,
        of: &ReservationRef,
    ) -> Result<ObjectId, Refusal> {
        match self.find_reservation(namespace, of)? {
            Found::Over(refusal) => Err(refusal),
            Found::Late(id) => Err(ended(End::Expired, self.quotas.late[&id].fence)),
            Found::It(id) => {
                let it = self.reservation(id);
                match it.phase {
                    super::Phase::Quarantined => Err(quarantined(it.fence)),
                    super::Phase::Waiting => {
                        let rule = "waits still: it has nothing reserved";
                        Err(Invalid::new("reservationId", rule).into())
                    }
                    super::Phase::Reserved | super::Phase::InFlight => Ok(id),
                }
            }
        }
    }
}

/// The answer about a reservation that is over.
pub(super) fn ended(end: End, token: Token) -> Refusal {
    Refusal::new(Code::ReservationEnded).with(Detail::Ended { end, token })
}

pub(super) fn quarantined(fence: Token) -> Refusal {
    Refusal::new(Code::ReservationEnded).with(Detail::Quarantined { fence })
}

impl Content for Reserve {
    fn fingerprint(&self) -> Fingerprint {
        let terms =
            (self.ttl_ms, self.max_lifetime_ms, self.on_expiry, self.priority, &self.labels);
        encode(|buffer| (22_u8, &self.owner, &self.items, terms).serialize(buffer))
    }
}

impl Content for QuotaCommand {
    /// Everything but the request's own id, what the node has drawn, and how long it may wait.
    fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::PutLimit(op) => {
                let what = (&op.node, &op.limits, op.expected_version, op.refuse_debt);
                encode(|buffer| (20_u8, what).serialize(buffer))
            }
            Self::RemoveNode(op) => {
                encode(|buffer| (21_u8, &op.node, op.expected_version).serialize(buffer))
            }
            Self::Reserve(op) => op.fingerprint(),
            Self::Begin(op) => {
                let what = (op.in_flight_ttl_ms, op.on_expiry);
                encode(|buffer| (23_u8, named(&op.of), what).serialize(buffer))
            }
            Self::Commit(op) => {
                let what = (&op.items, op.is_final, op.late);
                encode(|buffer| (24_u8, named(&op.of), what).serialize(buffer))
            }
            Self::Release(op) => encode(|buffer| (25_u8, named(&op.of)).serialize(buffer)),
            Self::Extend(op) => {
                encode(|buffer| (26_u8, named(&op.of), op.ttl_ms).serialize(buffer))
            }
            Self::Resize(op) => {
                encode(|buffer| (27_u8, named(&op.of), &op.items).serialize(buffer))
            }
            Self::Return(op) => {
                let what = (op.commit, &op.node, &op.owner, op.amount);
                encode(|buffer| (28_u8, what).serialize(buffer))
            }
            Self::Settle(op) => {
                let what = (op.settlement, &op.reason);
                encode(|buffer| (29_u8, named(&op.of), what).serialize(buffer))
            }
            Self::ReportUsage(op) => {
                let what = (op.observed, op.as_of, op.committed_then, op.read_at);
                encode(|buffer| (30_u8, &op.node, &op.reporter, op.epoch, what).serialize(buffer))
            }
            Self::Reconcile(op) => {
                let what = (op.epoch, op.dry_run, op.at_once);
                encode(|buffer| (31_u8, &op.node, &op.reporter, what).serialize(buffer))
            }
            Self::Adjust(op) => {
                let change: Adjustment = op.change;
                let what = (&op.node, &op.owner, change, &op.reason);
                encode(|buffer| (32_u8, what).serialize(buffer))
            }
            Self::ShareGrant(op) => {
                let what = (&op.node, &op.region, op.amount, op.overdraft_cap);
                encode(|buffer| (33_u8, what).serialize(buffer))
            }
            Self::ShareReturn(op) => {
                encode(|buffer| (34_u8, op.share, op.returned, op.spent).serialize(buffer))
            }
            Self::ShareReclaim(op) => {
                encode(|buffer| (35_u8, op.share, &op.reason).serialize(buffer))
            }
        }
    }
}

fn named(of: &ReservationRef) -> (crate::ids::ReservationId, Option<Token>) {
    (of.reservation, of.fence)
}
