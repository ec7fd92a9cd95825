//! What is measured: Sereno over HTTP, Redis over RESP, etcd's locks over gRPC; quotas on Sereno and in PostgreSQL. One client
//! has one call in flight, on a connection of its own (of PostgreSQL: on one of a few that all share).

mod answers;
mod etcd;
mod postgres;
mod quota;
mod redis;
mod sereno;

pub use answers::{Acquired, LeaseId, Renewals};
pub use etcd::{Etcd, EtcdTarget, Leases};
pub use postgres::{Postgres, PostgresTarget};
pub use quota::{Quota, QuotaTarget};
pub use redis::{Redis, RedisTarget};
pub use sereno::{Ask, Sereno, SerenoTarget, Wording, ask_json, is_ready};

use crate::{stats::Operation, wire::Fault};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where clients connect to. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Target {
    /// Sereno's HTTP door.
    Sereno(SerenoTarget),
    /// A Redis server.
    Redis(RedisTarget),
    /// A member of etcd.
    Etcd(EtcdTarget),
    /// A quota behind Sereno's HTTP door.
    Quota(QuotaTarget),
    /// A quota in a PostgreSQL.
    Postgres(PostgresTarget),
}

/// One client that takes and gives back locks, or reserves and commits.
#[derive(Debug)]
pub enum Client {
    /// On Sereno.
    Sereno(Box<Sereno>),
    /// On Redis.
    Redis(Box<Redis>),
    /// On etcd.
    Etcd(Box<Etcd>),
    /// A quota on Sereno.
    Quota(Box<Quota>),
    /// A quota in PostgreSQL.
    Postgres(Box<Postgres>),
}

impl Target {
    /// Opens one client's connection.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn connect(&self) -> Result<Client, Fault> {
        Ok(match self {
            Self::Sereno(target) => Client::Sereno(Box::new(Sereno::connect(target).await?)),
            Self::Redis(target) => Client::Redis(Box::new(Redis::connect(target).await?)),
            Self::Etcd(target) => Client::Etcd(Box::new(Etcd::connect(target).await?)),
            Self::Quota(target) => Client::Quota(Box::new(Quota::connect(target).await?)),
            Self::Postgres(target) => Client::Postgres(Box::new(Postgres::connect(target).await?)),
        })
    }

    /// For one thread of the generator. Clients that share connections share those of their thread.
    #[must_use]
    pub fn for_a_thread(&self) -> Self {
        match self {
            Self::Postgres(target) => Self::Postgres(target.with_own_connections()),
            other => other.clone(),
        }
    }

    /// The two calls of a cycle: what [`Client::acquire`] and [`Client::release`] are here.
    pub fn operations(&self) -> (Operation, Operation) {
        match self {
            Self::Sereno(_) | Self::Redis(_) | Self::Etcd(_) => {
                (Operation::Acquire, Operation::Release)
            }
            Self::Quota(_) | Self::Postgres(_) => (Operation::Reserve, Operation::Commit),
        }
    }
}

impl Client {
    /// Takes a lock; of a quota: reserves one, for an owner of the resource's name.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn acquire(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        match self {
            Self::Sereno(client) => client.acquire(ask).await,
            Self::Redis(client) => client.acquire(ask).await,
            Self::Etcd(client) => client.acquire(ask).await,
            Self::Quota(client) => client.reserve(ask).await,
            Self::Postgres(client) => client.reserve(ask).await,
        }
    }

    /// Gives it back; of a quota: commits it.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn release(&mut self, resource: &str, lease: &LeaseId) -> Result<Released, Fault> {
        match self {
            Self::Sereno(client) => client.release(resource, lease).await,
            Self::Redis(client) => client.release(resource, lease).await,
            Self::Etcd(client) => client.release().await,
            Self::Quota(client) => client.commit(lease).await,
            Self::Postgres(client) => client.commit(lease).await,
        }
    }
}

/// The answer to a release, or to a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// This call ended the lease, or the reservation is committed.
    Done,
    /// It did not; the code, or how the lease had ended.
    Refused(&'static str),
    /// The service says that nobody knows.
    Unknown,
}

/// Draws request ids that no other run has used: a service that remembers requests would replay its answers.
#[derive(Debug)]
pub struct RequestIds {
    run: u64,
    next: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self { run: rand::random(), next: AtomicU64::new(0) }
    }
}

impl RequestIds {
    /// 32 hexadecimal digits. Not from the seed: the seed decides what is asked, these only tell asks apart.
    pub fn next(&self) -> LeaseId {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        LeaseId::from_bits(u128::from(self.run) << 64 | u128::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_do_not_repeat() {
        let ids = RequestIds::default();
        let (a, b) = (ids.next(), ids.next());
        assert_ne!(a, b);
        assert_eq!(a.as_str()[..16], b.as_str()[..16]);
        assert_ne!(a.as_str()[..16], RequestIds::default().next().as_str()[..16]);
    }
}
