//! The header `Sereno-Timeout`: when the caller stops listening.

use super::problem::Refused;
use axum::extract::FromRequestParts;
use hyper::http::request::Parts;
use sereno_api::Millis;
use std::time::Duration;
use tokio::time::Instant;

/// Deadline of a call whose caller names none.
const DEFAULT: Duration = Duration::from_secs(30);
/// The longest that can be named.
const MAX: Millis = Millis(600_000);
/// The longest that a call is held for a wait.
const HOLD_MAX: Duration = Duration::from_secs(20);

/// The header's name.
pub(super) const HEADER: &str = "sereno-timeout";

/// When a call arrived, and how long its caller listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    arrived: Instant,
    length: Duration,
}

impl Timeout {
    /// When the caller stops listening.
    pub(super) fn deadline(self) -> Instant {
        self.arrived + self.length
    }

    /// Since the call arrived.
    pub(super) fn elapsed(self) -> Duration {
        self.arrived.elapsed()
    }

    /// How long an answer `waiting` is held back: a tenth of the caller's time is left for its way.
    pub(super) fn hold(self) -> Duration {
        HOLD_MAX.min(self.length - self.length / 10)
    }
}

impl<S: Sync> FromRequestParts<S> for Timeout {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let arrived = Instant::now();
        let mut values = parts.headers.get_all(HEADER).iter();
        let Some(value) = values.next() else {
            return Ok(Self { arrived, length: DEFAULT });
        };
        if values.next().is_some() {
            return Err(Refused::invalid("Sereno-Timeout", "must be there once"));
        }
        let text = value.to_str().map_err(|_| Refused::invalid("Sereno-Timeout", "is not text"))?;
        let millis: Millis =
            text.parse().map_err(|error| Refused::invalid("Sereno-Timeout", error))?;
        if millis == Millis(0) || millis > MAX {
            let rule = format!("must be 1ms to {MAX}, is {millis}");
            return Err(Refused::invalid("Sereno-Timeout", rule));
        }
        Ok(Self { arrived, length: millis.to_duration() })
    }
}
