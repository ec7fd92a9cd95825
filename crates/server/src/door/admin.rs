//! `POST /v1/admin/{token-floor, raise-level}`.

use super::{
    Door,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, mismatch},
    caller::Caller,
    fields,
    openapi::AdminProblems,
    problem::Refused,
    timeout::Timeout,
};
use crate::metrics::{Kind, Mode};
use axum::extract::State;
use sereno_api::{LevelRaised, RaiseLevelRequest, TokenFloorRequest, TokenFloorSet};
use sereno_core::{
    command::{Operation, SetTokenFloor},
    outcome::Done,
};
use std::sync::Arc;

/// Raises the floor of all tokens to come.
///
/// For the one case in which tokens could repeat: an earlier leader's wall clock was more than a minute ahead of
/// the present one, and its log is lost. The floor can only rise.
#[utoipa::path(
    post, path = "/v1/admin/token-floor", operation_id = "setTokenFloor", tag = "admin",
    params(super::openapi::TimeoutHeader),
    request_body = TokenFloorRequest,
    responses((status = 200, description = "The floor in force.", body = TokenFloorSet), AdminProblems)
)]
pub(super) async fn set_token_floor(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<TokenFloorRequest>,
) -> Result<Answer<TokenFloorSet>, Refused> {
    let (kind, mode, caller) = (Kind::TokenFloor, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let operation = Operation::SetTokenFloor(SetTokenFloor {
        request_id: fields::request_id(&request.request_id)?,
        floor: fields::token("floor", request.floor)?,
    });
    let decided = door.call(asked, operation).await?;
    let Done::TokenFloorSet { floor } = decided.done else { mismatch(kind) };
    Ok(ok(TokenFloorSet {
        floor: floor.0,
        replayed: decided.replayed.is_some(),
        original_revision: decided.replayed,
        revision: decided.revision,
        cluster_time_ms: decided.time,
    }))
}

/// Raises the level by which all nodes behave.
///
/// Refused while a node that is there does not understand it: upgrade all of them first. It can only rise.
#[utoipa::path(
    post, path = "/v1/admin/raise-level", operation_id = "raiseLevel", tag = "admin",
    params(super::openapi::TimeoutHeader),
    request_body = RaiseLevelRequest,
    responses((status = 200, description = "The level in force.", body = LevelRaised), AdminProblems)
)]
pub(super) async fn raise_level(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RaiseLevelRequest>,
) -> Result<Answer<LevelRaised>, Refused> {
    let (kind, mode, caller) = (Kind::RaiseLevel, Mode::Now, caller.require_admin()?);
    if request.level == 0 {
        return Err(Refused::invalid("level", "must be at least 1"));
    }
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let decided = door.call(asked, Operation::RaiseLevel { level: request.level }).await?;
    let Done::LevelRaised { level } = decided.done else { mismatch(kind) };
    Ok(ok(LevelRaised { level, revision: decided.revision, cluster_time_ms: decided.time }))
}
