//! The same closed loop on Sereno, on Redis, on etcd's own locks and, for quotas, in PostgreSQL, one after the other on one
//! machine, in alternation.

mod ratios;
mod rounds;
mod table;
mod waiting;

pub use ratios::{Paired, Ratio, WaitRatio};
pub use rounds::Peer;
pub use table::{Calls, PeersReport, Row};
pub use waiting::Wait;

use crate::{
    error::Error,
    process::ServeArgs,
    report::{Machine, Output},
};
use sereno_api::Millis;
use std::path::PathBuf;

/// Sereno, Redis, etcd's own locks and a quota in PostgreSQL side by side: the same closed loop, one after the other on
/// this machine.
///
/// Measured are Sereno with its durable log, the same door and node over a log in memory, and Redis made as
/// durable (`appendonly yes`, `appendfsync always`, `save ""`) with `SET NX PX` and the compare-and-delete script.
/// Each round begins with another of them and gives each a fresh server and folder. On three members of etcd,
/// the same for all: three nodes of Sereno, and etcd's v3 Lock service with one lease for each client and with a
/// fresh lease for each lock. Quotas: all clients reserve one and commit it at the same node of Sereno's durable log, and
/// at the same row of a PostgreSQL table that is as durable (fsync, synchronous_commit), by a conditional UPDATE and a row
/// for each reservation, with idempotency keys, in one prepared statement a call. The table shows the medians of the rounds; ratios are of the figures of one round, and
/// their median is held against the bounds. Then hand-overs with many waiting, and how long
/// it takes until a dead holder's lock is the next one's. Debian: redis-server, etcd-server, etcd-client and postgresql;
/// the run starts and stops its own.
#[derive(Clone, Debug, clap::Args)]
pub struct PeersArgs {
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 256], value_name = "N,N")]
    pub clients: Vec<usize>,

    /// What is compared.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL, value_name = "PEER,PEER")]
    pub peers: Vec<Peer>,

    /// Numbers of those who wait for one name, in the measurement of hand-overs; 0: no such measurement.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1_000], value_name = "N,N")]
    pub waiters: Vec<usize>,

    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,

    /// How long each measurement lasts.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,

    /// How long each runs before that, unmeasured.
    #[arg(long, default_value_t = 1)]
    pub warm_up: u64,

    /// TTL of each lease and reservation.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub ttl: Millis,

    /// Threads of the generator.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,

    /// Decides where the first round begins.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The Redis server.
    #[arg(long, value_name = "PATH", default_value = "redis-server")]
    pub redis_server: PathBuf,

    /// Numbers of connections to PostgreSQL, which all clients share. Each is tried before every measurement, and the
    /// fastest one is measured.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32], value_name = "N,N")]
    pub postgres_connections: Vec<usize>,

    /// Exit with 2 if a bound is missed.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result (text: Markdown).
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `sereno-bench peers`
///
/// # Errors
/// A server is missing, does not come up, or cannot be reached.
pub async fn run(args: &PeersArgs) -> Result<PeersReport, Error> {
    let mut args = args.clone();
    args.waiters.retain(|waiters| *waiters > 0);
    let args = &args;
    if args.rounds == 0 || args.clients.is_empty() || args.peers.is_empty() {
        return Err(Error::Usage("--rounds, --clients and --peers must be at least 1".into()));
    }
    if args.postgres_connections.is_empty() || args.postgres_connections.contains(&0) {
        return Err(Error::Usage("--postgres-connections must be at least 1".into()));
    }
    let machine = Machine::look_with(args.seed);
    let mut samples = Vec::new();
    for round in 0..args.rounds {
        rounds::run(args, round, &mut samples).await?;
    }
    let waits = waiting::run(args).await?;
    Ok(PeersReport::new(machine, args, &samples, waits))
}
