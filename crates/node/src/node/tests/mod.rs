//! The node against a simulated clock and a simulated log, read along DESIGN.md sections 3 to 8 and 13.

mod asks;
mod away;
mod batch;
mod clients;
mod crowd;
mod desert;
mod durable;
mod lead;
mod overload;
mod passing;
mod patience;
mod peers;
mod quotas;
mod random;
mod reads;
mod region;
mod rehearsal;
mod shared;
mod stop;
mod time;
mod turns;
mod unknown;
mod unreached;
mod wait;
mod world;
