//! Chaos: three members of etcd and three nodes as real processes, a mixed load of clients that record every call, faults
//! by a seeded schedule, and checkers of what the clients saw. See the README of this crate. Development only.

pub mod check;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod eyes;
pub mod history;
pub mod input;
pub mod liveness;
pub mod namespaces;
pub mod nemesis;
pub mod proxy;
pub mod report;
pub mod resource;
pub mod run;
pub mod schedule;
pub mod tail;
pub mod truth;
