//! The client against a stub that answers as it is told (and `real*.rs` against a real server).

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../stub/mod.rs"]
mod stub;

mod acquire;
mod election;
mod guard;
mod hold;
mod job;
mod real;
mod real_families;
