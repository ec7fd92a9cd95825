//! A real server on a free port, over the memory log and over SQLite, spoken to over HTTP.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod bad_input;
mod codes;
mod connections;
mod document;
mod elections;
mod guards;
mod harness;
mod holds;
mod jobs;
mod ledger;
mod locks;
mod metrics;
mod namespaces;
mod quotas;
mod regions;
mod stop;
mod watch;
