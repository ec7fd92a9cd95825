//! `GET /v1/audit`.

use super::{
    Door,
    answer::{Answer, ok},
    caller::Caller,
    openapi::AuditProblems,
    problem::Refused,
    query::Params,
};
use axum::extract::State;
use hyper::Uri;
use sereno_api::{AuditPage, ErrorCode};
use std::sync::Arc;

/// Numbers stay plain JSON numbers.
const LINES_MAX: u64 = (1 << 53) - 1;

/// Lines of the audit trail.
///
/// Everything that this node had applied when the call arrived is in it.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "readAudit", tag = "operations",
    params(super::openapi::AuditParams),
    responses((status = 200, description = "Lines in order.", body = AuditPage), AuditProblems)
)]
pub(super) async fn read_audit(
    State(door): State<Arc<Door>>,
    caller: Caller,
    uri: Uri,
) -> Result<Answer<AuditPage>, Refused> {
    caller.require_admin()?;
    let params = Params::parse(uri.query(), &["from", "limit"])?;
    let from = params.number("from", 1, 0, LINES_MAX)?;
    let limit = params.limit()?;
    let Some(audit) = &door.audit else {
        return Err(Refused::new(
            ErrorCode::NotFound,
            "a server with --log memory keeps no audit trail",
        ));
    };
    let lines =
        audit.read(from, limit).await.map_err(|error| Refused::unavailable(error, 1_000))?;
    let next_from = lines.last().map_or(from, |line| line.seq + 1);
    Ok(ok(AuditPage { lines, next_from }))
}
