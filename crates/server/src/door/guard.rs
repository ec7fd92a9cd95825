//! What keeps web pages out. A server on a loopback address without authentication trusts everybody who reaches
//! it, and a browser on the same machine reaches it on behalf of every page it shows.
//!
//! - A body has to be `application/json` (see `body`): no plain form can send that, and a script of another origin
//!   needs a preflight, which nothing here answers.
//! - `Origin`, when there is one, has to be this service's own: the scheme and then exactly what `Host` says.
//! - `Sec-Fetch-Site` on `/v1`, when there is one, has to be `same-origin` or `none`.
//! - `Host` has to be an IP address, `localhost`, a name below it, or a name given by `--allow-host`: a page whose
//!   own name is made to point at 127.0.0.1 still sends its name here. Where the server listens on an address that
//!   others can reach (`--insecure`) and no name is given, every name is taken.

use super::problem::Refused;
use hyper::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
};
use sereno_api::ErrorCode;
use std::net::{IpAddr, SocketAddr};

/// The names under which this service may be called.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Where the door listens.
    address: String,
    names: Vec<String>,
    any: bool,
}

impl Hosts {
    /// `names` besides localhost and `address`; with `any` and no names, all.
    pub(crate) fn new(address: SocketAddr, names: &[String], any: bool) -> Self {
        let address = address.to_string();
        let names: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { address, any: any && names.is_empty(), names }
    }

    /// Refuses what a browser sends for somebody else's page.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        if matches!(uri.path(), "/livez" | "/readyz") {
            return Ok(());
        }
        let host = host(uri, headers)?;
        if !self.allows(host) {
            let detail =
                format!("the host {host:?} is not one of this service's: see --allow-host");
            return Err(Refused::new(ErrorCode::PermissionDenied, detail));
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let own = origin.to_str().ok().is_some_and(|origin| is_own(origin, host));
            if !own {
                return Err(cross_site());
            }
        }
        match headers.get("sec-fetch-site").map(|value| value.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) if uri.path().starts_with("/v1") => Err(cross_site()),
            Some(_) => Ok(()),
        }
    }

    fn allows(&self, host: &str) -> bool {
        // What nearly every program says.
        if self.any || host == self.address {
            return true;
        }
        let name = without_port(host).to_ascii_lowercase();
        let literal = name.trim_start_matches('[').trim_end_matches(']');
        literal.parse::<IpAddr>().is_ok()
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.names.contains(&name)
    }
}

fn cross_site() -> Refused {
    Refused::new(ErrorCode::PermissionDenied, "pages of other sites may not call this service")
}

/// What the client calls this service: in the request line, else in the header, of which there may be one.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Refused> {
    if let Some(authority) = uri.authority() {
        return Ok(authority.as_str());
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) if !host.is_empty() => Ok(host),
        _ => Err(Refused::invalid("Host", "must be there once")),
    }
}

fn without_port(host: &str) -> &str {
    let end_of_literal = host.rfind(']').map_or(0, |at| at + 1);
    match host[end_of_literal..].find(':') {
        Some(at) => &host[..end_of_literal + at],
        None => host,
    }
}

fn is_own(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> SocketAddr {
        ([127, 0, 0, 1], 7480).into()
    }

    fn check(hosts: &Hosts, path: &str, headers: &[(&'static str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        hosts.check(&path.parse().unwrap(), &map).is_ok()
    }

    #[test]
    fn only_own_names_on_loopback() {
        let hosts = Hosts::new(address(), &["Sereno.Local".into()], false);
        for good in [
            "127.0.0.1:7480",
            "127.0.0.1",
            "[::1]:7480",
            "[::1]",
            "localhost",
            "LOCALHOST:7480",
            "a.localhost:1",
            "sereno.local:7480",
            "192.168.1.5:80",
        ] {
            assert!(check(&hosts, "/v1/status", &[("host", good)]), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:7480",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(!check(&hosts, "/v1/status", &[("host", bad)]), "{bad}");
        }
        assert!(!check(&hosts, "/v1/status", &[]));
        assert!(!check(&hosts, "/v1/status", &[("host", "localhost"), ("host", "localhost")]));
        assert!(!check(&hosts, "http://evil.example/v1/status", &[("host", "localhost")]));
        assert!(check(&hosts, "/livez", &[("host", "probe.example")]));
    }

    #[test]
    fn every_name_where_the_network_is_trusted_unless_some_are_given() {
        assert!(check(&Hosts::new(address(), &[], true), "/v1/status", &[("host", "sereno:7480")]));
        let given = Hosts::new(address(), &["sereno".into()], true);
        assert!(check(&given, "/v1/status", &[("host", "sereno:7480")]));
        assert!(!check(&given, "/v1/status", &[("host", "evil.example")]));
    }

    #[test]
    fn pages_of_other_sites_are_kept_out() {
        let hosts = Hosts::new(address(), &[], false);
        let with =
            |path, name, value| check(&hosts, path, &[("host", "localhost:7480"), (name, value)]);
        assert!(with("/v1/locks/a", "origin", "http://localhost:7480"));
        for origin in ["http://localhost:3000", "http://evil.example", "null", "localhost:7480"] {
            assert!(!with("/v1/locks/a", "origin", origin), "{origin}");
        }
        assert!(with("/v1/locks/a", "sec-fetch-site", "same-origin"));
        assert!(with("/v1/locks/a", "sec-fetch-site", "none"));
        assert!(!with("/v1/locks/a", "sec-fetch-site", "cross-site"));
        assert!(!with("/v1/locks/a", "sec-fetch-site", "same-site"));
        assert!(
            with("/docs", "sec-fetch-site", "cross-site"),
            "a link to the page may be followed"
        );
    }
}
