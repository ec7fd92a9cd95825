//! What each request was told, by the watcher who knows no rule but the promise (S6, S7): whatever it is told next has to
//! follow from that.

use super::watcher::{MEMORY_MS, Scope, Watcher};
use sereno_core::{
    Settled,
    command::{ElectionCommand, Family, HoldCommand, JobCommand, Operation},
    ids::{LeaseId, Slot, Token},
    names::{NamespaceName, RequestId},
    outcome::{Code, Detail, Done, End, Outcome},
};

/// The last word to a request.
#[derive(Debug)]
pub(super) struct Told {
    content: Operation,
    answer: Answer,
    /// When it was first told so.
    at: u64,
    /// What it was granted.
    tokens: Vec<Token>,
    /// What it has lost since.
    lost: Vec<(Token, End)>,
    /// When the last of its grant was lost; of a hold that was another request's, the first.
    over_at: Option<u64>,
    /// It was told of a hold that was there already.
    yours: bool,
}

impl Told {
    fn new(content: Operation, answer: Answer, at: u64, yours: bool) -> Self {
        let tokens = match &answer {
            Answer::Granted(_, tokens) => tokens.clone(),
            _ => Vec::new(),
        };
        Self { content, answer, at, tokens, lost: Vec::new(), over_at: None, yours }
    }

    /// Whether it has to be remembered at `now`.
    fn is_remembered(&self, now: u64) -> bool {
        match self.answer {
            Answer::Waiting => true,
            Answer::Granted(..) | Answer::Over(Code::LeaseEnded, _) if !self.tokens.is_empty() => {
                self.over_at.is_none_or(|over_at| now < over_at + MEMORY_MS)
            }
            _ => now < self.at + MEMORY_MS,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Answer {
    Waiting,
    Granted(LeaseId, Vec<Token>),
    /// A write, without the figures of the moment.
    Wrote(Done),
    /// Over: the lease's end, or the refusal.
    Over(Code, Option<(End, Token)>),
}

/// A request's own words, without what its copies may change.
pub(super) fn content(
    operation: &Operation,
) -> Option<(Family, NamespaceName, RequestId, Operation)> {
    let mut content = operation.clone();
    let (family, namespace, request_id) = match &mut content {
        Operation::Acquire(op) => {
            (op.lease_id, op.wait_timeout_ms) = (LeaseId::default(), 0);
            (Family::Lock, &op.namespace, &op.request_id)
        }
        Operation::AcquireAll(op) => {
            op.lease_id = LeaseId::default();
            (Family::Lock, &op.namespace, &op.request_id)
        }
        Operation::Election(ElectionCommand::Campaign(op)) => {
            (op.lease_id, op.wait_timeout_ms) = (LeaseId::default(), 0);
            (Family::Election, &op.namespace, &op.request_id)
        }
        Operation::Election(ElectionCommand::Proclaim(op)) => {
            (Family::Election, &op.namespace, &op.request_id)
        }
        Operation::Election(ElectionCommand::Handoff(op)) => {
            (Family::Election, &op.namespace, &op.request_id)
        }
        Operation::Hold(HoldCommand::Hold(op)) => {
            op.lease_id = LeaseId::default();
            (Family::Hold, &op.namespace, &op.request_id)
        }
        Operation::Hold(HoldCommand::Renew(op)) => (Family::Hold, &op.namespace, &op.request_id),
        Operation::Hold(HoldCommand::Begin(op)) => (Family::Hold, &op.namespace, &op.request_id),
        Operation::Hold(HoldCommand::Release(op)) => (Family::Hold, &op.namespace, &op.request_id),
        Operation::Job(JobCommand::ClaimRun(op)) => {
            op.lease_id = LeaseId::default();
            (Family::Job, &op.namespace, &op.request_id)
        }
        Operation::Job(JobCommand::FinishRun(op)) => (Family::Job, &op.namespace, &op.request_id),
        Operation::Job(JobCommand::Pause(op) | JobCommand::Resume(op)) => {
            (Family::Job, &op.namespace, &op.request_id)
        }
        Operation::Job(JobCommand::Skip(op)) => (Family::Job, &op.namespace, &op.request_id),
        Operation::Job(JobCommand::RunNow(op)) => {
            op.slot = Slot(0);
            (Family::Job, &op.namespace, &op.request_id)
        }
        Operation::ForceRelease(op)
        | Operation::Election(ElectionCommand::ForceRelease(op))
        | Operation::Hold(HoldCommand::ForceRelease(op))
        | Operation::Job(JobCommand::ForceRelease(op)) => {
            (Family::Admin, &op.namespace, &op.request_id)
        }
        Operation::ReportGuard(op) => (Family::Admin, &op.namespace, &op.request_id),
        _ => return None,
    };
    let (namespace, request_id) = (namespace.clone(), request_id.clone());
    Some((family, namespace, request_id, content))
}

/// Of a finished write what is not a figure of the moment.
fn written(done: &Done) -> Done {
    let mut done = done.clone();
    match &mut done {
        Done::HoldExtended(extended) => {
            extended.begun = false;
            extended.renewed.expires_in_ms = 0;
            extended.renewed.final_deadline_in_ms = None;
            extended.renewed.clipped = false;
        }
        Done::JobChanged { paused, .. } => *paused = false,
        _ => {}
    }
    done
}

impl Watcher {
    pub(super) fn settled(&mut self, settled: &Settled) {
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

    /// S6 and S7: whatever is told to a request follows from what it was told before.
    pub(super) fn tell(
        &mut self,
        scope: Scope,
        content: Option<Operation>,
        outcome: &Outcome,
        called: bool,
    ) {
        let Some(answer) = self.answer(&scope, content.as_ref(), outcome) else { return };
        let yours = matches!(&outcome.result, Ok(Done::Held(held)) if held.yours);
        let at = self.now;
        let Some(told) = self.told.get_mut(&scope) else {
            // Abandoned before it was seen: remembered from then on.
            let at = outcome.replayed.map_or(at, |first| {
                assert_eq!(answer, Answer::Over(Code::Abandoned, None));
                self.abandons[&first]
            });
            let content = content.expect("what is settled was called for");
            self.told.insert(scope, Told::new(content, answer, at, yours));
            return;
        };
        let same_content = content.as_ref().is_none_or(|content| *content == told.content);
        if !told.is_remembered(at)
            || (told.answer == Answer::Over(Code::Abandoned, None) && !same_content)
        {
            // Remembered for longer than the least, or new.
            if let (Some(content), None) = (content, outcome.replayed) {
                *told = Told::new(content, answer, at, yours);
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
                assert!(!is_grant || told.yours == yours, "S6: whose request it was");
                return;
            }
            (Answer::Waiting, Answer::Granted(..)) => !called,
            (Answer::Waiting, Answer::Over(Code::WaitTimeout | Code::Abandoned, None)) => !called,
            (Answer::Granted(_, tokens), Answer::Over(Code::LeaseEnded, Some((end, token)))) => {
                tokens.contains(token) && told.lost[0].1 == *end
            }
            // A write's refusal is told again without the figures.
            (Answer::Over(before, _), Answer::Over(after, None)) => {
                before == after && told.tokens.is_empty()
            }
            _ => false,
        };
        assert!(follows, "S6, S7: {answer:?} does not follow on {:?}", told.answer);
        if let Answer::Granted(_, tokens) = &answer {
            told.tokens.clone_from(tokens);
        }
        (told.answer, told.at) = (answer, at);
    }

    /// What was told, if it is an answer for good.
    fn answer(
        &mut self,
        scope: &Scope,
        content: Option<&Operation>,
        outcome: &Outcome,
    ) -> Option<Answer> {
        let refusal = match &outcome.result {
            Ok(Done::Waiting(_)) => return Some(Answer::Waiting),
            Ok(done) => {
                let Some(grant) = done.grant() else { return Some(Answer::Wrote(written(done))) };
                let tokens: Vec<_> = grant.holdings.iter().map(|(_, token)| *token).collect();
                for token in &tokens {
                    let until = self.now + grant.expires_in_ms;
                    let promised = self.promised.insert(*token, until).unwrap_or(0);
                    assert!(promised <= until, "S8: an answer takes nothing back");
                    self.leases.insert(*token, grant.lease_id);
                    let owners = self.owners.entry(*token).or_default();
                    if !owners.contains(scope) {
                        owners.push(scope.clone());
                    }
                }
                return Some(Answer::Granted(grant.lease_id, tokens));
            }
            Err(refusal) => refusal,
        };
        match (&refusal.code, &refusal.detail) {
            (Code::RequestIdReused, _) => {
                let told = self.told.get(scope).expect("S6: it was used before");
                assert!(content != Some(&told.content), "S6: the content is the same");
                None
            }
            // Not an answer for good.
            (Code::Overloaded | Code::Unavailable, _) => None,
            (Code::LeaseEnded, Detail::Ended { end, token }) => {
                Some(Answer::Over(Code::LeaseEnded, Some((*end, *token))))
            }
            (code, _) => Some(Answer::Over(*code, None)),
        }
    }

    /// What requests were granted is lost.
    pub(super) fn lost(&mut self, token: Token, end: End) {
        for scope in self.owners.get(&token).into_iter().flatten() {
            let Some(told) = self.told.get_mut(scope) else { continue };
            if told.tokens.contains(&token) {
                told.lost.push((token, end));
                if told.yours || told.lost.len() == told.tokens.len() {
                    told.over_at.get_or_insert(self.now);
                }
            }
        }
    }
}
