//! Quotas: `/v1/quotas/…` and `/v1/reservations/…`, requests and answers. A quota is a tree of limits for one kind of
//! thing; what is reserved at a node counts at every layer above it.
//!
//! Amounts are whole numbers in the quota's own unit, below 2^52.

mod books;
mod commit;
mod limit;
mod read;
mod refusal;
mod reserve;
mod share;
#[cfg(test)]
mod tests;

pub use books::{
    AdjustRequest, Adjusted, Adjustment, Drift, ReconcileRequest, Reconciled, ReportUsageRequest,
    UsageReported,
};
pub use commit::{
    CommitRequest, Committed, LateCommit, ReleaseReservationRequest, ReservationReleased,
    ReturnRequest, Returned, SettleRequest, Settled, Settlement,
};
pub use limit::{LimitPut, NodeRemoved, PutLimitRequest, RemoveNodeRequest};
pub use read::{
    OwnerCommit, OwnerUse, QuotaExplanation, QuotaNode, QuotaNodeRead, QuotaPage, QuotaRefusal,
    QuotaReport, Reservation, ReservationPage, ReservationRead,
};
pub use refusal::{QuotaExcess, QuotaLayer, QuotaStale, Shortage};
pub use reserve::{
    BeginRequest, ExtendRequest, OnExpiry, ReservationState, ReservationWaiting, ReserveRequest,
    Reserved, ReservedItem, ResizeRequest,
};
pub use share::{Share, ShareGrantRequest, ShareReclaimRequest, ShareReturnRequest, Shared};

use serde::{Deserialize, Serialize};

/// An amount at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaItem {
    /// What is counted (`gpu`): 1 to 64 bytes of `A-Z a-z 0-9 . _ : @ + -`.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = "^[A-Za-z0-9._:@+-]{1,64}$", example = "gpu")
    )]
    pub quota: String,
    /// Where in its tree: 0 to 8 segments, at most 190 bytes. Absent or empty: the root.
    #[serde(default)]
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 190,
            pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$",
            example = "acme/vision"
        )
    )]
    pub path: String,
    /// How much, in the quota's own unit.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4503599627370495u64))]
    pub amount: u64,
}

fn yes() -> bool {
    true
}
