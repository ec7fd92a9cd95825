//! `POST /v1/elections/{campaign, renew, proclaim, resign, handoff, abandon, force-release}`.

use super::{
    Door,
    acquire::{draw_lease_id, expires_at},
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields, lease,
    openapi::{CampaignProblems, ForceProblems, LeaderProblems, LeaseProblems, RenewProblems},
    problem::Refused,
    timeout::Timeout,
    views::fence_key_of,
};
use crate::{
    metrics::{Kind, Mode},
    wire,
};
use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use hyper::StatusCode;
use sereno_api::{
    AbandonRequest, Abandoned, CampaignRequest, CampaignWaiting, Elected, ForceReleased,
    ForceResignRequest, HandedOff, HandoffRequest, LeadingState, ProclaimRequest, Proclaimed,
    Released, RenewTermRequest, Renewed, ResignRequest, WaitingState,
};
use sereno_core::{
    command::{
        Campaign, ElectionCommand, Family, ForceRelease, Handoff, LeaseRef, Operation, Proclaim,
        Release, Renew,
    },
    names::NamespaceName,
    outcome::{self, Done},
};
use std::sync::Arc;

fn lease_of(election: &str, lease_id: &str) -> Result<LeaseRef, Refused> {
    Ok(LeaseRef {
        resource: fields::resource("election", election)?,
        lease_id: fields::lease_id("leaseId", lease_id)?,
    })
}

/// Leads, or queues for it.
///
/// As acquire does for a lock. The grant's token is the *term*. A campaign by a candidate who waits already ends that
/// wait.
#[utoipa::path(
    post, path = "/v1/elections/campaign", operation_id = "campaign", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = CampaignRequest,
    responses(
        (status = 200, description = "The candidate leads.", body = Elected),
        (status = 202, description = "In the queue: repeat the same call.", body = CampaignWaiting),
        CampaignProblems,
    )
)]
pub(super) async fn campaign(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<CampaignRequest>,
) -> Result<Response, Refused> {
    let wait_timeout_ms = request.wait_timeout.map_or(0, |wait| wait.0);
    let mode = if wait_timeout_ms == 0 { Mode::Now } else { Mode::Wait };
    let (kind, caller) = (Kind::Campaign, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = door.counted(kind, to_campaign(&door, request, wait_timeout_ms))?;
    let (namespace, election) = (operation.namespace.clone(), operation.election.clone());
    let operation = Operation::Election(ElectionCommand::Campaign(operation));
    let decided = door.call(asked, operation).await?;
    Ok(match &decided.done {
        Done::Elected(elected) => ok(to_elected(&namespace, elected, &decided)).into_response(),
        Done::Waiting(wait) => {
            let waiting = CampaignWaiting {
                state: WaitingState::Waiting,
                election: election.to_string(),
                place: wait.place,
                wait_expires_in_ms: wait.wait_expires_in_ms,
                replayed: decided.replayed.is_some(),
                original_revision: decided.replayed,
                revision: decided.revision,
                cluster_time_ms: decided.time,
            };
            Answer(StatusCode::ACCEPTED, waiting).into_response()
        }
        _ => mismatch(kind),
    })
}

fn to_campaign(
    door: &Door,
    request: CampaignRequest,
    wait_timeout_ms: u64,
) -> Result<Campaign, Refused> {
    Ok(Campaign {
        namespace: door.namespace(&request.namespace)?,
        election: fields::resource("election", &request.election)?,
        candidate: fields::person("candidate", &request.candidate)?,
        value: fields::value(request.value.as_deref().unwrap_or(""))?,
        request_id: fields::request_id(&request.request_id)?,
        lease_id: draw_lease_id(),
        lease_ttl_ms: fields::millis(request.lease_ttl),
        wait_timeout_ms,
        max_hold_ms: fields::millis(request.max_hold),
        fencing: fields::fencing(request.fencing),
        labels: fields::labels(request.labels)?,
    })
}

fn to_elected(namespace: &NamespaceName, elected: &outcome::Elected, decided: &Decided) -> Elected {
    let grant = &elected.grant;
    let [(election, term)] = grant.holdings.as_slice() else { mismatch(Kind::Campaign) };
    Elected {
        state: LeadingState::Leading,
        election: election.to_string(),
        fence_key: fence_key_of(namespace, Family::Election, election.as_str()),
        lease_id: wire::hex(&grant.lease_id.0),
        term: term.0,
        value: elected.value.to_string(),
        version: elected.version,
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

/// Moves a term's deadline forward.
#[utoipa::path(
    post, path = "/v1/elections/renew", operation_id = "renewTerm", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = RenewTermRequest,
    responses((status = 200, description = "The term goes on.", body = Renewed), RenewProblems)
)]
pub(super) async fn renew(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RenewTermRequest>,
) -> Result<Answer<Renewed>, Refused> {
    let (kind, mode, caller) = (Kind::RenewTerm, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_renew = || {
        Ok(Renew {
            namespace: door.namespace(&request.namespace)?,
            lease: lease_of(&request.election, &request.lease_id)?,
            lease_ttl_ms: fields::millis(request.lease_ttl),
        })
    };
    let operation = ElectionCommand::Renew(door.counted(kind, to_renew())?);
    let decided = door.call(asked, Operation::Election(operation)).await?;
    Ok(ok(lease::renewed(kind, decided)))
}

/// Changes the leader's value.
#[utoipa::path(
    post, path = "/v1/elections/proclaim", operation_id = "proclaim", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = ProclaimRequest,
    responses((status = 200, description = "Followers are told the new value.", body = Proclaimed), LeaderProblems)
)]
pub(super) async fn proclaim(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ProclaimRequest>,
) -> Result<Answer<Proclaimed>, Refused> {
    let (kind, mode, caller) = (Kind::Proclaim, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_proclaim = || {
        Ok(Proclaim {
            namespace: door.namespace(&request.namespace)?,
            lease: lease_of(&request.election, &request.lease_id)?,
            value: fields::value(&request.value)?,
            version: request.version,
            request_id: fields::request_id(&request.request_id)?,
        })
    };
    let operation = ElectionCommand::Proclaim(door.counted(kind, to_proclaim())?);
    let decided = door.call(asked, Operation::Election(operation)).await?;
    let Done::Proclaimed { version } = decided.done else { mismatch(kind) };
    Ok(ok(Proclaimed {
        version,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

/// Ends a term by its leader; the next of the queue leads.
#[utoipa::path(
    post, path = "/v1/elections/resign", operation_id = "resign", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = ResignRequest,
    responses((status = 200, description = "Not leading any more.", body = Released), LeaseProblems)
)]
pub(super) async fn resign(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ResignRequest>,
) -> Result<Answer<Released>, Refused> {
    let (kind, mode, caller) = (Kind::Resign, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_resign = || {
        Ok(Release {
            namespace: door.namespace(&request.namespace)?,
            lease: lease_of(&request.election, &request.lease_id)?,
        })
    };
    let operation = ElectionCommand::Resign(door.counted(kind, to_resign())?);
    let decided = door.call(asked, Operation::Election(operation)).await?;
    Ok(ok(lease::released(kind, decided)))
}

/// Ends a term in favour of a candidate who waits.
#[utoipa::path(
    post, path = "/v1/elections/handoff", operation_id = "handoff", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = HandoffRequest,
    responses((status = 200, description = "The successor leads.", body = HandedOff), LeaderProblems)
)]
pub(super) async fn handoff(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<HandoffRequest>,
) -> Result<Answer<HandedOff>, Refused> {
    let (kind, mode, caller) = (Kind::Handoff, Mode::Now, caller.name());
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_handoff = || {
        Ok(Handoff {
            namespace: door.namespace(&request.namespace)?,
            lease: lease_of(&request.election, &request.lease_id)?,
            to: fields::person("to", &request.to)?,
            request_id: fields::request_id(&request.request_id)?,
        })
    };
    let operation = ElectionCommand::Handoff(door.counted(kind, to_handoff())?);
    let decided = door.call(asked, Operation::Election(operation)).await?;
    let Done::HandedOff { term } = decided.done else { mismatch(kind) };
    Ok(ok(HandedOff {
        term: term.0,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

/// Undoes a campaign whose answer was lost.
#[utoipa::path(
    post, path = "/v1/elections/abandon", operation_id = "abandonCampaign", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = AbandonRequest,
    responses(
        (status = 200, description = "The campaign leads nothing and will not.", body = Abandoned),
        LeaseProblems,
    )
)]
pub(super) async fn abandon(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<AbandonRequest>,
) -> Result<Answer<Abandoned>, Refused> {
    door.abandon(Family::Election, caller, timeout, &request).await
}

/// Ends a term by an operator.
#[utoipa::path(
    post, path = "/v1/elections/force-release", operation_id = "forceResign", tag = "elections",
    params(super::openapi::TimeoutHeader),
    request_body = ForceResignRequest,
    responses((status = 200, description = "The term was ended.", body = ForceReleased), ForceProblems)
)]
pub(super) async fn force_release(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<ForceResignRequest>,
) -> Result<Answer<ForceReleased>, Refused> {
    let (kind, mode, caller) = (Kind::ForceRelease, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let to_force = || {
        Ok(ForceRelease {
            namespace: door.namespace(&request.namespace)?,
            resource: fields::resource("election", &request.election)?,
            token: fields::token("term", request.term)?,
            request_id: fields::request_id(&request.request_id)?,
            reason: fields::reason(&request.reason)?,
        })
    };
    let operation = ElectionCommand::ForceRelease(door.counted(kind, to_force())?);
    let decided = door.call(asked, Operation::Election(operation)).await?;
    Ok(ok(lease::force_released(kind, decided)))
}
