//! `POST /v1/quotas/{share-grant, share-return, share-reclaim}`: capacity that another region may use by itself.

use super::{Write, Written, fields as own};
use crate::{
    door::{
        Door,
        answer::{Answer, ok},
        body::Json,
        call::mismatch,
        caller::Caller,
        fields,
        openapi::{ShareGrantProblems, ShareProblems},
        problem::Refused,
        timeout::Timeout,
    },
    metrics::Kind,
};
use axum::extract::State;
use sereno_api::{ShareGrantRequest, ShareReclaimRequest, ShareReturnRequest, Shared};
use sereno_core::{
    command::{QuotaCommand, ShareGrant, ShareReclaim, ShareReturn},
    outcome::QuotaDone,
};
use std::sync::Arc;

/// Lends capacity to another region: here it counts as reserved until that gives it back.
///
/// Time alone never ends it. The region puts a limit of the same amount at its own node.
#[utoipa::path(
    post, path = "/v1/quotas/share-grant", operation_id = "grantShare", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ShareGrantRequest,
    responses((status = 200, description = "The region may use it.", body = Shared), ShareGrantProblems)
)]
pub(in crate::door) async fn grant(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ShareGrantRequest>,
) -> Result<Answer<Shared>, Refused> {
    let caller = caller.require_admin()?;
    let command = || {
        Ok(QuotaCommand::ShareGrant(ShareGrant {
            namespace: door.namespace(&request.namespace)?,
            node: own::node(&request.quota, &request.path)?,
            region: own::region("region", &request.region)?,
            amount: request.amount,
            overdraft_cap: request.overdraft_cap,
            share: own::draw_id(),
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    shared(&door, caller, timeout, request.born_at, command()).await
}

/// Takes back what a region gives of its share, and books what it has used for good.
///
/// After the region has lowered its own limit by both, with `refuseDebt`.
#[utoipa::path(
    post, path = "/v1/quotas/share-return", operation_id = "returnShare", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ShareReturnRequest,
    responses((status = 200, description = "The share as it is now.", body = Shared), ShareProblems)
)]
pub(in crate::door) async fn give_back(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ShareReturnRequest>,
) -> Result<Answer<Shared>, Refused> {
    let caller = caller.name();
    let command = || {
        if request.returned == 0 && request.spent == 0 {
            return Err(Refused::invalid("returned", "must not be 0 where spent is 0, too"));
        }
        Ok(QuotaCommand::ShareReturn(ShareReturn {
            namespace: door.namespace(&request.namespace)?,
            share: own::id("shareId", &request.share_id)?,
            returned: request.returned,
            spent: request.spent,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    shared(&door, caller, timeout, request.born_at, command()).await
}

/// Lends a share again that its region does not give back: at most its `overdraftCap`, once.
///
/// The region may still use it: the worst overshoot is the sum of the caps of reclaimed shares. Goes into the audit
/// trail.
#[utoipa::path(
    post, path = "/v1/quotas/share-reclaim", operation_id = "reclaimShare", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ShareReclaimRequest,
    responses((status = 200, description = "The share as it is now.", body = Shared), ShareProblems)
)]
pub(in crate::door) async fn reclaim(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ShareReclaimRequest>,
) -> Result<Answer<Shared>, Refused> {
    let caller = caller.require_admin()?;
    let command = || {
        Ok(QuotaCommand::ShareReclaim(ShareReclaim {
            namespace: door.namespace(&request.namespace)?,
            share: own::id("shareId", &request.share_id)?,
            reason: fields::reason(&request.reason)?,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    shared(&door, caller, timeout, request.born_at, command()).await
}

async fn shared(
    door: &Door,
    caller: sereno_core::names::Caller,
    timeout: Timeout,
    born_at: Option<u64>,
    command: Result<QuotaCommand, Refused>,
) -> Result<Answer<Shared>, Refused> {
    let kind = Kind::ChangeQuota;
    let write = Write { kind, caller, timeout, born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command).await?;
    let QuotaDone::Shared(done) = done else { mismatch(kind) };
    Ok(ok(Shared {
        share_id: done.share.to_hex(),
        amount: done.amount,
        kept: done.kept,
        reclaimed: done.is_reclaimed,
        commit_id: done.commit.map(|commit| commit.0),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}
