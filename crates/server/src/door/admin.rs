//! `POST /v1/admin/token-floor`.

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
use sereno_api::{TokenFloorRequest, TokenFloorSet};
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
