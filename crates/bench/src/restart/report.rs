//! What `restart` writes.

use crate::{process::Scheduled, report::Machine};
use serde::Serialize;
use std::fmt;

const BOUND_MS: u64 = 10_000;

/// What there was to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Everything: there was no snapshot.
    WholeLog,
    /// What half of the time between two snapshots leaves, under load.
    Halfway,
    /// What all of it leaves, under load.
    JustBefore,
}

impl When {
    fn title(self) -> &'static str {
        match self {
            Self::WholeLog => "no snapshot, the whole log",
            Self::Halfway => "halfway between two snapshots, under load",
            Self::JustBefore => "just before the next snapshot, under load",
        }
    }
}

/// One standby that came back.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// With what to replay.
    pub when: When,
    /// From starting the process until `/readyz` said so.
    pub ready_ms: u64,
    /// Until a consistent read was answered.
    pub answered_ms: u64,
    /// Bytes of log since the snapshot that it began with.
    pub replayed_bytes: u64,
    /// Requests that its state remembers.
    pub reply_records: u64,
    /// Leases of its state.
    pub leases: u64,
    /// Seconds that the standby's threads ran, and could have run but had no core.
    pub scheduled: Scheduled,
    /// The machine's load at the end: over the cores, others disturb it.
    pub load: f64,
}

/// The result of `restart`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartReport {
    /// `restart`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// Commands in the log at the first restart.
    pub commands: u64,
    /// How long it took to write them.
    pub fill_seconds: f64,
    /// In order.
    pub restarts: Vec<Restart>,
    /// None took longer than 10 s.
    pub met: bool,
}

impl RestartReport {
    pub(super) fn new(
        machine: Machine,
        commands: u64,
        fill_seconds: f64,
        restarts: Vec<Restart>,
    ) -> Self {
        let met = restarts.iter().all(|restart| restart.answered_ms <= BOUND_MS);
        let fill_seconds = (fill_seconds * 10.0).round() / 10.0;
        Self { command: "restart", machine, commands, fill_seconds, restarts, met }
    }
}

impl fmt::Display for RestartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, commands, fill_seconds, restarts, met, .. } = self;
        writeln!(f, "{machine}{commands} commands, written in {fill_seconds} s.\n")?;
        writeln!(
            f,
            "| a standby with an empty folder | ready, s | consistent read, s | log replayed, MiB | leases | requests | CPU, s | waited for a core, s | load |"
        )?;
        writeln!(f, "|---|{}", "--:|".repeat(8))?;
        for restart in restarts {
            let Restart { when, replayed_bytes, leases, reply_records, load, .. } = restart;
            let seconds = |ms: u64| ms as f64 / 1e3;
            let (ready, answered) = (seconds(restart.ready_ms), seconds(restart.answered_ms));
            let (mib, Scheduled { ran, waited }) = (replayed_bytes >> 20, restart.scheduled);
            writeln!(
                f,
                "| {} | {ready:.1} | {answered:.1} | {mib} | {leases} | {reply_records} \
                 | {ran} | {waited} | {load:.1} |",
                when.title()
            )?;
        }
        writeln!(f, "\nwithin 10 s each: {}", if *met { "met" } else { "**missed**" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_counts() {
        let of = |when, answered_ms| Restart {
            when,
            ready_ms: 1,
            answered_ms,
            replayed_bytes: 9 << 20,
            reply_records: 0,
            leases: 0,
            scheduled: Scheduled { ran: 1.5, waited: 2.5 },
            load: 0.0,
        };
        let report = |slowest| {
            let restarts = vec![of(When::WholeLog, 1), of(When::JustBefore, slowest)];
            RestartReport::new(Machine::look(), 5, 1.0, restarts)
        };
        assert!(report(10_000).met && !report(10_001).met);
        let text = report(10_001).to_string();
        assert!(
            text.contains("| 10.0 | 9 |")
                && text.contains("| 1.5 | 2.5 |")
                && text.contains("missed"),
            "{text}"
        );
    }
}
