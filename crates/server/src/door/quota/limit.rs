//! `POST /v1/quotas/{put-limit, remove-node}`.

use super::{Write, Written, fields as own};
use crate::{
    door::{
        Door,
        answer::{Answer, ok},
        body::Json,
        call::mismatch,
        caller::Caller,
        fields,
        openapi::LimitProblems,
        problem::Refused,
        timeout::Timeout,
    },
    metrics::Kind,
};
use axum::extract::State;
use sereno_api::{LimitPut, NodeRemoved, PutLimitRequest, RemoveNodeRequest};
use sereno_core::{
    command::{NodeLimits, PutLimit, QuotaCommand, RemoveNode},
    outcome::QuotaDone,
};
use std::sync::Arc;

/// Creates a node of a quota's tree, or replaces all its rules.
///
/// The node above it has to be there. A limit below what is used is taken: the excess shows as `debt`, and until it has
/// gone nothing is added.
#[utoipa::path(
    post, path = "/v1/quotas/put-limit", operation_id = "putLimit", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = PutLimitRequest,
    responses((status = 200, description = "The rules are in force.", body = LimitPut), LimitProblems)
)]
pub(in crate::door) async fn put(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<PutLimitRequest>,
) -> Result<Answer<LimitPut>, Refused> {
    let (kind, caller) = (Kind::PutLimit, caller.require_admin()?);
    let command = to_put_limit(&door, &request).map(QuotaCommand::PutLimit);
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command).await?;
    let QuotaDone::LimitPut { version, debt } = done else { mismatch(kind) };
    Ok(ok(LimitPut {
        quota: request.quota,
        path: request.path,
        version,
        debt,
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

fn to_put_limit(door: &Door, request: &PutLimitRequest) -> Result<PutLimit, Refused> {
    let home = request.home.as_deref().map(|home| own::region("home", home));
    Ok(PutLimit {
        namespace: door.namespace(&request.namespace)?,
        node: own::node(&request.quota, &request.path)?,
        limits: NodeLimits {
            limit: request.limit,
            burst: request.burst,
            guaranteed: request.guaranteed,
            weight: request.weight,
            owner_reserved_max: request.owner_reserved_max,
            patience_ms: fields::millis(request.patience),
            home: home.transpose()?,
        },
        expected_version: request.expected_version,
        refuse_debt: request.refuse_debt,
        request_id: fields::request_id(&request.request_id)?,
    })
}

/// Removes a node without children, use, shares and waiting reservations.
#[utoipa::path(
    post, path = "/v1/quotas/remove-node", operation_id = "removeNode", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = RemoveNodeRequest,
    responses((status = 200, description = "There is no such node any more.", body = NodeRemoved), LimitProblems)
)]
pub(in crate::door) async fn remove(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RemoveNodeRequest>,
) -> Result<Answer<NodeRemoved>, Refused> {
    let (kind, caller) = (Kind::ChangeQuota, caller.require_admin()?);
    let command = || {
        Ok(QuotaCommand::RemoveNode(RemoveNode {
            namespace: door.namespace(&request.namespace)?,
            node: own::node(&request.quota, &request.path)?,
            expected_version: request.expected_version,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::NodeRemoved = done else { mismatch(kind) };
    Ok(ok(NodeRemoved {
        removed: true,
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}
