//! Pages for people: the interface's document, the same rendered, and a page for each error code. All of it is in
//! the binary; nothing is fetched from a network.

use super::{
    openapi::{PageProblems, PlainProblems, openapi},
    problem::Refused,
};
use axum::response::{IntoResponse as _, Redirect, Response};
use hyper::{
    Uri,
    header::{CONTENT_TYPE, HeaderValue},
};
use sereno_api::ErrorCode;
use std::sync::{Arc, OnceLock};
use utoipa_swagger_ui::Config;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "operations",
    responses(
        (status = 200, content_type = "application/json", description = "OpenAPI 3.1.", body = Object),
        PlainProblems,
    )
)]
pub(super) async fn openapi_json() -> Result<Response, Refused> {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let text = DOCUMENT.get_or_init(|| openapi().to_json().expect("the document has a JSON form"));
    Ok(([(CONTENT_TYPE, JSON)], text.as_str()).into_response())
}

/// What an error code means, whether the call was applied, and what to do.
#[utoipa::path(
    get, path = "/errors/{code}", operation_id = "errorPage", tag = "operations",
    params(("code" = ErrorCode, Path, description = "The code.")),
    responses(
        (status = 200, content_type = "text/plain", description = "The page, in Markdown.", body = String),
        PageProblems,
    )
)]
pub(super) async fn error_page(uri: Uri) -> Result<Response, Refused> {
    let code = uri.path().rsplit('/').next().unwrap_or_default();
    match page_of(ErrorCode::parse(code)) {
        Some(text) => Ok(([(CONTENT_TYPE, TEXT)], text).into_response()),
        None => Err(Refused::new(ErrorCode::NotFound, format!("there is no error code {code:?}"))),
    }
}

/// The console will stand here; until then the document does.
pub(super) async fn root() -> Redirect {
    Redirect::temporary("/docs/")
}

/// The document, rendered.
pub(super) async fn page(uri: Uri) -> Result<Response, Refused> {
    static CONFIG: OnceLock<Arc<Config<'static>>> = OnceLock::new();
    let Some(file) = uri.path().strip_prefix("/docs/") else {
        return Ok(Redirect::permanent("/docs/").into_response());
    };
    let config =
        CONFIG.get_or_init(|| Arc::new(Config::from("/openapi.json").validator_url("none")));
    match utoipa_swagger_ui::serve(file, Arc::clone(config)) {
        Ok(Some(found)) => {
            Ok(([(CONTENT_TYPE, found.content_type)], found.bytes.into_owned()).into_response())
        }
        Ok(None) => Err(Refused::new(ErrorCode::NotFound, format!("there is no {}", uri.path()))),
        Err(error) => Err(Refused::unavailable(error.to_string(), 1_000)),
    }
}

macro_rules! pages {
    ($($code:ident = $word:literal,)+) => {
        fn page_of(code: ErrorCode) -> Option<&'static str> {
            match code {
                $(ErrorCode::$code => Some(include_str!(concat!("../../../../docs/errors/", $word, ".md"))),)+
                _ => None,
            }
        }
    };
}

pages! {
    InvalidArgument = "INVALID_ARGUMENT",
    Unauthenticated = "UNAUTHENTICATED",
    PermissionDenied = "PERMISSION_DENIED",
    FencingRequired = "FENCING_REQUIRED",
    NotFound = "NOT_FOUND",
    MethodNotAllowed = "METHOD_NOT_ALLOWED",
    RequestTimeout = "REQUEST_TIMEOUT",
    Locked = "LOCKED",
    Taken = "TAKEN",
    WaitTimeout = "WAIT_TIMEOUT",
    LeaseEnded = "LEASE_ENDED",
    NotHolder = "NOT_HOLDER",
    MaxHoldReached = "MAX_HOLD_REACHED",
    Abandoned = "ABANDONED",
    VersionConflict = "VERSION_CONFLICT",
    QuotaExhausted = "QUOTA_EXHAUSTED",
    ReservationEnded = "RESERVATION_ENDED",
    ExceedsReservation = "EXCEEDS_RESERVATION",
    ExpiredNoCapacity = "EXPIRED_NO_CAPACITY",
    RunClaimed = "RUN_CLAIMED",
    RunFinished = "RUN_FINISHED",
    RunPaused = "RUN_PAUSED",
    RetriesExhausted = "RETRIES_EXHAUSTED",
    TooEarly = "TOO_EARLY",
    StaleReport = "STALE_REPORT",
    Resync = "RESYNC",
    TooLarge = "TOO_LARGE",
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE",
    WrongRegion = "WRONG_REGION",
    RequestIdReused = "REQUEST_ID_REUSED",
    QueueFull = "QUEUE_FULL",
    LimitReached = "LIMIT_REACHED",
    Overloaded = "OVERLOADED",
    Unavailable = "UNAVAILABLE",
    UnknownOutcome = "UNKNOWN_OUTCOME",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page() {
        for &code in ErrorCode::ALL {
            let page = page_of(code).unwrap_or_else(|| panic!("{code} has no page"));
            let head = format!("# {code}\n");
            assert!(page.starts_with(&head), "{code}: {:?}", page.lines().next());
            let status = format!("HTTP {}", code.status());
            assert!(page.contains(&status), "{code}: {status} is missing");
            for section in ["## What happened", "## Was it applied?", "## What to do"] {
                assert!(page.contains(section), "{code}: {section} is missing");
            }
        }
    }
}
