//! The client against a stub that answers as it is told (and `real*.rs` against a real server).

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../stub/mod.rs"]
mod stub;

mod acquire;
mod election;
mod guard;
mod hold;
mod job;
mod quota;
mod real;
mod real_families;
mod real_quota;

use sereno_client::Client;
use std::time::Duration;
use stub::{Asked, Stub};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn client(stub: &Stub) -> Client {
    Client::builder().servers(&stub.url).owner("test").build().unwrap()
}

fn ids(asked: &[Asked]) -> Vec<String> {
    asked.iter().map(|asked| asked.body["requestId"].as_str().unwrap().to_string()).collect()
}
