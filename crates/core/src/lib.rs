//! The core of Sereno: a pure function of the log.
//!
//! [`State::apply`] takes an [`entry::Entry`] and gives outcomes and events; the same entries give the same
//! state on every node. What is absent on purpose: no clock, no randomness, no I/O, no async, no float, no
//! iteration over hash order.

pub mod command;
pub mod entry;
pub mod event;
pub mod ids;
pub mod limits;
pub mod names;
pub mod outcome;
pub mod planted;
pub mod policy;
pub mod query;
mod quota;
mod state;
#[cfg(feature = "testing")]
pub mod testing;

pub use state::{Applied, LEVEL_MAX, Leader, Misfit, Settled, SnapshotError, State};
