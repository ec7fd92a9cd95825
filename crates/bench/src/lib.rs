//! Load on Sereno and on its peers: open loop, closed loop, side by side. Development only.

pub mod cli;
pub mod closed;
pub mod error;
pub mod peers;
pub mod process;
pub mod report;
pub mod stats;
pub mod target;
pub mod wire;
