//! Presence records under a lease of etcd's: when a node is gone, so is its record.

use super::{EtcdLog, Shared, failure::Failure};
use crate::{
    LogError,
    presence::{Presence, Present, check_id},
};
use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::{GetOptions, PutOptions};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::Instant};

/// A record outlives its last writing by this much, and by a little more while etcd elects a leader.
const LEASE_SECONDS: i64 = 10;
/// A lease is kept alive no more often.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// The presence records beside a log.
pub struct EtcdPresence {
    shared: Arc<Shared>,
    /// One for each id that is published here.
    leases: Mutex<BTreeMap<String, Lease>>,
}

#[derive(Clone, Copy)]
struct Lease {
    id: i64,
    kept_alive: Instant,
}

impl EtcdLog {
    /// The records beside this log, over the same connections.
    pub fn presence(&self) -> EtcdPresence {
        EtcdPresence { shared: Arc::clone(&self.shared), leases: Mutex::default() }
    }
}

impl EtcdPresence {
    async fn grant(&self) -> Result<Lease, Failure> {
        let kept_alive = Instant::now();
        let grant = self.shared.cluster.ask(|mut connection| async move {
            connection.client.lease_grant(LEASE_SECONDS, None).await
        });
        Ok(Lease { id: grant.await?.id(), kept_alive })
    }

    async fn keep_alive(&self, lease: Lease) -> Result<Lease, Failure> {
        if lease.kept_alive.elapsed() < KEEP_ALIVE {
            return Ok(lease);
        }
        let kept_alive = Instant::now();
        let keep = self.shared.cluster.ask(|mut connection| async move {
            connection.client.lease_keep_alive(lease.id).await
        });
        keep.await?;
        Ok(Lease { kept_alive, ..lease })
    }

    async fn write(&self, id: &str, record: &Bytes, lease: Lease) -> Result<(), Failure> {
        let key = self.shared.keys.node(id);
        let put = self.shared.cluster.ask(|mut connection| {
            let options = PutOptions::new().with_lease(lease.id);
            let (key, record) = (key.clone(), record.to_vec());
            async move { connection.kv.put(key, record, Some(options)).await }
        });
        put.await.map(drop)
    }

    async fn renew(&self, id: &str, record: &Bytes, lease: Lease) -> Result<Lease, Failure> {
        let lease = self.keep_alive(lease).await?;
        self.write(id, record, lease).await?;
        Ok(lease)
    }
}

#[async_trait]
impl Presence for EtcdPresence {
    async fn publish(&self, id: &str, record: Bytes) -> Result<(), LogError> {
        check_id(id)?;
        let mut leases = self.leases.lock().await;
        // Until it has gone well this time, the lease counts as lost.
        if let Some(lease) = leases.remove(id)
            && let Ok(lease) = self.renew(id, &record, lease).await
        {
            leases.insert(id.into(), lease);
            return Ok(());
        }
        let lease = self.grant().await?;
        self.write(id, &record, lease).await?;
        leases.insert(id.into(), lease);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Present>, LogError> {
        let (from, end) = self.shared.keys.all_nodes();
        let answer = self.shared.get(from, GetOptions::new().with_range(end)).await?;
        let present = |kv: &etcd_client::KeyValue| {
            let id = self.shared.keys.node_id(kv.key())?.to_string();
            Some(Present { id, record: Bytes::copy_from_slice(kv.value()) })
        };
        Ok(answer.kvs().iter().filter_map(present).collect())
    }

    async fn withdraw(&self, id: &str) -> Result<(), LogError> {
        let key = self.shared.keys.node(id);
        let delete = self.shared.cluster.ask(|mut connection| {
            let key = key.clone();
            async move { connection.kv.delete(key, None).await }
        });
        delete.await?;
        // The lease, without keys now, ends by itself.
        self.leases.lock().await.remove(id);
        Ok(())
    }
}
