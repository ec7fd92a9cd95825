//! `GET /v1/holds` and `GET /v1/holds/{resource}`.

use super::{
    Door,
    answer::{Answer, ok},
    fields,
    openapi::{GetProblems, ListProblems},
    problem::Refused,
    query::Params,
    reads::name_of,
    refusal,
    timeout::Timeout,
    views,
};
use axum::extract::State;
use hyper::Uri;
use sereno_api::{Hold, HoldPage, HoldRow, HoldState};
use sereno_core::{
    self as core,
    command::Family,
    query::{ListHolds, LockView},
};
use std::sync::Arc;

/// The folder of holds.
pub(super) const HOLDS: &str = "/v1/holds/";

/// One hold: for whom, and until when. A free name is 200 too.
#[utoipa::path(
    get, path = "/v1/holds/{resource}", operation_id = "getHold", tag = "holds",
    params(
        (
            "resource" = String, Path, description = "The resource: the rest of the path, percent-decoded once.",
            max_length = 256,
            pattern = "^(?!(hold|hold-all|begin|renew|release|force-release)$)\
                [A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$",
        ),
        super::openapi::NamespaceParam, super::openapi::ConsistencyParam, super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "Held or free.", body = Hold), GetProblems)
)]
pub(super) async fn get_hold(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<Hold>, Refused> {
    let params = Params::parse(uri.query(), &["namespace", "consistency"])?;
    let resource = name_of(HOLDS, "resource", uri.path())?;
    let namespace = door.namespace_of(&params)?;
    let (asked, name) = (namespace.clone(), resource.clone());
    let read = move |state: &core::State| state.leased(Family::Hold, &asked, &name);
    let (view, at) = door.read(params.consistency()?, timeout, read).await?;
    let view = view.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    Ok(ok(Hold {
        state: if view.holder.is_some() { HoldState::Held } else { HoldState::Free },
        fence_key: views::fence_key_of(&namespace, Family::Hold, resource.as_str()),
        resource: resource.to_string(),
        holder: view.holder.as_ref().map(views::hold_holder),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// What is held, by name. For a catalogue page `consistency=stale` is fine.
#[utoipa::path(
    get, path = "/v1/holds", operation_id = "listHolds", tag = "holds",
    params(
        super::openapi::NamespaceParam, super::openapi::NamesParams, super::openapi::OwnerParam,
        super::openapi::ConsistencyParam, super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "One page.", body = HoldPage), ListProblems)
)]
pub(super) async fn list_holds(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<HoldPage>, Refused> {
    let allowed = ["namespace", "prefix", "owner", "limit", "cursor", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let list = ListHolds {
        namespace: namespace.clone(),
        prefix: params.prefix()?,
        owner: params.get("owner").map(fields::owner).transpose()?,
        limit: params.limit()?,
        after: cursor_of(&params)?,
    };
    let read = move |state: &core::State| state.list_holds(&list);
    let (page, at) = door.read(params.consistency()?, timeout, read).await?;
    let page = page.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let row = |view: &LockView| {
        let name = view.resource.as_str();
        Some(HoldRow {
            resource: name.to_owned(),
            fence_key: views::fence_key_of(&namespace, Family::Hold, name),
            holder: views::hold_holder(view.holder.as_ref()?),
        })
    };
    Ok(ok(HoldPage {
        holds: page.holds.iter().filter_map(row).collect(),
        next_cursor: page.next.map(|name| name.to_string()),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// The name after which a page begins; empty: the first.
pub(super) fn cursor_of(params: &Params) -> Result<String, Refused> {
    let cursor = params.get("cursor").map(|text| fields::resource("cursor", text)).transpose()?;
    Ok(cursor.map(|name| name.to_string()).unwrap_or_default())
}
