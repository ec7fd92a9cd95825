//! `GET /v1/reservations` and `/v1/reservations/{reservationId}`.

use super::{fields as own, views};
use crate::door::{
    Door,
    answer::{Answer, ok},
    fields,
    openapi::{GetProblems, ListProblems},
    problem::Refused,
    query::Params,
    refusal,
    timeout::Timeout,
};
use axum::extract::State;
use hyper::Uri;
use percent_encoding::percent_decode_str;
use sereno_api::{self as api, ErrorCode, ReservationPage, ReservationRead};
use sereno_core::{
    self as core,
    ids::{ObjectId, ReservationId},
    limits,
    outcome::ReservationState,
    query::ListReservations,
};
use std::sync::Arc;

/// The folder of reservations.
const RESERVATIONS: &str = "/v1/reservations/";

/// One reservation that has not ended.
#[utoipa::path(
    get, path = "/v1/reservations/{reservationId}", operation_id = "getReservation", tag = "quotas",
    params(
        ("reservationId" = String, Path, description = "Its name.", pattern = "^[0-9a-f]{32}$"),
        crate::door::openapi::NamespaceParam, crate::door::openapi::ConsistencyParam,
        crate::door::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "It waits, holds or is in quarantine.", body = ReservationRead), GetProblems)
)]
pub(in crate::door) async fn get_reservation(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<ReservationRead>, Refused> {
    let params = Params::parse(uri.query(), &["namespace", "consistency"])?;
    let name = name_of(uri.path())?;
    let namespace = door.namespace_of(&params)?;
    let asked = namespace.clone();
    let read = move |state: &core::State| state.reservation_named(&asked, name);
    let (view, at) = door.read(params.consistency()?, timeout, read).await?;
    let view = view.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let missing = || {
        let detail = format!("there is no reservation {name}, or it has ended");
        Refused::new(ErrorCode::NotFound, detail)
    };
    Ok(ok(ReservationRead {
        reservation: views::reservation(&namespace, &view.ok_or_else(missing)?),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

fn name_of(path: &str) -> Result<ReservationId, Refused> {
    let rest = path.strip_prefix(RESERVATIONS).unwrap_or("");
    let decoded = percent_decode_str(rest).decode_utf8();
    own::id(
        "reservationId",
        &decoded.map_err(|_| Refused::invalid("reservationId", "is not UTF-8"))?,
    )
}

/// Reservations that have not ended, oldest first.
#[utoipa::path(
    get, path = "/v1/reservations", operation_id = "listReservations", tag = "quotas",
    params(
        crate::door::openapi::NamespaceParam, super::params::ListReservationsParams,
        crate::door::openapi::OwnerParam, crate::door::openapi::ConsistencyParam,
        crate::door::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "One page.", body = ReservationPage), ListProblems)
)]
pub(in crate::door) async fn list_reservations(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<ReservationPage>, Refused> {
    let allowed =
        ["namespace", "quota", "path", "owner", "state", "limit", "cursor", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let list = list_of(&params)?;
    let asked = namespace.clone();
    let read = move |state: &core::State| state.list_reservations(&asked, &list);
    let (page, at) = door.read(params.consistency()?, timeout, read).await?;
    let page = page.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let rows = page.reservations.iter();
    Ok(ok(ReservationPage {
        reservations: rows.map(|view| views::reservation(&namespace, view)).collect(),
        next_cursor: page.next.map(|id| id.to_string()),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

fn list_of(params: &Params) -> Result<ListReservations, Refused> {
    let node = match (params.get("quota"), params.get("path")) {
        (Some(quota), path) => Some(own::node(quota, path.unwrap_or(""))?),
        (None, Some(_)) => return Err(Refused::invalid("path", "needs quota beside it")),
        (None, None) => None,
    };
    Ok(ListReservations {
        owner: params.get("owner").map(fields::owner).transpose()?,
        node,
        state: params.get("state").map(state).transpose()?,
        limit: params.limit()?,
        after: ObjectId(params.number("cursor", 0, 0, limits::TOKEN_MAX)?),
    })
}

fn state(word: &str) -> Result<ReservationState, Refused> {
    match api::ReservationState::parse(word) {
        api::ReservationState::Waiting => Ok(ReservationState::Waiting),
        api::ReservationState::Reserved => Ok(ReservationState::Reserved),
        api::ReservationState::InFlight => Ok(ReservationState::InFlight),
        api::ReservationState::Quarantined => Ok(ReservationState::Quarantined),
        _ => {
            let rule = format!("must be waiting, reserved, inFlight or quarantined, is {word:?}");
            Err(Refused::invalid("state", rule))
        }
    }
}
