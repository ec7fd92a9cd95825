//! What an operator wants to know of the etcd below a log.

use super::{EtcdLog, failure::Failure};
use crate::LogError;
use etcd_client::StatusResponse;
use futures_util::future::join_all;

/// All members, as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdStatus {
    /// In the order of the URL.
    pub members: Vec<MemberStatus>,
    /// Why etcd's history could not be compacted, the last time that was due.
    pub compaction_error: Option<String>,
}

/// A member, or why it could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// `host:port`.
    pub address: String,
    /// What it says.
    pub health: Result<MemberHealth, String>,
}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberHealth {
    /// Of etcd.
    pub version: String,
    /// Whether this member leads etcd.
    pub leads: bool,
    /// Bytes of its database's file. etcd compares them with its quota; only a defragmentation makes them fewer.
    pub db_bytes: u64,
    /// Bytes of it that are in use; the others are used again before the file grows.
    pub db_used_bytes: u64,
    /// etcd's quota, where it tells (3.6 and later).
    pub quota_bytes: Option<u64>,
    /// etcd takes no writes until somebody makes room and disarms the alarm.
    pub no_space: bool,
    /// All alarms and errors, in etcd's words.
    pub errors: Vec<String>,
}

impl EtcdStatus {
    /// Members that answer and report no error.
    pub fn healthy(&self) -> usize {
        self.answers().filter(|health| health.errors.is_empty()).count()
    }

    /// The oldest version among the members that answer; empty if none does.
    pub fn version(&self) -> &str {
        let number = |version: &str| -> Vec<u64> {
            version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
        };
        let versions = self.answers().map(|health| health.version.as_str());
        versions.min_by_key(|version| number(version)).unwrap_or_default()
    }

    /// Bytes of the largest member's database file.
    pub fn db_bytes(&self) -> u64 {
        self.answers().map(|health| health.db_bytes).max().unwrap_or(0)
    }

    /// Bytes in use in the fullest member.
    pub fn db_used_bytes(&self) -> u64 {
        self.answers().map(|health| health.db_used_bytes).max().unwrap_or(0)
    }

    /// Whether etcd has stopped taking writes for want of space.
    pub fn no_space(&self) -> bool {
        self.answers().any(|health| health.no_space)
    }

    /// How much of etcd's quota is used, in percent: of the file, for that is what etcd compares. It stops at its quota
    /// even if most of the file's pages are free; only a defragmentation makes the file smaller. 100 once etcd
    /// itself has stopped. `configured` counts where etcd does not tell its quota.
    pub fn quota_percent(&self, configured: u64) -> u64 {
        if self.no_space() {
            return 100;
        }
        let percent = |health: &MemberHealth| {
            let quota = health.quota_bytes.unwrap_or(configured).max(1);
            health.db_bytes.saturating_mul(100) / quota
        };
        self.answers().map(percent).max().unwrap_or(0)
    }

    fn answers(&self) -> impl Iterator<Item = &MemberHealth> {
        self.members.iter().filter_map(|member| member.health.as_ref().ok())
    }
}

impl EtcdLog {
    /// Asks every member, all at once; each has as long as a request may take.
    pub async fn status(&self) -> EtcdStatus {
        let shared = &self.shared;
        let ask = |member: usize| async move {
            let health = shared.member_health(member).await;
            MemberStatus {
                address: shared.cluster.address(member).into(),
                health: health.map_err(|failure| LogError::from(failure).to_string()),
            }
        };
        let members = join_all((0..shared.cluster.len()).map(ask)).await;
        let error = shared.compaction_error.lock().expect("no thread panicked with it").clone();
        EtcdStatus { members, compaction_error: error }
    }
}

impl super::Shared {
    /// In the member that is asked first.
    pub(super) async fn db_used_bytes(&self) -> Result<u64, LogError> {
        let request = |mut connection: super::cluster::Connection| async move {
            connection.client.status().await
        };
        Ok(MemberHealth::of(&self.cluster.ask(request).await?).db_used_bytes)
    }

    async fn member_health(&self, member: usize) -> Result<MemberHealth, Failure> {
        let request = |mut connection: super::cluster::Connection| async move {
            connection.client.status().await
        };
        Ok(MemberHealth::of(&self.cluster.attempt(member, request).await?))
    }
}

impl MemberHealth {
    fn of(status: &StatusResponse) -> Self {
        let bytes = |number: i64| u64::try_from(number).unwrap_or(0);
        let errors = status.errors().to_vec();
        Self {
            version: status.version().into(),
            leads: status.leader() != 0
                && status.header().is_some_and(|header| header.member_id() == status.leader()),
            db_bytes: bytes(status.db_size()),
            // Called "raft used" by the client library, and "in use" by etcd.
            db_used_bytes: bytes(status.raft_used_db_size()),
            quota_bytes: Some(bytes(status.db_size_quota())).filter(|quota| *quota > 0),
            no_space: errors.iter().any(|error| error.contains("NOSPACE")),
            errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(version: &str, used: u64) -> MemberHealth {
        MemberHealth {
            version: version.into(),
            leads: false,
            db_bytes: used * 2,
            db_used_bytes: used,
            quota_bytes: None,
            no_space: false,
            errors: Vec::new(),
        }
    }

    fn status(members: Vec<Result<MemberHealth, String>>) -> EtcdStatus {
        let members =
            members.into_iter().map(|health| MemberStatus { address: "a:1".into(), health });
        EtcdStatus { members: members.collect(), compaction_error: None }
    }

    #[test]
    fn the_worst_member_counts() {
        let full = MemberHealth {
            no_space: true,
            errors: vec!["memberID:1 alarm:NOSPACE ".into()],
            ..member("3.5.9", 10)
        };
        let told = MemberHealth { quota_bytes: Some(200), ..member("3.6.0", 100) };
        let some =
            status(vec![Ok(member("3.10.1", 610)), Ok(member("3.4.23", 40)), Err("no".into())]);
        assert_eq!((some.healthy(), some.version()), (2, "3.4.23"));
        assert_eq!((some.db_bytes(), some.db_used_bytes()), (1_220, 610));
        assert_eq!(some.quota_percent(2_000), 61, "free pages count, too");
        assert_eq!(status(vec![Ok(told)]).quota_percent(1_000), 100);
        let stopped = status(vec![Ok(member("3.4.23", 1)), Ok(full)]);
        assert_eq!((stopped.healthy(), stopped.quota_percent(1_000)), (1, 100));
        let none = status(vec![Err("no".into())]);
        assert_eq!((none.healthy(), none.version(), none.quota_percent(9)), (0, "", 0));
    }
}
