//! Problem documents as responses.

use super::answer::json_bytes;
use axum::response::{IntoResponse, Response};
use hyper::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use sereno_api::{ErrorCode, Outcome, Problem, RetryWith};

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A request that ends with a problem. Boxed, because most requests end otherwise.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Box<Problem>);

impl Refused {
    /// With what the code says by itself: nothing was applied, and a repeat makes no sense.
    pub(super) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// A field, header or parameter that breaks a rule.
    pub(super) fn invalid(field: &str, rule: impl std::fmt::Display) -> Self {
        let refused = Self::new(ErrorCode::InvalidArgument, format!("{field}: {rule}"));
        refused.with(|problem| problem.field = Some(field.into()))
    }

    pub(super) fn unavailable(detail: impl Into<String>, retry_after_ms: u64) -> Self {
        Self::new(ErrorCode::Unavailable, detail).with(|problem| {
            problem.retry_with = Some(RetryWith::SameRequestId);
            problem.retry_after_ms = Some(retry_after_ms);
        })
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Problem)) -> Self {
        change(&mut self.0);
        self
    }

    pub(super) fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Whether the call can have been applied.
    pub(super) fn outcome(&self) -> Outcome {
        self.0.outcome
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(json_bytes(&*self.0).into());
        *response.status_mut() = status;
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        if let Some(ms) = self.0.retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        }
        response
    }
}
