//! `GET, PUT /v1/namespaces/{name}` and `GET /v1/namespaces`.

use super::{
    Door,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, mismatch},
    caller::Caller,
    openapi::{GetProblems, ListProblems, PutProblems},
    problem::Refused,
    query::Params,
    refusal,
    timeout::Timeout,
    views,
};
use crate::metrics::{Kind, Mode};
use axum::extract::State;
use hyper::{StatusCode, Uri};
use percent_encoding::percent_decode_str;
use sereno_api::{Namespace, NamespacePage, NamespacePut, Policy, PutNamespaceRequest};
use sereno_core::{
    State as CoreState,
    command::{HoldCommand, Operation, PutHoldPolicy, PutHome, PutNamespace},
    names::{NamespaceName, RegionName},
    outcome::Done,
    policy::HoldPolicy,
};
use std::sync::Arc;

/// The folder of namespaces.
const NAMESPACES: &str = "/v1/namespaces/";

/// One namespace: its policy and its counters.
#[utoipa::path(
    get, path = "/v1/namespaces/{name}", operation_id = "getNamespace", tag = "namespaces",
    params(
        ("name" = String, Path, description = "The namespace.", pattern = "^[a-z0-9._-]{1,64}$"),
        super::openapi::ConsistencyParam, super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "The namespace.", body = Namespace), GetProblems)
)]
pub(super) async fn get_namespace(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<Namespace>, Refused> {
    let params = Params::parse(uri.query(), &["consistency"])?;
    let name = name_of(&door, uri.path())?;
    let asked = name.clone();
    let read = move |state: &CoreState| state.namespace(&asked);
    let (view, at) = door.read(params.consistency()?, timeout, read).await?;
    let view = view.ok_or_else(|| refusal::no_namespace(name.as_str()))?;
    Ok(ok(Namespace {
        revision: Some(at.revision.0),
        cluster_time_ms: Some(at.time.0),
        age_ms: Some(at.age_ms),
        ..views::namespace(&view)
    }))
}

fn name_of(door: &Door, path: &str) -> Result<NamespaceName, Refused> {
    let rest = path.strip_prefix(NAMESPACES).unwrap_or("");
    let decoded = percent_decode_str(rest).decode_utf8();
    let text = decoded.map_err(|_| Refused::invalid("namespace", "is not UTF-8"))?;
    door.namespace(&text)
}

/// All namespaces, by name.
#[utoipa::path(
    get, path = "/v1/namespaces", operation_id = "listNamespaces", tag = "namespaces",
    params(super::openapi::PageParams, super::openapi::ConsistencyParam, super::openapi::TimeoutHeader),
    responses((status = 200, description = "One page.", body = NamespacePage), ListProblems)
)]
pub(super) async fn list_namespaces(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<NamespacePage>, Refused> {
    let params = Params::parse(uri.query(), &["limit", "cursor", "consistency"])?;
    let limit = params.limit()?;
    let after = match params.get("cursor") {
        Some(cursor) => {
            let name = NamespaceName::new(cursor);
            name.map_err(|rule| Refused::invalid("cursor", rule))?.to_string()
        }
        None => String::new(),
    };
    // One more than asked for tells whether another page follows.
    let read = move |state: &CoreState| state.namespaces(&after, limit + 1);
    let (views, at) = door.read(params.consistency()?, timeout, read).await?;
    let (page, rest) = views.split_at(views.len().min(limit));
    let last = page.last().filter(|_| !rest.is_empty());
    Ok(ok(NamespacePage {
        namespaces: page.iter().map(views::namespace).collect(),
        next_cursor: last.map(|view| view.namespace.to_string()),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// Creates a namespace, or replaces its whole policy, or its home.
///
/// Of a policy a field left out takes its default, not its old value: read, change, put back with the version read. A
/// home is put by itself.
#[utoipa::path(
    put, path = "/v1/namespaces/{name}", operation_id = "putNamespace", tag = "namespaces",
    params(
        ("name" = String, Path, description = "The namespace.", pattern = "^[a-z0-9._-]{1,64}$"),
        super::openapi::TimeoutHeader,
    ),
    request_body = PutNamespaceRequest,
    responses(
        (status = 200, description = "Replaced.", body = NamespacePut),
        (status = 201, description = "Created.", body = NamespacePut),
        PutProblems,
    )
)]
pub(super) async fn put_namespace(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    uri: Uri,
    Json(request): Json<PutNamespaceRequest>,
) -> Result<Answer<NamespacePut>, Refused> {
    let (kind, mode, caller) = (Kind::PutNamespace, Mode::Now, caller.require_admin()?);
    let asked = Asked { kind, mode, caller, born_at: request.born_at, timeout };
    let namespace = name_of(&door, uri.path())?;
    let operation = to_operation(&namespace, &request)?;
    let decided = door.call(asked, operation).await?;
    let Done::NamespacePut { version } = decided.done else { mismatch(kind) };
    let status = if request.expected_version == 0 { StatusCode::CREATED } else { StatusCode::OK };
    let namespace = namespace.to_string();
    let (revision, cluster_time_ms) = (decided.revision, decided.time);
    Ok(Answer(status, NamespacePut { namespace, version, revision, cluster_time_ms }))
}

fn to_operation(
    namespace: &NamespaceName,
    request: &PutNamespaceRequest,
) -> Result<Operation, Refused> {
    let (namespace, expected_version) = (namespace.clone(), request.expected_version);
    match (request.policy.clone(), request.home.as_deref()) {
        (Some(policy), None) => Ok(put_policy(namespace, expected_version, policy)),
        (None, Some(home)) => {
            let home = Some(home).filter(|home| !home.is_empty()).map(RegionName::new);
            let home = home.transpose().map_err(|rule| Refused::invalid("home", rule))?;
            Ok(Operation::PutHome(PutHome { namespace, home, expected_version }))
        }
        (Some(_), Some(_)) => {
            let rule = "is put by itself: two writes, first the home, then the policy";
            Err(Refused::invalid("home", rule))
        }
        (None, None) => Err(Refused::invalid("policy", "is missing; home could be put instead")),
    }
}

fn put_policy(namespace: NamespaceName, expected_version: u64, policy: Policy) -> Operation {
    let (policy, holds) = views::to_policies(policy);
    let put = PutNamespace { namespace, expected_version, policy };
    // Nodes of lower levels read the first; only what they have no place for goes another way.
    match holds == HoldPolicy::default() {
        true => Operation::PutNamespace(put),
        false => Operation::Hold(HoldCommand::PutPolicy(PutHoldPolicy { put, holds })),
    }
}
