//! A PostgreSQL for one run: durable before it answers, in a folder of its own.

use crate::error::Error;
use sereno_postgres_dev::Server;
use std::path::Path;

/// All that is not durability is set to its advantage: no checkpoint falls into a run, and all data is in memory.
const SETTINGS: [&str; 4] =
    ["shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "jit=off"];

/// Starts it in `folder` and waits until it takes connections.
///
/// # Errors
/// It is not installed, or does not come up.
pub fn start_postgres(folder: &Path) -> Result<Server, Error> {
    Server::durable_in(folder, &SETTINGS)
        .map_err(|error| Error::Child { program: "postgres", why: error.to_string() })
}
