//! A deterministic simulator of several Sereno nodes on one log, and of their clients: development only.
//! `README.md` beside this crate's manifest tells how to run it, read a failure, and add a fault or a promise.

mod agenda;
mod checks;
mod client;
mod clock;
mod config;
mod event;
mod host;
mod links;
mod nemesis;
mod presence;
mod random;
mod run;
mod service;
mod trace;
mod truth;
mod world;

pub use config::{Config, Fault, Scenario};
pub use run::{Failure, Report, explain, run};
