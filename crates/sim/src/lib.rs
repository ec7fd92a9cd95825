//! A deterministic simulator of several Sereno nodes on one log, and of their clients: development only.
//! `README.md` beside this crate's manifest tells how to run it, read a failure, and add a fault or a promise.

mod agenda;
mod checks;
mod client;
mod clock;
mod config;
mod crowd;
mod event;
mod guard;
mod hammer;
mod host;
mod links;
mod nemesis;
mod place;
mod presence;
mod random;
mod run;
mod seeds;
mod service;
mod snapshots;
mod trace;
mod truth;
mod upgrade;
mod world;

pub use config::{Config, Fault, Scenario};
pub use run::{Failure, Report, explain, run};
pub use seeds::seeds_wanted;
