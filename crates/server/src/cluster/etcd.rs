//! What a node knows of the etcd below it: looked at now and then, for metrics, readiness, and the bound above which
//! nothing new is taken.

use sereno_log::etcd::{EtcdLog, EtcdStatus};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How often etcd's members are asked.
const INTERVAL: Duration = Duration::from_secs(5);
/// Above so much of etcd's quota, in percent, an operator should look: a line in the log, and an alert.
const WARN_PERCENT: u64 = 60;
/// Above so much, acquires are refused: renewals and releases need what is left.
const REFUSE_PERCENT: u64 = 80;

/// How full the log's storage is, and what else is known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    percent: AtomicU64,
    status: Mutex<Option<EtcdStatus>>,
}

impl Storage {
    /// Why nothing new should be taken.
    pub(crate) fn refuses(&self) -> Option<String> {
        let percent = self.0.percent.load(Ordering::Relaxed);
        (percent > REFUSE_PERCENT).then(|| {
            format!(
                "etcd's database has {percent} % of its quota: only renewals and releases are taken until \
                 somebody makes room (see docs/cluster.md)"
            )
        })
    }

    /// How much of etcd's quota is used.
    pub(crate) fn percent(&self) -> u64 {
        self.0.percent.load(Ordering::Relaxed)
    }

    /// What etcd's members said last; `None`: this log is not in etcd, or none was asked yet.
    pub(crate) fn etcd(&self) -> Option<EtcdStatus> {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes what etcd's members have said.
    fn set(&self, status: EtcdStatus, quota_bytes: u64) {
        let percent = status.quota_percent(quota_bytes);
        let before = self.0.percent.swap(percent, Ordering::Relaxed);
        if percent > WARN_PERCENT && before <= WARN_PERCENT {
            tracing::warn!(percent, "etcd's quota fills up: see docs/cluster.md");
        }
        *self.0.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }
}

/// Looks at etcd until it is aborted.
pub(crate) async fn watch_storage(log: Arc<EtcdLog>, quota_bytes: u64, storage: Storage) {
    loop {
        storage.set(log.status().await, quota_bytes);
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_log::etcd::{MemberHealth, MemberStatus};

    #[test]
    fn above_eighty_percent_of_the_quota_nothing_new_is_taken() {
        let storage = Storage::default();
        let holds = |db_bytes| {
            let health = MemberHealth {
                version: "3.4.23".into(),
                leads: true,
                db_bytes,
                db_used_bytes: 1, // The rest is free, and etcd stops at its quota all the same.
                quota_bytes: None,
                no_space: false,
                errors: Vec::new(),
            };
            let member = MemberStatus { address: "a:1".into(), health: Ok(health) };
            storage.set(EtcdStatus { members: vec![member], compaction_error: None }, 1_000);
            storage.refuses()
        };
        assert_eq!(Storage::default().refuses(), None, "one machine has no etcd");
        assert_eq!(holds(800), None);
        assert!(holds(810).is_some_and(|why| why.contains("81 %")));
        assert_eq!(holds(400), None, "somebody has made room");
    }
}
