//! `GET /v1/status`.

use super::{
    Door,
    answer::{Answer, ok},
    openapi::PlainProblems,
    problem::Refused,
    query::Params,
};
use axum::extract::State;
use hyper::Uri;
use sereno_api::{Role, Status};
use sereno_node::handle;
use std::sync::Arc;

/// This node's condition, as it is: at most a tenth of a second old, and confirmed by nobody.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "getStatus", tag = "operations",
    responses((status = 200, description = "The node's condition.", body = Status), PlainProblems)
)]
pub(super) async fn get_status(
    State(door): State<Arc<Door>>,
    uri: Uri,
) -> Result<Answer<Status>, Refused> {
    Params::parse(uri.query(), &[])?;
    let status = door.node.status().borrow().clone();
    let (role, epoch) = match status.role {
        handle::Role::Follower => (Role::Follower, None),
        handle::Role::Leader { epoch } => (Role::Leader, Some(epoch.0)),
        handle::Role::Suspect => (Role::Suspect, None),
        handle::Role::Stopped => (Role::Stopped, None),
    };
    Ok(ok(Status {
        node_id: status.node_id,
        version: env!("CARGO_PKG_VERSION").into(),
        role,
        epoch,
        ready: status.not_ready.is_none(),
        not_ready: status.not_ready,
        log_id: status.log_id.to_hex(),
        position: status.position.0,
        revision: status.revision.0,
        cluster_time_ms: status.time.0,
        level: status.level,
        leases: status.leases,
        waiters: status.waiters,
        reply_records: status.reply_records,
        sweep_due: status.sweep_due,
        sweep_oldest_ms: status.sweep_oldest_ms,
        snapshot_position: status.snapshot.map(|position| position.0),
        snapshot_age_ms: status.snapshot_age_ms,
        log_bytes_since_snapshot: status.log_bytes_since_snapshot,
        paused_ms: status.paused_ms,
        trim_held: status.trim_held,
        intake: status.intake,
    }))
}
