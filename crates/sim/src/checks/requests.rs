//! S6: the same request gets the same answer, refusals included, under whichever leader; an operator's too.

use super::ledger::request_key;
use sereno_core::{
    command::{Command, Operation},
    ids::{ClusterTime, LeaseId, Token},
    names::{NamespaceName, RequestId},
    outcome::{AbandonedWas, Code, Detail, Done, Outcome},
};
use std::collections::BTreeMap;

/// Clients repeat for less than this, and the memory keeps for longer.
const REPEATS_MS: u64 = 85_000;
/// The shortest reply memory.
const MEMORY_MS: u64 = 90_000;

/// What a request has been answered so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Waiting,
    Granted(LeaseId, Token),
    /// Granted once, ended since.
    Ended(Token),
    /// An operator's, which names this token.
    Done(Token),
    Refused(Code),
    /// Granted and ended, unseen.
    Gone,
    /// Not for good.
    None,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    answers: BTreeMap<String, (Answer, ClusterTime)>,
}

impl Requests {
    pub(super) fn outcome(&mut self, command: &Command, outcome: &Outcome) {
        let answer = || answer_of(outcome);
        match &command.operation {
            Operation::Acquire(op) => {
                self.answered(request_key(&op.namespace, &op.request_id), outcome.time, answer());
            }
            Operation::AcquireAll(op) => {
                self.answered(request_key(&op.namespace, &op.request_id), outcome.time, answer());
            }
            Operation::ForceRelease(op) => {
                let key = admin_key(&op.namespace, &op.request_id);
                self.answered(key, outcome.time, answer());
            }
            Operation::SetTokenFloor(op) => {
                let key = format!("admin:{}", op.request_id);
                self.answered(key, outcome.time, answer());
            }
            Operation::Abandon(op) => {
                self.abandoned(request_key(&op.namespace, &op.request_id), outcome);
            }
            _ => {}
        }
    }

    /// Whether a command comes for a request that the service may have forgotten.
    pub(super) fn is_forgotten(&self, command: &Command, time: ClusterTime) -> bool {
        let Operation::Acquire(op) = &command.operation else { return false };
        let answered = self.answers.get(&request_key(&op.namespace, &op.request_id));
        answered.is_some_and(|(_, at)| at.until(time) > MEMORY_MS)
    }

    fn answered(&mut self, key: String, time: ClusterTime, now: Answer) {
        if now == Answer::None {
            return;
        }
        let before = self.answers.get(&key).copied();
        let is_same = match before {
            None => true,
            Some((_, at)) if at.until(time) > REPEATS_MS => true,
            Some((before, _)) => may_follow(before, now),
        };
        let before = before.map(|(before, _)| before);
        assert!(
            is_same,
            "S6: the same request, the same answer: {key} got {before:?}, now {now:?}"
        );
        self.answers.insert(key, (now, time));
    }

    /// From here on it holds nothing and never will (S7).
    fn abandoned(&mut self, key: String, outcome: &Outcome) {
        let Ok(Done::Abandoned { was }) = &outcome.result else { return };
        let before = self.answers.get(&key).map(|(before, _)| *before);
        let now = match (was, before) {
            (AbandonedWas::Unseen | AbandonedWas::Waiting, _) => Answer::Refused(Code::Abandoned),
            (AbandonedWas::Refused(code), _) => Answer::Refused(*code),
            (_, Some(Answer::Granted(_, token) | Answer::Ended(token))) => Answer::Ended(token),
            (AbandonedWas::Granted | AbandonedWas::Ended(_), _) => Answer::Gone,
            (AbandonedWas::Done, _) => unreachable!("a lock's request is not done at once"),
        };
        if let Some(before) = before {
            assert!(may_follow(before, now), "S6: {key} was {before:?}, abandoned it is {now:?}");
        }
        self.answers.insert(key, (now, outcome.time));
    }
}

fn admin_key(namespace: &NamespaceName, request_id: &RequestId) -> String {
    format!("admin:{}", request_key(namespace, request_id))
}

fn answer_of(outcome: &Outcome) -> Answer {
    match &outcome.result {
        Ok(Done::Granted(grant)) => Answer::Granted(grant.lease_id, grant.holdings[0].1),
        Ok(Done::Waiting(_)) => Answer::Waiting,
        Ok(Done::ForceReleased { token }) => Answer::Done(*token),
        Ok(Done::TokenFloorSet { floor }) => Answer::Done(*floor),
        Ok(other) => panic!("S6: a request is not answered with {other:?}"),
        Err(refusal) => match (refusal.code, &refusal.detail) {
            (Code::LeaseEnded, Detail::Ended { token, .. }) => Answer::Ended(*token),
            (Code::Unavailable | Code::Overloaded, _) => Answer::None,
            (code, _) => Answer::Refused(code),
        },
    }
}

fn may_follow(before: Answer, now: Answer) -> bool {
    match (before, now) {
        (Answer::Granted(_, before), Answer::Ended(now)) => before == now,
        // A waiter was granted and ended since, or was refused in the queue.
        (Answer::Waiting, _) => true,
        (Answer::Gone, Answer::Ended(_)) => true,
        (Answer::Granted(..) | Answer::Ended(_), Answer::Gone) => true,
        (Answer::None, _) => true,
        (before, now) => before == now,
    }
}
