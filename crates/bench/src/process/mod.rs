//! The programs that a run starts for itself, and what the kernel says about them.

mod busy;
mod child;
mod postgres;
mod redis;
mod sereno;
mod usage;

pub use busy::Busy;
pub use child::Child;
pub use postgres::start_postgres;
pub use redis::start_redis;
pub use sereno::{Engine, ServeArgs, Served, find_sereno, resolve};
pub use usage::{Cpu, Memory, Scheduled};
