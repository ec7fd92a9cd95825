//! One round: each peer with a fresh server, each number of clients after the other.

use super::PeersArgs;
use crate::{
    closed::{self, Measured, Plan},
    error::Error,
    process::{Child, Engine, start_redis},
    target::{RedisTarget, SerenoTarget, Target, Wording},
};
use std::{path::Path, time::Duration};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Peer {
    /// Sereno, durable.
    #[serde(rename = "sereno-sqlite")]
    Sqlite,
    /// Sereno's door and node without a disk.
    #[serde(rename = "sereno-memory")]
    Memory,
    /// Redis, durable.
    #[serde(rename = "redis")]
    Redis,
}

impl Peer {
    /// Each.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Memory, Self::Redis];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "Sereno, sqlite",
            Self::Memory => "Sereno, memory log",
            Self::Redis => "Redis, appendfsync always",
        }
    }
}

/// One measurement.
#[derive(Debug)]
pub(super) struct Sample {
    pub peer: Peer,
    pub clients: usize,
    pub measured: Measured,
}

pub(super) async fn run(
    args: &PeersArgs,
    round: usize,
    samples: &mut Vec<Sample>,
) -> Result<(), Error> {
    let first = (args.seed as usize).wrapping_add(round);
    for offset in 0..Peer::ALL.len() {
        let peer = Peer::ALL[first.wrapping_add(offset) % Peer::ALL.len()];
        let folder = args.serve_args.folder()?;
        let (child, target) = start(args, peer, folder.path()).await?;
        for &clients in &args.clients {
            let plan = Plan {
                clients,
                warm_up: Duration::from_secs(args.warm_up),
                window: Duration::from_secs(args.seconds),
                resources: None,
                wait: None,
                threads: args.threads,
                seed: args.seed,
            };
            let measured = closed::measure(&target, &plan, Some(child.id()))?;
            let (title, rate) = (peer.title(), measured.cycles_per_second());
            eprintln!("round {}: {title}, {clients} clients: {rate:.0} cycles/s", round + 1);
            samples.push(Sample { peer, clients, measured });
        }
        child.stop()?;
    }
    Ok(())
}

async fn start(args: &PeersArgs, peer: Peer, folder: &Path) -> Result<(Child, Target), Error> {
    let engine = match peer {
        Peer::Sqlite => Engine::Sqlite,
        Peer::Memory => Engine::Memory,
        Peer::Redis => {
            let (child, address) = start_redis(&args.redis_server, folder).await?;
            let target = RedisTarget::prepare(address, args.ttl.0).await?;
            return Ok((child, Target::Redis(target)));
        }
    };
    let served = args.serve_args.serve(engine, folder, &[]).await?;
    let wording =
        Wording { namespace: "default".into(), owner: "sereno-bench".into(), lease_ttl: args.ttl };
    Ok((served.child, Target::Sereno(SerenoTarget::new(served.address, wording))))
}
