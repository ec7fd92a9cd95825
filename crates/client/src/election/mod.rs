//! Elections: a lock with a face. Who leads holds a term, renewed like a lock, and proclaims a value for the others.

mod campaign;
mod leadership;
mod observe;
mod plain;

pub use campaign::Campaign;
pub use leadership::{Handoff, Leadership};
pub use observe::{Observation, Observed};
pub use plain::ListElections;
