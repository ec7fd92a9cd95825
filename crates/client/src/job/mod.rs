//! Scheduled jobs: every replica computes the slots, plans, and claims; the service's ledger lets one of them run.
//!
//! [`plan`] is pure: ledger, schedule and time in, the next step out. [`runner`] carries it out.

mod attempt;
mod builder;
mod calls;
mod claim;
mod definition;
mod ledger;
mod news;
mod owed;
mod plan;
mod renewing;
mod runner;
#[cfg(test)]
mod simulation;

pub use attempt::{Attempt, RunGrant};
pub use builder::{Job, OnLoss};
pub use calls::ListJobs;
pub use definition::JobDefinition;
pub use news::JobNews;
pub use runner::JobRunner;
