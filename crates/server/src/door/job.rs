//! `POST /v1/jobs/{put, pause, resume, skip, run-now, force-release}`: what a job is, and what operators do to it.

use super::{
    Door,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields, lease,
    openapi::{ForceProblems, JobProblems, PutJobProblems},
    problem::Refused,
    timeout::Timeout,
};
use crate::{
    metrics::{Kind, Mode},
    time,
};
use axum::extract::State;
use sereno_api::{
    ForceReleaseRunRequest, ForceReleased, JobChanged, JobPut, PauseJobRequest, PutJobRequest,
    RunNowRequest, SlotRequest,
};
use sereno_core::{
    command::{
        ForceRelease, JobCommand, JobDefinition, Missed, Operation, PauseJob, PutJob, SlotOfJob,
    },
    ids::Slot,
    names::{ScheduleText, ZoneName},
    outcome::Done,
};
use sereno_schedule::{Schedule, instant};
use std::sync::Arc;

const MAX_RUN_MS_DEFAULT: u64 = 3_600_000;

/// Creates a job, or replaces its definition.
#[utoipa::path(
    post, path = "/v1/jobs/put", operation_id = "putJob", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = PutJobRequest,
    responses((status = 200, description = "Created or replaced.", body = JobPut), PutJobProblems)
)]
pub(super) async fn put(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<PutJobRequest>,
) -> Result<Answer<JobPut>, Refused> {
    let (kind, mode, caller) = (Kind::PutJob, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_put = || {
        Ok(PutJob {
            namespace: door.namespace(&request.namespace)?,
            job: fields::resource("job", &request.job)?,
            expected_version: request.expected_version,
            definition: to_definition(&request)?,
        })
    };
    let operation = JobCommand::Put(door.counted(kind, to_put())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    let Done::JobPut { version } = decided.done else { mismatch(kind) };
    let (revision, cluster_time_ms) = (decided.revision, decided.time);
    Ok(ok(JobPut { job: request.job, version, revision, cluster_time_ms }))
}

fn to_definition(request: &PutJobRequest) -> Result<JobDefinition, Refused> {
    let invalid = |field: &'static str| move |rule: String| Refused::invalid(field, rule);
    let schedule = ScheduleText::new(&request.schedule).map_err(invalid("schedule"))?;
    let zone = ZoneName::new(&request.zone).map_err(invalid("zone"))?;
    // The core keeps both as texts: what they mean is for replicas, and what they must be for this door.
    Schedule::parse(&request.schedule, &request.zone)
        .map_err(|wrong| Refused::invalid(wrong.part.as_str(), wrong.rule))?;
    Ok(JobDefinition {
        schedule,
        zone,
        missed: match request.missed {
            None | Some(sereno_api::Missed::Latest) => Missed::Latest,
            Some(sereno_api::Missed::Skip) => Missed::Skip,
            Some(sereno_api::Missed::All) => Missed::All,
            Some(_) => {
                return Err(Refused::invalid("missed", "must be skip, latest or all"));
            }
        },
        overlap: match request.overlap {
            None | Some(sereno_api::Overlap::Forbid) => false,
            Some(sereno_api::Overlap::Allow) => true,
            Some(_) => return Err(Refused::invalid("overlap", "must be forbid or allow")),
        },
        retries: request.retries.unwrap_or(0),
        max_run_ms: request.max_run.map_or(MAX_RUN_MS_DEFAULT, |millis| millis.0),
    })
}

/// Pauses a job: nothing is claimed until it is resumed. Runs under way go on.
#[utoipa::path(
    post, path = "/v1/jobs/pause", operation_id = "pauseJob", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = PauseJobRequest,
    responses((status = 200, description = "Paused.", body = JobChanged), JobProblems)
)]
pub(super) async fn pause(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<PauseJobRequest>,
) -> Result<Answer<JobChanged>, Refused> {
    pause_or_resume(&door, caller, timeout, request, JobCommand::Pause).await
}

/// Resumes a paused job. What becomes of the slots that it missed says its `missed`.
#[utoipa::path(
    post, path = "/v1/jobs/resume", operation_id = "resumeJob", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = PauseJobRequest,
    responses((status = 200, description = "Resumed.", body = JobChanged), JobProblems)
)]
pub(super) async fn resume(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<PauseJobRequest>,
) -> Result<Answer<JobChanged>, Refused> {
    pause_or_resume(&door, caller, timeout, request, JobCommand::Resume).await
}

async fn pause_or_resume(
    door: &Door,
    caller: Caller,
    timeout: Timeout,
    request: PauseJobRequest,
    command: fn(PauseJob) -> JobCommand,
) -> Result<Answer<JobChanged>, Refused> {
    let (kind, mode, caller) = (Kind::ChangeJob, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_pause = || {
        Ok(PauseJob {
            namespace: door.namespace(&request.namespace)?,
            job: fields::resource("job", &request.job)?,
            request_id: fields::request_id(&request.request_id)?,
            reason: fields::reason(&request.reason)?,
        })
    };
    let operation = command(door.counted(kind, to_pause())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    Ok(ok(changed(request.job, decided)))
}

fn changed(job: String, decided: Decided) -> JobChanged {
    let Done::JobChanged { paused, slot } = decided.done else { mismatch(Kind::ChangeJob) };
    JobChanged {
        job,
        paused,
        slot: slot.map(|slot| instant::format(slot.0)),
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

/// Leaves a slot out: it counts as finished. Not while an attempt on it is under way.
#[utoipa::path(
    post, path = "/v1/jobs/skip", operation_id = "skipSlot", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = SlotRequest,
    responses((status = 200, description = "The slot counts as finished.", body = JobChanged), JobProblems)
)]
pub(super) async fn skip(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<SlotRequest>,
) -> Result<Answer<JobChanged>, Refused> {
    let (kind, mode, caller) = (Kind::ChangeJob, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_skip = || {
        Ok(SlotOfJob {
            namespace: door.namespace(&request.namespace)?,
            job: fields::resource("job", &request.job)?,
            slot: fields::slot(&request.slot)?,
            request_id: fields::request_id(&request.request_id)?,
            reason: fields::reason(&request.reason)?,
        })
    };
    let operation = JobCommand::Skip(door.counted(kind, to_skip())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    Ok(ok(changed(request.job, decided)))
}

/// An extra slot at this moment, for any replica to claim.
#[utoipa::path(
    post, path = "/v1/jobs/run-now", operation_id = "runJobNow", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = RunNowRequest,
    responses((status = 200, description = "A replica will claim it.", body = JobChanged), JobProblems)
)]
pub(super) async fn run_now(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RunNowRequest>,
) -> Result<Answer<JobChanged>, Refused> {
    let (kind, mode, caller) = (Kind::ChangeJob, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_run = || {
        Ok(SlotOfJob {
            namespace: door.namespace(&request.namespace)?,
            job: fields::resource("job", &request.job)?,
            slot: Slot(time::now_unix_ms()),
            request_id: fields::request_id(&request.request_id)?,
            reason: fields::reason(&request.reason)?,
        })
    };
    let operation = JobCommand::RunNow(door.counted(kind, to_run())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    Ok(ok(changed(request.job, decided)))
}

/// Ends an attempt by an operator. The slot may be claimed again, within the job's retries.
#[utoipa::path(
    post, path = "/v1/jobs/force-release", operation_id = "forceReleaseRun", tag = "jobs",
    params(super::openapi::TimeoutHeader),
    request_body = ForceReleaseRunRequest,
    responses((status = 200, description = "The attempt was ended.", body = ForceReleased), ForceProblems)
)]
pub(super) async fn force_release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ForceReleaseRunRequest>,
) -> Result<Answer<ForceReleased>, Refused> {
    let (kind, mode, caller) = (Kind::ForceRelease, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_force = || {
        Ok(ForceRelease {
            namespace: door.namespace(&request.namespace)?,
            resource: fields::resource("job", &request.job)?,
            token: fields::token("fencingToken", request.fencing_token)?,
            request_id: fields::request_id(&request.request_id)?,
            reason: fields::reason(&request.reason)?,
        })
    };
    let operation = JobCommand::ForceRelease(door.counted(kind, to_force())?);
    let decided = door.call(asked, Operation::Job(operation)).await?;
    Ok(ok(lease::force_released(kind, decided)))
}
