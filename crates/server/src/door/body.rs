//! JSON bodies: bounded in size and time, parsed strictly, errors with the field's name.

use super::{Door, problem::Refused};
use axum::{
    body::{Body, HttpBody as _},
    extract::{FromRequest, Request},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;
use sereno_api::{ErrorCode, RetryWith};
use sereno_core::limits;
use std::{sync::Arc, time::Duration};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request's JSON body.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Door>> for Json<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &Arc<Door>) -> Result<Self, Refused> {
        check_content_type(request.headers())?;
        let bytes = read(request.into_body()).await?;
        parse(&bytes).map(Self)
    }
}

/// Only JSON: what a web form can send by itself is refused, wherever the form stands.
fn check_content_type(headers: &HeaderMap) -> Result<(), Refused> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = format!("the header Content-Type must be application/json, is {given:?}");
    Err(Refused::new(ErrorCode::UnsupportedMediaType, detail))
}

async fn read(body: Body) -> Result<Bytes, Refused> {
    if body.size_hint().lower() > limits::BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, collect(body)).await {
        Ok(result) => result,
        Err(_elapsed) => {
            let detail = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            let refused = Refused::new(ErrorCode::RequestTimeout, detail);
            Err(refused.with(|problem| problem.retry_with = Some(RetryWith::SameRequestId)))
        }
    }
}

async fn collect(mut body: Body) -> Result<Bytes, Refused> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
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
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    whole.unsplit(rest);
    Ok(whole.freeze())
}

fn too_large() -> Refused {
    let detail = format!("a body has at most {} bytes", limits::BODY_BYTES_MAX);
    Refused::new(ErrorCode::TooLarge, detail)
}

/// Parses; only what is wrong is looked at twice, to name the field.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    // The library would take an array for an object, its elements for the fields in order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Refused::invalid("body", "must be one JSON object, is an array"));
    }
    if let Ok(parsed) = serde_json::from_slice(bytes) {
        return Ok(parsed);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let error = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
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
    use sereno_api::{AcquireRequest, RenewManyRequest};

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
        assert_eq!(read(pieces(3, 1_000)).await.unwrap().len(), 3_000);
        let full = limits::BODY_BYTES_MAX / 1_024;
        assert_eq!(read(pieces(1_024, full)).await.unwrap().len(), limits::BODY_BYTES_MAX);
        let error = read(pieces(1_025, full)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let body =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(body).await.unwrap_err().code(), ErrorCode::RequestTimeout);
    }
}
