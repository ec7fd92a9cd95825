//! The node's own work: appends, takeovers, rehearsals.

use super::{call_seconds, doubling, long_seconds};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use sereno_log::Append;
use sereno_node::{driver::Observer, node::Rehearsal};
use std::{sync::atomic::AtomicU64, time::Duration};

pub(crate) struct NodeMetrics {
    append_seconds: Histogram,
    batch_commands: Histogram,
    batch_bytes: Histogram,
    appends_failed: Family<[(&'static str, &'static str); 1], Counter>,
    takeover_seconds: Histogram,
    leaderless_seconds: Counter<f64, AtomicU64>,
    followed_commands: Counter,
    followed_bytes: Counter,
    rehearsal_seconds: Histogram,
    rehearsals: Family<[(&'static str, &'static str); 1], Counter>,
}

impl NodeMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            append_seconds: call_seconds(),
            batch_commands: doubling(11),
            batch_bytes: doubling(20),
            appends_failed: Family::default(),
            takeover_seconds: call_seconds(),
            leaderless_seconds: Counter::default(),
            followed_commands: Counter::default(),
            followed_bytes: Counter::default(),
            rehearsal_seconds: long_seconds(),
            rehearsals: Family::default(),
        };
        // Series that only appear with their first event would hide that event from every rate.
        for result in ["conflict", "notAppended", "unknown"] {
            drop(metrics.appends_failed.get_or_create(&[("result", result)]));
        }
        for result in ["saved", "differs", "failed"] {
            drop(metrics.rehearsals.get_or_create(&[("result", result)]));
        }
        registry.register(
            "append_seconds",
            "Time until the log had made an entry durable",
            metrics.append_seconds.clone(),
        );
        registry.register(
            "batch_commands",
            "Commands in one entry",
            metrics.batch_commands.clone(),
        );
        registry.register("batch_bytes", "Bytes of one entry", metrics.batch_bytes.clone());
        registry.register(
            "appends_failed",
            "Appends that the log refused, or did not answer",
            metrics.appends_failed.clone(),
        );
        registry.register(
            "takeover_seconds",
            "Time from the log's last entry under another leader, or from the start, until this node led",
            metrics.takeover_seconds.clone(),
        );
        registry.register(
            "leaderless_seconds",
            "Time during which nobody led, as this node saw it",
            metrics.leaderless_seconds.clone(),
        );
        registry.register(
            "followed_commands",
            "Commands of other nodes' entries that this node has applied",
            metrics.followed_commands.clone(),
        );
        registry.register(
            "followed_bytes",
            "Bytes of other nodes' entries that this node has applied",
            metrics.followed_bytes.clone(),
        );
        registry.register(
            "rehearsal_seconds",
            "Time of a rehearsal, with its snapshot",
            metrics.rehearsal_seconds.clone(),
        );
        registry.register("rehearsals", "Rehearsals by result", metrics.rehearsals.clone());
        metrics
    }

    /// Nobody led for so long.
    pub(crate) fn leaderless(&self, time: Duration) {
        self.leaderless_seconds.inc_by(time.as_secs_f64());
    }
}

impl Observer for NodeMetrics {
    fn committed(&self, took: Duration, commands: usize, bytes: usize) {
        self.append_seconds.observe(took.as_secs_f64());
        self.batch_commands.observe(commands as f64);
        self.batch_bytes.observe(bytes as f64);
    }

    fn followed(&self, commands: usize, bytes: usize) {
        self.followed_commands.inc_by(commands as u64);
        self.followed_bytes.inc_by(bytes as u64);
    }

    fn leads(&self, took: Duration) {
        self.takeover_seconds.observe(took.as_secs_f64());
    }

    fn append_failed(&self, result: &Append) {
        let result = match result {
            Append::Committed => return,
            Append::Conflict(_) => "conflict",
            Append::NotAppended(_) => "notAppended",
            Append::Unknown(_) => "unknown",
        };
        self.appends_failed.get_or_create(&[("result", result)]).inc();
    }

    fn rehearsed(&self, took: Duration, rehearsal: &Rehearsal) {
        let result = match rehearsal {
            Rehearsal::Saved(_) => "saved",
            Rehearsal::Differs(_) => "differs",
            Rehearsal::Failed(_) => "failed",
        };
        self.rehearsal_seconds.observe(took.as_secs_f64());
        self.rehearsals.get_or_create(&[("result", result)]).inc();
    }
}
