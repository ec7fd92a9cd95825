//! `POST /v1/quotas/{commit, release, return, settle, abandon}`.

use super::{Write, Written, fields as own, views};
use crate::{
    door::{
        Door,
        answer::{Answer, ok},
        body::Json,
        call::mismatch,
        caller::Caller,
        fields,
        openapi::{CommitProblems, ReservationProblems, UseProblems},
        problem::Refused,
        timeout::Timeout,
    },
    metrics::Kind,
    wire,
};
use axum::extract::State;
use sereno_api::{
    AbandonRequest, Abandoned, CommitRequest, Committed, ReleaseReservationRequest,
    ReservationReleased, ReturnRequest, Returned, SettleRequest, Settled, Settlement,
};
use sereno_core::{
    command::{self, Commit, Family, QuotaCommand, ReleaseReservation, ReturnUse, Settle},
    outcome::QuotaDone,
};
use std::sync::Arc;

/// Turns reserved capacity into use.
///
/// What is not named is given back, or, with `final: false`, stays reserved. A commit that comes after the
/// reservation's end is refused, or, with `late: readmit`, admitted like a new reservation; `EXPIRED_NO_CAPACITY` says
/// that what was paid for it has to be paid back.
#[utoipa::path(
    post, path = "/v1/quotas/commit", operation_id = "commitReservation", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = CommitRequest,
    responses((status = 200, description = "So much is used.", body = Committed), CommitProblems)
)]
pub(in crate::door) async fn commit(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<CommitRequest>,
) -> Result<Answer<Committed>, Refused> {
    let (kind, caller) = (Kind::Commit, caller.name());
    let command = || {
        Ok(QuotaCommand::Commit(Commit {
            of: door.reservation(&request.namespace, &request.reservation_id, request.fence)?,
            items: request.items.as_deref().map(|items| own::items(items, 0)).transpose()?,
            is_final: request.is_final,
            late: own::late(request.late)?,
            readmitted: own::draw_id(),
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Committed(done) = done else { mismatch(kind) };
    Ok(ok(Committed {
        commit_id: done.commit.0,
        reservation_id: done.reservation.to_hex(),
        taken: done.taken.iter().map(views::item).collect(),
        returned: done.returned.iter().map(views::item).collect(),
        left: done.left.iter().map(views::item).collect(),
        readmits: done.readmits.map(|expired| expired.to_hex()),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

/// Ends a reservation without use.
///
/// Either way it holds nothing any more. One that was committed is `RESERVATION_ENDED`: its use is given back by a
/// return. One that still waits is given up by an abandon.
#[utoipa::path(
    post, path = "/v1/quotas/release", operation_id = "releaseReservation", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ReleaseReservationRequest,
    responses((status = 200, description = "It holds nothing.", body = ReservationReleased), ReservationProblems)
)]
pub(in crate::door) async fn release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReleaseReservationRequest>,
) -> Result<Answer<ReservationReleased>, Refused> {
    let (kind, caller) = (Kind::ReleaseReservation, caller.name());
    let command = || {
        Ok(QuotaCommand::Release(ReleaseReservation {
            of: door.reservation(&request.namespace, &request.reservation_id, request.fence)?,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Released { items, already } = done else { mismatch(kind) };
    Ok(ok(ReservationReleased {
        released: already.is_none(),
        items: items.iter().map(views::item).collect(),
        reason: already.map(wire::end),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

/// Gives committed use back: the real thing is gone.
#[utoipa::path(
    post, path = "/v1/quotas/return", operation_id = "returnUse", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ReturnRequest,
    responses((status = 200, description = "So much is free again.", body = Returned), UseProblems)
)]
pub(in crate::door) async fn return_use(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReturnRequest>,
) -> Result<Answer<Returned>, Refused> {
    let (kind, caller) = (Kind::ReturnUse, caller.name());
    let command = || {
        Ok(QuotaCommand::Return(ReturnUse {
            namespace: door.namespace(&request.namespace)?,
            commit: own::commit_id(request.commit_id)?,
            node: own::node(&request.quota, &request.path)?,
            owner: fields::owner(&request.owner)?,
            amount: request.amount,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Returned { commit, amount, left } = done else { mismatch(kind) };
    Ok(ok(Returned {
        commit_id: commit.0,
        amount,
        left,
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

/// Ends a quarantined reservation by an operator. Goes into the audit trail.
#[utoipa::path(
    post, path = "/v1/quotas/settle", operation_id = "settleReservation", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = SettleRequest,
    responses((status = 200, description = "It has ended so.", body = Settled), ReservationProblems)
)]
pub(in crate::door) async fn settle(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<SettleRequest>,
) -> Result<Answer<Settled>, Refused> {
    let (kind, caller) = (Kind::Settle, caller.require_admin()?);
    let command = || {
        Ok(QuotaCommand::Settle(Settle {
            of: door.reservation(&request.namespace, &request.reservation_id, request.fence)?,
            settlement: match request.settlement {
                Settlement::Commit => command::Settlement::Commit,
                Settlement::Release => command::Settlement::Release,
                _ => return Err(Refused::invalid("settlement", "must be commit or release")),
            },
            reason: fields::reason(&request.reason)?,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    let Written { done, replayed, revision, time } = door.write_quota(write, command()).await?;
    let QuotaDone::Settled { settlement, commit } = done else { mismatch(kind) };
    Ok(ok(Settled {
        settlement: match settlement {
            command::Settlement::Commit => Settlement::Commit,
            command::Settlement::Release => Settlement::Release,
        },
        commit_id: commit.map(|commit| commit.0),
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms: time,
    }))
}

/// Undoes a reserve whose answer was lost.
///
/// Removes its waiter, or gives its reservation back, or, where the request has not been seen yet, forbids it. One that
/// is quarantined stays so, which is `RESERVATION_ENDED`; another write that was done stays done.
#[utoipa::path(
    post, path = "/v1/quotas/abandon", operation_id = "abandonReserve", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = AbandonRequest,
    responses(
        (status = 200, description = "The request holds nothing and will be granted nothing.", body = Abandoned),
        ReservationProblems,
    )
)]
pub(in crate::door) async fn abandon(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AbandonRequest>,
) -> Result<Answer<Abandoned>, Refused> {
    door.abandon(Family::Quota, caller, timeout, &request).await
}
