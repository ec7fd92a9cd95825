//! How results are written: text for people, JSON for programs, and what both say about the machine.

use crate::{
    checkout,
    error::Error,
    process::Cpu,
    stats::{Board, Figures},
};
use serde::Serialize;
use std::{fmt, fs, io::Write, time::Duration};

/// How a command writes its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Tables for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Writes a result to standard output.
///
/// # Errors
/// Standard output is closed.
pub fn print(report: &(impl Serialize + fmt::Display), output: Output) -> Result<(), Error> {
    let text = match output {
        Output::Text => report.to_string(),
        Output::Json => {
            let json = serde_json::to_string_pretty(report).map_err(std::io::Error::from);
            json.map_err(Error::io("write the report"))? + "\n"
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("write the report"))
}

/// Where a result comes from: figures of one machine are no figures of another.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// How many processes wanted to run in the last minute before the run; over 1: others disturb it.
    pub load_before: f64,
    /// Version of this program.
    pub version: &'static str,
    /// See [`checkout::commit`].
    pub commit: String,
    /// What decided all that was drawn; absent where nothing is (request ids are told apart by chance in every run).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The options as given.
    pub options: Vec<String>,
}

impl Machine {
    /// This one, before a run in which nothing is drawn.
    pub fn look() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load(),
            version: env!("CARGO_PKG_VERSION"),
            commit: checkout::commit(),
            seed: None,
            options: std::env::args().skip(1).collect(),
        }
    }

    /// This one, before a run that `seed` decides.
    pub fn look_with(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::look() }
    }
}

/// How many processes wanted to run in the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, load_before, version, commit, seed, options } = self;
        writeln!(f, "sereno-bench {version} {}", options.join(" "))?;
        write!(f, "commit {commit}")?;
        if let Some(seed) = seed {
            write!(f, "; seed {seed}")?;
        }
        writeln!(f, "; {cores} cores, load {load_before:.2} before the run")
    }
}

/// CPU time by call, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuPerCall {
    /// In user mode.
    pub user_us: f64,
    /// In the kernel.
    pub system_us: f64,
    /// Both, by second of the run: 1.0 is one whole core.
    pub cores: f64,
}

impl CpuPerCall {
    /// `cpu` used by `calls` in `window`.
    pub fn new(cpu: Cpu, calls: u64, window: Duration) -> Self {
        let per_call =
            |time: Duration| (time.as_secs_f64() * 1e7 / calls.max(1) as f64).round() / 10.0;
        let cores = cpu.total().as_secs_f64() / window.as_secs_f64().max(1e-9);
        Self {
            user_us: per_call(cpu.user),
            system_us: per_call(cpu.system),
            cores: (cores * 100.0).round() / 100.0,
        }
    }
}

impl fmt::Display for CpuPerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.user_us + self.system_us;
        write!(
            f,
            "{total:.1} µs a call ({:.1} user, {:.1} system), {:.2} cores",
            self.user_us, self.system_us, self.cores
        )
    }
}

/// A figure that DESIGN.md or its issues ask for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bound {
    /// What is compared.
    pub what: String,
    /// What was found.
    pub found: f64,
    /// What is wanted: at least, or below.
    pub wanted: String,
    /// Found as wanted.
    pub met: bool,
}

impl Bound {
    /// Below a number.
    pub fn below(what: impl Into<String>, found: f64, wanted: f64) -> Self {
        let (what, met) = (what.into(), found < wanted);
        Self { what, found: round(found), wanted: format!("< {wanted}"), met }
    }

    /// At most a number.
    pub fn at_most(what: impl Into<String>, found: f64, wanted: f64) -> Self {
        let (what, met) = (what.into(), found <= wanted);
        Self { what, found: round(found), wanted: format!("≤ {wanted}"), met }
    }

    /// At least a number.
    pub fn at_least(what: impl Into<String>, found: f64, wanted: f64) -> Self {
        let (what, met) = (what.into(), found >= wanted);
        Self { what, found: round(found), wanted: format!("≥ {wanted}"), met }
    }
}

/// To three decimals.
fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// A table of bounds, in Markdown.
pub fn write_bounds(f: &mut fmt::Formatter<'_>, bounds: &[Bound]) -> fmt::Result {
    writeln!(f, "\n| | found | wanted | |\n|---|--:|--:|---|")?;
    for Bound { what, found, wanted, met } in bounds {
        let verdict = if *met { "met" } else { "**missed**" };
        writeln!(f, "| {what} | {found} | {wanted} | {verdict} |")?;
    }
    Ok(())
}

/// A table of all operations that occurred.
pub fn write_board(f: &mut fmt::Formatter<'_>, board: &Board) -> fmt::Result {
    writeln!(
        f,
        "{:<15}{:>9}{:>9}{:>8}{:>8}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "operation",
        "offered",
        "done",
        "dropped",
        "unknown",
        "refused",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max"
    )?;
    for (operation, figures) in board.occurred() {
        let Figures { offered, done, dropped, unknown, latency, .. } = figures;
        let (refused, name) = (figures.refused_total(), operation.name());
        let percentiles = latency.percentiles();
        writeln!(
            f,
            "{name:<15}{offered:>9}{done:>9}{dropped:>8}{unknown:>8}{refused:>8}{percentiles}"
        )?;
    }
    for reason in reasons(board) {
        writeln!(f, "  {reason}")?;
    }
    Ok(())
}

/// What was refused, cancelled or skipped: a line for each operation of which something was.
pub fn reasons(board: &Board) -> Vec<String> {
    let mut lines = Vec::new();
    for (operation, figures) in board.occurred() {
        let mut more: Vec<String> =
            figures.refused.iter().map(|(code, count)| format!("{code} {count}")).collect();
        for (what, count) in [("cancelled", figures.cancelled), ("skipped", figures.skipped)] {
            if count > 0 {
                more.push(format!("{what} {count}"));
            }
        }
        if !more.is_empty() {
            lines.push(format!("{}: {}", operation.name(), more.join(", ")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Operation, Verdict};

    struct Shown(Board);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_board(f, &self.0)
        }
    }

    #[test]
    fn a_table_names_what_was_refused() {
        let mut board = Board::default();
        let figures = board.of_mut(Operation::Acquire);
        figures.offered = 2;
        figures.count(Verdict::Done, Duration::from_micros(250));
        figures.count(Verdict::Refused("LOCKED"), Duration::ZERO);
        let text = Shown(board).to_string();
        assert!(text.contains("250 µs") && text.contains("acquire: LOCKED 1"), "{text}");
        assert!(!text.contains("renew"), "{text}");
    }

    #[test]
    fn every_report_tells_its_commit_seed_and_load() {
        let mut machine = Machine::look_with(7);
        (machine.commit, machine.load_before) = ("abc123".into(), 0.25);
        let text = machine.to_string();
        let wanted = format!("commit abc123; seed 7; {} cores, load 0.25 before", machine.cores);
        assert!(text.contains(&wanted), "{text}");
        let json = serde_json::to_value(&machine).unwrap();
        assert_eq!((&json["commit"], &json["seed"]), (&"abc123".into(), &7.into()));
        assert!(!Machine::look().to_string().contains("seed"), "nothing was drawn");
    }

    #[test]
    fn cpu_by_call() {
        let cpu = Cpu { user: Duration::from_millis(300), system: Duration::from_millis(100) };
        let found = CpuPerCall::new(cpu, 10_000, Duration::from_secs(1));
        assert_eq!(found, CpuPerCall { user_us: 30.0, system_us: 10.0, cores: 0.4 });
    }
}
