//! The promises of section 1, checked from the outside: from commands, outcomes and events alone, by somebody who
//! knows no rule but the promise.

use sereno_core::{
    Applied, Settled,
    command::{Command, Family, Operation},
    entry::{Body, Entry},
    event::{Event, EventKind},
    ids::{LeaseId, ObjectId, Revision, Token},
    names::{Caller, NamespaceName, RequestId, ResourceName},
    outcome::{Code, Detail, Done, End, Outcome, Renewed},
};
use std::collections::BTreeMap;

/// The shortest memory that a policy may set.
const MEMORY_MS: u64 = 90_000;

type Name = (NamespaceName, ResourceName);
type Scope = (NamespaceName, Caller, Family, RequestId);

#[derive(Default)]
pub(super) struct Watcher {
    now: u64,
    /// Who holds, by what was told (S1).
    holders: BTreeMap<Name, Token>,
    /// All tokens ever granted, rising (S2).
    granted: Vec<Token>,
    /// Until when each token's holder was promised to hold (S8).
    promised: BTreeMap<Token, u64>,
    /// Leases by what they held.
    leases: BTreeMap<Token, LeaseId>,
    /// Whose each token is.
    owners: BTreeMap<Token, Scope>,
    /// What each request was told last (S6, S7).
    told: BTreeMap<Scope, Told>,
    waiting: BTreeMap<ObjectId, Scope>,
    /// When each abandon was.
    abandons: BTreeMap<Revision, u64>,
}

/// The last word to a request.
#[derive(Debug)]
struct Told {
    content: Operation,
    answer: Answer,
    /// When it was first told so.
    at: u64,
    /// What it was granted.
    tokens: Vec<Token>,
    /// What it has lost since.
    lost: Vec<(Token, End)>,
    /// When the last of its grant was lost.
    over_at: Option<u64>,
}

impl Told {
    fn new(content: Operation, answer: Answer, at: u64) -> Self {
        let tokens = match &answer {
            Answer::Granted(_, tokens) => tokens.clone(),
            _ => Vec::new(),
        };
        Self { content, answer, at, tokens, lost: Vec::new(), over_at: None }
    }

    /// Whether it has to be remembered at `now`.
    fn is_remembered(&self, now: u64) -> bool {
        match self.answer {
            Answer::Waiting => true,
            Answer::Granted(..) | Answer::Over(Code::LeaseEnded, _) => {
                self.over_at.is_none_or(|over_at| now < over_at + MEMORY_MS)
            }
            Answer::Over(..) => now < self.at + MEMORY_MS,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Answer {
    Waiting,
    Granted(LeaseId, Vec<Token>),
    /// Over: the lease's end, or the refusal.
    Over(Code, Option<(End, Token)>),
}

/// A request's own words, without what its copies may change.
fn content(operation: &Operation) -> Option<(NamespaceName, RequestId, Operation)> {
    let mut content = operation.clone();
    match &mut content {
        Operation::Acquire(op) => {
            (op.lease_id, op.wait_timeout_ms) = (LeaseId::default(), 0);
            Some((op.namespace.clone(), op.request_id.clone(), content))
        }
        Operation::AcquireAll(op) => {
            op.lease_id = LeaseId::default();
            Some((op.namespace.clone(), op.request_id.clone(), content))
        }
        _ => None,
    }
}

impl Watcher {
    pub(super) fn watch(&mut self, entry: &Entry, applied: &Applied) {
        self.now = entry.time.0;
        let commands: &[Command] = match &entry.body {
            Body::Batch(commands) => commands,
            _ => &[],
        };
        self.check_revisions(applied);
        let mut settled = applied.settled.iter().peekable();
        let mut events = applied.events.iter().peekable();
        for (command, outcome) in commands.iter().zip(&applied.outcomes) {
            let revision = outcome.revision;
            // What was swept or touched before the command, what the command did, and what that led to.
            while let Some(one) = settled.next_if(|one| one.outcome.revision <= revision) {
                self.settled(one);
            }
            while let Some(event) = events.next_if(|event| event.revision < revision) {
                self.event(event, None);
            }
            self.command(command, outcome, applied);
            while let Some(event) = events.next_if(|event| event.revision == revision) {
                self.event(event, Some(command));
            }
        }
        settled.for_each(|one| self.settled(one));
        events.for_each(|event| self.event(event, None));
    }

    fn settled(&mut self, settled: &Settled) {
        let scope = self.waiting.remove(&settled.claim).expect("S7: it waited, and once");
        self.tell(scope, None, &settled.outcome, false);
    }

    /// After a restore from this very state: waits are over, and were told nothing by the log.
    pub(super) fn restored(&mut self) {
        let at = self.now;
        for (_, scope) in std::mem::take(&mut self.waiting) {
            let told = self.told.get_mut(&scope).expect("it was told to wait");
            (told.answer, told.at) = (Answer::Over(Code::WaitTimeout, None), at);
        }
    }

    pub(super) fn an_old_token(&self, but: Option<Token>) -> Option<Token> {
        self.granted.iter().rev().find(|&&token| Some(token) != but).copied()
    }

    /// Revisions order all answers of the log, and answers of one entry carry its time.
    fn check_revisions(&self, applied: &Applied) {
        assert!(applied.outcomes.is_sorted_by(|a, b| a.revision < b.revision), "a total order");
        assert!(applied.events.is_sorted_by_key(|event| event.revision), "in order");
        let all = applied.outcomes.iter().chain(applied.settled.iter().map(|s| &s.outcome));
        for outcome in all {
            assert_eq!(outcome.time.0, self.now);
            assert!(outcome.replayed.is_none_or(|first| first < outcome.revision));
        }
    }

    fn command(&mut self, command: &Command, outcome: &Outcome, applied: &Applied) {
        if self.now > command.born_at.0.saturating_add(30_000) {
            let code = outcome.result.as_ref().err().map(|refusal| refusal.code);
            assert_eq!(code, Some(Code::Unavailable), "S7: over 30 s after its birth");
            let named = applied.events.iter().any(|event| event.revision == outcome.revision);
            assert!(!named, "S7: it does nothing");
            return;
        }
        if let Operation::Abandon(_) = command.operation {
            self.abandons.insert(outcome.revision, self.now);
        }
        if let Some((namespace, request_id, content)) = content(&command.operation) {
            let scope = (namespace, command.caller.clone(), Family::Lock, request_id);
            if let Ok(Done::Waiting(waiting)) = &outcome.result {
                self.waiting.insert(waiting.claim, scope.clone());
            }
            self.tell(scope, Some(content), outcome, true);
        }
        match (&command.operation, &outcome.result) {
            (Operation::Renew(op), Ok(Done::Renewed(renewed))) => {
                self.renewed(op.lease.lease_id, op.lease_ttl_ms, renewed);
            }
            (Operation::RenewMany(op), Ok(Done::RenewedMany(results))) => {
                for (lease, result) in op.leases.iter().zip(results) {
                    if let Ok(renewed) = result {
                        self.renewed(lease.lease_id, op.lease_ttl_ms, renewed);
                    }
                }
            }
            _ => {}
        }
    }

    /// S6 and S7: whatever is told to a request follows from what it was told before.
    fn tell(&mut self, scope: Scope, content: Option<Operation>, outcome: &Outcome, called: bool) {
        let answer = match &outcome.result {
            Ok(Done::Waiting(_)) => Answer::Waiting,
            Ok(Done::Granted(grant)) => {
                let tokens: Vec<_> = grant.holdings.iter().map(|(_, token)| *token).collect();
                for token in &tokens {
                    let until = self.now + grant.expires_in_ms;
                    let promised = self.promised.insert(*token, until).unwrap_or(0);
                    assert!(promised <= until, "S8: an answer takes nothing back");
                    self.leases.insert(*token, grant.lease_id);
                    self.owners.insert(*token, scope.clone());
                }
                Answer::Granted(grant.lease_id, tokens)
            }
            Ok(other) => panic!("no answer to an acquire: {other:?}"),
            Err(refusal) => match (&refusal.code, &refusal.detail) {
                (Code::RequestIdReused, _) => {
                    let told = self.told.get(&scope).expect("S6: it was used before");
                    assert!(content != Some(told.content.clone()), "S6: the content is the same");
                    return;
                }
                // Not an answer for good.
                (Code::Overloaded | Code::Unavailable, _) => return,
                (Code::LeaseEnded, Detail::Ended { end, token }) => {
                    Answer::Over(Code::LeaseEnded, Some((*end, *token)))
                }
                (code, _) => Answer::Over(*code, None),
            },
        };
        let at = self.now;
        let Some(told) = self.told.get_mut(&scope) else {
            // Abandoned before it was seen: remembered from then on.
            let at = outcome.replayed.map_or(at, |first| {
                assert_eq!(answer, Answer::Over(Code::Abandoned, None));
                self.abandons[&first]
            });
            let content = content.expect("what is settled was called for");
            self.told.insert(scope, Told::new(content, answer, at));
            return;
        };
        let same_content = content.as_ref().is_none_or(|content| *content == told.content);
        if !told.is_remembered(at)
            || (told.answer == Answer::Over(Code::Abandoned, None) && !same_content)
        {
            // Remembered for longer than the least, or new.
            if let (Some(content), None) = (content, outcome.replayed) {
                *told = Told::new(content, answer, at);
            }
            return;
        }
        assert!(same_content, "S6: other content is refused as such");
        assert!(
            !called || outcome.replayed.is_some(),
            "S6: {told:?} is known, and not {outcome:?}"
        );
        let follows = match (&told.answer, &answer) {
            (before, after) if before == after => {
                let is_grant = matches!(before, Answer::Granted(..));
                assert!(!is_grant || told.lost.is_empty(), "a spent request is told so");
                return;
            }
            (Answer::Waiting, Answer::Granted(..)) => !called,
            (Answer::Waiting, Answer::Over(Code::WaitTimeout | Code::Abandoned, None)) => !called,
            (Answer::Granted(_, tokens), Answer::Over(Code::LeaseEnded, Some((end, token)))) => {
                tokens.contains(token) && told.lost[0].1 == *end
            }
            _ => false,
        };
        assert!(follows, "S6, S7: {answer:?} does not follow on {:?}", told.answer);
        if let Answer::Granted(_, tokens) = &answer {
            told.tokens.clone_from(tokens);
        }
        (told.answer, told.at) = (answer, at);
    }

    /// What a request was granted is lost.
    fn lost(&mut self, token: Token, end: End) {
        let Some(told) = self.owners.get(&token).and_then(|scope| self.told.get_mut(scope)) else {
            return;
        };
        if told.tokens.contains(&token) {
            told.lost.push((token, end));
            if told.lost.len() == told.tokens.len() {
                told.over_at = Some(self.now);
            }
        }
    }

    fn renewed(&mut self, lease_id: LeaseId, ttl_ms: Option<u64>, renewed: &Renewed) {
        assert_eq!(self.leases.get(&renewed.token), Some(&lease_id), "S4: by who can name it");
        if let (Some(ttl_ms), false) = (ttl_ms, renewed.clipped) {
            assert!(renewed.expires_in_ms >= ttl_ms, "S8: the TTL asked for is granted");
        }
        let until = self.now + renewed.expires_in_ms;
        // A lease of several has one deadline.
        let tokens: Vec<_> =
            self.leases.iter().filter(|(_, id)| **id == lease_id).map(|(t, _)| *t).collect();
        for token in tokens {
            let promised = self.promised.insert(token, until).unwrap_or(0);
            assert!(promised <= until, "S8: a renewal takes nothing back");
        }
    }

    fn event(&mut self, event: &Event, cause: Option<&Command>) {
        let name = || {
            let namespace = event.namespace.clone().expect("locks are in a namespace");
            (namespace, event.resource.clone().expect("locks have a name"))
        };
        match &event.kind {
            EventKind::Granted { token, .. } => {
                assert!(self.granted.last().is_none_or(|last| last < token), "S2: tokens rise");
                self.granted.push(*token);
                let before = self.holders.insert(name(), *token);
                assert_eq!(before, None, "S1: nobody else holds it");
            }
            EventKind::Ended { token, end, .. } => {
                assert_eq!(
                    self.holders.remove(&name()),
                    Some(*token),
                    "S4: only the holder's ends"
                );
                self.check_cause(event, *token, *end, cause);
                self.lost(*token, *end);
            }
            _ => {}
        }
    }

    /// S4 and S8: an ownership ends by its owner, by an operator who names its token, or when its time is over.
    fn check_cause(&self, event: &Event, token: Token, end: End, cause: Option<&Command>) {
        let until = self.promised.get(&token).copied();
        match (end, cause.map(|cause| &cause.operation)) {
            (End::Released, Some(Operation::Release(op))) => {
                assert_eq!(Some(op.lease.lease_id.public_hash()), event.lease_hash);
                assert_eq!(Some(&op.lease.resource), event.resource.as_ref());
            }
            (End::Forced, Some(Operation::ForceRelease(op))) => assert_eq!(op.token, token),
            (End::Abandoned, Some(Operation::Abandon(_) | Operation::EndDeserted(_))) => {}
            (End::Expired | End::MaxHold, None) => {
                assert!(until.is_none_or(|until| until <= self.now), "S8: not before its time");
            }
            (end, cause) => panic!("S4: {end:?} by {cause:?}"),
        }
    }
}
