//! `sereno doctor`: everything in a data folder, looked at without changing it.

use super::{
    audit_check, exists, log_failure,
    replay::{Replay, beginning, load, state_of},
};
use crate::{exit, failure::Failure, output::Output, values};
use clap::Args;
use sereno_core::State;
use sereno_log::{
    LogError,
    sqlite::{ReadOnlyLog, Severity, inspect, open_for_examination},
};
use std::path::{Path, PathBuf};

/// Examine a data folder without changing any file in it.
///
/// Verifies SQLite's structure, each entry's hash and place in the chain of hashes, the file HEAD (which says how far
/// the log goes), and the snapshots; and applies the log anew, which has to lead to the same states and outcomes as
/// were saved and given then. On a folder that nobody serves it holds the folder's lock while it looks.
///
/// Exit code: 0 all is sound, 1 something is damaged, 4 it could not be examined (no such folder, no permission, a
/// disk that cannot be read), which says nothing about the data.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The data folder.
    #[arg(long, env = "SERENO_DATA", value_name = "DIR", hide_env_values = true)]
    data: PathBuf,
    /// Verify the audit trail too: its own chain, line by line against the log, and that nothing was taken away.
    #[arg(long)]
    audit: bool,
    /// How many files of the audit trail the service keeps: with fewer of them no rotation has removed the oldest.
    #[arg(
        long,
        env = "SERENO_AUDIT_FILES",
        value_name = "COUNT",
        hide_env_values = true,
        default_value_t = audit_check::files_kept(),
        value_parser = values::whole
    )]
    audit_files: u64,
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
    audit: Option<audit_check::Seen>,
    findings: Vec<Found>,
}

#[derive(serde::Serialize)]
pub(super) struct Found {
    pub(super) damage: bool,
    pub(super) place: String,
    pub(super) what: String,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    if let Err(what) = exists(&args.data) {
        return Err(not_examined(&args.data, what));
    }
    let mut diagnosis = Diagnosis { data: args.data.clone(), ..Diagnosis::default() };
    diagnosis.examine_log(&args.data)?;
    if diagnosis.position > 0 {
        diagnosis.examine_replay(&args.data)?;
    }
    if args.audit {
        let is_broken = diagnosis.findings.iter().any(|found| found.damage);
        let log = audit_check::Log {
            data: &args.data,
            in_use: diagnosis.in_use,
            can_be_replayed: diagnosis.position > 0 && !is_broken,
            is_elsewhere: diagnosis.log_id.is_none() && !is_broken,
        };
        let (seen, found) =
            audit_check::examine(&log, usize::try_from(args.audit_files).unwrap_or(usize::MAX))
                .map_err(|what| not_examined(&args.data, what))?;
        diagnosis.audit = Some(seen);
        diagnosis.findings.extend(found);
    }
    diagnosis.sound = !diagnosis.findings.iter().any(|found| found.damage);
    args.output.answer(&diagnosis, text)?;
    Ok(if diagnosis.sound { 0 } else { exit::FAILED })
}

/// It is not known whether anything is damaged.
fn not_examined(data: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{} could not be examined: {what}", data.display()))
        .hint("Nothing was changed, and this says nothing about the data: see to it that the files can be read.")
        .exit(exit::NOT_EXAMINED)
}

fn cannot_open(data: &Path, error: &LogError) -> Failure {
    match error {
        // Damage that keeps even the examination from beginning.
        LogError::Damaged(_) => log_failure(data, error),
        error => not_examined(data, error),
    }
}

impl Diagnosis {
    fn found(&mut self, damage: bool, place: impl Into<String>, what: impl Into<String>) {
        self.findings.push(Found { damage, place: place.into(), what: what.into() });
    }

    fn examine_log(&mut self, data: &Path) -> Result<(), Failure> {
        let report = inspect(data).map_err(|error| cannot_open(data, &error))?;
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

    fn examine_replay(&mut self, data: &Path) -> Result<(), Failure> {
        let log = match open_for_examination(data) {
            Ok(log) => log,
            Err(LogError::Damaged(what)) => {
                self.found(true, "replay", what);
                return Ok(());
            }
            Err(error) => return Err(not_examined(data, error)),
        };
        let replayed = beginning(&log).and_then(|begins| {
            let before = begins.head().position.0;
            replay(&log, begins)?;
            Ok(log.head().position.0 - before)
        });
        match replayed {
            Ok(count) => self.replayed = count,
            Err(what) => self.found(true, "replay", what),
        }
        Ok(())
    }
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

fn text(diagnosis: &Diagnosis) -> String {
    let mut lines = vec![match &diagnosis.log_id {
        Some(log_id) => format!(
            "{}: log {log_id}, entries {} to {} ({} of them), {}; {} entries applied anew",
            diagnosis.data.display(),
            diagnosis.first,
            diagnosis.position,
            diagnosis.entries,
            snapshots(&diagnosis.snapshots),
            diagnosis.replayed,
        ),
        None if diagnosis.sound => {
            format!("{}: no log is kept here", diagnosis.data.display())
        }
        None => format!("{}: the log cannot be read", diagnosis.data.display()),
    }];
    if diagnosis.in_use {
        lines.push("a service uses it now".into());
    }
    lines.extend(diagnosis.audit.as_ref().map(audit_check::Seen::text));
    for found in &diagnosis.findings {
        let word = if found.damage { "DAMAGED" } else { "note" };
        lines.push(format!("{word}  {}: {}", found.place, found.what));
    }
    lines.push(verdict(diagnosis));
    lines.join("\n")
}

/// What to do, as docs/operating.md has it.
fn verdict(diagnosis: &Diagnosis) -> String {
    let data = diagnosis.data.display();
    let mut damaged = diagnosis.findings.iter().filter(|found| found.damage).peekable();
    if damaged.peek().is_none() {
        return "sound: everything is as it was written".into();
    }
    if damaged.all(|found| found.place == audit_check::PLACE) {
        return format!(
            "DAMAGED: the audit trail only; the log is sound, and no backup is needed. Stop the service, keep {} as \
             evidence by moving it away, and start again: the new trail says from where on it records",
            sereno_server::audit::folder_in(&diagnosis.data).display()
        );
    }
    format!(
        "DAMAGED: keep {data} as it is, restore the last backup into another folder with `sereno restore`, and serve \
         that"
    )
}

fn snapshots(positions: &[u64]) -> String {
    match positions {
        [] => "no snapshot yet".into(),
        positions => {
            let positions: Vec<_> = positions.iter().map(u64::to_string).collect();
            format!("snapshots at {}", positions.join(" and "))
        }
    }
}
