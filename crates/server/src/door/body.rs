//! JSON bodies: bounded in size and time, parsed strictly, errors with the field's name.

use super::{Door, problem::Refused};
use axum::{
    body::{Body, HttpBody as _},
    extract::{FromRequest, Request},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use serde::de::DeserializeOwned;
use sereno_api::{ErrorCode, Object, RetryWith};
use sereno_core::limits;
use std::{sync::Arc, time::Duration};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Of each body so much is not counted: its connection has a buffer of that size anyhow.
const UNCOUNTED_BYTES: usize = 8 << 10;

/// A request's JSON body.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Door>> for Json<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, door: &Arc<Door>) -> Result<Self, Refused> {
        check_content_type(request.headers())?;
        let body = read(request.into_body(), &door.bodies).await?;
        parse(&body.bytes).map(Self)
    }
}

/// Memory for the bodies of all connections together. Bytes are counted as they come, so that a slow sender holds
/// only what it has sent.
pub(super) struct Bodies(Semaphore);

impl Default for Bodies {
    fn default() -> Self {
        Self(Semaphore::new(limits::BODIES_BYTES_MAX))
    }
}

/// A body, and its share of the memory for bodies.
#[derive(Debug)]
struct Collected<'a> {
    bytes: Bytes,
    _share: Option<SemaphorePermit<'a>>,
}

/// Only JSON in UTF-8, as it is: what a web form can send by itself is refused, wherever the form stands.
fn check_content_type(headers: &HeaderMap) -> Result<(), Refused> {
    let unsupported = |detail| Err(Refused::new(ErrorCode::UnsupportedMediaType, detail));
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let given = types.next().and_then(|value| value.to_str().ok()).unwrap_or("");
    let (essence, parameters) = given.split_once(';').unwrap_or((given, ""));
    let charset = parameters.split(';').map(str::trim).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"'))
    });
    let is_json = essence.trim().eq_ignore_ascii_case("application/json");
    if !is_json
        || types.next().is_some()
        || charset.is_some_and(|it| !it.eq_ignore_ascii_case("utf-8"))
    {
        let detail =
            format!("the header Content-Type must be application/json (UTF-8), once, is {given:?}");
        return unsupported(detail);
    }
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding.as_bytes() != b"identity" => {
            unsupported("a body must not be encoded: leave the header Content-Encoding out".into())
        }
        _ => Ok(()),
    }
}

async fn read(body: Body, bodies: &Bodies) -> Result<Collected<'_>, Refused> {
    if body.size_hint().lower() > limits::BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, collect(body, bodies)).await {
        Ok(result) => result,
        Err(_elapsed) => {
            let detail = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            let refused = Refused::new(ErrorCode::RequestTimeout, detail);
            Err(refused.with(|problem| problem.retry_with = Some(RetryWith::SameRequestId)))
        }
    }
}

async fn collect(mut body: Body, bodies: &Bodies) -> Result<Collected<'_>, Refused> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut share: Option<SemaphorePermit<'_>> = None;
    while let Some(frame) = body.frame().await {
        let broken = |error| Refused::invalid("body", format!("could not be read: {error}"));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limits::BODY_BYTES_MAX {
            return Err(too_large());
        }
        // Almost every body arrives in one piece, which is then not copied.
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
        let counted = share.as_ref().map_or(0, SemaphorePermit::num_permits);
        let uncounted = (first.len() + rest.len()).saturating_sub(UNCOUNTED_BYTES + counted);
        if uncounted > 0 {
            let bytes = u32::try_from(uncounted).expect("a body is small");
            let more = bodies.0.try_acquire_many(bytes).map_err(|_| no_memory())?;
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
        }
    }
    if rest.is_empty() {
        return Ok(Collected { bytes: first, _share: share });
    }
    let mut whole = BytesMut::from(first);
    whole.unsplit(rest);
    Ok(Collected { bytes: whole.freeze(), _share: share })
}

fn no_memory() -> Refused {
    let detail = "too many large bodies are under way".to_string();
    Refused::new(ErrorCode::Overloaded, detail).with(|problem| {
        problem.retry_with = Some(RetryWith::SameRequestId);
        problem.retry_after_ms = Some(1_000);
    })
}

fn too_large() -> Refused {
    let detail = format!("a body has at most {} bytes", limits::BODY_BYTES_MAX);
    Refused::new(ErrorCode::TooLarge, detail)
}

/// Parses; only what is wrong is looked at twice, to name the field.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    if let Ok(Object(parsed)) = serde_json::from_slice(bytes) {
        return Ok(parsed);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let error = match serde_path_to_error::deserialize::<_, Object<T>>(&mut deserializer) {
        Err(error) => error,
        Ok(_) => {
            let rest = deserializer.end().err().map_or_else(String::new, |error| error.to_string());
            return Err(Refused::invalid("body", format!("has more than one JSON value: {rest}")));
        }
    };
    let path = error.path().to_string();
    let what = error.into_inner().to_string();
    // "?" stands for what broke off before it had a name.
    let is_named = !path.split('.').any(|step| step.is_empty() || step == "?");
    Err(match named_field(&what) {
        _ if is_named => Refused::invalid(&path, what),
        Some(field) => Refused::invalid(&field, what),
        None => Refused::invalid("body", what),
    })
}

/// The field in messages like "missing field `resource`".
fn named_field(message: &str) -> Option<String> {
    let rest = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))?;
    rest.split('`').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_api::{AcquireRequest, PutNamespaceRequest, RenewManyRequest};

    fn field_of<T: DeserializeOwned>(text: &str) -> (String, String) {
        let Err(refused) = parse::<T>(text.as_bytes()) else { panic!("{text} was taken") };
        (refused.0.field.unwrap(), refused.0.detail)
    }

    #[test]
    fn errors_name_the_field() {
        let good = r#""resource":"r","requestId":"12345678","owner":"o""#;
        for (body, field) in [
            ("", "body"),
            ("{", "body"),
            ("[]", "body"),
            (r#"["default","r","12345678","o",null,null,null,null,{},null]"#, "body"),
            ("null", "body"),
            (&*format!("{{{good}}} x"), "body"),
            (&format!("{{{good}}}{{}}"), "body"),
            (r#"{"resource":"r","owner":"o"}"#, "requestId"),
            (&format!("{{{good},\"ttl\":1}}"), "ttl"),
            (&format!("{{{good},\"owner\":\"o\"}}"), "owner"),
            (&format!("{{{good},\"leaseTtl\":30}}"), "leaseTtl"),
            (&format!("{{{good},\"leaseTtl\":\"-5s\"}}"), "leaseTtl"),
            (&format!("{{{good},\"bornAt\":-1}}"), "bornAt"),
            (&format!("{{{good},\"bornAt\":1.5}}"), "bornAt"),
            (&format!("{{{good},\"fencing\":\"maybe\"}}"), "fencing"),
            (&format!("{{{good},\"labels\":{{\"a\":1}}}}"), "labels.a"),
        ] {
            let (named, detail) = field_of::<AcquireRequest>(body);
            assert_eq!(named, field, "{body}: {detail}");
        }
        let many = r#"{"leases":[{"resource":"a","leaseId":"b"},{"resource":5,"leaseId":"b"}]}"#;
        assert_eq!(field_of::<RenewManyRequest>(many).0, "leases[1].resource");
        let arrays = r#"{"leases":[["a","0123456789abcdef0123456789abcdef"]]}"#;
        assert_eq!(field_of::<RenewManyRequest>(arrays).0, "leases[0]");
        let policy = r#"{"expectedVersion":0,"policy":[null,"30s"]}"#;
        assert_eq!(field_of::<PutNamespaceRequest>(policy).0, "policy");
        let memory = r#"{"expectedVersion":0,"policy":{"replyMemory":["90s","5m",10]}}"#;
        assert_eq!(field_of::<PutNamespaceRequest>(memory).0, "policy.replyMemory");
    }

    #[test]
    fn what_is_said_of_a_body_has_to_be_so() {
        let check = |headers: &[(&'static str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            check_content_type(&map).is_ok()
        };
        let json = ("content-type", "application/json");
        assert!(check(&[json]));
        assert!(check(&[("content-type", "Application/JSON; charset=\"UTF-8\"")]));
        assert!(check(&[json, ("content-encoding", "identity")]));
        assert!(!check(&[]));
        assert!(!check(&[json, json]));
        assert!(!check(&[("content-type", "application/json; charset=utf-16")]));
        assert!(!check(&[("content-type", "text/plain")]));
        assert!(!check(&[json, ("content-encoding", "gzip")]));
    }

    #[tokio::test]
    async fn bodies_in_pieces_are_joined_and_bounded() {
        let pieces = |count: usize, size: usize| {
            let piece = Bytes::from(vec![b'x'; size]);
            let stream = futures_util::stream::iter(
                (0..count).map(move |_| Ok::<_, std::io::Error>(piece.clone())),
            );
            Body::from_stream(stream)
        };
        let bodies = Bodies::default();
        assert_eq!(read(pieces(3, 1_000), &bodies).await.unwrap().bytes.len(), 3_000);
        let full = limits::BODY_BYTES_MAX / 1_024;
        let whole = read(pieces(1_024, full), &bodies).await.unwrap();
        assert_eq!(whole.bytes.len(), limits::BODY_BYTES_MAX);
        drop(whole);
        let error = read(pieces(1_025, full), &bodies).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge);

        // All connections together: what is too much is refused at once, and what ends makes room.
        let piece = limits::BODY_BYTES_MAX / 2;
        let mut held = Vec::new();
        let error = loop {
            match read(pieces(2, piece), &bodies).await {
                Ok(body) => held.push(body),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), ErrorCode::Overloaded);
        assert_eq!(held.len(), limits::BODIES_BYTES_MAX / (2 * piece - UNCOUNTED_BYTES));
        held.pop();
        read(pieces(2, piece), &bodies).await.unwrap();
        read(pieces(1, 1_000), &bodies).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let body =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(
            read(body, &Bodies::default()).await.unwrap_err().code(),
            ErrorCode::RequestTimeout
        );
    }
}
