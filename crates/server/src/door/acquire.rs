//! `POST /v1/locks/acquire` and `acquire-all`.

use super::{
    Door,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields,
    openapi::{AcquireAllProblems, AcquireProblems},
    problem::Refused,
    timeout::Timeout,
    views::fence_key,
};
use crate::{
    metrics::{Kind, Mode},
    time, wire,
};
use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use hyper::StatusCode;
use sereno_api::{
    AcquireAllRequest, AcquireRequest, Granted, GrantedAll, GrantedLock, GrantedState, Waiting,
    WaitingState,
};
use sereno_core::{
    command::{Acquire, AcquireAll, Operation},
    ids::LeaseId,
    limits,
    names::{NamespaceName, ResourceName},
    outcome::{self, Done},
};
use std::sync::Arc;

/// Grants a lock, or queues for it.
///
/// Without `waitTimeout` the answer is given at once. With it the call is held for at most 20 s (less where
/// `Sereno-Timeout` is shorter); then 202 tells the place in the queue, and the caller repeats the same call. A wait
/// that nobody asks for during 10 s is removed.
#[utoipa::path(
    post, path = "/v1/locks/acquire", operation_id = "acquire", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = AcquireRequest,
    responses(
        (status = 200, description = "The lock is held.", body = Granted),
        (status = 202, description = "In the queue: repeat the same call.", body = Waiting),
        AcquireProblems,
    )
)]
pub(super) async fn acquire(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AcquireRequest>,
) -> Result<Response, Refused> {
    let wait_timeout_ms = request.wait_timeout.map_or(0, |wait| wait.0);
    let mode = if wait_timeout_ms == 0 { Mode::Now } else { Mode::Wait };
    let caller = caller.name();
    let asked = Asked { kind: Kind::Acquire, mode, caller, born_at: request.born_at, timeout };
    let operation = to_acquire(&door, request, wait_timeout_ms).inspect_err(|refused| {
        door.metrics.calls.refused(Kind::Acquire, refused.code());
    })?;
    let (namespace, resource) = (operation.namespace.clone(), operation.resource.clone());
    door.metrics.hot.asked(&namespace, &resource, std::time::Instant::now());
    let decided = door.call(asked, Operation::Acquire(operation)).await?;
    Ok(match &decided.done {
        Done::Granted(grant) => ok(granted(&namespace, grant, &decided)).into_response(),
        Done::Waiting(wait) => {
            Answer(StatusCode::ACCEPTED, waiting(&resource, wait, &decided)).into_response()
        }
        _ => mismatch(Kind::Acquire),
    })
}

fn to_acquire(
    door: &Door,
    request: AcquireRequest,
    wait_timeout_ms: u64,
) -> Result<Acquire, Refused> {
    Ok(Acquire {
        namespace: door.namespace(&request.namespace)?,
        resource: fields::resource("resource", &request.resource)?,
        request_id: fields::request_id(&request.request_id)?,
        owner: fields::owner(&request.owner)?,
        lease_id: draw_lease_id(),
        lease_ttl_ms: fields::millis(request.lease_ttl),
        wait_timeout_ms,
        max_hold_ms: fields::millis(request.max_hold),
        fencing: fields::fencing(request.fencing),
        labels: fields::labels(request.labels)?,
    })
}

/// 128 bits from the system's secure generator, as carried on by the thread's.
pub(super) fn draw_lease_id() -> LeaseId {
    LeaseId(rand::random())
}

/// For people: the service's own clock is not asked.
pub(super) fn expires_at(expires_in_ms: u64) -> String {
    time::rfc3339(time::now_unix_ms().saturating_add(expires_in_ms))
}

fn granted(namespace: &NamespaceName, grant: &outcome::Grant, decided: &Decided) -> Granted {
    let [(resource, token)] = grant.holdings.as_slice() else { mismatch(Kind::Acquire) };
    Granted {
        state: GrantedState::Granted,
        resource: resource.to_string(),
        fence_key: fence_key(namespace, resource.as_str()),
        lease_id: wire::hex(&grant.lease_id.0),
        fencing_token: token.0,
        fencing: wire::fencing(grant.fencing),
        expires_at: expires_at(grant.expires_in_ms),
        expires_in_ms: grant.expires_in_ms,
        final_deadline_in_ms: grant.final_deadline_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

fn waiting(resource: &ResourceName, wait: &outcome::Waiting, decided: &Decided) -> Waiting {
    Waiting {
        state: WaitingState::Waiting,
        resource: resource.to_string(),
        place: wait.place,
        wait_expires_in_ms: wait.wait_expires_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

/// Grants several locks, all or none, without waiting.
///
/// One lease id for all, one token for each. `LOCKED` lists everything that is in the way.
#[utoipa::path(
    post, path = "/v1/locks/acquire-all", operation_id = "acquireAll", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = AcquireAllRequest,
    responses(
        (status = 200, description = "All are held.", body = GrantedAll),
        AcquireAllProblems,
    )
)]
pub(super) async fn acquire_all(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AcquireAllRequest>,
) -> Result<Answer<GrantedAll>, Refused> {
    let (kind, mode, caller) = (Kind::AcquireAll, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = to_acquire_all(&door, request).inspect_err(|refused| {
        door.metrics.calls.refused(kind, refused.code());
    })?;
    let namespace = operation.namespace.clone();
    let decided = door.call(asked, Operation::AcquireAll(operation)).await?;
    match &decided.done {
        Done::Granted(grant) => Ok(ok(granted_all(&namespace, grant, &decided))),
        _ => mismatch(kind),
    }
}

fn to_acquire_all(door: &Door, request: AcquireAllRequest) -> Result<AcquireAll, Refused> {
    // The log's own rule; here before the names are looked at one by one.
    let (count, max) = (request.resources.len(), limits::ACQUIRE_ALL_RESOURCES_MAX);
    if count == 0 || count > max {
        return Err(Refused::invalid("resources", format!("must be 1 to {max}, are {count}")));
    }
    let resource =
        |(index, text): (usize, &String)| fields::resource(&format!("resources[{index}]"), text);
    Ok(AcquireAll {
        namespace: door.namespace(&request.namespace)?,
        resources: request.resources.iter().enumerate().map(resource).collect::<Result<_, _>>()?,
        request_id: fields::request_id(&request.request_id)?,
        owner: fields::owner(&request.owner)?,
        lease_id: draw_lease_id(),
        lease_ttl_ms: fields::millis(request.lease_ttl),
        max_hold_ms: fields::millis(request.max_hold),
        fencing: fields::fencing(request.fencing),
        labels: fields::labels(request.labels)?,
    })
}

fn granted_all(namespace: &NamespaceName, grant: &outcome::Grant, decided: &Decided) -> GrantedAll {
    let lock = |(resource, token): &(ResourceName, sereno_core::ids::Token)| GrantedLock {
        resource: resource.to_string(),
        fence_key: fence_key(namespace, resource.as_str()),
        fencing_token: token.0,
    };
    GrantedAll {
        state: GrantedState::Granted,
        locks: grant.holdings.iter().map(lock).collect(),
        lease_id: wire::hex(&grant.lease_id.0),
        fencing: wire::fencing(grant.fencing),
        expires_at: expires_at(grant.expires_in_ms),
        expires_in_ms: grant.expires_in_ms,
        final_deadline_in_ms: grant.final_deadline_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}
