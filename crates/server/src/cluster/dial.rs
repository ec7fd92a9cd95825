//! The way to another node: its HTTP address, and there an upgrade to a link.

use super::{LINK_PATH, NODE_HEADER, PROTOCOL};
use async_trait::async_trait;
use http_body_util::Empty;
use hyper::{
    Request, StatusCode,
    client::conn::http1,
    header::{CONNECTION, HOST, HeaderValue, UPGRADE},
};
use hyper_util::rt::TokioIo;
use sereno_node::driver::{Dial, Stream};
use std::io;
use tokio::net::TcpStream;

/// Dials nodes at the addresses that they advertise.
pub(crate) struct HttpDial {
    /// What it says that this node is called; `None`: its id cannot be said there.
    own_id: Option<HeaderValue>,
}

impl HttpDial {
    /// For the node of this id.
    pub(crate) fn of(node_id: &str) -> Self {
        Self { own_id: HeaderValue::from_str(node_id).ok() }
    }
}

/// `host:port` of an address that a node may advertise: `http://host:port`.
pub(crate) fn authority(address: &str) -> Result<&str, String> {
    let rule = || format!("{address:?} is not an address like http://10.0.0.7:7480");
    let authority = address.strip_prefix("http://").ok_or_else(rule)?.trim_end_matches('/');
    let uri: hyper::http::uri::Authority = authority.parse().map_err(|_| rule())?;
    let is_whole = uri.port_u16().is_some_and(|port| port > 0) && !authority.contains(['/', '@']);
    is_whole.then_some(authority).ok_or_else(rule)
}

#[async_trait]
impl Dial for HttpDial {
    async fn dial(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let authority = authority(address).map_err(io::Error::other)?;
        let stream = TcpStream::connect(authority).await?;
        crate::door::prepare(&stream)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::get(LINK_PATH)
            .header(HOST, authority)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, PROTOCOL)
            .body(Empty::<&[u8]>::new())
            .map_err(io::Error::other)?;
        if let Some(own_id) = &self.own_id {
            request.headers_mut().insert(NODE_HEADER, own_id.clone());
        }
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            return Err(io::Error::other(format!("it takes no links: {status}")));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(io::Error::other)?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(authority("http://10.0.0.7:7480"), Ok("10.0.0.7:7480"));
        assert_eq!(authority("http://zone-a.example:80/"), Ok("zone-a.example:80"));
        assert_eq!(authority("http://[::1]:7480"), Ok("[::1]:7480"));
        for wrong in [
            "",
            "zone-a:7480",
            "https://zone-a:7480",
            "http://zone-a",
            "http://a:0",
            "http://a:1/b",
        ] {
            assert!(authority(wrong).unwrap_err().contains("http://10.0.0.7:7480"), "{wrong}");
        }
    }
}
