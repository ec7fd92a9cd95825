//! Who asks. There is no authentication yet: everybody is anonymous, and everybody may do everything.
//!
//! Authentication belongs here and nowhere else: this extractor will read the credentials, answer
//! `UNAUTHENTICATED`, and carry the roles; [`Caller::require_admin`] is where operators' routes will ask for theirs.

use super::{Door, problem::Refused};
use axum::extract::FromRequestParts;
use hyper::http::request::Parts;
use sereno_core::names;
use std::sync::Arc;

/// The caller of a request.
pub(super) struct Caller(names::Caller);

impl Caller {
    /// The name under which the log knows it.
    pub(super) fn name(self) -> names::Caller {
        self.0
    }

    /// For operators' routes: forced releases, namespaces, the floor of tokens.
    #[expect(clippy::unnecessary_wraps, reason = "the place where roles will be looked at")]
    pub(super) fn require_admin(self) -> Result<names::Caller, Refused> {
        Ok(self.0)
    }
}

impl FromRequestParts<Arc<Door>> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(_: &mut Parts, door: &Arc<Door>) -> Result<Self, Refused> {
        Ok(Self(door.names.anonymous.clone()))
    }
}
