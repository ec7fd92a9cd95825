//! S6: the same request gets the same answer. S7: what was born too long ago is refused, and a request that has
//! come to an end is never granted.

use sereno_core::{
    command::{Command, Operation},
    entry::Entry,
    ids::{ClusterTime, LeaseId, Token},
    outcome::{AbandonedWas, Code, Detail, Done, Outcome},
};
use std::collections::BTreeMap;

/// A command is refused when its entry is stamped later than this after its birth.
const BORN_MS: u64 = 30_000;

/// What a request has been answered so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Waiting,
    Granted(LeaseId, Token),
    /// Granted once, ended since.
    Ended(Token),
    Refused(Code),
    /// Granted and ended, unseen.
    Gone,
    /// Not for good.
    None,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    answers: BTreeMap<String, (Answer, ClusterTime)>,
}

impl Requests {
    pub(super) fn outcome(&mut self, entry: &Entry, command: &Command, outcome: &Outcome) {
        if command.born_at.plus(BORN_MS) < entry.time {
            let is_refused = matches!(
                &outcome.result,
                Err(refusal) if refusal.code == Code::Unavailable && refusal.detail == Detail::BornAt
            );
            assert!(
                is_refused,
                "S7: a copy that comes over 30 s after its birth is refused: born at {}, now {}: {outcome:?}",
                command.born_at, entry.time
            );
            return;
        }
        match &command.operation {
            Operation::Acquire(acquire) => {
                let key = format!("{}:{}", command.caller, acquire.request_id);
                self.answered(&key, entry.time, answer_of(outcome));
            }
            Operation::Abandon(abandon) => {
                let key = format!("{}:{}", command.caller, abandon.request_id);
                self.abandoned(key, entry.time, outcome);
            }
            _ => {}
        }
    }

    fn answered(&mut self, key: &str, time: ClusterTime, now: Answer) {
        if now == Answer::None {
            return;
        }
        let before = self.answers.get(key).copied();
        let is_same = match before {
            None => true,
            // Clients repeat for less than the memory keeps; this is far beyond.
            Some((_, at)) if at.until(time) > 85_000 => true,
            Some((before, _)) => may_follow(before, now),
        };
        let (before, time) = (before.map(|(before, _)| before), time);
        assert!(
            is_same,
            "S6: the same request, the same answer: {key} got {before:?}, now {now:?}"
        );
        self.answers.insert(key.to_owned(), (now, time));
    }

    /// From here on it holds nothing and never will (S7).
    fn abandoned(&mut self, key: String, time: ClusterTime, outcome: &Outcome) {
        let Ok(Done::Abandoned { was }) = &outcome.result else { return };
        let before = self.answers.get(&key).map(|(before, _)| *before);
        let now = match (was, before) {
            (AbandonedWas::Unseen | AbandonedWas::Waiting, _) => Answer::Refused(Code::Abandoned),
            (AbandonedWas::Refused(code), _) => Answer::Refused(*code),
            (_, Some(Answer::Granted(_, token) | Answer::Ended(token))) => Answer::Ended(token),
            (AbandonedWas::Granted | AbandonedWas::Ended(_), _) => Answer::Gone,
        };
        if let Some(before) = before {
            assert!(may_follow(before, now), "S6: {key} was {before:?}, abandoned it is {now:?}");
        }
        self.answers.insert(key, (now, time));
    }
}

fn answer_of(outcome: &Outcome) -> Answer {
    match &outcome.result {
        Ok(Done::Granted(grant)) => Answer::Granted(grant.lease_id, grant.holdings[0].1),
        Ok(Done::Waiting(_)) => Answer::Waiting,
        Ok(other) => panic!("S6: an acquire is not answered with {other:?}"),
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
