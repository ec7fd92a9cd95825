//! The driver over real engines: memory, with everything that can go wrong, and sqlite, with real files.

mod cluster;
mod failure;
mod hub;
mod listening;
mod restart;
mod serve;
mod sinks;
mod snapshots;
mod support;
