//! Links of other nodes: an HTTP connection that is asked to become one.

use super::{NODE_HEADER, PROTOCOL, complaints::Complaints, strangers::Strangers};
use crate::metrics::Metrics;
use axum::body::Body;
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
};
use hyper_util::rt::TokioIo;
use sereno_node::{
    driver::{Accepted, Secret, accept_link},
    handle::NodeHandle,
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// Where nodes ask for a link.
pub(crate) const LINK_PATH: &str = "/internal/link";

/// Links at once: of a few nodes, and of some that have died and are not given up yet.
const LINKS_MAX: usize = 64;
/// Whoever has not proven within this who it is, from its first byte on, is no node.
const PROVEN_WITHIN: Duration = Duration::from_secs(3);
/// Of what somebody says that it is called.
const CLAIM_CHARS_MAX: usize = 64;

type Upgraded = TokioIo<hyper::upgrade::Upgraded>;

/// Takes links for this node. Who they come from is found out by the link itself, so the rules for clients and web
/// pages do not apply.
#[derive(Clone)]
pub(crate) struct Links(Arc<Inner>);

struct Inner {
    node: NodeHandle,
    secret: Secret,
    metrics: Arc<Metrics>,
    /// Of links whose other end has proven itself.
    places: Semaphore,
    strangers: Strangers,
    refused: Complaints,
    ended: Complaints,
}

/// Who asks: where from, and what it says that it is called.
struct Asker {
    address: SocketAddr,
    node: String,
}

impl Links {
    pub(crate) fn new(node: NodeHandle, secret: Secret, metrics: Arc<Metrics>) -> Self {
        Self(Arc::new(Inner {
            node,
            secret,
            metrics,
            places: Semaphore::new(LINKS_MAX),
            strangers: Strangers::default(),
            refused: Complaints::default(),
            ended: Complaints::default(),
        }))
    }

    /// Answers the request, and serves the link once the connection has become one.
    pub(crate) fn take(&self, request: Request<Incoming>, from: SocketAddr) -> Response<Body> {
        let asked = request.headers().get(UPGRADE);
        let mut response = Response::new(Body::empty());
        if asked.is_none_or(|protocol| protocol.as_bytes() != PROTOCOL.as_bytes()) {
            *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
            return response;
        }
        let asker = Asker { address: from, node: claimed(request.headers()) };
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move { inner.serve(request, &asker).await });
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        response
    }
}

impl Inner {
    async fn serve(&self, request: Request<Incoming>, asker: &Asker) {
        let link = match self.find_out(request).await {
            Ok(link) => link,
            Err(error) => return self.refuse(asker, &error),
        };
        let Ok(_place) = self.places.try_acquire() else {
            return self.refuse(asker, &io::Error::other("there are too many links"));
        };
        let _counted = self.metrics.door.link();
        if let Err(error) = link.serve(self.node.clone()).await
            && let Some(times) = self.ended.count(asker.address.ip())
        {
            let Asker { address, node } = asker;
            tracing::info!(%address, %node, %error, times, "another node's link ended");
        }
    }

    /// Who is at the other end.
    async fn find_out(&self, request: Request<Incoming>) -> io::Result<Accepted<Upgraded>> {
        let mut place = self.strangers.enter();
        let proven = async {
            let stream = hyper::upgrade::on(request).await.map_err(io::Error::other)?;
            accept_link(&self.node, TokioIo::new(stream), &self.secret).await
        };
        let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not say who it is");
        tokio::select! {
            proven = tokio::time::timeout(PROVEN_WITHIN, proven) => proven.map_err(silent)?,
            () = place.lost() => Err(io::Error::other("others came, and it had not said who it is")),
        }
    }

    fn refuse(&self, asker: &Asker, error: &io::Error) {
        self.metrics.door.link_refused();
        let Asker { address, node } = asker;
        match error.kind() {
            // A node that was stopped just then.
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => {
                tracing::debug!(%address, %node, %error, "a connection did not become a link");
            }
            _ => {
                if let Some(times) = self.refused.count(address.ip()) {
                    tracing::warn!(
                        %address, %node, %error, times,
                        "a link was refused: a node has to have the same --cluster-secret-file and the same --log"
                    );
                }
            }
        }
    }
}

/// What it says that it is called, as far as that can be printed.
fn claimed(headers: &HeaderMap) -> String {
    let name = headers.get(NODE_HEADER).and_then(|name| name.to_str().ok());
    name.unwrap_or("(does not say)").chars().take(CLAIM_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_short_and_can_be_printed() {
        let claim = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).expect("a value of a header");
            claimed(&HeaderMap::from_iter([(NODE_HEADER.parse().expect("a name"), value)]))
        };
        assert_eq!(claim(b"zone-a"), "zone-a");
        assert_eq!(claim(&b"x".repeat(500)).len(), CLAIM_CHARS_MAX);
        assert_eq!(claim(b"\xff\xfe"), "(does not say)");
        assert_eq!(claimed(&HeaderMap::new()), "(does not say)");
    }
}
