//! `POST /v1/holds/{hold, hold-all, begin, renew, release, force-release}`.

use super::{
    Door,
    acquire::{draw_lease_id, expires_at},
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields, lease,
    openapi::{ForceProblems, HoldProblems, HoldWriteProblems},
    problem::Refused,
    timeout::Timeout,
    views::fence_key_of,
};
use crate::metrics::{Kind, Mode};
use axum::extract::State;
use sereno_api::{
    BeginHoldRequest, ErrorCode, ForceReleaseHoldRequest, ForceReleased, Held, HeldAll, HeldOne,
    HoldAllRequest, HoldExtended, HoldReleased, HoldRequest, HoldState, ReleaseHoldRequest,
    RenewHoldRequest,
};
use sereno_core::{
    command::{
        BeginHold, Family, ForceRelease, Hold, HoldCommand, HoldRef, Operation, ReleaseHold,
        RenewHold,
    },
    ids::Token,
    limits,
    names::{NamespaceName, ResourceName},
    outcome::{self, Done},
};
use std::sync::Arc;

fn hold_ref(resource: &str, fence: Option<u64>) -> Result<HoldRef, Refused> {
    Ok(HoldRef {
        resource: fields::resource("resource", resource)?,
        fence: fence.map(|fence| fields::token("fence", fence)).transpose()?,
    })
}

fn replaces(asked: &[sereno_api::HoldRef]) -> Result<Vec<HoldRef>, Refused> {
    let max = limits::HOLD_RESOURCES_MAX;
    if asked.len() > max {
        let rule = format!("must be at most {max}, are {}", asked.len());
        return Err(Refused::invalid("replaces", rule));
    }
    let one = |(index, one): (usize, &sereno_api::HoldRef)| {
        let field = |name| format!("replaces[{index}].{name}");
        Ok(HoldRef {
            resource: fields::resource(&field("resource"), &one.resource)?,
            fence: one.fence.map(|fence| fields::token(&field("fence"), fence)).transpose()?,
        })
    };
    asked.iter().enumerate().map(one).collect()
}

/// Holds a resource for an owner. Never waits.
///
/// Who has it already gets the hold they have (`yours: true`), not extended. Somebody else's is `TAKEN`, with until
/// when.
#[utoipa::path(
    post, path = "/v1/holds/hold", operation_id = "hold", tag = "holds",
    params(super::openapi::TimeoutHeader),
    request_body = HoldRequest,
    responses((status = 200, description = "It is held for the owner.", body = Held), HoldProblems)
)]
pub(super) async fn hold(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<HoldRequest>,
) -> Result<Answer<Held>, Refused> {
    let (kind, mode, caller) = (Kind::Hold, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_hold = || {
        Ok(Hold {
            namespace: door.namespace(&request.namespace)?,
            resources: vec![fields::resource("resource", &request.resource)?],
            owner: fields::owner(&request.owner)?,
            request_id: fields::request_id(&request.request_id)?,
            lease_id: draw_lease_id(),
            ttl_ms: request.ttl.0,
            max_hold_ms: fields::millis(request.max_hold),
            replaces: replaces(&request.replaces)?,
            labels: fields::labels(request.labels.clone())?,
        })
    };
    let operation = door.counted(kind, to_hold())?;
    let namespace = operation.namespace.clone();
    let decided = door.call(asked, Operation::Hold(HoldCommand::Hold(operation))).await;
    let decided = decided.map_err(|refused| or_with_others(refused, &request.owner))?;
    let Done::Held(held) = &decided.done else { mismatch(kind) };
    Ok(ok(to_held(&namespace, held, &decided)))
}

/// What is taken by whoever asks for it alone they have together with others.
fn or_with_others(refused: Refused, owner: &str) -> Refused {
    refused.with(|problem| {
        let is_theirs = problem.holder.as_ref().is_some_and(|holder| holder.owner == owner);
        if problem.code == ErrorCode::Taken && is_theirs {
            problem
                .detail
                .push_str(", together with others: name all of them, or the hold-all in replaces");
        }
    })
}

fn to_held(namespace: &NamespaceName, held: &outcome::Held, decided: &Decided) -> Held {
    let grant = &held.grant;
    let [(resource, fence)] = grant.holdings.as_slice() else { mismatch(Kind::Hold) };
    Held {
        state: HoldState::Held,
        resource: resource.to_string(),
        owner: held.owner.to_string(),
        fence_key: fence_key_of(namespace, Family::Hold, resource.as_str()),
        fence: fence.0,
        yours: held.yours,
        begun: held.begun,
        expires_at: expires_at(grant.expires_in_ms),
        expires_in_ms: grant.expires_in_ms,
        final_deadline_in_ms: grant.final_deadline_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

/// Holds several resources, all or none, with one deadline.
#[utoipa::path(
    post, path = "/v1/holds/hold-all", operation_id = "holdAll", tag = "holds",
    params(super::openapi::TimeoutHeader),
    request_body = HoldAllRequest,
    responses((status = 200, description = "All are held for the owner.", body = HeldAll), HoldProblems)
)]
pub(super) async fn hold_all(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<HoldAllRequest>,
) -> Result<Answer<HeldAll>, Refused> {
    let (kind, mode, caller) = (Kind::HoldAll, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_hold_all(&door, &request))?;
    let namespace = operation.namespace.clone();
    let decided = door.call(asked, Operation::Hold(HoldCommand::Hold(operation))).await?;
    let Done::Held(held) = &decided.done else { mismatch(kind) };
    let one = |(resource, fence): &(ResourceName, Token)| HeldOne {
        resource: resource.to_string(),
        fence_key: fence_key_of(&namespace, Family::Hold, resource.as_str()),
        fence: fence.0,
    };
    let grant = &held.grant;
    Ok(ok(HeldAll {
        state: HoldState::Held,
        holds: grant.holdings.iter().map(one).collect(),
        owner: held.owner.to_string(),
        yours: held.yours,
        begun: held.begun,
        expires_at: expires_at(grant.expires_in_ms),
        expires_in_ms: grant.expires_in_ms,
        final_deadline_in_ms: grant.final_deadline_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

fn to_hold_all(door: &Door, request: &HoldAllRequest) -> Result<Hold, Refused> {
    let (count, max) = (request.resources.len(), limits::HOLD_RESOURCES_MAX);
    if count == 0 || count > max {
        return Err(Refused::invalid("resources", format!("must be 1 to {max}, are {count}")));
    }
    let resource =
        |(index, text): (usize, &String)| fields::resource(&format!("resources[{index}]"), text);
    Ok(Hold {
        namespace: door.namespace(&request.namespace)?,
        resources: request.resources.iter().enumerate().map(resource).collect::<Result<_, _>>()?,
        owner: fields::owner(&request.owner)?,
        request_id: fields::request_id(&request.request_id)?,
        lease_id: draw_lease_id(),
        ttl_ms: request.ttl.0,
        max_hold_ms: fields::millis(request.max_hold),
        replaces: replaces(&request.replaces)?,
        labels: fields::labels(request.labels.clone())?,
    })
}

/// Payment has started: the hold gets a deadline of its own.
///
/// The first begin sets it; a later one changes nothing. A begun hold is not renewed, and is released or replaced only
/// by who names its fence.
#[utoipa::path(
    post, path = "/v1/holds/begin", operation_id = "beginHold", tag = "holds",
    params(super::openapi::TimeoutHeader),
    request_body = BeginHoldRequest,
    responses((status = 200, description = "The payment may take until then.", body = HoldExtended), HoldWriteProblems)
)]
pub(super) async fn begin(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<BeginHoldRequest>,
) -> Result<Answer<HoldExtended>, Refused> {
    let (kind, mode, caller) = (Kind::BeginHold, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_begin = || {
        Ok(BeginHold {
            namespace: door.namespace(&request.namespace)?,
            hold: hold_ref(&request.resource, request.fence)?,
            owner: fields::owner(&request.owner)?,
            ttl_ms: request.ttl.0,
            request_id: fields::request_id(&request.request_id)?,
        })
    };
    let operation = HoldCommand::Begin(door.counted(kind, to_begin())?);
    let decided = door.call(asked, Operation::Hold(operation)).await?;
    Ok(ok(extended(kind, request.resource, decided)))
}

/// Moves a hold's deadline forward, as far as `maxHold` allows.
#[utoipa::path(
    post, path = "/v1/holds/renew", operation_id = "renewHold", tag = "holds",
    params(super::openapi::TimeoutHeader),
    request_body = RenewHoldRequest,
    responses((status = 200, description = "The hold goes on.", body = HoldExtended), HoldWriteProblems)
)]
pub(super) async fn renew(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RenewHoldRequest>,
) -> Result<Answer<HoldExtended>, Refused> {
    let (kind, mode, caller) = (Kind::RenewHold, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_renew = || {
        Ok(RenewHold {
            namespace: door.namespace(&request.namespace)?,
            hold: hold_ref(&request.resource, request.fence)?,
            owner: fields::owner(&request.owner)?,
            ttl_ms: fields::millis(request.ttl),
            request_id: fields::request_id(&request.request_id)?,
        })
    };
    let operation = HoldCommand::Renew(door.counted(kind, to_renew())?);
    let decided = door.call(asked, Operation::Hold(operation)).await?;
    Ok(ok(extended(kind, request.resource, decided)))
}

fn extended(kind: Kind, resource: String, decided: Decided) -> HoldExtended {
    let Done::HoldExtended(extended) = decided.done else { mismatch(kind) };
    let renewed = extended.renewed;
    HoldExtended {
        resource,
        fence: renewed.token.0,
        begun: extended.begun,
        clipped: renewed.clipped,
        expires_at: expires_at(renewed.expires_in_ms),
        expires_in_ms: renewed.expires_in_ms,
        final_deadline_in_ms: renewed.final_deadline_in_ms,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }
}

/// Ends a hold by its owner.
#[utoipa::path(
    post, path = "/v1/holds/release", operation_id = "releaseHold", tag = "holds",
    params(super::openapi::TimeoutHeader),
    request_body = ReleaseHoldRequest,
    responses((status = 200, description = "The owner has no such hold any more.", body = HoldReleased), HoldWriteProblems)
)]
pub(super) async fn release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ReleaseHoldRequest>,
) -> Result<Answer<HoldReleased>, Refused> {
    let (kind, mode, caller) = (Kind::ReleaseHold, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_release = || {
        Ok(ReleaseHold {
            namespace: door.namespace(&request.namespace)?,
            hold: hold_ref(&request.resource, request.fence)?,
            owner: fields::owner(&request.owner)?,
            request_id: fields::request_id(&request.request_id)?,
        })
    };
    let operation = HoldCommand::Release(door.counted(kind, to_release())?);
    let decided = door.call(asked, Operation::Hold(operation)).await?;
    let Done::HoldReleased { released } = decided.done else { mismatch(kind) };
    Ok(ok(HoldReleased {
        released,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

/// Ends a hold by an operator.
#[utoipa::path(
    post, path = "/v1/holds/force-release", operation_id = "forceReleaseHold", tag = "holds",
    params(super::openapi::TimeoutHeader),
    request_body = ForceReleaseHoldRequest,
    responses((status = 200, description = "The hold was ended.", body = ForceReleased), ForceProblems)
)]
pub(super) async fn force_release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ForceReleaseHoldRequest>,
) -> Result<Answer<ForceReleased>, Refused> {
    let (kind, mode, caller) = (Kind::ForceRelease, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_force = || {
        Ok(ForceRelease {
            namespace: door.namespace(&request.namespace)?,
            resource: fields::resource("resource", &request.resource)?,
            token: fields::token("fence", request.fence)?,
            request_id: fields::request_id(&request.request_id)?,
            reason: fields::reason(&request.reason)?,
        })
    };
    let operation = HoldCommand::ForceRelease(door.counted(kind, to_force())?);
    let decided = door.call(asked, Operation::Hold(operation)).await?;
    Ok(ok(lease::force_released(kind, decided)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_api::Holder;

    #[test]
    fn what_somebody_has_in_a_hold_all_is_taken_together_with_others() {
        let told = |asks: &str| {
            let refused = Refused::new(ErrorCode::Taken, "sku/1 is held by \"anna\"");
            let refused = refused.with(|problem| {
                problem.holder = Some(Holder {
                    owner: "anna".into(),
                    fencing_token: 7,
                    held_for_ms: 1,
                    expires_in_ms: 2,
                });
            });
            or_with_others(refused, asks).0.detail.contains("together with others")
        };
        assert!(told("anna") && !told("bert"));
    }
}
