//! What is measured: Sereno over HTTP, Redis over RESP, etcd's locks over gRPC. One client is one connection with one call in flight.

mod answers;
mod etcd;
mod redis;
mod sereno;

pub use answers::{Acquired, LeaseId, Renewals};
pub use etcd::{Etcd, EtcdTarget, Leases};
pub use redis::{Redis, RedisTarget};
pub use sereno::{Ask, Sereno, SerenoTarget, Wording, ask_json, is_ready};

use crate::wire::Fault;
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
}

/// One client that takes and gives back locks.
#[derive(Debug)]
pub enum Client {
    /// On Sereno.
    Sereno(Box<Sereno>),
    /// On Redis.
    Redis(Box<Redis>),
    /// On etcd.
    Etcd(Box<Etcd>),
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
        })
    }
}

impl Client {
    /// Takes a lock.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn acquire(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        match self {
            Self::Sereno(client) => client.acquire(ask).await,
            Self::Redis(client) => client.acquire(ask).await,
            Self::Etcd(client) => client.acquire(ask).await,
        }
    }

    /// Gives it back; false: it was not held any more.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn release(&mut self, resource: &str, lease: &LeaseId) -> Result<Released, Fault> {
        match self {
            Self::Sereno(client) => client.release(resource, lease).await,
            Self::Redis(client) => client.release(resource, lease).await,
            Self::Etcd(client) => client.release().await,
        }
    }
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// This call ended the lease.
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
