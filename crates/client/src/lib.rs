//! Rust SDK of Sereno.

mod clock;
mod lease;

pub use clock::Moment;
pub use lease::{GuardState, Loss};
