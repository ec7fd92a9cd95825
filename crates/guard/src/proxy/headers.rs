//! What headers say, and which of them are passed on.

use crate::Fence;
use hyper::{
    HeaderMap, Method,
    header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, VIA},
};
use std::net::IpAddr;

/// Under which key.
pub const FENCE_KEY: &str = "sereno-fence-key";
/// With which token.
pub const TOKEN: &str = "sereno-token";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const OURSELVES: &str = "1.1 sereno-guard";
/// What is said between two neighbours, besides what `Connection` names.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The fence of a request; `None` if it has none of the two headers.
pub(super) fn fence(headers: &HeaderMap) -> Result<Option<Fence>, String> {
    match (single(headers, FENCE_KEY)?, single(headers, TOKEN)?) {
        (None, None) => Ok(None),
        (Some(key), Some(token)) => {
            let is_number = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
            let token = token.parse().ok().filter(|_| is_number);
            let token = token.ok_or("Sereno-Token must be a whole number, in digits only")?;
            let fence = Fence::new(key, token);
            fence.map(Some).map_err(|error| format!("Sereno-Fence-Key or Sereno-Token: {error}"))
        }
        (None, Some(_)) => Err("Sereno-Token came without Sereno-Fence-Key".into()),
        (Some(_), None) => Err("Sereno-Fence-Key came without Sereno-Token".into()),
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(format!("{name} came more than once"));
    }
    value
        .to_str()
        .map(|value| Some(value.trim()))
        .map_err(|_| format!("{name} must be visible ASCII"))
}

/// Methods that change nothing.
pub(super) fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// The length that a request announces.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Of a request, as it is passed on.
pub(super) fn of_request(mut headers: HeaderMap, host: &str, from: IpAddr) -> HeaderMap {
    remove_hop_by_hop(&mut headers);
    // The upstream has a name of its own, and the proxy has already asked for the body.
    headers.remove(HOST);
    headers.remove(EXPECT);
    append(&mut headers, &HOST, host);
    // One connection for one exchange.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    append(&mut headers, &VIA, OURSELVES);
    append(&mut headers, &FORWARDED_FOR, &from.to_string());
    headers
}

/// Of an answer, as it is passed on.
pub(super) fn of_answer(mut headers: HeaderMap) -> HeaderMap {
    remove_hop_by_hop(&mut headers);
    append(&mut headers, &VIA, OURSELVES);
    headers
}

fn append(headers: &mut HeaderMap, name: &HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.append(name, value);
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // These say how long the body is and what is protected: nobody may have them taken away.
        .filter(|name: &HeaderName| {
            *name != CONTENT_LENGTH && name.as_str() != FENCE_KEY && name.as_str() != TOKEN
        })
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = all.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        pairs.collect()
    }

    #[test]
    fn a_fence_is_two_headers() {
        let both = headers(&[(FENCE_KEY, "default/lock/x"), (TOKEN, "17")]);
        assert_eq!(fence(&both), Ok(Some(Fence::new("default/lock/x", 17).unwrap())));
        assert_eq!(fence(&headers(&[("accept", "*/*")])), Ok(None));
        for (wrong, said) in [
            (headers(&[(FENCE_KEY, "k")]), "without Sereno-Token"),
            (headers(&[(TOKEN, "1")]), "without Sereno-Fence-Key"),
            (headers(&[(FENCE_KEY, "k"), (TOKEN, "")]), "whole number"),
            (headers(&[(FENCE_KEY, "k"), (TOKEN, "+1")]), "whole number"),
            (headers(&[(FENCE_KEY, "k"), (TOKEN, "1.0")]), "whole number"),
            (headers(&[(FENCE_KEY, "k"), (TOKEN, "0")]), "must be 1 to"),
            (headers(&[(FENCE_KEY, "k"), (TOKEN, "99999999999999999999")]), "whole number"),
            (headers(&[(FENCE_KEY, ""), (TOKEN, "1")]), "must not be empty"),
            (headers(&[(FENCE_KEY, "k"), (FENCE_KEY, "l"), (TOKEN, "1")]), "more than once"),
        ] {
            let error = fence(&wrong).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_is_meant_for_a_neighbour_stays_there() {
        let request = headers(&[
            ("connection", "close, X-Mine, content-length, sereno-token"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("host", "proxy"),
            ("expect", "100-continue"),
            ("content-length", "5"),
            (FENCE_KEY, "k"),
            (TOKEN, "1"),
            ("accept", "*/*"),
        ]);
        let passed = of_request(request, "up:1", IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut names: Vec<_> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "accept",
            "connection",
            "content-length",
            "host",
            FENCE_KEY,
            TOKEN,
            "via",
            "x-forwarded-for",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            (&passed["connection"], &passed["host"]),
            (&"close".parse().unwrap(), &"up:1".parse().unwrap())
        );
        assert_eq!(passed["x-forwarded-for"], "127.0.0.1");
    }
}
