//! One call: to the node, and its answer counted.

use super::{Door, problem::Refused, refusal, timeout::Timeout};
use crate::metrics::{Kind, Mode, OK, WAITING};
use sereno_api::RetryWith;
use sereno_core::{
    command::Operation,
    ids::ClusterTime,
    names::Caller,
    outcome::{Done, Outcome},
};
use sereno_node::handle::{Call, Consistency, Reply};
use std::time::Duration;

/// Somebody has to make room: until then it is of no use to ask often.
const STORAGE_RETRY_MS: u64 = 10_000;

/// What the log has done.
pub(super) struct Decided {
    pub(super) done: Done,
    pub(super) revision: u64,
    pub(super) time: u64,
    /// Of an answer from the reply memory: the first one's revision.
    pub(super) replayed: Option<u64>,
}

/// How a call is to be made.
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) mode: Mode,
    pub(super) caller: Caller,
    pub(super) born_at: Option<u64>,
    pub(super) timeout: Timeout,
}

impl Door {
    /// Carries out one call and counts its answer.
    pub(super) async fn call(
        &self,
        asked: Asked,
        operation: Operation,
    ) -> Result<Decided, Refused> {
        let Asked { kind, mode, timeout, .. } = asked;
        let result = self.call_uncounted(asked, operation).await;
        let code = match &result {
            Ok(Decided { done: Done::Waiting(_), .. }) => WAITING,
            Ok(_) => OK,
            Err(refused) => refused.code().as_str(),
        };
        self.metrics.calls.answered(kind, mode, code, timeout.elapsed());
        result
    }

    /// Whether the request is remembered here: who waits may ask on, and whose answer was lost gets it.
    async fn is_repeat(&self, asked: &Asked, operation: &Operation) -> bool {
        let (caller, operation) = (asked.caller.clone(), operation.clone());
        let remembers = move |state: &sereno_core::State| state.remembers(&caller, &operation);
        let read = self.node.read(Consistency::Stale, asked.timeout.deadline(), remembers).await;
        read.is_ok_and(|(is_repeat, _)| is_repeat)
    }

    /// The same for a part of a call that is counted as a whole.
    pub(super) async fn call_uncounted(
        &self,
        asked: Asked,
        operation: Operation,
    ) -> Result<Decided, Refused> {
        if asked.kind.asks()
            && let Some((code, reason)) = self.reach.storage.refuses()
            && !self.is_repeat(&asked, &operation).await
        {
            let refused = Refused::new(code, reason);
            return Err(refused.with(|problem| {
                problem.retry_with = Some(RetryWith::SameRequestId);
                problem.retry_after_ms = Some(STORAGE_RETRY_MS);
            }));
        }
        let hold = match asked.mode {
            Mode::Now => Duration::ZERO,
            Mode::Wait => asked.timeout.hold(),
        };
        let call = Call {
            caller: asked.caller,
            operation,
            born_at: asked.born_at.map(ClusterTime),
            deadline: asked.timeout.deadline(),
            hold,
            is_passed: false,
        };
        match self.node.call(call).await {
            Reply::Decided(outcome) => decided(asked.kind, outcome),
            Reply::Undecided(undecided) => {
                let time = self.node.status().borrow().time;
                let refused = refusal::undecided(undecided);
                Err(refused.with(|problem| problem.cluster_time_ms = Some(time.0)))
            }
        }
    }
}

fn decided(kind: Kind, mut outcome: Outcome) -> Result<Decided, Refused> {
    let nothing = Ok(Done::TrimHeld);
    match std::mem::replace(&mut outcome.result, nothing) {
        Ok(done) => Ok(Decided {
            done,
            revision: outcome.revision.0,
            time: outcome.time.0,
            replayed: outcome.replayed.map(|first| first.0),
        }),
        Err(refusal) => Err(refusal::refused(kind, refusal, &outcome)),
    }
}

/// A core that answers with something else than was asked for is broken, and nothing it says can be trusted.
pub(super) fn mismatch(kind: Kind) -> ! {
    panic!("the state answered {kind:?} with the outcome of another operation")
}
