//! The node: decides when to lead, follow, batch, beat, snapshot. `Node` is a sans-I/O state machine; the
//! driver carries out what it says and is the only place that knows tokio.

mod calls;
pub mod clock;
pub mod driver;
pub mod events;
pub mod handle;
mod intake;
pub mod node;
pub mod peer;
pub mod replay;
