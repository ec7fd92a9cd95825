//! `POST /v1/jobs/{claim-run, renew-run, finish-run, abandon}`: what replicas do.

use super::{
    Door,
    acquire::{draw_lease_id, expires_at},
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields, lease,
    openapi::{ClaimProblems, FinishProblems, LeaseProblems, RenewProblems},
    problem::Refused,
    timeout::Timeout,
    views::fence_key_of,
};
use crate::{
    metrics::{Kind, Mode},
    wire,
};
use axum::extract::State;
use sereno_api::{
    AbandonRequest, Abandoned, ClaimRunRequest, ClaimedState, FinishRunRequest, RenewRunRequest,
    Renewed, RunClaimed, RunFinished,
};
use sereno_core::{
    command::{ClaimRun, Family, FinishRun, JobCommand, LeaseRef, Operation, Renew, RunResult},
    names::NamespaceName,
    outcome::{self, Done},
};
use sereno_schedule::instant;
use std::sync::Arc;

fn lease_of(job: &str, lease_id: &str) -> Result<LeaseRef, Refused> {
    Ok(LeaseRef {
        resource: fields::resource("job", job)?,
        lease_id: fields::lease_id("leaseId", lease_id)?,
    })
}

/// Claims a slot: the attempt is a lease, renewed like a lock's, and bounded by the job's `maxRun`.
#[utoipa::path(
    post, path = "/v1/jobs/claim-run", operation_id = "claimRun", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = ClaimRunRequest,
    responses((status = 200, description = "The attempt is the caller's.", body = RunClaimed), ClaimProblems)
)]
pub(super) async fn claim(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ClaimRunRequest>,
) -> Result<Answer<RunClaimed>, Refused> {
    let (kind, mode, caller) = (Kind::ClaimRun, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_claim = || {
        Ok(ClaimRun {
            namespace: door.namespace(&request.namespace)?,
            job: fields::resource("job", &request.job)?,
            job_version: request.job_version,
            slot: fields::slot(&request.slot)?,
            request_id: fields::request_id(&request.request_id)?,
            owner: fields::owner(&request.owner)?,
            lease_id: draw_lease_id(),
            lease_ttl_ms: fields::millis(request.lease_ttl),
            labels: fields::labels(request.labels.clone())?,
        })
    };
    let operation = door.counted(kind, to_claim())?;
    let namespace = operation.namespace.clone();
    let decided = door.call(asked, Operation::Job(JobCommand::ClaimRun(operation))).await?;
    let Done::RunClaimed(run) = &decided.done else { mismatch(kind) };
    Ok(ok(claimed(&namespace, request.job, run, &decided)))
}

fn claimed(
    namespace: &NamespaceName,
    job: String,
    run: &outcome::RunClaimed,
    decided: &Decided,
) -> RunClaimed {
    let grant = &run.grant;
    let [(name, token)] = grant.holdings.as_slice() else { mismatch(Kind::ClaimRun) };
    RunClaimed {
        state: ClaimedState::Claimed,
        job,
        slot: instant::format(run.slot.0),
        attempt: run.attempt,
        fence_key: fence_key_of(namespace, Family::Job, name.as_str()),
        lease_id: wire::hex(&grant.lease_id.0),
        fencing_token: token.0,
        expires_at: expires_at(grant.expires_in_ms),
        expires_in_ms: grant.expires_in_ms,
        final_deadline_in_ms: grant.final_deadline_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

/// Moves an attempt's deadline forward, as far as the job's `maxRun` allows.
#[utoipa::path(
    post, path = "/v1/jobs/renew-run", operation_id = "renewRun", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = RenewRunRequest,
    responses((status = 200, description = "The attempt goes on.", body = Renewed), RenewProblems)
)]
pub(super) async fn renew(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RenewRunRequest>,
) -> Result<Answer<Renewed>, Refused> {
    let (kind, mode, caller) = (Kind::RenewRun, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_renew = || {
        Ok(Renew {
            namespace: door.namespace(&request.namespace)?,
            lease: lease_of(&request.job, &request.lease_id)?,
            lease_ttl_ms: fields::millis(request.lease_ttl),
        })
    };
    let operation = JobCommand::RenewRun(door.counted(kind, to_renew())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    Ok(ok(lease::renewed(kind, decided)))
}

/// Tells how an attempt ended.
///
/// Accepted after the end of its lease too, while no later attempt was claimed.
#[utoipa::path(
    post, path = "/v1/jobs/finish-run", operation_id = "finishRun", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = FinishRunRequest,
    responses((status = 200, description = "It stands in the ledger.", body = RunFinished), FinishProblems)
)]
pub(super) async fn finish(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<FinishRunRequest>,
) -> Result<Answer<RunFinished>, Refused> {
    let (kind, mode, caller) = (Kind::FinishRun, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_finish = || {
        Ok(FinishRun {
            namespace: door.namespace(&request.namespace)?,
            lease: lease_of(&request.job, &request.lease_id)?,
            result: match request.result {
                sereno_api::RunResult::Succeeded => RunResult::Succeeded,
                sereno_api::RunResult::Failed => RunResult::Failed,
                _ => return Err(Refused::invalid("result", "must be succeeded or failed")),
            },
            request_id: fields::request_id(&request.request_id)?,
        })
    };
    let operation = JobCommand::FinishRun(door.counted(kind, to_finish())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    let Done::RunFinished(finished) = decided.done else { mismatch(kind) };
    Ok(ok(RunFinished {
        job: request.job,
        slot: instant::format(finished.slot.0),
        attempt: finished.attempt,
        state: wire::run_state(finished.state),
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

/// Undoes a claim whose answer was lost: an attempt that was never begun does not count.
#[utoipa::path(
    post, path = "/v1/jobs/abandon", operation_id = "abandonClaim", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = AbandonRequest,
    responses(
        (status = 200, description = "The claim holds nothing and will not.", body = Abandoned),
        LeaseProblems,
    )
)]
pub(super) async fn abandon(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AbandonRequest>,
) -> Result<Answer<Abandoned>, Refused> {
    door.abandon(Family::Job, caller, timeout, &request).await
}
