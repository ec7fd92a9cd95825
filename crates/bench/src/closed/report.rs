//! What `closed` writes.

use super::{ClosedArgs, Measured};
use crate::{
    report::{CpuPerCall, Machine, write_board},
    stats::Board,
};
use serde::Serialize;
use std::fmt;

/// A closed loop's result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClosedReport {
    /// `closed`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// How many clients.
    pub clients: usize,
    /// How long was measured.
    pub seconds: f64,
    /// Acquire and release, both carried out.
    pub cycles_per_second: f64,
    /// By operation.
    pub operations: Board,
    /// Of a server that the run started.
    pub server_cpu: Option<CpuPerCall>,
    /// Of this program.
    pub generator_cpu: CpuPerCall,
}

impl ClosedReport {
    pub(super) fn new(machine: Machine, args: &ClosedArgs, measured: Measured) -> Self {
        Self {
            command: "closed",
            machine,
            clients: args.clients,
            seconds: measured.window.as_secs_f64(),
            cycles_per_second: measured.cycles_per_second().round(),
            operations: measured.board,
            server_cpu: measured.server_cpu,
            generator_cpu: measured.generator_cpu,
        }
    }
}

impl fmt::Display for ClosedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, seconds, cycles_per_second, .. } = self;
        write!(f, "{}", self.machine)?;
        writeln!(f, "{clients} clients, {seconds} s: {cycles_per_second:.0} cycles/s\n")?;
        write_board(f, &self.operations)?;
        if let Some(cpu) = self.server_cpu {
            writeln!(f, "\nserver:    {cpu}")?;
        }
        writeln!(f, "generator: {}", self.generator_cpu)
    }
}
