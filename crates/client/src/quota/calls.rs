//! The calls about one reservation, as wire requests. Each is one request, however often it is sent.

use crate::{core::random_id, transport::Ask};
use sereno_api::{
    BeginRequest, CommitRequest, ExtendRequest, Millis, OnExpiry, QuotaItem,
    ReleaseReservationRequest, ResizeRequest,
};
use std::time::Duration;

/// A reservation by its name; with the fence nobody else's is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub namespace: String,
    pub reservation_id: String,
    pub fence: Option<u64>,
}

/// Amounts at nodes, as they are sent.
pub(super) fn items<Q: Into<String>, P: Into<String>>(
    items: impl IntoIterator<Item = (Q, P, u64)>,
) -> Vec<QuotaItem> {
    let item = |(quota, path, amount): (Q, P, u64)| QuotaItem {
        quota: quota.into(),
        path: path.into(),
        amount,
    };
    items.into_iter().map(item).collect()
}

/// A commit: the same request over all repeats, of whoever sends it.
pub(super) fn commit(request: CommitRequest) -> impl Fn(Option<u64>) -> Ask + Send + Sync {
    move |born_at| Ask::post("/v1/quotas/commit", &CommitRequest { born_at, ..request.clone() })
}

impl Named {
    pub(super) fn begin(
        &self,
        in_flight_ttl: Duration,
        on_expiry: OnExpiry,
    ) -> impl Fn(Option<u64>) -> Ask + Send + Sync + use<> {
        let Self { namespace, reservation_id, fence } = self.clone();
        let request = BeginRequest {
            namespace,
            reservation_id,
            fence,
            in_flight_ttl: Millis::from(in_flight_ttl),
            on_expiry,
            request_id: random_id(),
            born_at: None,
        };
        move |born_at| Ask::post("/v1/quotas/begin", &BeginRequest { born_at, ..request.clone() })
    }

    pub(super) fn extend(
        &self,
        ttl: Option<Duration>,
    ) -> impl Fn(Option<u64>) -> Ask + Send + Sync + use<> {
        let Self { namespace, reservation_id, fence } = self.clone();
        let request = ExtendRequest {
            namespace,
            reservation_id,
            fence,
            ttl: ttl.map(Millis::from),
            request_id: random_id(),
            born_at: None,
        };
        move |born_at| Ask::post("/v1/quotas/extend", &ExtendRequest { born_at, ..request.clone() })
    }

    pub(super) fn resize(
        &self,
        items: Vec<QuotaItem>,
    ) -> impl Fn(Option<u64>) -> Ask + Send + Sync + use<> {
        let Self { namespace, reservation_id, fence } = self.clone();
        let request = ResizeRequest {
            namespace,
            reservation_id,
            fence,
            items,
            request_id: random_id(),
            born_at: None,
        };
        move |born_at| Ask::post("/v1/quotas/resize", &ResizeRequest { born_at, ..request.clone() })
    }

    pub(super) fn release(&self) -> impl Fn(Option<u64>) -> Ask + Send + Sync + use<> {
        let Self { namespace, reservation_id, fence } = self.clone();
        let request = ReleaseReservationRequest {
            namespace,
            reservation_id,
            fence,
            request_id: random_id(),
            born_at: None,
        };
        move |born_at| {
            let request = ReleaseReservationRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/release", &request)
        }
    }
}
