//! What nodes and etcd have done between two moments.

use super::{Buckets, Scrape, Zones};
use crate::error::Error;
use serde::Serialize;

/// What was done between two moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    /// Snapshots saved.
    pub snapshots: u64,
    /// Ranges of the log that were removed.
    pub trims: u64,
    /// Old versions that etcd has forgotten.
    pub compacted_keys: u64,
    /// Commands that the leader has appended.
    pub commands: u64,
    /// In so many entries.
    pub entries: u64,
    /// Append p50, as the leader's histogram tells.
    pub append_p50_us: u64,
    /// Append p99.
    pub append_p99_us: u64,
    /// Append p99.9.
    pub append_p999_us: u64,
}

impl Work {
    /// Of snapshots, trims and compacted keys, how many of which there were the fewest.
    pub fn rarest(&self) -> u64 {
        self.snapshots.min(self.trims).min(self.compacted_keys)
    }

    /// Snapshots, trims and compactions.
    pub fn is_complete(&self) -> bool {
        self.rarest() > 0
    }

    /// Neither.
    pub fn is_nothing(&self) -> bool {
        self.snapshots == 0 && self.trims == 0 && self.compacted_keys == 0
    }
}

/// All counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    snapshots: f64,
    deletes: f64,
    compacted: f64,
    commands: f64,
    appends: Buckets,
}

impl Moment {
    /// Of the nodes that run, and of the first member of etcd that answers.
    ///
    /// # Errors
    /// A node does not answer, or no member does.
    pub async fn of(zones: &Zones) -> Result<Self, Error> {
        let mut moment = Self::default();
        for address in zones.addresses() {
            let node = Scrape::of(address).await?;
            moment.snapshots += node.value("sereno_rehearsals_total", "saved");
            let commands = node.value("sereno_batch_commands_sum", "");
            // The leader's; a node that never led has none.
            if commands >= moment.commands {
                moment.commands = commands;
                moment.appends = node.buckets("sereno_append_seconds_bucket");
            }
        }
        let etcd = any_member(zones).await?;
        moment.deletes = etcd.value("etcd_debugging_mvcc_delete_total", "");
        moment.compacted = etcd.value("etcd_debugging_mvcc_db_compaction_keys_total", "");
        Ok(moment)
    }

    /// What was done since `earlier`. A node that was killed meanwhile takes its counts with it.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Work {
        let appends = self.appends.since(&earlier.appends);
        let more = |now: f64, then: f64| (now - then).max(0.0) as u64;
        Work {
            snapshots: more(self.snapshots, earlier.snapshots),
            trims: more(self.deletes, earlier.deletes),
            compacted_keys: more(self.compacted, earlier.compacted),
            commands: more(self.commands, earlier.commands),
            entries: appends.count() as u64,
            append_p50_us: appends.quantile_us(0.5),
            append_p99_us: appends.quantile_us(0.99),
            append_p999_us: appends.quantile_us(0.999),
        }
    }
}

async fn any_member(zones: &Zones) -> Result<Scrape, Error> {
    let mut failed = None;
    for endpoint in zones.etcd.endpoints() {
        match Scrape::of(endpoint.parse().expect("members listen on addresses")).await {
            Ok(scrape) => return Ok(scrape),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.expect("there is a member"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_began_anew_count_nothing() {
        let earlier = Moment { snapshots: 2.0, deletes: 5.0, commands: 900.0, ..Moment::default() };
        let later = Moment { snapshots: 3.0, deletes: 9.0, commands: 100.0, ..Moment::default() };
        let work = later.since(&earlier);
        assert_eq!((work.snapshots, work.trims, work.commands), (1, 4, 0));
        assert!(!work.is_complete() && !work.is_nothing());
    }
}
