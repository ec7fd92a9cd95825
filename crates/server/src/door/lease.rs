//! `POST /v1/locks/{renew, release, abandon, force-release}`.

use super::{
    Door,
    acquire::expires_at,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields,
    openapi::{ForceProblems, LeaseProblems, RenewProblems},
    problem::Refused,
    timeout::Timeout,
};
use crate::{
    metrics::{Kind, Mode},
    wire,
};
use axum::extract::State;
use sereno_api::{
    AbandonRequest, Abandoned, ForceReleaseRequest, ForceReleased, ReleaseRequest, Released,
    RenewRequest, Renewed,
};
use sereno_core::{
    command::{Abandon, Family, ForceRelease, Operation, Release, Renew},
    outcome::{self, Done},
};
use std::sync::Arc;

impl Door {
    /// Counts a request that was refused before it was a call.
    pub(super) fn counted<T>(&self, kind: Kind, result: Result<T, Refused>) -> Result<T, Refused> {
        result.inspect_err(|refused| self.metrics.calls.refused(kind, refused.code()))
    }
}

/// Moves a lease's deadline forward.
///
/// Never brings it nearer, and never brings an ended lease back.
#[utoipa::path(
    post, path = "/v1/locks/renew", operation_id = "renew", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = RenewRequest,
    responses((status = 200, description = "The lease goes on.", body = Renewed), RenewProblems)
)]
pub(super) async fn renew(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RenewRequest>,
) -> Result<Answer<Renewed>, Refused> {
    let (kind, mode, caller) = (Kind::Renew, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_renew(&door, &request))?;
    let decided = door.call(asked, Operation::Renew(operation)).await?;
    Ok(ok(renewed(kind, decided)))
}

pub(super) fn renewed(kind: Kind, decided: Decided) -> Renewed {
    let Done::Renewed(renewed) = decided.done else { mismatch(kind) };
    Renewed {
        fencing_token: renewed.token.0,
        expires_at: expires_at(renewed.expires_in_ms),
        expires_in_ms: renewed.expires_in_ms,
        final_deadline_in_ms: renewed.final_deadline_in_ms,
        clipped: renewed.clipped,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

fn to_renew(door: &Door, request: &RenewRequest) -> Result<Renew, Refused> {
    Ok(Renew {
        namespace: door.namespace(&request.namespace)?,
        lease: fields::lease(&request.resource, &request.lease_id)?,
        lease_ttl_ms: fields::millis(request.lease_ttl),
    })
}

/// Ends a lease by its owner.
///
/// Repeatable: either way the caller does not hold it any more, and a late copy never touches the next holder.
#[utoipa::path(
    post, path = "/v1/locks/release", operation_id = "release", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = ReleaseRequest,
    responses((status = 200, description = "Not held any more.", body = Released), LeaseProblems)
)]
pub(super) async fn release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReleaseRequest>,
) -> Result<Answer<Released>, Refused> {
    let (kind, mode, caller) = (Kind::Release, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_release(&door, &request))?;
    let decided = door.call(asked, Operation::Release(operation)).await?;
    Ok(ok(released(kind, decided)))
}

pub(super) fn released(kind: Kind, decided: Decided) -> Released {
    let Done::Released { already } = decided.done else { mismatch(kind) };
    Released {
        released: already.is_none(),
        reason: already.map(wire::not_released),
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

fn to_release(door: &Door, request: &ReleaseRequest) -> Result<Release, Refused> {
    Ok(Release {
        namespace: door.namespace(&request.namespace)?,
        lease: fields::lease(&request.resource, &request.lease_id)?,
    })
}

/// Undoes a request whose answer was lost.
///
/// Removes its waiter, or releases its grant, or, where the request has not been seen yet, forbids it.
#[utoipa::path(
    post, path = "/v1/locks/abandon", operation_id = "abandon", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = AbandonRequest,
    responses(
        (status = 200, description = "The request holds nothing and will be granted nothing.", body = Abandoned),
        LeaseProblems,
    )
)]
pub(super) async fn abandon(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AbandonRequest>,
) -> Result<Answer<Abandoned>, Refused> {
    door.abandon(Family::Lock, caller, timeout, &request).await
}

impl Door {
    /// Abandons a request of any family.
    pub(super) async fn abandon(
        &self,
        family: Family,
        caller: Caller,
        timeout: Timeout,
        request: &AbandonRequest,
    ) -> Result<Answer<Abandoned>, Refused> {
        let door = self;
        let (kind, mode, caller) = (Kind::Abandon, Mode::Now, caller.name());
        let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
        let operation = door.counted(kind, to_abandon(door, family, request))?;
        let decided = door.call(asked, Operation::Abandon(operation)).await?;
        let Done::Abandoned { was } = decided.done else { mismatch(kind) };
        let (reason, code) = match was {
            outcome::AbandonedWas::Ended(end) => (Some(wire::end(end)), None),
            outcome::AbandonedWas::Refused(code) => (None, Some(wire::code(code))),
            _ => (None, None),
        };
        Ok(ok(Abandoned {
            was: wire::abandoned_was(was),
            reason,
            code,
            revision: decided.revision,
            cluster_time_ms: decided.time,
        }))
    }
}

fn to_abandon(door: &Door, family: Family, request: &AbandonRequest) -> Result<Abandon, Refused> {
    Ok(Abandon {
        namespace: door.namespace(&request.namespace)?,
        family,
        request_id: fields::request_id(&request.request_id)?,
    })
}

/// Ends a lease by an operator.
///
/// Ends the lease with exactly this token; the namespace's lock delay applies. Goes into the audit trail.
#[utoipa::path(
    post, path = "/v1/locks/force-release", operation_id = "forceRelease", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = ForceReleaseRequest,
    responses((status = 200, description = "The lease was ended.", body = ForceReleased), ForceProblems)
)]
pub(super) async fn force_release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ForceReleaseRequest>,
) -> Result<Answer<ForceReleased>, Refused> {
    let (kind, mode, caller) = (Kind::ForceRelease, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_force_release(&door, &request))?;
    let decided = door.call(asked, Operation::ForceRelease(operation)).await?;
    Ok(ok(force_released(kind, decided)))
}

pub(super) fn force_released(kind: Kind, decided: Decided) -> ForceReleased {
    let Done::ForceReleased { token } = decided.done else { mismatch(kind) };
    ForceReleased {
        released: true,
        fencing_token: token.0,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

fn to_force_release(door: &Door, request: &ForceReleaseRequest) -> Result<ForceRelease, Refused> {
    Ok(ForceRelease {
        namespace: door.namespace(&request.namespace)?,
        resource: fields::resource("resource", &request.resource)?,
        token: fields::token("fencingToken", request.fencing_token)?,
        request_id: fields::request_id(&request.request_id)?,
        reason: fields::reason(&request.reason)?,
    })
}
