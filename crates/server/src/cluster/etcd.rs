//! What a node knows of the etcd below it: looked at now and then, for metrics, readiness, and the bound above which
//! nothing new is taken.

use sereno_api::ErrorCode;
use sereno_log::etcd::{EtcdLog, EtcdStatus};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
pub(crate) struct Storage(Arc<Mutex<Option<Seen>>>);

/// What is known of etcd.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What its members said the last time, or why they did not.
    pub(crate) status: EtcdStatus,
    /// How full it is.
    pub(crate) room: Room,
}

/// Then it takes no writes at all.
pub(crate) const NO_SPACE: &str = "etcd has no space left: see docs/cluster.md, Room";

/// How full etcd is, as the members that answered last have said. Silence is no news: while no member answers this
/// stays as it was, or an etcd that stopped for want of space would look empty as soon as it is out of reach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// How much of its quota is used.
    pub(crate) percent: u64,
    /// Bytes of the largest member's database file.
    pub(crate) db_bytes: u64,
    /// Bytes in use in the fullest member.
    pub(crate) db_used_bytes: u64,
    /// It takes no writes until somebody makes room.
    pub(crate) no_space: bool,
}

impl Room {
    /// `None`: no member answers.
    fn of(status: &EtcdStatus, quota_bytes: u64) -> Option<Self> {
        status.members.iter().any(|member| member.health.is_ok()).then(|| Self {
            percent: status.quota_percent(quota_bytes),
            db_bytes: status.db_bytes(),
            db_used_bytes: status.db_used_bytes(),
            no_space: status.no_space(),
        })
    }
}

impl Storage {
    /// Why nothing new should be taken.
    pub(crate) fn refuses(&self) -> Option<(ErrorCode, String)> {
        let Room { percent, no_space, .. } = self.lock().as_ref()?.room;
        if no_space {
            return Some((ErrorCode::Unavailable, NO_SPACE.into()));
        }
        (percent > REFUSE_PERCENT).then(|| {
            let why = format!(
                "etcd's database has {percent} % of its quota: only renewals and releases are taken until \
                 somebody makes room (see docs/cluster.md)"
            );
            (ErrorCode::Overloaded, why)
        })
    }

    /// What is known of etcd; `None`: this log is not in etcd, or its members were not asked yet.
    pub(crate) fn etcd(&self) -> Option<Seen> {
        self.lock().clone()
    }

    /// Takes what etcd's members have said. `quota_bytes` counts where etcd does not tell its quota.
    pub(crate) fn set(&self, status: EtcdStatus, quota_bytes: u64) {
        let mut seen = self.lock();
        let before = seen.as_ref().map(|seen| seen.room).unwrap_or_default();
        let room = Room::of(&status, quota_bytes).unwrap_or(before);
        if room.percent > WARN_PERCENT && before.percent <= WARN_PERCENT {
            tracing::warn!(percent = room.percent, "etcd's quota fills up: see docs/cluster.md");
        }
        *seen = Some(Seen { status, room });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at etcd until it is aborted.
pub(crate) async fn watch_storage(log: Arc<EtcdLog>, quota_bytes: u64, storage: Storage) {
    loop {
        storage.set(log.status().await, quota_bytes);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// What etcd says of itself, as the tests of the door have it.
#[cfg(test)]
pub(crate) mod testing {
    use sereno_log::etcd::{EtcdStatus, MemberHealth, MemberStatus};

    fn alone(health: Result<MemberHealth, String>) -> EtcdStatus {
        let member = MemberStatus { address: "a:1".into(), health };
        EtcdStatus { members: vec![member], compaction_error: None }
    }

    fn health(db_bytes: u64) -> MemberHealth {
        MemberHealth {
            version: "3.4.23".into(),
            leads: true,
            db_bytes,
            db_used_bytes: 1, // The rest is free, and etcd stops at its quota all the same.
            quota_bytes: None,
            no_space: false,
            errors: Vec::new(),
        }
    }

    /// Its database's file is so large.
    pub(crate) fn holds(db_bytes: u64) -> EtcdStatus {
        alone(Ok(health(db_bytes)))
    }

    /// It has come to its quota.
    pub(crate) fn full(db_bytes: u64) -> EtcdStatus {
        let errors = vec!["memberID:1 alarm:NOSPACE ".into()];
        alone(Ok(MemberHealth { no_space: true, errors, ..health(db_bytes) }))
    }

    /// Nobody is there.
    pub(crate) fn silent() -> EtcdStatus {
        alone(Err("not reached".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::*, *};

    #[test]
    fn above_eighty_percent_of_the_quota_nothing_new_is_taken() {
        let storage = Storage::default();
        let told = |status| {
            storage.set(status, 1_000);
            storage.refuses()
        };
        assert_eq!(Storage::default().refuses(), None, "one machine has no etcd");
        assert_eq!(told(holds(800)), None);
        let full_soon = told(holds(810)).expect("it is refused");
        assert_eq!(full_soon.0, ErrorCode::Overloaded);
        assert!(full_soon.1.contains("81 %"), "{full_soon:?}");
        assert!(told(silent()).is_some(), "nobody says that there is room again");
        let no_space = Some((ErrorCode::Unavailable, NO_SPACE.to_string()));
        assert_eq!(told(full(990)), no_space, "then renewals are not taken either");
        assert_eq!(told(holds(400)), None, "somebody has made room");
        assert_eq!(told(silent()), None, "nor that there is none");
    }

    #[test]
    fn while_nobody_answers_what_is_known_stays() {
        let storage = Storage::default();
        storage.set(full(990), 1_000);
        storage.set(silent(), 1_000);
        let Seen { status, room } = storage.etcd().expect("etcd was asked");
        assert_eq!(status, silent(), "who does not answer is shown as such");
        assert!(room.no_space);
        assert_eq!((room.percent, room.db_bytes, room.db_used_bytes), (100, 990, 1));
    }
}
