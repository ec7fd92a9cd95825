//! What the plays and tests of the examples stand on: a PostgreSQL, the service, and processes to kill and to pause.
//! Development only: it panics where something is missing, and says what.

#![allow(clippy::unwrap_used)] // A play that cannot go on says so and ends.

mod database;
mod process;
mod service;

pub use database::{Database, connect};
pub use process::{Process, family, kill, name, path, pause, program, resume};
pub use service::Service;

use std::time::{Duration, Instant};

/// How long anything may take before the play is over.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EACH: Duration = Duration::from_millis(20);

/// Looks again and again until there is something to see.
///
/// # Panics
/// After a minute.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(LOOK_EACH).await;
    }
}
