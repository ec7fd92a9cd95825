//! The guards against a real PostgreSQL and a real Redis, and what they report.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../client/tests/stub/mod.rs"]
mod stub;

mod file;
mod postgres_helper;
mod postgres_race;
mod postgres_sql;
mod redis;
mod reporter;
