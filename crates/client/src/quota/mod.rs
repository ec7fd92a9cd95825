//! Quotas: capacity is reserved, then committed or given back. A [`Reservation`] is a guard: dropped, it gives back what
//! it has not committed.

mod calls;
mod commit;
mod keep;
mod limits;
mod named;
mod plain;
mod refusal;
mod reports;
mod reservation;
mod reserve;

pub use commit::Commit;
pub use limits::{LimitChange, Limits};
pub use named::ReservationName;
pub use plain::{LedgerFilter, ListNodes, ListReservations, Quotas};
pub use refusal::{Exhausted, QuotaError};
pub use reports::{Reconciliation, UsageReport, last_epoch};
pub use reservation::Reservation;
pub use reserve::Reserve;
