//! S6: the same request gets the same answer, refusals included, under whichever leader; an operator's too.

use super::ledger::request_key;
use sereno_core::{
    command::{Command, ElectionCommand, Family, HoldCommand, JobCommand, Operation, QuotaCommand},
    ids::{ClusterTime, LeaseId, Token},
    names::RequestId,
    outcome::{AbandonedWas, Code, Detail, Done, Outcome, QuotaDone, ReservationState},
};
use std::collections::BTreeMap;

/// Clients repeat for less than this, and the memory keeps for longer.
const REPEATS_MS: u64 = 85_000;
/// The shortest reply memory.
const MEMORY_MS: u64 = 90_000;

/// What a request has been answered so far.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Waiting,
    /// And whether it was another request's hold.
    Granted(LeaseId, Token, bool),
    /// Granted once, ended since.
    Ended(Token),
    /// A write, without the figures of the moment.
    Wrote(Box<Done>),
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
        if let Operation::Abandon(op) = &command.operation {
            let key = request_key(op.family, &op.namespace, &op.request_id);
            return self.abandoned(key, outcome);
        }
        if let Some(key) = key_of(&command.operation) {
            self.answered(key, outcome, answer_of(&command.operation, outcome));
        }
    }

    /// Whether a command comes for a request that the service may have forgotten.
    pub(super) fn is_forgotten(&self, command: &Command, time: ClusterTime) -> bool {
        let Operation::Acquire(op) = &command.operation else { return false };
        let key = request_key(Family::Lock, &op.namespace, &op.request_id);
        let answered = self.answers.get(&key);
        answered.is_some_and(|(_, at)| at.until(time) > MEMORY_MS)
    }

    fn answered(&mut self, key: String, outcome: &Outcome, now: Answer) {
        let time = outcome.time;
        if now == Answer::None {
            return;
        }
        let before = self.answers.get(&key);
        let is_same = match before {
            None => true,
            Some((_, at)) if at.until(time) > REPEATS_MS => true,
            Some((before, _)) => may_follow(before, &now),
        };
        assert!(
            is_same,
            "S6: the same request, the same answer: {key} got {before:?}, now {now:?}"
        );
        // A refusal is remembered for so long from when it was decided, and not from when it was last repeated.
        let decided = match (before, &now) {
            (Some(&(_, at)), Answer::Refused(_)) if outcome.replayed.is_some() => at,
            _ => time,
        };
        self.answers.insert(key, (now, decided));
    }

    /// From here on it holds nothing and never will (S7).
    fn abandoned(&mut self, key: String, outcome: &Outcome) {
        let Ok(Done::Abandoned { was }) = &outcome.result else { return };
        let before = self.answers.get(&key).map(|(before, _)| before.clone());
        let now = match (was, &before) {
            (AbandonedWas::Unseen | AbandonedWas::Waiting, _) => Answer::Refused(Code::Abandoned),
            (AbandonedWas::Refused(code), _) => Answer::Refused(*code),
            // What was written, or told of a hold that was there already, stays.
            (AbandonedWas::Done, _) => return,
            (_, Some(Answer::Granted(_, token, _) | Answer::Ended(token))) => Answer::Ended(*token),
            (AbandonedWas::Granted | AbandonedWas::Ended(_), _) => Answer::Gone,
        };
        if let Some(before) = before {
            assert!(may_follow(&before, &now), "S6: {key} was {before:?}, abandoned it is {now:?}");
        }
        self.answers.insert(key, (now, outcome.time));
    }
}

/// Of a request that is remembered, in its scope.
fn key_of(operation: &Operation) -> Option<String> {
    let (family, namespace, request_id) = match operation {
        Operation::Acquire(op) => (Family::Lock, &op.namespace, &op.request_id),
        Operation::AcquireAll(op) => (Family::Lock, &op.namespace, &op.request_id),
        Operation::SetTokenFloor(op) => return Some(format!("admin:{}", op.request_id)),
        Operation::ForceRelease(op)
        | Operation::Election(ElectionCommand::ForceRelease(op))
        | Operation::Hold(HoldCommand::ForceRelease(op))
        | Operation::Job(JobCommand::ForceRelease(op)) => {
            (Family::Admin, &op.namespace, &op.request_id)
        }
        Operation::Election(op) => (Family::Election, op.namespace(), election_request(op)?),
        Operation::Hold(op) => (Family::Hold, op.namespace(), hold_request(op)?),
        Operation::Job(op) => (Family::Job, op.namespace(), job_request(op)?),
        Operation::Quota(op) => (Family::Quota, op.namespace(), op.request_id()),
        _ => return None,
    };
    Some(request_key(family, namespace, request_id))
}

fn election_request(op: &ElectionCommand) -> Option<&RequestId> {
    match op {
        ElectionCommand::Campaign(op) => Some(&op.request_id),
        ElectionCommand::Proclaim(op) => Some(&op.request_id),
        ElectionCommand::Handoff(op) => Some(&op.request_id),
        _ => None,
    }
}

fn hold_request(op: &HoldCommand) -> Option<&RequestId> {
    match op {
        HoldCommand::Hold(op) => Some(&op.request_id),
        HoldCommand::Renew(op) => Some(&op.request_id),
        HoldCommand::Begin(op) => Some(&op.request_id),
        HoldCommand::Release(op) => Some(&op.request_id),
        HoldCommand::ForceRelease(_) | HoldCommand::PutPolicy(_) => None,
    }
}

fn job_request(op: &JobCommand) -> Option<&RequestId> {
    match op {
        JobCommand::ClaimRun(op) => Some(&op.request_id),
        JobCommand::FinishRun(op) => Some(&op.request_id),
        JobCommand::Pause(op) | JobCommand::Resume(op) => Some(&op.request_id),
        JobCommand::Skip(op) | JobCommand::RunNow(op) => Some(&op.request_id),
        _ => None,
    }
}

fn answer_of(operation: &Operation, outcome: &Outcome) -> Answer {
    let reserves = matches!(operation, Operation::Quota(QuotaCommand::Reserve(_)));
    match &outcome.result {
        Ok(Done::Waiting(_)) => Answer::Waiting,
        Ok(Done::Quota(QuotaDone::Reserved(reserved))) if reserves => {
            Answer::Granted(LeaseId(reserved.reservation.0), reserved.fence, false)
        }
        Ok(done) => match done.grant() {
            Some(grant) => {
                let yours = matches!(done, Done::Held(held) if held.yours);
                Answer::Granted(grant.lease_id, grant.holdings[0].1, yours)
            }
            None => Answer::Wrote(Box::new(written(done))),
        },
        Err(refusal) => match (refusal.code, &refusal.detail) {
            (Code::LeaseEnded, Detail::Ended { token, .. }) => Answer::Ended(*token),
            (Code::ReservationEnded, Detail::Ended { token, .. }) if reserves => {
                Answer::Ended(*token)
            }
            (Code::Unavailable | Code::Overloaded, _) => Answer::None,
            (code, _) => Answer::Refused(code),
        },
    }
}

/// What was done, without what is told as of now.
fn written(done: &Done) -> Done {
    let mut done = done.clone();
    match &mut done {
        Done::HoldExtended(extended) => {
            extended.begun = false;
            (extended.renewed.expires_in_ms, extended.renewed.clipped) = (0, false);
            extended.renewed.final_deadline_in_ms = None;
        }
        Done::JobChanged { paused, .. } => *paused = false,
        Done::Quota(QuotaDone::Reserved(reserved)) => {
            (reserved.expires_in_ms, reserved.final_deadline_in_ms) = (0, 0);
            (reserved.items, reserved.state) = (Vec::new(), ReservationState::Reserved);
        }
        _ => {}
    }
    done
}

fn may_follow(before: &Answer, now: &Answer) -> bool {
    match (before, now) {
        (Answer::Granted(_, before, _), Answer::Ended(now)) => before == now,
        // A waiter was granted and ended since, or was refused in the queue.
        (Answer::Waiting, _) => true,
        (Answer::Gone, Answer::Ended(_)) => true,
        (Answer::Granted(..) | Answer::Ended(_), Answer::Gone) => true,
        (Answer::None, _) => true,
        // A write that was refused because a lease had ended is told so again, by its code.
        (Answer::Ended(_), Answer::Refused(Code::LeaseEnded)) => true,
        (before, now) => before == now,
    }
}
