//! `POST /v1/quotas/{reserve, begin, extend, resize}`.

use super::{Write, Written, fields as own, views};
use crate::{
    door::{
        Door,
        acquire::expires_at,
        answer::{Answer, ok},
        body::Json,
        call::{Asked, Decided, mismatch},
        caller::Caller,
        fields,
        openapi::{BeginProblems, ExtendProblems, ReserveProblems, ResizeProblems},
        problem::Refused,
        timeout::Timeout,
    },
    metrics::{Kind, Mode},
};
use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use hyper::StatusCode;
use sereno_api::{
    BeginRequest, ExtendRequest, OnExpiry, ReservationWaiting, ReserveRequest, Reserved,
    ResizeRequest, WaitingState,
};
use sereno_core::{
    command::{Begin, Extend, Operation, QuotaCommand, Reserve, Resize},
    names::NamespaceName,
    outcome::{self, Done, QuotaDone},
};
use std::sync::Arc;

/// Reserves capacity, all items at all layers or none, or queues for it.
///
/// Without `waitTimeout` the answer is given at once; `QUOTA_EXHAUSTED` lists every layer that is in the way. With it
/// the call is held for at most 20 s (less where `Sereno-Timeout` is shorter); then 202 tells the place in the queue,
/// and the caller repeats the same call. A wait that nobody asks for during 10 s is removed. What could never fit is
/// refused at once.
#[utoipa::path(
    post, path = "/v1/quotas/reserve", operation_id = "reserve", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ReserveRequest,
    responses(
        (status = 200, description = "The capacity is the owner's.", body = Reserved),
        (status = 202, description = "In the queue: repeat the same call.", body = ReservationWaiting),
        ReserveProblems,
    )
)]
pub(in crate::door) async fn reserve(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReserveRequest>,
) -> Result<Response, Refused> {
    let wait_timeout_ms = request.wait_timeout.map_or(0, |wait| wait.0);
    let mode = if wait_timeout_ms == 0 { Mode::Now } else { Mode::Wait };
    let (kind, caller) = (Kind::Reserve, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_reserve(&door, request, wait_timeout_ms))?;
    let namespace = operation.namespace.clone();
    let decided = door.call(asked, Operation::Quota(QuotaCommand::Reserve(operation))).await?;
    Ok(match &decided.done {
        Done::Quota(QuotaDone::Reserved(done)) => {
            let at = (decided.replayed, decided.revision, decided.time);
            ok(reserved(&namespace, done, at)).into_response()
        }
        Done::Waiting(wait) => {
            Answer(StatusCode::ACCEPTED, waiting(wait, &decided)).into_response()
        }
        _ => mismatch(kind),
    })
}

fn to_reserve(
    door: &Door,
    request: ReserveRequest,
    wait_timeout_ms: u64,
) -> Result<Reserve, Refused> {
    Ok(Reserve {
        namespace: door.namespace(&request.namespace)?,
        owner: fields::owner(&request.owner)?,
        items: own::items(&request.items, 1)?,
        request_id: fields::request_id(&request.request_id)?,
        reservation: own::draw_id(),
        ttl_ms: request.ttl.0,
        max_lifetime_ms: fields::millis(request.max_lifetime),
        on_expiry: own::on_expiry(request.on_expiry.unwrap_or(OnExpiry::Release))?,
        priority: request.priority.unwrap_or(0),
        wait_timeout_ms,
        labels: fields::labels(request.labels)?,
    })
}

/// Which answer it is: replayed from which revision, and its own revision and time.
type At = (Option<u64>, u64, u64);

fn reserved(
    namespace: &NamespaceName,
    done: &outcome::Reserved,
    (replayed, revision, cluster_time_ms): At,
) -> Reserved {
    Reserved {
        state: views::state(done.state),
        reservation_id: done.reservation.to_hex(),
        fence_key: views::fence_key(namespace, done.reservation),
        fence: done.fence.0,
        items: done.items.iter().map(views::reserved_item).collect(),
        clipped: done.clipped,
        expires_at: expires_at(done.expires_in_ms),
        expires_in_ms: done.expires_in_ms,
        final_deadline_in_ms: done.final_deadline_in_ms,
        replayed: replayed.is_some(),
        original_revision: replayed,
        revision,
        cluster_time_ms,
    }
}

fn waiting(wait: &outcome::Waiting, decided: &Decided) -> ReservationWaiting {
    ReservationWaiting {
        state: WaitingState::Waiting,
        place: wait.place,
        wait_expires_in_ms: wait.wait_expires_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

/// The outside work has started: the reservation gets a deadline and a fate of its own.
///
/// The first begin sets both; a later one changes nothing. No deadline comes nearer.
#[utoipa::path(
    post, path = "/v1/quotas/begin", operation_id = "beginReservation", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = BeginRequest,
    responses((status = 200, description = "The work may take until then.", body = Reserved), BeginProblems)
)]
pub(in crate::door) async fn begin(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<BeginRequest>,
) -> Result<Answer<Reserved>, Refused> {
    let (kind, caller) = (Kind::BeginWork, caller.name());
    let command = || {
        Ok(QuotaCommand::Begin(Begin {
            of: door.reservation(&request.namespace, &request.reservation_id, request.fence)?,
            in_flight_ttl_ms: request.in_flight_ttl.0,
            on_expiry: own::on_expiry(request.on_expiry)?,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    goes_on(&door, write, &request.namespace, command()).await
}

/// Moves a reservation's deadline forward, at most to the end of its life.
#[utoipa::path(
    post, path = "/v1/quotas/extend", operation_id = "extendReservation", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ExtendRequest,
    responses((status = 200, description = "The reservation goes on.", body = Reserved), ExtendProblems)
)]
pub(in crate::door) async fn extend(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ExtendRequest>,
) -> Result<Answer<Reserved>, Refused> {
    let (kind, caller) = (Kind::Extend, caller.name());
    let command = || {
        Ok(QuotaCommand::Extend(Extend {
            of: door.reservation(&request.namespace, &request.reservation_id, request.fence)?,
            ttl_ms: fields::millis(request.ttl),
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    goes_on(&door, write, &request.namespace, command()).await
}

/// Sets new amounts: what shrinks is given back, what grows is admitted like a new ask; both or nothing.
#[utoipa::path(
    post, path = "/v1/quotas/resize", operation_id = "resizeReservation", tag = "quotas",
    params(crate::door::openapi::TimeoutHeader),
    request_body = ResizeRequest,
    responses((status = 200, description = "It has the new amounts.", body = Reserved), ResizeProblems)
)]
pub(in crate::door) async fn resize(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ResizeRequest>,
) -> Result<Answer<Reserved>, Refused> {
    let (kind, caller) = (Kind::Resize, caller.name());
    let command = || {
        Ok(QuotaCommand::Resize(Resize {
            of: door.reservation(&request.namespace, &request.reservation_id, request.fence)?,
            items: own::items(&request.items, 0)?,
            request_id: fields::request_id(&request.request_id)?,
        }))
    };
    let write = Write { kind, caller, timeout, born_at: request.born_at };
    goes_on(&door, write, &request.namespace, command()).await
}

/// A write after which the reservation goes on.
async fn goes_on(
    door: &Door,
    write: Write,
    namespace: &str,
    command: Result<QuotaCommand, Refused>,
) -> Result<Answer<Reserved>, Refused> {
    let kind = write.kind;
    let Written { done, replayed, revision, time } = door.write_quota(write, command).await?;
    let QuotaDone::Reserved(done) = done else { mismatch(kind) };
    let namespace = door.namespace(namespace)?;
    Ok(ok(reserved(&namespace, &done, (replayed, revision, time))))
}
