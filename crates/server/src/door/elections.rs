//! `GET /v1/elections` and `GET /v1/elections/{election}`; with `observe=true` as server-sent events.

use super::{
    Door,
    answer::{Answer, ok},
    observe,
    openapi::{GetElectionProblems, ListProblems},
    problem::Refused,
    query::Params,
    reads::{list_of, name_of},
    refusal,
    timeout::Timeout,
    views,
};
use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use hyper::{HeaderMap, Uri};
use sereno_api::{Election, ElectionPage, ElectionRow};
use sereno_core::{self as core, command::Family, names::NamespaceName, query::LockView};
use sereno_node::handle::ReadAt;
use std::sync::Arc;

/// The folder of elections.
pub(super) const ELECTIONS: &str = "/v1/elections/";

/// One election: who leads, since when, in which term, and who waits.
///
/// With `observe=true` the answer is a stream of server-sent events of the type `leader`: the record now, and again
/// whenever somebody is elected, proclaims, or ceases to lead. Each has a cursor as its `id`; resumed with `from` it
/// tells the changes since. What came too fast to be told is marked `missed`; that nobody led is always told.
#[utoipa::path(
    get, path = "/v1/elections/{election}", operation_id = "getElection", tag = "elections",
    params(
        (
            "election" = String, Path, description = "The election: the rest of the path, percent-decoded once.",
            max_length = 256,
            pattern = "^(?!(campaign|renew|proclaim|resign|handoff|abandon|force-release)$)\
                [A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$",
        ),
        super::openapi::NamespaceParam, super::openapi::ConsistencyParam, super::openapi::ObserveParams,
        super::openapi::TimeoutHeader,
    ),
    responses(
        (
            status = 200, description = "Led or vacant; with `observe`, an event with that for each change.",
            content((Election = "application/json"), (super::openapi::ServerSentEvent = "text/event-stream")),
        ),
        GetElectionProblems,
    )
)]
pub(super) async fn get_election(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refused> {
    let params = Params::parse(uri.query(), &["namespace", "consistency", "observe", "from"])?;
    let election = name_of(ELECTIONS, "election", uri.path())?;
    let namespace = door.namespace_of(&params)?;
    let consistency = params.consistency()?;
    match params.get("observe") {
        None | Some("false") if params.get("from").is_some() => {
            return Err(Refused::invalid("from", "is only for observe=true"));
        }
        None | Some("false") => {}
        Some("true") => {
            return observe::observe(door, timeout, &params, &headers, namespace, election).await;
        }
        Some(other) => {
            return Err(Refused::invalid(
                "observe",
                format!("must be true or false, is {other:?}"),
            ));
        }
    }
    let (asked, name) = (namespace.clone(), election.clone());
    let read = move |state: &core::State| state.leased(Family::Election, &asked, &name);
    let (view, at) = door.read(consistency, timeout, read).await?;
    let view = view.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    Ok(ok(record(&namespace, &view, at)).into_response())
}

/// An election as the interface tells it.
pub(super) fn record(namespace: &NamespaceName, view: &LockView, at: ReadAt) -> Election {
    let name = view.resource.as_str();
    Election {
        state: views::election_state(view),
        election: name.to_owned(),
        fence_key: views::fence_key_of(namespace, Family::Election, name),
        leader: view.holder.as_ref().map(views::term_holder),
        lock_delay_ms: (view.lock_delay_ms > 0).then_some(view.lock_delay_ms),
        waiters: view.waiters,
        queue: view.queue.iter().map(views::waiter).collect(),
        missed: false,
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }
}

/// Elections with a leader, the oldest term first.
#[utoipa::path(
    get, path = "/v1/elections", operation_id = "listElections", tag = "elections",
    params(
        super::openapi::NamespaceParam, super::openapi::ListParams, super::openapi::ConsistencyParam,
        super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "One page.", body = ElectionPage), ListProblems)
)]
pub(super) async fn list_elections(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<ElectionPage>, Refused> {
    let allowed = ["namespace", "prefix", "owner", "limit", "cursor", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let list = list_of(&namespace, &params, "owner")?;
    let read = move |state: &core::State| state.list_leased(Family::Election, &list);
    let (page, at) = door.read(params.consistency()?, timeout, read).await?;
    let page = page.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let row = |view: &LockView| {
        let name = view.resource.as_str();
        Some(ElectionRow {
            election: name.to_owned(),
            fence_key: views::fence_key_of(&namespace, Family::Election, name),
            leader: views::term_holder(view.holder.as_ref()?),
            waiters: view.waiters,
        })
    };
    Ok(ok(ElectionPage {
        elections: page.locks.iter().filter_map(row).collect(),
        next_cursor: page.next.map(|token| token.to_string()),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}
