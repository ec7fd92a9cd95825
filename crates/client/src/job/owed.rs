//! What is owed to the service for a claimed run: how it ended, or that it was never begun.

use crate::{
    core::Core,
    owed::until_decided,
    transport::{Answer, Ask},
};
use sereno_api::{AbandonRequest, FinishRunRequest, Problem, RunResult};

/// Which run, and the secret that proves whose it is.
#[derive(Clone, Debug)]
pub(super) struct RunRef {
    pub namespace: String,
    pub job: String,
    pub lease_id: String,
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
