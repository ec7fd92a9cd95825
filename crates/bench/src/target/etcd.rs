//! A client of etcd's own locks (the v3 Lock service), as its documentation has it: a lock belongs to a lease.

use super::{Acquired, Ask, Released};
use crate::wire::Fault;
use etcd_client::{Client, Error, LockOptions};

/// Which lease a lock belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leases {
    /// One of each client's, for all its locks.
    Shared,
    /// A new one for each lock. Revoking it is the release: three calls a cycle, to grant, lock and revoke.
    PerLock,
}

/// A member of etcd, and how to lock there.
#[derive(Clone, Debug)]
pub struct EtcdTarget {
    /// `host:port`
    pub endpoint: String,
    /// Whose leases.
    pub leases: Leases,
    /// Of each lease.
    pub ttl_seconds: i64,
}

/// One connection, which holds one lock at a time.
pub struct Etcd {
    client: Client,
    leases: Leases,
    ttl_seconds: i64,
    /// The shared one, or that of the lock that is held.
    lease: i64,
    /// What the lock that is held is called in etcd.
    key: Vec<u8>,
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Etcd").field("leases", &self.leases).finish_non_exhaustive()
    }
}

impl Etcd {
    /// Connects, and makes the shared lease.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn connect(target: &EtcdTarget) -> Result<Self, Fault> {
        let EtcdTarget { endpoint, leases, ttl_seconds } = target;
        let not_sent = |error: Error| Fault::NotSent(format!("{endpoint}: {error}"));
        let mut client = Client::connect([endpoint], None).await.map_err(not_sent)?;
        // Either way: a connection is made with its first call.
        let lease = client.lease_grant(*ttl_seconds, None).await.map_err(not_sent)?.id();
        let (leases, ttl_seconds) = (*leases, *ttl_seconds);
        Ok(Self { client, leases, ttl_seconds, lease, key: Vec::new() })
    }

    /// Waits until it has the lock, however long that takes: `ask.wait` is not looked at.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn acquire(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        if self.leases == Leases::PerLock {
            self.lease =
                self.client.lease_grant(self.ttl_seconds, None).await.map_err(silent)?.id();
        }
        let options = LockOptions::new().with_lease(self.lease);
        let name = format!("bench-lock/{}", ask.resource);
        let answer = self.client.lock(name, Some(options)).await.map_err(silent)?;
        self.key = answer.key().to_vec();
        Ok(Acquired::Granted(*ask.request_id))
    }

    /// Gives back the lock that is held.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn release(&mut self) -> Result<Released, Fault> {
        let key = std::mem::take(&mut self.key);
        match self.leases {
            Leases::Shared => self.client.unlock(key).await.map(drop),
            // The lock's key goes with its lease: to unlock it before would be a call that nobody needs.
            Leases::PerLock => self.client.lease_revoke(self.lease).await.map(drop),
        }
        .map_err(silent)?;
        Ok(Released::Done)
    }
}

fn silent(error: Error) -> Fault {
    Fault::Silent(error.to_string())
}
