//! What the proxy itself answers: problem documents (RFC 9457), with a `code` of its own.

use super::body::{self, AnswerBody};
use crate::Refused;
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use serde_json::{Value, json};

/// Whether the upstream may have been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    NotApplied,
    Unknown,
}

/// Why a request was not answered by the upstream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A newer token was accepted.
    Fenced(Refused),
    /// A write without a token.
    TokenRequired,
    /// Headers that make no sense.
    Invalid(String),
    /// `CONNECT`, upgrades.
    NotSupported,
    /// The request did not arrive in time.
    TooSlow,
    /// More than the bound, before anything was sent.
    TooLarge(u64),
    /// More requests than the proxy takes.
    Busy,
    /// No connection to the upstream.
    Unreachable(String),
    /// The connection broke, or the request did, after something was sent.
    Broken(String),
    /// No answer in time.
    NoAnswer,
    /// The memory has failed.
    MemoryLost,
}

impl Problem {
    fn parts(&self) -> (StatusCode, &'static str, Outcome, String) {
        use Outcome::{NotApplied, Unknown};
        match self {
            Self::Fenced(refused) => {
                (StatusCode::PRECONDITION_FAILED, "FENCED", NotApplied, refused.to_string())
            }
            Self::TokenRequired => (
                StatusCode::PRECONDITION_REQUIRED,
                "TOKEN_REQUIRED",
                NotApplied,
                "send Sereno-Fence-Key and Sereno-Token, from your grant".into(),
            ),
            Self::Invalid(why) => {
                (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", NotApplied, why.clone())
            }
            Self::NotSupported => (
                StatusCode::NOT_IMPLEMENTED,
                "NOT_SUPPORTED",
                NotApplied,
                "this proxy passes plain requests, no tunnels".into(),
            ),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                "REQUEST_TIMEOUT",
                NotApplied,
                "the body did not arrive in time".into(),
            ),
            Self::TooLarge(max) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "TOO_LARGE",
                NotApplied,
                format!("a body has at most {max} bytes here"),
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "OVERLOADED",
                NotApplied,
                "too many requests at once".into(),
            ),
            Self::Unreachable(why) => {
                let detail = format!("the upstream was not reached: {why}");
                (StatusCode::BAD_GATEWAY, "UPSTREAM_UNREACHABLE", NotApplied, detail)
            }
            Self::Broken(why) => (StatusCode::BAD_GATEWAY, "UPSTREAM_BROKEN", Unknown, why.clone()),
            Self::NoAnswer => (
                StatusCode::GATEWAY_TIMEOUT,
                "UPSTREAM_TIMEOUT",
                Unknown,
                "the upstream did not answer in time (--upstream-max)".into(),
            ),
            Self::MemoryLost => (
                StatusCode::SERVICE_UNAVAILABLE,
                "UNAVAILABLE",
                NotApplied,
                "the memory of this proxy has failed, so it forwards nothing that has a token"
                    .into(),
            ),
        }
    }

    pub(super) fn document(&self) -> Value {
        let (status, code, outcome, detail) = self.parts();
        let mut document = json!({
            "type": "about:blank",
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "code": code,
            "detail": detail,
            "outcome": match outcome { Outcome::NotApplied => "notApplied", Outcome::Unknown => "unknown" },
        });
        if let Self::Fenced(refused) = self {
            document["fenceKey"] = refused.key.clone().into();
            document["token"] = refused.token.into();
            document["highest"] = refused.highest.into();
        }
        document
    }

    pub(super) fn answer(&self) -> Response<AnswerBody> {
        let mut answer = Response::new(body::whole(self.document().to_string()));
        *answer.status_mut() = self.parts().0;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(self, Self::Busy) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_figures() {
        let refused = Refused { key: "default/lock/x".into(), token: 5, highest: 7 };
        let problem = Problem::Fenced(refused);
        let document = problem.document();
        assert_eq!(document["status"], 412);
        assert_eq!(document["code"], "FENCED");
        assert_eq!(document["outcome"], "notApplied");
        assert_eq!((&document["token"], &document["highest"]), (&5.into(), &7.into()));
        assert_eq!(problem.answer().status(), 412);
    }

    #[test]
    fn after_something_was_sent_nobody_knows() {
        for problem in [Problem::NoAnswer, Problem::Broken("x".into())] {
            assert_eq!(problem.document()["outcome"], "unknown", "{problem:?}");
        }
        assert_eq!(Problem::Unreachable("x".into()).document()["outcome"], "notApplied");
    }
}
