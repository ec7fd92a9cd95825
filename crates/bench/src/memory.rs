//! The memory of a server whose state has a given size, the copy of its snapshots' rehearsal included.

use crate::{
    error::Error,
    fill::{Fill, fill},
    process::{Engine, Memory, ServeArgs, Served},
    report::{Machine, Output},
};
use serde::Serialize;
use std::{
    fmt,
    time::{Duration, Instant},
};

/// Longest to wait for the snapshot after the state is full.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(300);
const BOUND_BYTES: u64 = 400_000_000;

/// Resident memory of a server that has seen 100,000 names, holds 20,000 leases and remembers 600,000 requests.
///
/// Starts a durable server, fills it through its door, waits for a snapshot that rehearses the full state, and reads
/// what the kernel says (VmRSS, VmHWM). The most so far counts, for the rehearsal keeps a second copy of the state
/// while it runs.
#[derive(Clone, Debug, clap::Args)]
pub struct MemoryArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub fill: Fill,

    /// How often the server takes a snapshot.
    #[arg(long, default_value = "20s", value_name = "DURATION")]
    pub snapshot_every: sereno_api::Millis,

    /// Exit with 2 if it is not below 400 MB.
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// The result of `memory`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryReport {
    /// `memory`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// Before anything was asked.
    pub empty: Memory,
    /// When the state was full.
    pub filled: Memory,
    /// After a snapshot of the full state.
    pub rehearsed: Memory,
    /// Names locked at least once.
    pub resources: usize,
    /// Leases held, as the server counts them.
    pub leases: u64,
    /// Requests remembered, as the server counts them.
    pub reply_records: u64,
    /// How long the filling took.
    pub fill_seconds: f64,
    /// The most so far is below 400 MB.
    pub met: bool,
}

/// `sereno-bench memory`
///
/// # Errors
/// The server does not come up, does not answer, or takes no snapshot.
pub async fn run(args: &MemoryArgs) -> Result<MemoryReport, Error> {
    args.fill.check()?;
    let machine = Machine::look();
    let folder = args.serve_args.folder()?;
    let flags = ["--snapshot-every".to_owned(), args.snapshot_every.to_string()];
    let served = args.serve_args.serve(Engine::Sqlite, folder.path(), &flags).await?;
    let process = served.child.id();
    let empty = Memory::of(process)?;
    let began = Instant::now();
    fill(served.address, args.fill).await?;
    let fill_seconds = began.elapsed().as_secs_f64();
    let filled = Memory::of(process)?;
    let status = served.status().await?;
    wait_for_snapshot(&served, status.position).await?;
    let rehearsed = Memory::of(process)?;
    let status = served.status().await?;
    served.child.stop()?;
    Ok(MemoryReport {
        command: "memory",
        machine,
        empty,
        filled,
        rehearsed,
        resources: args.fill.resources,
        leases: status.leases,
        reply_records: status.reply_records,
        fill_seconds: (fill_seconds * 10.0).round() / 10.0,
        met: rehearsed.peak_bytes < BOUND_BYTES,
    })
}

/// Until a snapshot contains `position`.
async fn wait_for_snapshot(served: &Served, position: u64) -> Result<(), Error> {
    let until = Instant::now() + SNAPSHOT_TIMEOUT;
    loop {
        let status = served.status().await?;
        if status.snapshot_position.is_some_and(|snapshot| snapshot >= position) {
            return Ok(());
        }
        if Instant::now() > until {
            let why = format!("no snapshot of position {position} in {SNAPSHOT_TIMEOUT:?}");
            return Err(Error::Service { call: "snapshot".into(), why });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resources, leases, reply_records, fill_seconds, .. } = self;
        write!(f, "{}", self.machine)?;
        writeln!(
            f,
            "{resources} names seen, {leases} leases, {reply_records} requests remembered; filled in {fill_seconds} s\n"
        )?;
        writeln!(f, "{:<28}{:>12}{:>12}", "", "resident", "at most")?;
        let rows = [
            ("empty", self.empty),
            ("filled", self.filled),
            ("after a snapshot of it", self.rehearsed),
        ];
        for (what, memory) in rows {
            let (now, peak) = (memory.resident_bytes >> 20, memory.peak_bytes >> 20);
            writeln!(f, "{what:<28}{now:>8} MiB{peak:>8} MiB")?;
        }
        writeln!(f, "\nbelow 400 MB (381 MiB): {}", if self.met { "met" } else { "missed" })
    }
}
