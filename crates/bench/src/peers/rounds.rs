//! One round: each peer with a fresh server, each number of clients after the other. Those on etcd share one.

use super::PeersArgs;
use crate::{
    closed::{self, Measured, Plan},
    error::Error,
    process::{Child, Engine, start_postgres, start_redis},
    stats::Operation,
    target::{
        EtcdTarget, Leases, PostgresTarget, QuotaTarget, RedisTarget, SerenoTarget, Target, Wording,
    },
    zones::Zones,
};
use sereno_api::Millis;
use sereno_postgres_dev::Server;
use std::{path::Path, time::Duration};

/// What the hot pool of the quotas has: more than any run commits.
const HOT_LIMIT: u64 = 1_000_000_000_000;

/// How long a number of connections is tried.
const TRIAL: Duration = Duration::from_secs(1);

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
pub enum Peer {
    /// Sereno, durable on one machine.
    #[serde(rename = "sereno-sqlite")]
    #[value(name = "sereno-sqlite")]
    Sqlite,
    /// Sereno's door and node without a disk.
    #[serde(rename = "sereno-memory")]
    #[value(name = "sereno-memory")]
    Memory,
    /// Redis, durable.
    #[serde(rename = "redis")]
    #[value(name = "redis")]
    Redis,
    /// Three nodes of Sereno over three members of etcd.
    #[serde(rename = "sereno-etcd")]
    #[value(name = "sereno-etcd")]
    Zones,
    /// etcd's own locks on the same members, a lease for each client.
    #[serde(rename = "etcd-lock-shared-lease")]
    #[value(name = "etcd-lock-shared-lease")]
    EtcdShared,
    /// The same, a fresh lease for each lock.
    #[serde(rename = "etcd-lock-lease-per-lock")]
    #[value(name = "etcd-lock-lease-per-lock")]
    EtcdPerLock,
    /// A quota on Sereno, durable on one machine: all clients reserve and commit at one node.
    #[serde(rename = "sereno-quota")]
    #[value(name = "sereno-quota")]
    Quota,
    /// The same in a PostgreSQL table, by a conditional update of one row.
    #[serde(rename = "postgres-quota")]
    #[value(name = "postgres-quota")]
    PostgresQuota,
}

impl Peer {
    /// Each.
    pub const ALL: [Self; 8] = [
        Self::Sqlite,
        Self::Memory,
        Self::Redis,
        Self::Zones,
        Self::EtcdShared,
        Self::EtcdPerLock,
        Self::Quota,
        Self::PostgresQuota,
    ];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "Sereno, sqlite",
            Self::Memory => "Sereno, memory log",
            Self::Redis => "Redis, appendfsync always",
            Self::Zones => "Sereno, etcd",
            Self::EtcdShared => "etcd lock, shared lease",
            Self::EtcdPerLock => "etcd lock, lease per lock",
            Self::Quota => "Sereno quota, sqlite",
            Self::PostgresQuota => "PostgreSQL, conditional update",
        }
    }

    /// The two calls of its cycle.
    pub(super) fn operations(self) -> (Operation, Operation) {
        match self.is_quota() {
            true => (Operation::Reserve, Operation::Commit),
            false => (Operation::Acquire, Operation::Release),
        }
    }

    /// Whether it is about a quota, and not about locks.
    pub(super) fn is_quota(self) -> bool {
        matches!(self, Self::Quota | Self::PostgresQuota)
    }

    /// Whether it needs three members of etcd.
    pub(super) fn is_on_etcd(self) -> bool {
        matches!(self, Self::Zones | Self::EtcdShared | Self::EtcdPerLock)
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
    let (on_etcd, alone): (Vec<Peer>, Vec<Peer>) =
        args.peers.iter().partition(|peer| peer.is_on_etcd());
    let (quotas, locks): (Vec<Peer>, Vec<Peer>) = alone.iter().partition(|peer| peer.is_quota());
    for peer in rotated(locks, first).into_iter().chain(rotated(quotas, first)) {
        let folder = args.serve_args.folder()?;
        let (server, target) = start(args, peer, folder.path()).await?;
        measure(args, round, peer, &target, &server.ids(), samples)?;
        server.stop()?;
    }
    if on_etcd.is_empty() {
        return Ok(());
    }
    let zones = Zones::start(&args.serve_args, &[]).await?;
    for peer in rotated(on_etcd, first) {
        let target = target(&zones, peer, args.ttl).await?;
        let servers = match peer {
            Peer::Zones => zones.process_ids(),
            _ => zones.etcd.process_ids(),
        };
        measure(args, round, peer, &target, &servers, samples)?;
    }
    Ok(())
}

/// Each round begins with another one.
fn rotated(mut peers: Vec<Peer>, first: usize) -> Vec<Peer> {
    let by = first % peers.len().max(1);
    peers.rotate_left(by);
    peers
}

fn measure(
    args: &PeersArgs,
    round: usize,
    peer: Peer,
    target: &Target,
    servers: &[u32],
    samples: &mut Vec<Sample>,
) -> Result<(), Error> {
    for &clients in &args.clients {
        let (warm_up, window) =
            (Duration::from_secs(args.warm_up), Duration::from_secs(args.seconds));
        let target = match target {
            Target::Postgres(target) => Target::Postgres(fastest(args, target, clients)?),
            other => other.clone(),
        };
        let measured = closed::measure(&target, &plan(args, clients, warm_up, window), servers)?;
        let (title, rate) = (peer.title(), measured.cycles_per_second());
        eprintln!("round {}: {title}, {clients} clients: {rate:.0} cycles/s", round + 1);
        samples.push(Sample { peer, clients, measured });
    }
    Ok(())
}

fn plan(args: &PeersArgs, clients: usize, warm_up: Duration, window: Duration) -> Plan {
    let (threads, seed) = (args.threads, args.seed);
    Plan { clients, warm_up, window, resources: None, wait: None, threads, seed }
}

/// How many connections are best depends on clients, cores and disk: with too many they stand in each other's way, with too
/// few the server waits for the clients. So PostgreSQL is measured with the number that was fastest just before.
fn fastest(
    args: &PeersArgs,
    target: &PostgresTarget,
    clients: usize,
) -> Result<PostgresTarget, Error> {
    let mut best: Option<(f64, usize)> = None;
    // More than one for each client are never used.
    let enough = args.postgres_connections.iter().filter(|count| **count >= clients).min();
    let tried = args.postgres_connections.iter().filter(|count| **count <= clients);
    for &connections in tried.chain(enough.filter(|count| **count > clients)) {
        let trial = Target::Postgres(target.with_connections(connections));
        let plan = plan(args, clients, TRIAL / 4, TRIAL);
        let rate = closed::measure(&trial, &plan, &[])?.cycles_per_second();
        eprintln!("PostgreSQL, {clients} clients, {connections} connections: {rate:.0} cycles/s");
        if best.is_none_or(|(highest, _)| rate > highest) {
            best = Some((rate, connections));
        }
    }
    let (_, connections) = best.unwrap_or((0.0, 1));
    Ok(target.with_connections(connections))
}

/// What a peer runs on.
enum Running {
    Child(Child),
    Postgres(Server),
}

impl Running {
    fn ids(&self) -> Vec<u32> {
        match self {
            Self::Child(child) => vec![child.id()],
            Self::Postgres(server) => server.process_id().into_iter().collect(),
        }
    }

    fn stop(self) -> Result<(), Error> {
        match self {
            Self::Child(child) => child.stop(),
            // It ends when dropped, at once.
            Self::Postgres(_) => Ok(()),
        }
    }
}

async fn start(args: &PeersArgs, peer: Peer, folder: &Path) -> Result<(Running, Target), Error> {
    if peer == Peer::PostgresQuota {
        let server = start_postgres(folder)?;
        let (url, ttl) = (server.url(), args.ttl.to_duration());
        let target = PostgresTarget::prepare(&url, HOT_LIMIT, ttl, 1).await?;
        return Ok((Running::Postgres(server), Target::Postgres(target)));
    }
    if peer == Peer::Redis {
        let (child, address) = start_redis(&args.redis_server, folder).await?;
        let target = RedisTarget::prepare(address, args.ttl.0).await?;
        return Ok((Running::Child(child), Target::Redis(target)));
    }
    let engine = if peer == Peer::Memory { Engine::Memory } else { Engine::Sqlite };
    let served = args.serve_args.serve(engine, folder, &[]).await?;
    let target = match peer {
        Peer::Quota => {
            Target::Quota(QuotaTarget::prepare(served.address, HOT_LIMIT, args.ttl).await?)
        }
        _ => Target::Sereno(SerenoTarget::new(served.address, wording(args.ttl))),
    };
    Ok((Running::Child(served.child), target))
}

fn wording(lease_ttl: Millis) -> Wording {
    Wording { namespace: "default".into(), owner: "sereno-bench".into(), lease_ttl }
}

/// A peer on etcd: whoever leads is asked, of the nodes or of the members.
pub(super) async fn target(zones: &Zones, peer: Peer, ttl: Millis) -> Result<Target, Error> {
    if peer == Peer::Zones {
        let leader = zones.node(zones.leader().await?).address;
        return Ok(Target::Sereno(SerenoTarget::new(leader, wording(ttl))));
    }
    let leases = if peer == Peer::EtcdShared { Leases::Shared } else { Leases::PerLock };
    let endpoint = zones.etcd_leader().await?;
    Ok(Target::Etcd(EtcdTarget { endpoint, leases, ttl_seconds: ttl.0.div_ceil(1_000) as i64 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_peer() {
        let firsts = [0, 1, 2, 3].map(|round| rotated(Peer::ALL[..3].to_vec(), round)[0]);
        assert_eq!(firsts, [Peer::Sqlite, Peer::Memory, Peer::Redis, Peer::Sqlite]);
        assert!(rotated(Vec::new(), 7).is_empty());
    }
}
