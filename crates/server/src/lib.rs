//! The server of Sereno: its HTTP door, configuration, metrics and audit trail, and how they are booted.
//!
//! No rule of the domain lives here. A door translates a protocol into calls of the node and outcomes back.
//!
//! - [`run`] is `sereno serve`: a process that serves until it is told to stop.
//! - [`Server`] is the same inside another program, for demonstrations and tests.
//! - [`audit`] verifies a trail offline.
//! - [`openapi`] is the interface's document.

pub mod audit;
mod boot;
mod cluster;
pub mod config;
mod door;
mod logging;
mod metrics;
mod time;
mod wire;

pub use boot::{Server, ServerError, run};
pub use config::{Args, Config};
pub use door::openapi;
