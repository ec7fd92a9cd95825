//! Requests with an id: found in the reply memory, or new. Here S6 is kept.

use super::{
    DEFAULT_NAMESPACE, State,
    claim::{Claim, Holding},
    memory::{Content, Fate, Fingerprint, Part, Record, RecordId},
};
use crate::{
    command::Family,
    ids::{LeaseId, ObjectId, Slot, Token},
    names::{Caller, NamespaceName, RequestId},
    outcome::{Code, Detail, Done, End, Outcome, Refusal, RunFinished},
    planted::{self, Planted},
};

/// A request as its fingerprints name it, and whose memory it counts in.
pub(super) struct Request {
    /// `None`: there is no such namespace.
    pub(super) namespace: Option<u32>,
    family: Family,
    id: Fingerprint,
    content: Fingerprint,
}

impl Request {
    /// Its id in its scope.
    pub(super) fn id(&self) -> Fingerprint {
        self.id
    }

    /// The request; or, with that bug planted, one that nobody has heard of.
    pub(super) fn or_anew(self, drawn: LeaseId) -> Self {
        match planted::has(Planted::ReserveRepeats) {
            true => Self { id: Fingerprint(drawn.0), ..self },
            false => self,
        }
    }

    /// Requests to unknown namespaces are remembered too, in the memory of `default`.
    fn memory_of(&self) -> u32 {
        self.namespace.unwrap_or(DEFAULT_NAMESPACE)
    }
}

/// A refusal, and whether it is the request's answer from now on.
pub(super) enum No {
    /// Remembered: a repeat gets the same.
    Remember(Refusal),
    /// Remembered as what it is: `LIMIT_REACHED` alone does not say which limit.
    TooManyWaiters(Refusal),
    /// Not an answer to this request for good: the same id may be tried again.
    Forget(Refusal),
}

impl No {
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Remember(refusal) | Self::TooManyWaiters(refusal) | Self::Forget(refusal) => {
                refusal.code
            }
        }
    }
}

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        Self::Remember(refusal)
    }
}

impl State {
    pub(super) fn request(
        &self,
        caller: &Caller,
        namespace: &NamespaceName,
        family: Family,
        request_id: &RequestId,
        content: &impl Content,
    ) -> Request {
        Request {
            namespace: self.namespace_id(namespace),
            family,
            id: Fingerprint::request(namespace, caller, family, request_id),
            content: content.fingerprint(),
        }
    }

    /// The request of an Abandon, which knows no content.
    fn request_without_content(
        &self,
        caller: &Caller,
        namespace: &NamespaceName,
        family: Family,
        request_id: &RequestId,
    ) -> Request {
        let id = Fingerprint::request(namespace, caller, family, request_id);
        let namespace = self.namespace_id(namespace);
        Request { namespace, family, id, content: Fingerprint([0; 16]) }
    }

    /// Looks the request up. A live claim of it that is due is ended first, as the sweep would.
    pub(super) fn recall(&mut self, request: &Request) -> Option<RecordId> {
        let id = self.memory.find(request.id)?;
        if let Fate::Live(claim) = self.memory.get(id).fate {
            self.touch_claim(claim);
        }
        Some(id)
    }

    /// Whether the content is that of the first call; `Forbidden` stands for any content.
    pub(super) fn is_same_content(&self, id: RecordId, request: &Request) -> bool {
        let record = self.memory.get(id);
        record.fate == Fate::Forbidden || record.content == request.content
    }

    /// The same id with other content: nothing is done, and nothing about the first request changes.
    pub(super) fn reused(&self) -> Outcome {
        self.decided(None, Err(Refusal::new(Code::RequestIdReused)))
    }

    /// Decides a new request: `Overloaded` when it could not be remembered, a missing namespace refused.
    pub(super) fn admit(&self, request: &Request) -> Result<u32, No> {
        let memory_of = &self.namespaces[request.memory_of() as usize];
        if memory_of.records >= memory_of.policy.reply_records {
            let detail = Detail::Limit {
                limit: "replyMemory.records".into(),
                max: memory_of.policy.reply_records,
                sweep_pending: false,
            };
            let refusal = Refusal::new(Code::Overloaded).with(detail).retry_after(1_000);
            return Err(No::Forget(refusal));
        }
        request.namespace.ok_or_else(|| Refusal::new(Code::NotFound).into())
    }

    /// Puts a live request into the memory.
    pub(super) fn remember_live(
        &mut self,
        request: &Request,
        lease_id: LeaseId,
        claim: ObjectId,
    ) -> RecordId {
        self.remember(request, lease_id, Token(0), Fate::Live(claim))
    }

    /// Puts a finished write into the memory; `token` is what its answer says.
    pub(super) fn remember_done(&mut self, request: &Request, token: Token) {
        self.remember_write(request, token, Fate::Done);
    }

    /// The same for a fate of its own.
    pub(super) fn remember_write(&mut self, request: &Request, token: Token, fate: Fate) {
        let id = self.remember(request, LeaseId::default(), token, fate);
        let kept_ms = self.namespaces[request.memory_of() as usize].policy.reply_endings_ms;
        self.memory.forget_at(id, self.time.plus(kept_ms));
    }

    fn remember(
        &mut self,
        request: &Request,
        lease_id: LeaseId,
        token: Token,
        fate: Fate,
    ) -> RecordId {
        let namespace = request.memory_of();
        self.namespaces[namespace as usize].records += 1;
        self.memory.insert(Record {
            request: request.id,
            content: request.content,
            lease_id,
            token,
            revision: self.revision,
            fate,
            namespace,
            parts: None,
        })
    }

    /// Answers a new request, remembering a refusal that is for good.
    pub(super) fn conclude(&mut self, request: &Request, result: Result<Done, No>) -> Outcome {
        let result = match result {
            Ok(done) => Ok(done),
            Err(No::Forget(refusal)) => Err(refusal),
            Err(No::Remember(refusal)) => {
                self.remember_refusal(request, Fate::Refused(refusal.code));
                Err(refusal)
            }
            Err(No::TooManyWaiters(refusal)) => {
                self.remember_refusal(request, Fate::TooManyWaiters);
                Err(refusal)
            }
        };
        self.decided(None, result)
    }

    fn remember_refusal(&mut self, request: &Request, fate: Fate) {
        let id = self.remember(request, LeaseId::default(), Token(0), fate);
        let policy = &self.namespaces[request.memory_of() as usize].policy;
        let kept_ms = match is_kept_long(request.family) {
            true => policy.reply_endings_ms,
            false => policy.reply_refusals_ms,
        };
        self.memory.forget_at(id, self.time.plus(kept_ms));
    }

    /// Remembers a request that is answered with a claim of another request: it ends when that does.
    pub(super) fn remember_repeat(&mut self, request: &Request, claim_id: ObjectId) {
        let live = self.claims[&claim_id].holdings.iter().find(|holding| holding.ended.is_none());
        let token = live.expect("what has ended answers nobody").token;
        let id = self.remember(request, LeaseId::default(), token, Fate::Live(claim_id));
        let claim = self.claims.get_mut(&claim_id).expect("it was just found");
        claim.repeats.push(id);
    }

    /// Forbids a request that has not been seen: a copy that comes later is refused as abandoned.
    ///
    /// # Errors
    /// `Overloaded` when it cannot be remembered.
    pub(super) fn forbid(
        &mut self,
        caller: &Caller,
        namespace: &NamespaceName,
        family: Family,
        request_id: &RequestId,
    ) -> Result<(), Refusal> {
        let request = self.request_without_content(caller, namespace, family, request_id);
        if let Err(No::Forget(refusal)) = self.admit(&request) {
            return Err(refusal);
        }
        if !planted::has(Planted::AbandonForgotten) {
            self.remember_refusal(&request, Fate::Forbidden);
        }
        Ok(())
    }

    /// Finds what an Abandon names; see [`Self::recall`].
    pub(super) fn recall_by_id(
        &mut self,
        caller: &Caller,
        namespace: &NamespaceName,
        family: Family,
        request_id: &RequestId,
    ) -> Option<RecordId> {
        let request = self.request_without_content(caller, namespace, family, request_id);
        self.recall(&request)
    }

    /// The same answer again, with the figures of now: `done` makes that of an operator's finished write from
    /// its token, `refused` that of a refusal (of whose code, and whether it was for `maxWaiters`).
    pub(super) fn replay(
        &mut self,
        id: RecordId,
        done: impl FnOnce(Token) -> Done,
        refused: impl FnOnce(&Self, Fate, Code) -> Refusal,
    ) -> Outcome {
        let (fate, token, first) = {
            let record = self.memory.get(id);
            (record.fate, record.token, record.revision)
        };
        let result = match fate {
            Fate::Live(claim_id) => self.replay_live(id, claim_id),
            Fate::Ended(end) => Err(lease_ended(end, token)),
            Fate::Refused(code) => Err(refused(self, fate, code)),
            Fate::TooManyWaiters => Err(refused(self, fate, Code::LimitReached)),
            Fate::WaitEnded(why) => Err(Refusal::new(Code::WaitTimeout).with(Detail::Wait(why))),
            Fate::Forbidden => Err(Refusal::new(Code::Abandoned)),
            Fate::Done => Ok(done(token)),
            Fate::RunFinished { attempt, state } => {
                Ok(Done::RunFinished(RunFinished { slot: Slot(token.0), attempt, state }))
            }
        };
        self.decided(Some(first), result)
    }

    fn replay_live(&mut self, id: RecordId, claim_id: ObjectId) -> Result<Done, Refusal> {
        let revision = self.revision;
        if let Some(done) = self.reservation_again(claim_id) {
            return Ok(done);
        }
        let claim = self.claims.get_mut(&claim_id).expect("a live request has its claim");
        claim.asked_at = revision;
        if let Some(end) = claim.spent.filter(|_| claim.record == id) {
            return Err(lease_ended(end, claim.holdings[0].token));
        }
        match claim.held {
            Some(_) => Ok(self.granted(claim_id)),
            None => Ok(Done::Waiting(self.waiting(claim_id))),
        }
    }

    /// A claim has come to its end: so has its request.
    pub(super) fn end_request(&mut self, claim: &Claim, fate: Fate) {
        let policy = &self.namespaces[claim.namespace as usize].policy;
        // Of an AcquireAll one lost otherwise is enough to remember it as such.
        let is_released = |holding: &Holding| holding.ended == Some(End::Released);
        let kept_ms = match fate {
            _ if is_kept_long(claim.family()) => policy.reply_endings_ms,
            Fate::Ended(_) if !claim.holdings.iter().all(is_released) => policy.reply_endings_ms,
            _ => policy.reply_refusals_ms,
        };
        let parts = match fate {
            Fate::Ended(_) if claim.holdings.len() > 1 => {
                let ended = |of: &Holding| of.ended.map(|end| Part::new(&of.resource, end));
                claim.holdings.iter().map(ended).collect()
            }
            _ => None,
        };
        let forget_at = self.time.plus(kept_ms);
        self.memory.ended(claim.record, fate, self.revision, parts, forget_at);
    }

    /// A resource of the claim has ended: so have the other requests that were answered with it, each of which was
    /// about all that the claim held then.
    pub(super) fn end_repeats(&mut self, claim: &mut Claim, end: End) {
        let policy = &self.namespaces[claim.namespace as usize].policy;
        let kept_ms = match planted::has(Planted::YoursForgotten) {
            true => 0,
            false => policy.reply_endings_ms,
        };
        let forget_at = self.time.plus(kept_ms);
        for repeat in claim.repeats.drain(..) {
            self.memory.spent(repeat, self.revision);
            self.memory.ended(repeat, Fate::Ended(end), self.revision, None, forget_at);
        }
    }
}

/// Business comes back later than a lock's client: all answers about holds, jobs and quotas are kept for the longer
/// time.
fn is_kept_long(family: Family) -> bool {
    matches!(family, Family::Hold | Family::Job | Family::Quota)
}

/// The answer to a request, or a renewal, whose lease is over.
pub(super) fn lease_ended(end: End, token: Token) -> Refusal {
    Refusal::new(Code::LeaseEnded).with(Detail::Ended { end, token })
}
