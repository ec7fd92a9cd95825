//! A pool of 64 GPUs and three tenants. See README.md; what a job does is in `job.rs`, what the tenants may in `pool.rs`.

pub mod job;
pub mod lives;
pub mod observer;
pub mod picture;
pub mod pool;
pub mod record;
pub mod steps;
pub mod table;
