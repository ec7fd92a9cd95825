//! Links of other nodes: an HTTP connection that is asked to become one.

use super::PROTOCOL;
use axum::body::Body;
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
};
use hyper_util::rt::TokioIo;
use sereno_node::{
    driver::{Secret, serve_link},
    handle::NodeHandle,
};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Where nodes ask for a link.
pub(crate) const LINK_PATH: &str = "/internal/link";

/// Links at once: of a few nodes, and of some that have died and are not given up yet. Strangers get no further than
/// this either, for they come before they are known.
const LINKS_MAX: usize = 64;

/// Takes links for this node. Who they come from is found out by the link itself, so the rules for clients and web
/// pages do not apply.
#[derive(Clone)]
pub(crate) struct Links {
    shared: Arc<(NodeHandle, Secret)>,
    places: Arc<Semaphore>,
}

impl Links {
    pub(crate) fn new(node: NodeHandle, secret: Secret) -> Self {
        Self { shared: Arc::new((node, secret)), places: Arc::new(Semaphore::new(LINKS_MAX)) }
    }

    /// Answers the request, and serves the link once the connection has become one.
    pub(crate) fn take(&self, request: Request<Incoming>) -> Response<Body> {
        let asked = request.headers().get(UPGRADE);
        let mut response = Response::new(Body::empty());
        if asked.is_none_or(|protocol| protocol.as_bytes() != PROTOCOL.as_bytes()) {
            *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
            return response;
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return response;
        };
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let _place = place;
            let (node, secret) = &*shared;
            match hyper::upgrade::on(request).await {
                Ok(stream) => {
                    let served = serve_link(node.clone(), TokioIo::new(stream), secret).await;
                    if let Err(error) = served {
                        tracing::info!(%error, "another node's link ended");
                    }
                }
                Err(error) => tracing::debug!(%error, "a connection did not become a link"),
            }
        });
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        response
    }
}
