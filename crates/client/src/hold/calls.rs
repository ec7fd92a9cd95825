//! The owner's calls about one hold, as wire requests.

use crate::{core::random_id, transport::Ask};
use sereno_api::{BeginHoldRequest, Millis, ReleaseHoldRequest, RenewHoldRequest};
use std::time::Duration;

/// A hold and who acts for it.
#[derive(Clone, Debug)]
pub(super) struct Whose {
    pub namespace: String,
    pub resource: String,
    pub owner: String,
    pub fence: Option<u64>,
}

impl Whose {
    /// Payment begins. One request, however often it is sent.
    pub(super) fn begin(self, ttl: Duration) -> impl Fn(Option<u64>) -> Ask + Send + Sync {
        let Self { namespace, resource, owner, fence } = self;
        let request = BeginHoldRequest {
            namespace,
            resource,
            owner,
            fence,
            request_id: random_id(),
            ttl: Millis::from(ttl),
            born_at: None,
        };
        move |born_at| {
            Ask::post("/v1/holds/begin", &BeginHoldRequest { born_at, ..request.clone() })
        }
    }

    /// One renewal, however often it is sent.
    pub(super) fn renew(self, ttl: Option<Duration>) -> impl Fn(Option<u64>) -> Ask + Send + Sync {
        let Self { namespace, resource, owner, fence } = self;
        let request = RenewHoldRequest {
            namespace,
            resource,
            owner,
            fence,
            request_id: random_id(),
            ttl: ttl.map(Millis::from),
            born_at: None,
        };
        move |born_at| {
            Ask::post("/v1/holds/renew", &RenewHoldRequest { born_at, ..request.clone() })
        }
    }

    /// One release, however often it is sent.
    pub(super) fn release(self) -> impl Fn(Option<u64>) -> Ask + Send + Sync {
        let Self { namespace, resource, owner, fence } = self;
        let request = ReleaseHoldRequest {
            namespace,
            resource,
            owner,
            fence,
            request_id: random_id(),
            born_at: None,
        };
        move |born_at| {
            Ask::post("/v1/holds/release", &ReleaseHoldRequest { born_at, ..request.clone() })
        }
    }
}
