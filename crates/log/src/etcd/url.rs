//! `etcd://host:port,host:port/prefix`: where a log is.

use std::{fmt, str::FromStr};

const SCHEME: &str = "etcd://";
/// Where no prefix is given.
const DEFAULT_PREFIX: &str = "sereno";
const PREFIX_BYTES_MAX: usize = 200;

/// The members to talk to, and the prefix of all keys.
///
/// ```
/// let url: sereno_log::etcd::EtcdUrl = "etcd://a:2379,b:2379/shop/locks".parse()?;
/// assert_eq!(url.endpoints(), ["a:2379", "b:2379"]);
/// assert_eq!(url.prefix(), "shop/locks");
/// # Ok::<(), sereno_log::etcd::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUrl {
    endpoints: Vec<String>,
    prefix: String,
}

/// Why a text is no such URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a log URL (etcd://HOST:PORT,HOST:PORT/PREFIX): {0}")]
pub struct UrlError(String);

impl EtcdUrl {
    /// `host:port` of each member, the preferred first.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Of all keys, without slashes around it.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The same members, other keys.
    pub fn with_prefix(&self, prefix: &str) -> Result<Self, UrlError> {
        Ok(Self { endpoints: self.endpoints.clone(), prefix: parse_prefix(prefix)? })
    }
}

impl FromStr for EtcdUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| UrlError(format!("it does not begin with {SCHEME}")))?;
        let (members, prefix) = rest.split_once('/').unwrap_or((rest, DEFAULT_PREFIX));
        if members.contains('@') {
            let why = "user and password do not belong into the URL: there are options for them";
            return Err(UrlError(why.into()));
        }
        let mut endpoints: Vec<String> = Vec::new();
        for member in members.split(',') {
            let member = parse_member(member)?;
            if endpoints.contains(&member) {
                return Err(UrlError(format!("{member} is there twice")));
            }
            endpoints.push(member);
        }
        Ok(Self { endpoints, prefix: parse_prefix(prefix)? })
    }
}

impl fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.endpoints.join(","), self.prefix)
    }
}

fn parse_member(member: &str) -> Result<String, UrlError> {
    if member.is_empty() {
        return Err(UrlError("a member has no name".into()));
    }
    let no_port = || UrlError(format!("{member:?} has no port (etcd's own is {member}:2379)"));
    let (host, port) = member.rsplit_once(':').ok_or_else(no_port)?;
    let bare = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => {
            let is_address = address.parse::<std::net::Ipv6Addr>().is_ok();
            is_address.then_some(address).ok_or_else(|| {
                UrlError(format!("{host} is not an IPv6 address in square brackets"))
            })?
        }
        None if host.contains(':') => {
            return Err(UrlError(format!("an IPv6 address needs square brackets: [{host}]")));
        }
        None => host,
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if let Some(bad) = bare.chars().find(|c| !is_allowed(*c)) {
        return Err(UrlError(format!("the host {host:?} has the character {bad:?}")));
    }
    match port.parse::<u16>() {
        _ if bare.is_empty() => Err(UrlError(format!("{member:?} has no host"))),
        Ok(port) if port > 0 => Ok(format!("{host}:{port}")),
        _ => Err(UrlError(format!("{port:?} in {member:?} is not a port"))),
    }
}

fn parse_prefix(prefix: &str) -> Result<String, UrlError> {
    if prefix.len() > PREFIX_BYTES_MAX {
        return Err(UrlError(format!("the prefix is longer than {PREFIX_BYTES_MAX} bytes")));
    }
    if prefix.split('/').any(str::is_empty) {
        return Err(UrlError(format!("the prefix {prefix:?} has an empty part")));
    }
    // Not '@': the log's own keys begin with it, so that one log's prefix never covers another's keys.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    match prefix.chars().find(|c| !is_allowed(*c)) {
        Some(bad) => Err(UrlError(format!("the prefix {prefix:?} has the character {bad:?}"))),
        None => Ok(prefix.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<EtcdUrl>().expect_err(text).to_string()
    }

    #[test]
    fn a_url_names_members_and_prefix() {
        for (text, endpoints, prefix) in [
            ("etcd://a:1", vec!["a:1"], "sereno"),
            ("etcd://127.0.0.1:2379,[::1]:2380/x", vec!["127.0.0.1:2379", "[::1]:2380"], "x"),
            ("etcd://e-1.zone.example:2379/a/b.c-d_e", vec!["e-1.zone.example:2379"], "a/b.c-d_e"),
        ] {
            let url: EtcdUrl = text.parse().expect(text);
            assert_eq!(
                (url.endpoints(), url.prefix()),
                (&endpoints.iter().map(|it| it.to_string()).collect::<Vec<_>>()[..], prefix)
            );
            assert_eq!(url.to_string().parse(), Ok(url));
        }
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        for (text, why) in [
            ("http://a:1", "does not begin with etcd://"),
            ("etcd://", "a member has no name"),
            ("etcd://a:1,", "a member has no name"),
            ("etcd://a", "\"a\" has no port (etcd's own is a:2379)"),
            ("etcd://a:0", "\"0\" in \"a:0\" is not a port"),
            ("etcd://a:70000", "is not a port"),
            ("etcd://a:x", "is not a port"),
            ("etcd://:1", "has no host"),
            ("etcd://::1:2379", "needs square brackets"),
            ("etcd://[::x]:1", "is not an IPv6 address"),
            ("etcd://a b:1", "has the character ' '"),
            ("etcd://u:p@a:1", "do not belong into the URL"),
            ("etcd://a:1,a:1", "a:1 is there twice"),
            ("etcd://a:1/", "has an empty part"),
            ("etcd://a:1/x//y", "has an empty part"),
            ("etcd://a:1/x/", "has an empty part"),
            ("etcd://a:1/x@y", "has the character '@'"),
        ] {
            let told = refused(text);
            assert!(told.contains(why), "{text}: {told}");
        }
        assert!(refused(&format!("etcd://a:1/{}", "x".repeat(201))).contains("longer than"));
    }
}
