//! The reference's requests: found again, or new; admitted, remembered, answered once more.

use super::{
    lifecycle::is_business,
    reference::{At, Claim, Limit, Reference, Request, Stage},
};
use sereno_core::{
    command::{Family, Operation},
    ids::LeaseId,
    names::{Caller, Invalid, NamespaceName, RequestId, ResourceName},
    outcome::{Code, Detail, Done, Outcome, Refusal},
};

pub(super) type Scope = (NamespaceName, Caller, Family, RequestId);

/// Which field, and in which words, is not the reference's business.
pub(super) fn invalid() -> Refusal {
    Invalid::new("", "").into()
}

/// Refused for good, or only for now.
pub(super) enum No {
    ForGood(Refusal, Limit),
    ForNow(Refusal),
}

pub(super) fn for_good(refusal: Refusal) -> No {
    No::ForGood(refusal, Limit::Neither)
}

impl Reference {
    pub(super) fn admit(&self, space: Option<usize>) -> Result<usize, No> {
        let of = space.unwrap_or(0);
        let records = self.requests.iter().filter(|request| request.counted_in == of).count();
        let max = self.spaces[of].policy.reply_records;
        if records as u64 >= max {
            let limit = "replyMemory.records".into();
            let detail = Detail::Limit { limit, max, sweep_pending: false };
            let refusal = Refusal::new(Code::Overloaded).with(detail).retry_after(1_000);
            return Err(No::ForNow(refusal));
        }
        space.ok_or_else(|| for_good(Refusal::new(Code::NotFound)))
    }

    /// Whether a new request may ask for a lease at all.
    pub(super) fn admit_lease(&self, space: Option<usize>, lease_id: LeaseId) -> Result<usize, No> {
        let space = self.admit(space)?;
        let has_it = |claim: &Claim| claim.lease_id == lease_id;
        if self.requests.iter().any(|request| request.claim.as_ref().is_some_and(has_it)) {
            return Err(No::ForNow(invalid()));
        }
        if self.is_paused() {
            let left = self.paused_until - self.time;
            let refusal = Refusal::new(Code::Unavailable).with(Detail::Paused).retry_after(left);
            return Err(No::ForNow(refusal));
        }
        Ok(space)
    }

    pub(super) fn remember(
        &mut self,
        scope: Scope,
        space: Option<usize>,
        content: Option<Operation>,
        stage: Stage,
        forget_at: Option<u64>,
    ) {
        let (counted_in, answered) = (space.unwrap_or(0), self.revision);
        let claim = None;
        self.requests.push(Request {
            scope,
            content,
            counted_in,
            answered,
            stage,
            forget_at,
            claim,
        });
    }

    /// A write that is done at once.
    pub(super) fn wrote(
        &mut self,
        scope: &Scope,
        space: usize,
        content: &Operation,
        done: Done,
    ) -> Done {
        let forget_at = Some(self.time + self.spaces[space].policy.reply_endings_ms);
        let stage = Stage::Done(done.clone());
        self.remember(scope.clone(), Some(space), Some(content.clone()), stage, forget_at);
        done
    }

    pub(super) fn conclude(
        &mut self,
        scope: Scope,
        space: Option<usize>,
        content: Operation,
        result: Result<Done, No>,
    ) -> Outcome {
        let refusal = match result {
            Ok(done) => return self.answer(None, Ok(done)),
            Err(No::ForNow(refusal)) => refusal,
            Err(No::ForGood(refusal, limit)) => {
                let forget_at = Some(self.time + self.refusals_ms(space, scope.2));
                let stage = Stage::Refused(refusal.code, limit);
                self.remember(scope, space, Some(content), stage, forget_at);
                refusal
            }
        };
        self.answer(None, Err(refusal))
    }

    /// For how long a refusal is remembered.
    pub(super) fn refusals_ms(&self, space: Option<usize>, family: Family) -> u64 {
        let policy = &self.spaces[space.unwrap_or(0)].policy;
        if is_business(family) { policy.reply_endings_ms } else { policy.reply_refusals_ms }
    }

    /// Finds a request, and ends what is due of it.
    pub(super) fn recall(&mut self, scope: &Scope) -> Option<usize> {
        let index = self.requests.iter().position(|request| request.scope == *scope)?;
        match self.requests[index].stage {
            Stage::Yours { object, .. } => {
                let holder = self.by_object(object).expect("it would have ended with it");
                self.touch_request(holder);
            }
            _ => self.touch_request(index),
        }
        Some(index)
    }

    pub(super) fn touch_request(&mut self, index: usize) {
        let request = &self.requests[index];
        if request.is_live() && request.claim().deadline <= self.time {
            self.end_due(request.claim().object);
        }
    }

    pub(super) fn touch_resource(&mut self, at: At, resource: &ResourceName) {
        let now = self.time;
        let due = |reference: &Self| {
            let holder = reference.holder(at, resource).map(|(index, _)| {
                let claim = reference.requests[index].claim();
                (claim.deadline, claim.object)
            });
            let delay = reference.delay(at, resource).map(|delay| (delay.deadline, delay.object));
            holder.or(delay).filter(|&(deadline, _)| deadline <= now)
        };
        while let Some((_, object)) = due(self) {
            self.end_due(object);
        }
    }

    pub(super) fn reused(&self, known: usize, content: &Operation) -> Option<Outcome> {
        let first = self.requests[known].content.as_ref()?;
        (first != content).then(|| self.answer(None, Err(Refusal::new(Code::RequestIdReused))))
    }

    /// The answer to a write once more. A refusal's figures are those of now, and not compared.
    pub(super) fn written_again(&self, known: usize, content: &Operation) -> Outcome {
        if let Some(reused) = self.reused(known, content) {
            return reused;
        }
        let result = match &self.requests[known].stage {
            Stage::Done(done) => Ok(self.figures_of_now(known, done)),
            Stage::Refused(Code::InvalidArgument, _) => Err(invalid()),
            Stage::Refused(code, _) => Err(Refusal::new(*code)),
            _ => unreachable!("writes are decided at once"),
        };
        self.answer(Some(self.requests[known].answered), result)
    }

    /// What was done, as it is told now.
    fn figures_of_now(&self, known: usize, done: &Done) -> Done {
        let request = &self.requests[known];
        let space = self.space(&request.scope.0);
        match (done, &request.content) {
            (Done::HoldExtended(extended), _) => self.extended_again(space, extended.renewed.token),
            (Done::JobChanged { slot, .. }, Some(Operation::Job(op))) => {
                Done::JobChanged { paused: self.is_paused_now(space, op), slot: *slot }
            }
            _ => done.clone(),
        }
    }

    /// A write: its request looked up, what it names brought up to date, decided if it is new.
    pub(super) fn write(
        &mut self,
        scope: Scope,
        content: Operation,
        touch: impl FnOnce(&mut Self, Option<usize>),
        decide: impl FnOnce(&mut Self, usize) -> Result<Done, No>,
    ) -> Outcome {
        let space = self.space(&scope.0);
        let known = self.recall(&scope);
        touch(self, space);
        self.revision += 1;
        if let Some(known) = known {
            return self.written_again(known, &content);
        }
        let result = self.admit(space).and_then(|space| {
            let done = decide(self, space)?;
            Ok(self.wrote(&scope, space, &content, done))
        });
        self.conclude(scope, space, content, result)
    }
}
