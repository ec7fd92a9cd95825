//! What `open` writes.

use super::{Found, Phase};
use crate::{
    process::Memory,
    report::{Machine, write_board},
    stats::{Board, Latency, Percentiles, Timeline},
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// One phase's figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// How long it lasted.
    pub seconds: f64,
    /// By how much acquires and releases were multiplied.
    pub factor: f64,
    /// By operation.
    pub operations: Board,
    /// From the intended start to the sending: how late the generator itself was.
    pub generator_lag: Percentiles,
}

impl PhaseReport {
    pub(super) fn new(phase: &Phase, operations: Board, lag: &Latency) -> Self {
        let (name, seconds) = (phase.name.clone(), phase.length.as_secs_f64());
        let generator_lag = lag.percentiles();
        Self { name, seconds, factor: phase.factor, operations, generator_lag }
    }
}

/// An open loop's result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenReport {
    /// `open`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// In order, without the warm-up.
    pub phases: Vec<PhaseReport>,
    /// From the intended start to the sending: how late the generator itself was.
    pub generator_lag: Percentiles,
    /// CPU time of the generator, in cores.
    pub generator_cores: f64,
    /// CPU time of a server that the run started, in cores.
    pub server_cores: Option<f64>,
    /// Memory of a server that the run started, at the end.
    pub server_memory: Option<Memory>,
    /// Leases that a renewal did not renew, by code.
    pub lost_leases: BTreeMap<&'static str, u64>,
    /// Holders that were left to die, warm-up included.
    pub died: u64,
    /// Leases held at the end.
    pub held: usize,
    /// Latency by second of intended start, warm-up included.
    pub timeline: Timeline,
}

impl OpenReport {
    pub(super) fn new(machine: Machine, found: Found) -> Self {
        Self {
            command: "open",
            machine,
            phases: found.phases,
            generator_lag: found.lag,
            generator_cores: found.generator_cores,
            server_cores: found.server_cores,
            server_memory: found.server_memory,
            lost_leases: found.lost,
            died: found.died,
            held: found.held,
            timeline: found.timeline,
        }
    }
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.machine)?;
        for PhaseReport { name, seconds, factor, operations, .. } in &self.phases {
            writeln!(f, "\n{name}: {seconds} s, acquires and releases x {factor}")?;
            write_board(f, operations)?;
        }
        let Self { generator_cores, held, died, lost_leases, .. } = self;
        let lag = self.generator_lag;
        writeln!(f, "\nheld at the end {held}, left to die {died}, lost {lost_leases:?}")?;
        writeln!(
            f,
            "generator: {generator_cores:.2} cores; how late it sent: p50 {} µs, p99 {} µs, max {} µs",
            lag.p50_us, lag.p99_us, lag.max_us
        )?;
        if let (Some(cores), Some(memory)) = (self.server_cores, self.server_memory) {
            let (now, peak) = (memory.resident_bytes >> 20, memory.peak_bytes >> 20);
            writeln!(f, "server:    {cores:.2} cores, {now} MiB resident, {peak} MiB at most")?;
        }
        Ok(())
    }
}
