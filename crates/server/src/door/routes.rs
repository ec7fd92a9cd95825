//! Which path leads where. The OpenAPI document is made from the same table.

use super::{
    Door, acquire, admin, audit, docs, health, lease, namespaces, openapi, problem::Refused, reads,
    renew_many, status, watch,
};
use axum::{Router, routing::get};
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
        .routes(routes!(namespaces::list_namespaces))
        .routes(routes!(namespaces::get_namespace, namespaces::put_namespace))
        .routes(routes!(watch::watch))
        .routes(routes!(audit::read_audit))
        .routes(routes!(status::get_status))
        .routes(routes!(admin::set_token_floor))
        .routes(routes!(admin::raise_level))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(docs::openapi_json))
        .routes(routes!(docs::error_page))
}

/// `GET /v1/locks/{resource}`: here the resource is one segment, in the served route it is the rest of the path.
pub(super) fn documented_rest() -> OpenApiRouter<Arc<Door>> {
    OpenApiRouter::new().routes(routes!(reads::get_lock))
}

/// Everything that is served.
pub(super) fn router(door: Arc<Door>) -> Router {
    let (router, document) = documented().split_for_parts();
    // A resource may be called like a verb: `GET /v1/locks/acquire` is that lock.
    let verbs = document.paths.paths.keys().filter(|path| path.starts_with(reads::LOCKS));
    let router = verbs.fold(router, |router, path| router.route(path, get(reads::get_lock)));
    router
        .route("/v1/locks/{*resource}", get(reads::get_lock))
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
