//! `sereno doctor`: everything in a data folder, looked at without changing it.

use super::{
    log_failure,
    replay::{Replay, state_of},
};
use crate::{exit, failure::Failure, output::Output};
use clap::Args;
use sereno_core::{State, entry::Head, ids::Position};
use sereno_log::sqlite::{ReadOnlyLog, Severity, inspect, open_read_only};
use sereno_server::audit;
use std::path::{Path, PathBuf};

/// Examine a data folder without changing it. Exits with 1 if anything is damaged.
///
/// Verifies SQLite's structure, each entry's hash and place in the chain, HEAD, and the snapshots; and replays the
/// log, which has to lead to the same states and outcomes as the snapshots and the head say.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The data folder.
    #[arg(long, env = "SERENO_DATA", value_name = "DIR", hide_env_values = true)]
    data: PathBuf,
    /// Verify the audit trail too: its own chain, and line by line against the log.
    #[arg(long)]
    audit: bool,
    #[command(flatten)]
    output: Output,
}

/// What was found.
#[derive(Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Diagnosis {
    sound: bool,
    data: PathBuf,
    in_use: bool,
    log_id: Option<String>,
    position: u64,
    first: u64,
    entries: u64,
    snapshots: Vec<u64>,
    /// Entries that were replayed, and compared at each snapshot and at the head.
    replayed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<AuditDiagnosis>,
    findings: Vec<Found>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditDiagnosis {
    files: usize,
    lines: u64,
    gaps: Vec<(u64, u64)>,
    compared: bool,
}

#[derive(serde::Serialize)]
struct Found {
    damage: bool,
    place: String,
    what: String,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let mut diagnosis = Diagnosis { data: args.data.clone(), ..Diagnosis::default() };
    diagnosis.examine_log(&args.data)?;
    if diagnosis.position > 0 {
        diagnosis.examine_replay(&args.data);
    }
    if args.audit {
        diagnosis.examine_audit(&args.data);
    }
    diagnosis.sound = !diagnosis.findings.iter().any(|found| found.damage);
    args.output.answer(&diagnosis, text)?;
    Ok(if diagnosis.sound { 0 } else { exit::FAILED })
}

impl Diagnosis {
    fn found(&mut self, damage: bool, place: impl Into<String>, what: impl Into<String>) {
        self.findings.push(Found { damage, place: place.into(), what: what.into() });
    }

    fn examine_log(&mut self, data: &Path) -> Result<(), Failure> {
        let report = inspect(data).map_err(|error| log_failure(data, &error))?;
        self.in_use = report.in_use;
        self.log_id = report.head.map(|head| head.log_id.to_hex());
        self.position = report.head.map_or(0, |head| head.position.0);
        self.first = report.first.0;
        self.entries = report.entries;
        self.snapshots = report.snapshots.iter().map(|snapshot| snapshot.head.position.0).collect();
        for finding in report.findings {
            self.found(finding.severity == Severity::Damage, finding.place, finding.what);
        }
        Ok(())
    }

    fn examine_replay(&mut self, data: &Path) {
        let replayed = open_read_only(data).map_err(|error| error.to_string()).and_then(|log| {
            let begins = beginning(&log)?;
            let before = begins.head().position.0;
            replay(&log, begins)?;
            Ok(log.head().position.0 - before)
        });
        match replayed {
            Ok(count) => self.replayed = count,
            Err(what) => self.found(true, "replay", what),
        }
    }

    fn examine_audit(&mut self, data: &Path) {
        let folder = audit::folder_in(data);
        let verdict = audit::verify(&folder);
        for finding in &verdict.findings {
            self.found(true, "audit", finding.to_string());
        }
        if verdict.torn_bytes > 0 {
            let what = format!(
                "{} bytes of a torn line at the end, which the next start cuts",
                verdict.torn_bytes
            );
            self.found(false, "audit", what);
        }
        for (from, to) in &verdict.gaps {
            self.found(
                false,
                "audit",
                format!("says itself that positions {from} to {to} are missing"),
            );
        }
        let mut compared = false;
        if self.in_use {
            self.found(
                false,
                "audit",
                "not compared with the log, for both are being written: stop the service first",
            );
        } else if verdict.findings.is_empty() && verdict.lines > 0 && self.position > 0 {
            match compare_audit(data, &folder) {
                Ok(findings) => {
                    compared = true;
                    for what in findings {
                        self.found(true, "audit", what);
                    }
                }
                Err(what) => {
                    self.found(true, "audit", format!("cannot be compared with the log: {what}"))
                }
            }
        }
        let (files, lines, gaps) = (verdict.files, verdict.lines, verdict.gaps);
        self.audit = Some(AuditDiagnosis { files, lines, gaps, compared });
    }
}

/// The state from which all entries that there are can be replayed.
fn beginning(log: &ReadOnlyLog) -> Result<State, String> {
    if log.first() <= Position(1) {
        return Ok(State::new());
    }
    for head in log.snapshots().map_err(|error| error.to_string())? {
        if head.position.next() >= log.first() {
            return state_of(&load(log, head)?);
        }
    }
    Err(format!("the log begins at {}, and no snapshot leads there", log.first()))
}

fn load(log: &ReadOnlyLog, head: Head) -> Result<sereno_log::Snapshot, String> {
    let snapshot = log.snapshot(head).map_err(|error| error.to_string())?;
    snapshot.ok_or_else(|| format!("the snapshot at position {} has gone", head.position))
}

/// From `begins` by way of every snapshot to the head.
fn replay(log: &ReadOnlyLog, begins: State) -> Result<(), String> {
    let before = begins.head().position;
    let mut replay = Replay::from(log, begins);
    for head in log.snapshots().map_err(|error| error.to_string())? {
        if head.position <= before {
            continue;
        }
        let snapshot = load(log, head)?;
        let stored = state_of(&snapshot)?;
        let state = replay.to(head)?;
        if state.outcome_chain() != stored.outcome_chain() {
            return Err(format!(
                "up to the snapshot at position {} replay gives other outcomes than were given then",
                head.position
            ));
        }
        if state.to_snapshot() != stored.to_snapshot() {
            return Err(format!(
                "the snapshot at position {} is another state than replay gives",
                head.position
            ));
        }
    }
    replay.to(log.head())?.check_invariants();
    Ok(())
}

fn compare_audit(data: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let log = open_read_only(data).map_err(|error| error.to_string())?;
    let begins = beginning(&log)?;
    let after = begins.head().position;
    let snapshots = log.snapshots().map_err(|error| error.to_string())?;
    let durable = snapshots.last().map_or(Position(0), |head| head.position);
    let mut replay = Replay::from(&log, begins);
    let findings = audit::compare(folder, log.head().log_id, after, durable, replay.by_ref());
    match replay.error() {
        Some(error) => Err(error.into()),
        None => Ok(findings.iter().map(ToString::to_string).collect()),
    }
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut lines = vec![match &diagnosis.log_id {
        Some(log_id) => format!(
            "{}: log {log_id}, entries {} to {} ({} of them), snapshots at {:?}; {} replayed",
            diagnosis.data.display(),
            diagnosis.first,
            diagnosis.position,
            diagnosis.entries,
            diagnosis.snapshots,
            diagnosis.replayed,
        ),
        None => format!("{}: the log cannot be read", diagnosis.data.display()),
    }];
    if diagnosis.in_use {
        lines.push("a service uses it now".into());
    }
    if let Some(audit) = &diagnosis.audit {
        let compared = if audit.compared { "compared with the log" } else { "by itself" };
        lines.push(format!(
            "audit trail: {} lines in {} files, {compared}",
            audit.lines, audit.files
        ));
    }
    for found in &diagnosis.findings {
        let word = if found.damage { "DAMAGED" } else { "note" };
        lines.push(format!("{word}  {}: {}", found.place, found.what));
    }
    lines.push(if diagnosis.sound { "sound".into() } else { "DAMAGED".into() });
    lines.join("\n")
}
