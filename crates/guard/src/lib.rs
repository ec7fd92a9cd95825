//! Guards of **Sereno**: the other half of a fencing token.
//!
//! A lease says who may work now, and cannot stop a write of somebody who was paused and woke up late. The protected
//! resource can: it remembers the highest token that it has accepted under each fence key, atomically with the
//! effect, and refuses lower ones. An equal token is accepted: order inside one ownership is the caller's business.
//!
//! - [`postgres`]: a function to call inside the business transaction, and a helper around it (feature `postgres`).
//! - [`FileFence`]: a file or a folder.
//! - [`proxy`]: in front of an HTTP service (feature `proxy`).
//! - [`REDIS_SCRIPT`]: for state that is kept in Redis.
//!
//! Each can tell the service what it refused, by a [`Reporter`], which never blocks or fails the guarded operation.
//! What each promises, and what it does not: `docs/guards.md`. The protected operation still has to be idempotent.

mod fence;
mod file;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "proxy")]
pub mod proxy;
mod redis;
mod reporter;

/// Installs the fence in PostgreSQL, into the current schema: a table, and the function `sereno_fence`. Harmless to
/// repeat. Its head says how to use it.
pub const POSTGRES_SQL: &str = include_str!("../sql/postgres.sql");

pub use fence::{FENCE_KEY_BYTES_MAX, Fence, InvalidFence, Refused, TOKEN_MAX};
pub use file::{FileFence, FileFenceError, FileGuard};
pub use redis::{REDIS_REFUSAL, REDIS_SCRIPT};
pub use reporter::{Reporter, ReporterCounts};
