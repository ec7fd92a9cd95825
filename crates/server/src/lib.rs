//! The server of Sereno: its HTTP door, configuration, metrics and audit trail, and how they are booted.
//!
//! No rule of the domain lives here. A door translates a protocol into calls of the node and outcomes back.

pub mod audit;
pub mod config;
mod logging;
mod time;
mod wire;
