//! What the processes say of themselves while a load runs.

use crate::{
    error::Error,
    zones::{Buckets, NODES, Scrape, Zones},
};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two looks at the size of etcd's database.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The size of etcd's database at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Since the warm-up began.
    pub second: u64,
    /// The largest member's file.
    pub file_bytes: u64,
    /// Bytes in use in the fullest member.
    pub used_bytes: u64,
}

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
    /// Snapshots, trims and compactions.
    pub(super) fn is_complete(&self) -> bool {
        self.snapshots > 0 && self.trims > 0 && self.compacted_keys > 0
    }

    /// Neither.
    pub(super) fn is_nothing(&self) -> bool {
        self.snapshots == 0 && self.trims == 0 && self.compacted_keys == 0
    }
}

/// Watches from the end of the warm-up to the end of the load.
pub(super) async fn over(
    zones: &Zones,
    start: oneshot::Receiver<Instant>,
    warm_up: Duration,
    length: Duration,
) -> Result<(Work, Vec<Size>), Error> {
    let Ok(start) = start.await else { return Ok(Default::default()) }; // The load tells why.
    tokio::time::sleep_until((start + warm_up).into()).await;
    let (begin, end) = (Moment::of(zones).await?, start + warm_up + length);
    let mut sizes = vec![size(zones, start).await?];
    while Instant::now() + LOOK_EVERY < end {
        tokio::time::sleep(LOOK_EVERY).await;
        sizes.push(size(zones, start).await?);
    }
    tokio::time::sleep_until(end.into()).await;
    Ok((Moment::of(zones).await?.since(&begin), sizes))
}

async fn size(zones: &Zones, start: Instant) -> Result<Size, Error> {
    let members = zones.status().await?.etcd.map(|etcd| etcd.members).unwrap_or_default();
    Ok(Size {
        second: start.elapsed().as_secs(),
        file_bytes: members.iter().map(|member| member.db_bytes).max().unwrap_or(0),
        used_bytes: members.iter().map(|member| member.db_used_bytes).max().unwrap_or(0),
    })
}

/// All counters at one moment.
#[derive(Default)]
struct Moment {
    snapshots: f64,
    deletes: f64,
    compacted: f64,
    commands: f64,
    appends: Buckets,
}

impl Moment {
    async fn of(zones: &Zones) -> Result<Self, Error> {
        let mut moment = Self::default();
        for number in 0..NODES {
            let node = Scrape::of(zones.node(number).address).await?;
            moment.snapshots += node.value("sereno_rehearsals_total", "saved");
            let commands = node.value("sereno_batch_commands_sum", "");
            // The leader's; a node that never led has none.
            if commands >= moment.commands {
                moment.commands = commands;
                moment.appends = node.buckets("sereno_append_seconds_bucket");
            }
        }
        let member = zones.etcd.endpoints()[0].parse();
        let etcd = Scrape::of(member.expect("members listen on addresses")).await?;
        moment.deletes = etcd.value("etcd_debugging_mvcc_delete_total", "");
        moment.compacted = etcd.value("etcd_debugging_mvcc_db_compaction_keys_total", "");
        Ok(moment)
    }

    fn since(&self, earlier: &Self) -> Work {
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
