//! `GET /v1/jobs` and `GET /v1/jobs/{job}`.

use super::{
    Door,
    answer::{Answer, ok},
    holds::cursor_of,
    openapi::{GetProblems, ListProblems},
    problem::Refused,
    query::Params,
    reads::name_of,
    refusal,
    timeout::Timeout,
};
use crate::{time, wire};
use axum::extract::State;
use hyper::Uri;
use sereno_api::{ErrorCode, Job, JobPage, JobRow, Millis, Missed, Overlap, Run};
use sereno_core::{
    self as core, command,
    query::{JobView, RunView},
};
use sereno_schedule::instant;
use std::sync::Arc;

/// The folder of jobs.
pub(super) const JOBS: &str = "/v1/jobs/";

/// One job: its definition, and the ledger of its runs.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", operation_id = "getJob", tag = "jobs",
    params(
        (
            "job" = String, Path, description = "The job: the rest of the path, percent-decoded once.",
            max_length = 256,
            pattern = "^(?!(put|claim-run|renew-run|finish-run|abandon|force-release|pause|resume|skip|run-now)$)\
                [A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$",
        ),
        super::openapi::NamespaceParam, super::openapi::ConsistencyParam, super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "The job.", body = Job), GetProblems)
)]
pub(super) async fn get_job(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<Job>, Refused> {
    let params = Params::parse(uri.query(), &["namespace", "consistency"])?;
    let name = name_of(JOBS, "job", uri.path())?;
    let namespace = door.namespace_of(&params)?;
    let (asked, job) = (namespace.clone(), name.clone());
    let read = move |state: &core::State| state.job_view(&asked, &job);
    let (view, at) = door.read(params.consistency()?, timeout, read).await?;
    let view = view.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let missing = || Refused::new(ErrorCode::NotFound, format!("there is no job {name}"));
    let JobRow {
        job,
        version,
        schedule,
        zone,
        missed,
        overlap,
        retries,
        max_run,
        paused,
        watermark,
        ..
    } = row(view.as_ref().ok_or_else(missing)?);
    Ok(ok(Job {
        job,
        version,
        schedule,
        zone,
        missed,
        overlap,
        retries,
        max_run,
        paused,
        watermark,
        runs: view.iter().flat_map(|view| &view.runs).map(run).collect(),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// Jobs by name, each with its newest slot.
#[utoipa::path(
    get, path = "/v1/jobs", operation_id = "listJobs", tag = "jobs",
    params(
        super::openapi::NamespaceParam, super::openapi::NamesParams, super::openapi::ConsistencyParam,
        super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "One page.", body = JobPage), ListProblems)
)]
pub(super) async fn list_jobs(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<JobPage>, Refused> {
    let allowed = ["namespace", "prefix", "limit", "cursor", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let (prefix, after, limit) = (params.prefix()?, cursor_of(&params)?, params.limit()?);
    let asked = namespace.clone();
    // One more than asked for tells whether another page follows.
    let read = move |state: &core::State| state.list_jobs(&asked, &prefix, &after, limit + 1);
    let (views, at) = door.read(params.consistency()?, timeout, read).await?;
    let views = views.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let (page, rest) = views.split_at(views.len().min(limit));
    let last = page.last().filter(|_| !rest.is_empty());
    Ok(ok(JobPage {
        jobs: page.iter().map(row).collect(),
        next_cursor: last.map(|view| view.job.to_string()),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

fn row(view: &JobView) -> JobRow {
    let definition = &view.definition;
    JobRow {
        job: view.job.to_string(),
        version: view.version,
        schedule: definition.schedule.to_string(),
        zone: definition.zone.to_string(),
        missed: match definition.missed {
            command::Missed::Skip => Missed::Skip,
            command::Missed::Latest => Missed::Latest,
            command::Missed::All => Missed::All,
        },
        overlap: if definition.overlap { Overlap::Allow } else { Overlap::Forbid },
        retries: definition.retries,
        max_run: Millis(definition.max_run_ms),
        paused: view.paused,
        watermark: instant::format(view.watermark.0),
        last: view.runs.first().map(run),
    }
}

fn run(view: &RunView) -> Run {
    let last = view.last.as_ref();
    Run {
        slot: instant::format(view.slot.0),
        state: wire::run_state(view.state),
        attempt: view.attempt,
        fencing_token: last.map(|last| last.token.0),
        owner: last.map(|last| last.owner.to_string()),
        started_at: last.map(|last| time::rfc3339(last.started_at_ms)),
        ended_at: last.and_then(|last| last.ended_at_ms).map(time::rfc3339),
        end: last.and_then(|last| last.end).map(wire::end),
        expires_in_ms: last.and_then(|last| last.expires_in_ms),
        reason: view.reason.as_ref().map(ToString::to_string),
    }
}
