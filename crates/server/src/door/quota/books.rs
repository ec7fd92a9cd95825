//! `POST /v1/quotas/{report-usage, reconcile, adjust}`: the books against reality.

use super::{Write, Written, fields as own, views};
use crate::{
    door::{
        Door,
        answer::{Answer, ok},
        body::Json,
        call::mismatch,
        caller::Caller,
        fields,
        openapi::{ReconcileProblems, UseProblems},
        problem::Refused,
        timeout::Timeout,
    },
    metrics::Kind,
};
use axum::extract::State;
use sereno_api::{
    AdjustRequest, Adjusted, Adjustment, ReconcileRequest, Reconciled, ReportUsageRequest,
    UsageReported,
};
use sereno_core::{
    command::{self, Adjust, QuotaCommand, Reconcile, ReportUsage},
    ids::{ClusterTime, Revision},
    outcome::QuotaDone,
};
use std::sync::Arc;

/// Takes one count of real use, against what one read of the node said.
///
/// `committedThen`, `asOfRevision` and `clusterTimeMs` are `committed`, `revision` and `clusterTimeMs` of that read, at
/// most an hour ago. Reservations in flight, commits and returns since explain a part of the difference; the rest is
/// drift.
#[utoipa::path(
    post, path = "/v1/quotas/report-usage", operation_id = "reportUsage", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ReportUsageRequest,
    responses((status = 200, description = "The report is on record.", body = UsageReported), ReconcileProblems)
)]
pub(in crate::door) async fn report(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReportUsageRequest>,
) -> Result<Answer<UsageReported>, Refused> {
    let (kind, caller) = (Kind::ReportUsage, caller.name());
    let command = || {
        Ok(QuotaCommand::ReportUsage(ReportUsage {
            namespace: door.namespace(&request.namespace)?,
            node: own::node(&request.quota, &request.path)?,
            reporter: fields::person("reporter", &request.reporter)?,
            epoch: request.epoch,
            observed: request.observed,
            as_of: Revision(request.as_of_revision),
            committed_then: request.committed_then,
            read_at: ClusterTime(request.cluster_time_ms),
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Reported(drift) = done else { mismatch(kind) };
    Ok(ok(UsageReported {
        drift: views::drift(&drift),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

/// Brings committed use to what a report has counted, once.
///
/// It takes two reports in a row that agree, unless `atOnce` says otherwise; a report is compensated once, however
/// often this is called. `dryRun` only says what would be done.
#[utoipa::path(
    post, path = "/v1/quotas/reconcile", operation_id = "reconcile", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ReconcileRequest,
    responses((status = 200, description = "What was done, or would be.", body = Reconciled), ReconcileProblems)
)]
pub(in crate::door) async fn reconcile(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReconcileRequest>,
) -> Result<Answer<Reconciled>, Refused> {
    let (kind, caller) = (Kind::Reconcile, caller.require_admin()?);
    let command = || {
        Ok(QuotaCommand::Reconcile(Reconcile {
            namespace: door.namespace(&request.namespace)?,
            node: own::node(&request.quota, &request.path)?,
            reporter: fields::person("reporter", &request.reporter)?,
            epoch: request.epoch,
            dry_run: request.dry_run,
            at_once: request.at_once,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Reconciled(done) = done else { mismatch(kind) };
    Ok(ok(Reconciled {
        change: done.change,
        dry_run: done.dry_run,
        already: done.already,
        waits_for_another: done.waits_for_another,
        commit_id: done.commit.map(|commit| commit.0),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

/// Changes committed use by an operator, who knows what is real. No limit is asked. Goes into the audit trail.
#[utoipa::path(
    post, path = "/v1/quotas/adjust", operation_id = "adjustUse", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = AdjustRequest,
    responses((status = 200, description = "The books say so now.", body = Adjusted), UseProblems)
)]
pub(in crate::door) async fn adjust(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AdjustRequest>,
) -> Result<Answer<Adjusted>, Refused> {
    let (kind, caller) = (Kind::ChangeQuota, caller.require_admin()?);
    let command = || {
        Ok(QuotaCommand::Adjust(Adjust {
            namespace: door.namespace(&request.namespace)?,
            node: own::node(&request.quota, &request.path)?,
            owner: fields::owner(&request.owner)?,
            change: match request.change {
                Adjustment::Add => command::Adjustment::Add(request.amount),
                Adjustment::Subtract => command::Adjustment::Subtract(request.amount),
                _ => return Err(Refused::invalid("change", "must be add or subtract")),
            },
            reason: fields::reason(&request.reason)?,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Adjusted { committed, commit } = done else { mismatch(kind) };
    Ok(ok(Adjusted {
        committed,
        commit_id: commit.map(|commit| commit.0),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}
