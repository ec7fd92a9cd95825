//! Load on Sereno and on its peers: open loop, closed loop, side by side. Development only.

pub mod capacity;
pub mod checkout;
pub mod cli;
pub mod closed;
pub mod error;
pub mod fill;
pub mod memory;
pub mod open;
pub mod peers;
pub mod picture;
pub mod process;
pub mod report;
pub mod restart;
pub mod snapshot_impact;
pub mod stats;
pub mod takeover;
pub mod target;
pub mod upkeep;
pub mod wire;
pub mod zones;
