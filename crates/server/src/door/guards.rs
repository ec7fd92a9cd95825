//! `POST /v1/guards/report`.

use super::{
    Door,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, mismatch},
    caller::Caller,
    fields,
    openapi::ReportProblems,
    problem::Refused,
    timeout::Timeout,
};
use crate::{
    metrics::{Kind, Mode},
    wire,
};
use axum::extract::State;
use sereno_api::{GuardReportRequest, GuardReported};
use sereno_core::{
    command::{Family, Operation, ReportGuard},
    ids::Token,
    names::{NamespaceName, ResourceName},
    outcome::Done,
};
use std::sync::Arc;

/// A fence guard says that it checks tokens, or tells of a write that it refused.
///
/// Goes into metrics and the audit trail; nothing is decided by it.
#[utoipa::path(
    post, path = "/v1/guards/report", operation_id = "reportGuard", tag = "guards",
    params(super::openapi::TimeoutHeader),
    request_body = GuardReportRequest,
    responses((status = 200, description = "On record.", body = GuardReported), ReportProblems)
)]
pub(super) async fn report(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<GuardReportRequest>,
) -> Result<Answer<GuardReported>, Refused> {
    let (kind, mode, caller) = (Kind::ReportGuard, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_report(&door, &request))?;
    let decided = door.call(asked, Operation::ReportGuard(operation)).await?;
    let Done::GuardReported = decided.done else { mismatch(kind) };
    Ok(ok(GuardReported {
        recorded: true,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

fn to_report(door: &Door, request: &GuardReportRequest) -> Result<ReportGuard, Refused> {
    let (namespace, family, resource) = parts(door, &request.fence_key)?;
    let (token, highest) = tokens(request)?;
    Ok(ReportGuard {
        namespace,
        family,
        resource,
        guard: fields::person("guard", &request.guard)?,
        token,
        highest,
        request_id: fields::request_id(&request.request_id)?,
    })
}

/// What no guard can have seen is no report: it would count as a zombie's write that never was.
fn tokens(request: &GuardReportRequest) -> Result<(Option<Token>, Option<Token>), Refused> {
    let rule = match (request.token, request.highest) {
        (None, Some(_)) => Some("is only told together with token, the one that was refused"),
        (Some(token), Some(highest)) if highest <= token => {
            Some("must be above token: a guard refuses lower tokens only")
        }
        _ => None,
    };
    if let Some(rule) = rule {
        return Err(Refused::invalid("highest", rule));
    }
    let token = |field, token: Option<u64>| token.map(|t| fields::token(field, t)).transpose();
    Ok((token("token", request.token)?, token("highest", request.highest)?))
}

/// `namespace/family/name`
fn parts(door: &Door, fence_key: &str) -> Result<(NamespaceName, Family, ResourceName), Refused> {
    let invalid = |rule: &str| Refused::invalid("fenceKey", rule);
    let mut parts = fence_key.splitn(3, '/');
    let (Some(namespace), Some(family), Some(name)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(invalid("must be namespace/family/name, as told in a grant"));
    };
    let leased = wire::to_family(family).filter(|family| *family != Family::Admin);
    let family =
        leased.ok_or_else(|| invalid("its family must be lock, election, job, hold or quota"))?;
    Ok((door.namespace(namespace)?, family, fields::resource("fenceKey", name)?))
}
