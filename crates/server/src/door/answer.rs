//! JSON answers.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use hyper::{
    StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A JSON body with its status.
pub(super) struct Answer<T>(pub(super) StatusCode, pub(super) T);

/// 200 with a JSON body.
pub(super) fn ok<T>(body: T) -> Answer<T> {
    Answer(StatusCode::OK, body)
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(json_bytes(&self.1)));
        *response.status_mut() = self.0;
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        // Answers are secrets, or true only now.
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    }
}

/// The types of the interface are plain structs: they always have a JSON form.
pub(super) fn json_bytes(body: &impl Serialize) -> Bytes {
    let mut bytes = Vec::with_capacity(512);
    serde_json::to_writer(&mut bytes, body).expect("the interface's types serialise");
    bytes.into()
}
