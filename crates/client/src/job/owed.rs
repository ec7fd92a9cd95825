//! What is owed to the service for a claimed run: how it ended, or that it was never begun.

use crate::{
    core::{Core, Heard, retry_pause},
    servers::Round,
    transport::{Answer, Ask},
};
use sereno_api::{AbandonRequest, FinishRunRequest, Problem, RunResult};
use std::time::Duration;

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Long after the end of any lease: a later attempt has then been claimed, or nobody is there to claim one.
const OWED_FOR: Duration = Duration::from_secs(3_600);

/// Which run, and the secret that proves whose it is.
#[derive(Clone, Debug)]
pub(super) struct RunRef {
    pub namespace: String,
    pub job: String,
    pub lease_id: String,
}

/// Repeats the same call until the service has decided. `Ok(None)`: it has not, in an hour.
async fn until_decided(
    core: &Core,
    ask: impl Fn(Option<u64>) -> Ask,
) -> Result<Option<Answer>, Box<Problem>> {
    let decided = async {
        let (mut attempt, mut round) = (0, Round::default());
        loop {
            let heard = {
                let _turn = core.owed_calls.acquire().await;
                core.attempt(&mut round, &ask(core.born_at()), ATTEMPT_TIMEOUT).await
            };
            match heard {
                Heard::Done(answer) => return Ok(answer),
                Heard::Problem(problem) if !may_be_decided_later(&problem) => return Err(problem),
                Heard::Problem(_) | Heard::Nothing(_) => {}
            }
            tokio::time::sleep(retry_pause(attempt, core.transport.len())).await;
            attempt = attempt.saturating_add(1);
        }
    };
    match tokio::time::timeout(OWED_FOR, decided).await {
        Ok(decided) => decided.map(Some),
        Err(_) => Ok(None),
    }
}

/// No answer of the ledger's: the service is busy, or away.
fn may_be_decided_later(problem: &Problem) -> bool {
    use sereno_api::RetryWith::{NewRequestId, SameRequestId};
    match problem.retry_with {
        Some(SameRequestId) => true,
        Some(NewRequestId) => problem.status == 429,
        _ => false,
    }
}

/// Tells how a run ended, with one request id over all repeats.
pub(super) async fn finish(
    core: &Core,
    run: &RunRef,
    result: RunResult,
    request_id: &str,
) -> Result<Option<Answer>, Box<Problem>> {
    let ask = |born_at| {
        let request = FinishRunRequest {
            namespace: run.namespace.clone(),
            job: run.job.clone(),
            lease_id: run.lease_id.clone(),
            result,
            request_id: request_id.into(),
            born_at,
        };
        Ask::post("/v1/jobs/finish-run", &request)
    };
    until_decided(core, ask).await
}

/// Makes sure that a claim holds nothing. If it was granted the attempt counts as never begun.
pub(super) async fn abandon(core: &Core, namespace: &str, request_id: &str) {
    let ask = |born_at| {
        let request =
            AbandonRequest { namespace: namespace.into(), request_id: request_id.into(), born_at };
        Ask::post("/v1/jobs/abandon", &request)
    };
    let _ = until_decided(core, ask).await;
}
