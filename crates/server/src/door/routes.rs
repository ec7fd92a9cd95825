//! Which path leads where. The OpenAPI document is made from the same table.

use super::{
    Door, acquire, admin, audit, docs, election, elections, guards, health, hold, holds, job, jobs,
    lease, ledger, namespaces, openapi, problem::Refused, quota, reads, renew_many, run, status,
    watch,
};
use axum::{
    Router,
    routing::{MethodRouter, get},
};
use hyper::{Method, Uri};
use sereno_api::ErrorCode;
use std::sync::Arc;
use utoipa_axum::{router::OpenApiRouter, routes};

/// All routes of the interface, with their document.
pub(super) fn documented() -> OpenApiRouter<Arc<Door>> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(acquire::acquire))
        .routes(routes!(acquire::acquire_all))
        .routes(routes!(lease::renew))
        .routes(routes!(renew_many::renew_many))
        .routes(routes!(lease::release))
        .routes(routes!(lease::abandon))
        .routes(routes!(lease::force_release))
        .routes(routes!(reads::list_locks))
        .routes(routes!(election::campaign))
        .routes(routes!(election::renew))
        .routes(routes!(election::proclaim))
        .routes(routes!(election::resign))
        .routes(routes!(election::handoff))
        .routes(routes!(election::abandon))
        .routes(routes!(election::force_release))
        .routes(routes!(elections::list_elections))
        .routes(routes!(job::put))
        .routes(routes!(run::claim))
        .routes(routes!(run::renew))
        .routes(routes!(run::finish))
        .routes(routes!(run::abandon))
        .routes(routes!(job::force_release))
        .routes(routes!(job::pause))
        .routes(routes!(job::resume))
        .routes(routes!(job::skip))
        .routes(routes!(job::run_now))
        .routes(routes!(jobs::list_jobs))
        .routes(routes!(hold::hold))
        .routes(routes!(hold::hold_all))
        .routes(routes!(hold::begin))
        .routes(routes!(hold::renew))
        .routes(routes!(hold::release))
        .routes(routes!(hold::force_release))
        .routes(routes!(holds::list_holds))
        .routes(routes!(quota::reserve::reserve))
        .routes(routes!(quota::reserve::begin))
        .routes(routes!(quota::commit::commit))
        .routes(routes!(quota::commit::release))
        .routes(routes!(quota::reserve::extend))
        .routes(routes!(quota::reserve::resize))
        .routes(routes!(quota::commit::return_use))
        .routes(routes!(quota::commit::settle))
        .routes(routes!(quota::commit::abandon))
        .routes(routes!(quota::limit::put))
        .routes(routes!(quota::limit::remove))
        .routes(routes!(quota::books::report))
        .routes(routes!(quota::books::reconcile))
        .routes(routes!(quota::books::adjust))
        .routes(routes!(quota::share::grant))
        .routes(routes!(quota::share::give_back))
        .routes(routes!(quota::share::reclaim))
        .routes(routes!(quota::read::list_quotas))
        .routes(routes!(quota::read::explain))
        .routes(routes!(quota::reservations::list_reservations))
        .routes(routes!(quota::reservations::get_reservation))
        .routes(routes!(guards::report))
        .routes(routes!(namespaces::list_namespaces))
        .routes(routes!(namespaces::get_namespace, namespaces::put_namespace))
        .routes(routes!(watch::watch))
        .routes(routes!(audit::read_audit))
        .routes(routes!(ledger::read_ledger))
        .routes(routes!(status::get_status))
        .routes(routes!(admin::set_token_floor))
        .routes(routes!(admin::raise_level))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(docs::openapi_json))
        .routes(routes!(docs::error_page))
}

/// `GET /v1/locks/{resource}` and its like: here the name is one segment, in the served route it is the rest of the
/// path.
pub(super) fn documented_rest() -> OpenApiRouter<Arc<Door>> {
    OpenApiRouter::new()
        .routes(routes!(reads::get_lock))
        .routes(routes!(elections::get_election))
        .routes(routes!(jobs::get_job))
        .routes(routes!(holds::get_hold))
        .routes(routes!(quota::read::get_quota))
}

/// Folders of names, and how one of them is read.
fn folders() -> [(&'static str, MethodRouter<Arc<Door>>); 5] {
    [
        (reads::LOCKS, get(reads::get_lock)),
        (elections::ELECTIONS, get(elections::get_election)),
        (jobs::JOBS, get(jobs::get_job)),
        (holds::HOLDS, get(holds::get_hold)),
        (quota::read::QUOTAS, get(quota::read::get_quota)),
    ]
}

/// Everything that is served.
pub(super) fn router(door: Arc<Door>) -> Router {
    let (mut router, document) = documented().split_for_parts();
    for (folder, read) in folders() {
        // A name may be called like a verb: `GET /v1/locks/acquire` is that lock.
        let verbs = document.paths.paths.keys().filter(|path| path.starts_with(folder));
        for path in verbs {
            router = router.route(path, read.clone());
        }
        router = router.route(&format!("{folder}{{*name}}"), read);
    }
    router
        .route("/", get(docs::root))
        .route("/docs", get(docs::page))
        .route("/docs/", get(docs::page))
        .route("/docs/{*file}", get(docs::page))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(door)
}

async fn no_route(uri: Uri) -> Refused {
    Refused::new(ErrorCode::NotFound, format!("there is no {}", uri.path()))
}

async fn no_method(method: Method, uri: Uri) -> Refused {
    Refused::new(ErrorCode::MethodNotAllowed, format!("{} does not take {method}", uri.path()))
}
