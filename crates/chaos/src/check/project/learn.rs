//! What answers tell of leases: their tokens, until when they last, and the writes that end them.

use super::{Projection, write_id};
use crate::{
    check::leased::Act,
    history::{Call, Family, Heard, LeaseOf, Op},
};
use sereno_api::ErrorCode;

/// Request, owner and TTL of what asks for a lease that is known by its request.
fn asked(op: &Op) -> Option<(&str, &str, u64)> {
    match op {
        Op::Acquire { request, ttl_ms, .. } | Op::Claim { request, ttl_ms, .. } => {
            Some((request, request, *ttl_ms))
        }
        Op::Campaign { request, candidate, ttl_ms, .. } => Some((request, candidate, *ttl_ms)),
        _ => None,
    }
}

impl<'a> Projection<'a> {
    pub(super) fn learn_request(&mut self, call: &'a Call) {
        if let Some(request) = write_id(&call.op) {
            self.sent.entry(request).or_insert(call.start);
        }
        if let Op::Hold { owner, .. } = &call.op {
            self.wanted.entry(owner).or_insert(call.start);
        }
        if let Some((request, owner, ttl_ms)) = asked(&call.op)
            && !self.numbers.contains_key(request)
        {
            let number = self.new_lease(request, owner, call.start);
            // Whenever it is granted, it lasts from then on.
            self.is_promised(number, call, Some(ttl_ms));
        }
    }

    /// What its owner is told of a lease.
    pub(super) fn learn_grant(&mut self, call: &'a Call) {
        if self.family == Family::Hold {
            return self.learn_hold(call);
        }
        let heard = &call.heard;
        match (&call.op, heard) {
            (Op::Renew(lease), Heard::Renewed(renewed)) => {
                if let Some(number) = self.of_request(&lease.request) {
                    self.has_token(number, renewed.fencing_token);
                    self.is_promised(number, call, heard.expires_in_ms());
                }
            }
            (Op::RenewMany { leases }, Heard::RenewedMany(many)) => {
                for (lease, result) in leases.iter().zip(&many.results).filter(|(_, it)| it.ok) {
                    if let Some(number) = self.of_request(&lease.request) {
                        self.is_promised(number, call, result.expires_in_ms);
                    }
                }
            }
            (op, _) => {
                let number = asked(op).and_then(|(request, ..)| self.of_request(request));
                number.into_iter().for_each(|number| self.learn_asked(number, call));
            }
        }
    }

    fn learn_asked(&mut self, number: u32, call: &Call) {
        let heard = &call.heard;
        if let Some((_, token)) = heard.tokens().first() {
            self.has_token(number, *token);
            self.is_told(number, call);
            self.is_promised(number, call, heard.expires_in_ms());
        }
        if let Heard::Problem(problem) = heard
            && problem.code == ErrorCode::LeaseEnded
        {
            self.is_told(number, call);
            problem.fencing_token.into_iter().for_each(|token| self.has_token(number, token));
        }
    }

    /// What others see of a lease.
    pub(super) fn learn_holder(&mut self, call: &Call) {
        let Some(holder) = call.heard.holder(self.name) else { return };
        match self.family {
            Family::Hold => self.learn_fence(holder),
            _ => {
                if let Some(number) = self.of_holder(holder) {
                    self.has_token(number, holder.1);
                }
            }
        }
    }

    /// Writes that end a lease, and are decided once over all their attempts.
    pub(super) fn learn_write(&mut self, call: &'a Call) {
        let Some(request) = write_id(&call.op) else { return };
        match (&call.op, &call.heard) {
            (Op::Handoff { lease, to, .. }, heard) => {
                let done = matches!(heard, Heard::HandedOff(_));
                self.ends(request, lease, Act::End, call, done);
                if let Heard::HandedOff(handed) = heard {
                    self.succeeds(to, handed.term, call);
                }
            }
            // Accepted after the end of the lease too.
            (Op::Finish { lease, .. }, heard) => {
                let done = matches!(heard, Heard::Finished(_));
                self.ends(request, lease, Act::Gone, call, done);
            }
            (Op::Force { token, .. }, heard) => {
                if let Some(number) = self.by_token.get(token).copied() {
                    let done = matches!(heard, Heard::Forced(_));
                    self.add_write(request, Act::End(number), call, done);
                }
            }
            (Op::ReleaseHold(hold), _) => self.learn_release(request, hold, call),
            (Op::Hold { owner, replaces, .. }, _) => {
                self.learn_replaced(request, owner, replaces, call);
            }
            _ => {}
        }
    }

    fn ends(
        &mut self,
        request: &'a str,
        lease: &LeaseOf,
        act: fn(u32) -> Act,
        call: &Call,
        done: bool,
    ) {
        if let Some(number) = self.of_request(&lease.request) {
            self.add_write(request, act(number), call, done);
        }
    }

    /// The heir of a hand-off leads by this term since before the answer.
    fn succeeds(&mut self, candidate: &str, term: u64, call: &Call) {
        match self.of_holder((candidate, term)) {
            Some(number) => {
                self.has_token(number, term);
                self.is_told(number, call);
            }
            None if self.by_token.contains_key(&term) || !self.by_owner.contains_key(candidate) => {
                let message = format!("{call:?}: {term} is no term of {candidate}");
                self.contradictions.push(message);
            }
            None => {}
        }
    }
}
