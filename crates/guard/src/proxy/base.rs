//! Where the upstream is.

use super::ProxyError;
use hyper::{
    Uri,
    http::uri::{Authority, PathAndQuery},
};

/// What comes before a request's own path.
pub(super) struct Base {
    pub(super) authority: Authority,
    path: String,
}

impl Base {
    pub(super) fn parse(text: &str) -> Result<Self, ProxyError> {
        let wrong = |why| ProxyError::Upstream(text.into(), why);
        let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(wrong("asks for TLS, which this version does not speak")),
            _ => return Err(wrong("must begin with http://")),
        }
        let authority =
            uri.authority().filter(|it| !it.host().is_empty() && !it.as_str().contains('@'));
        let authority = authority.ok_or_else(|| wrong("must name a host, and no user"))?.clone();
        if uri.query().is_some() {
            return Err(wrong("must not have a query"));
        }
        Ok(Self { authority, path: uri.path().trim_end_matches('/').into() })
    }

    /// The path that a request for `asked` gets; `None` where that is none.
    pub(super) fn of(&self, asked: &Uri) -> Option<Uri> {
        let asked = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        let path = if asked == "*" { asked.to_string() } else { format!("{}{asked}", self.path) };
        path.parse().ok()
    }

    /// Host and port, to connect to.
    pub(super) fn address(&self) -> (&str, u16) {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        (host, self.authority.port_u16().unwrap_or(80))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_checked() {
        for (wrong, said) in [
            ("localhost:80", "must begin with http://"),
            ("https://a", "TLS"),
            ("http://a?b", "query"),
            ("http://u:p@a", "no user"),
            ("a b", "not a URL"),
        ] {
            let error = Base::parse(wrong).err().expect(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_path_follows_the_base() {
        for (base, asked, expected) in [
            ("http://a:1", "/x?y=1", "/x?y=1"),
            ("http://a/b/", "/x", "/b/x"),
            ("http://a/b", "http://proxy/x", "/b/x"),
        ] {
            let uri = Base::parse(base).unwrap().of(&asked.parse().unwrap()).unwrap();
            assert_eq!(uri.to_string(), expected);
        }
        assert_eq!(Base::parse("http://[::1]:81/b").unwrap().address(), ("::1", 81));
        assert_eq!(Base::parse("http://a").unwrap().address(), ("a", 80));
    }
}
