//! The Rust SDK of **Sereno**: locks with leases and fencing tokens, and guards that know when they are lost.
//!
//! ```no_run
//! use sereno_client::{Client, RunError};
//! use std::time::Duration;
//!
//! # async fn write(_token: u64) {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:7480")?;
//! let lock = client
//!     .lock("orders/42")
//!     .ttl(Duration::from_secs(30))
//!     .wait(Duration::from_secs(5))
//!     .acquire()
//!     .await?;
//!
//! // The token goes along with every write; the resource refuses one that is lower than it has seen.
//! let token = lock.token()?;
//! match lock.run(async { write(token).await }).await {
//!     Ok(()) => println!("released: {:?}", lock.release().await?),
//!     Err(RunError::Lost { loss, .. }) => println!("stopped half-way: {loss}"),
//!     Err(RunError::NotBegun(why)) => println!("not begun: {why}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a guard promises
//!
//! **held → at risk → lost.** While it is *held*, [`Guard::check`] says yes. When a renewal is overdue it is
//! *at risk*: begin nothing new. At the local deadline, or when the service says so, it is *lost*, for good. The
//! local deadline lies before the service's own, so a guard reports the loss before anybody else can be granted the
//! lock (a forced release by an operator excepted, which the holder learns at its next renewal). It runs on a clock
//! that counts a suspended machine's time too.
//!
//! No client can stop a write that is already under way. That is what the token is for, and the operation behind the
//! lock still has to be idempotent. See `docs/sdk.md`.
//!
//! # Elections and holds
//!
//! [`Client::election`] → [`Campaign`] → [`Leadership`]: a guard of a term, with the same promise. [`Client::hold`] →
//! [`PlaceHold`] → [`Held`]: a promise to a customer, which is neither renewed nor released by itself.
//!
//! # Quotas
//!
//! [`Client::quota`] → [`Quotas`] → [`Reserve`] → [`Reservation`]: capacity that is reserved, then committed or given back.
//! See `docs/quotas.md`.
//!
//! # Layout
//!
//! [`Client`] → [`Acquire`] → [`Guard`]. A client has a thread of its own, on which one task renews all its guards, a
//! call for all that are due in a namespace. Retries keep the request id, so a lost answer loses no lock; giving up
//! abandons the request in the background.

mod acquire;
mod background;
mod cell;
mod client;
mod clock;
mod core;
mod election;
mod error;
mod follow;
mod guard;
mod hold;
mod job;
mod lease;
mod many;
mod owed;
mod plain;
mod quota;
mod renewer;
mod servers;
mod sse;
mod tenure;
mod transport;
mod watch;

pub use acquire::{Acquire, Grant, Holding, Standing};
pub use cell::GuardStatus;
pub use client::{Client, ClientBuilder, DEFAULT_SERVER, SERVER_VARIABLE};
pub use clock::Moment;
pub use election::{Campaign, Handoff, Leadership, ListElections, Observation, Observed};
pub use error::{Error, NotHeld, RunError};
pub use guard::Guard;
pub use hold::{
    Held, HoldError, HoldLimit, HoldName, LimitKind, ListHolds, OnUnavailable, PlaceHold,
    PlaceHoldOr, Protection, Taken,
};
pub use job::{Attempt, Job, JobDefinition, JobNews, JobRunner, ListJobs, OnLoss, RunGrant};
pub use lease::{GuardState, Loss};
pub use many::ManyGuard;
pub use owed::Release;
pub use plain::ListLocks;
pub use quota::{
    Commit, Exhausted, LedgerFilter, LimitChange, Limits, ListNodes, ListReservations, QuotaError,
    Quotas, Reconciliation, Reservation, ReservationName, Reserve, UsageReport, last_epoch,
};
/// The wire types that answers are made of.
pub use sereno_api as api;
/// Cron expressions in time zones, and how slots are written.
pub use sereno_schedule as schedule;
pub use watch::{Watch, WatchFilter, WatchItem};

/// Compiles what the pages for users say.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/sdk.md")]
    struct Sdk;
    #[doc = include_str!("../../../docs/jobs.md")]
    struct Jobs;
    #[doc = include_str!("../../../docs/elections.md")]
    struct Elections;
    #[doc = include_str!("../../../docs/holds.md")]
    struct Holds;
    #[doc = include_str!("../../../docs/quotas.md")]
    struct Quotas;
    #[doc = include_str!("../../../README.md")]
    struct Readme;
}
