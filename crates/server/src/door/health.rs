//! `/livez`, `/readyz`, `/metrics`.

use super::{Door, openapi::ReadyProblems, problem::Refused};
use crate::{
    cluster::NO_SPACE,
    metrics::{Present, Quotas, Sample},
};
use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use sereno_api::ErrorCode;
use sereno_node::handle::Consistency;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
/// What is asked of the node and the log has to come within this.
const PATIENCE: Duration = Duration::from_secs(2);

/// The process runs.
#[utoipa::path(
    get, path = "/livez", operation_id = "livez", tag = "operations",
    responses((status = 200, content_type = "text/plain", description = "It runs.", body = String))
)]
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// This node serves.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "operations",
    responses(
        (status = 200, content_type = "text/plain", description = "It serves.", body = String),
        ReadyProblems,
    )
)]
pub(super) async fn readyz(State(door): State<Arc<Door>>) -> Result<&'static str, Refused> {
    let status = door.node.status();
    // Where no process ends with it, a node that broke leaves its last status behind.
    if status.has_changed().is_err() {
        return Err(Refused::unavailable("the node has stopped", 1_000));
    }
    if door.reach.storage.etcd().is_some_and(|etcd| etcd.room.no_space) {
        return Err(Refused::unavailable(NO_SPACE, 5_000));
    }
    match &status.borrow().not_ready {
        None => Ok("ready\n"),
        Some(reason) => Err(Refused::unavailable(reason.as_str(), 1_000)),
    }
}

/// Metrics, in the text format that Prometheus reads.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operations",
    responses(
        (status = 200, content_type = "application/openmetrics-text", description = "All metrics.", body = String),
        ReadyProblems,
    )
)]
pub(super) async fn metrics(State(door): State<Arc<Door>>) -> Result<Response, Refused> {
    let status = door.node.status().borrow().clone();
    let deadline = Instant::now() + PATIENCE;
    // A node that has stopped has no namespaces to tell of; its counters are still worth something.
    let read = |state: &_| (Sample::read(state), Quotas::read(state));
    let read = door.node.read(Consistency::Stale, deadline, read).await;
    let (namespaces, quotas) = read.map(|(read, _)| read).unwrap_or_default();
    let log_bytes = tokio::time::timeout(PATIENCE, door.log.usage()).await;
    let present = Present {
        status,
        uptime: door.started.elapsed(),
        log_bytes: log_bytes.ok().and_then(Result::ok).map(|usage| usage.bytes),
        namespaces,
        quotas,
        etcd: door.reach.storage.etcd(),
        audit_queue: door.audit.as_ref().map(|audit| audit.queued()),
    };
    let text = door.metrics.encode(&present);
    let text = text.map_err(|error| Refused::new(ErrorCode::Unavailable, error.to_string()))?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}
