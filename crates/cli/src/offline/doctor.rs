//! `sereno doctor`: everything in a data folder, or in a log in etcd, looked at without changing it.

use super::{
    audit_check, doctor_etcd,
    etcd::EtcdArgs,
    exists, folder_or_default, log_failure,
    replay::{Replay, Source, beginning, load, state_of},
};
use crate::{exit, failure::Failure, output::Output, values};
use clap::Args;
use sereno_core::State;
use sereno_log::{
    LogError,
    sqlite::{Severity, inspect, open_for_examination},
};
use std::path::{Path, PathBuf};

/// Examine a data folder or a log in etcd without changing anything.
///
/// Of a folder it verifies SQLite's structure, each entry's hash and place in the chain of hashes, the file HEAD (which says how far
/// the log goes), and the snapshots; and applies the log anew, which has to lead to the same states and outcomes as
/// were saved and given then. On a folder that nobody serves it holds the folder's lock while it looks. Of a log in
/// etcd (--log) it verifies the same, but for SQLite and HEAD, also while nodes use it.
///
/// Exit code: 0 all is sound, 1 something is damaged, 4 it could not be examined (no such folder, no permission, a
/// disk that cannot be read), which says nothing about the data.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The data folder. [default: ./sereno-data, as of `sereno serve`]
    #[arg(long, env = "SERENO_DATA", value_name = "DIR", hide_env_values = true)]
    data: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// Verify the audit trail too: its own chain, that nothing was taken away, and line by line against the log in the same
    /// folder. The trail of a node whose log is in etcd is in its data folder too; it is verified by itself only.
    #[arg(long, conflicts_with = "log")]
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
pub(super) struct Diagnosis {
    sound: bool,
    /// What was looked at: a folder, or
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<PathBuf>,
    /// a log in etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    pub(super) in_use: bool,
    pub(super) log_id: Option<String>,
    pub(super) position: u64,
    pub(super) first: u64,
    pub(super) entries: u64,
    pub(super) snapshots: Vec<u64>,
    /// Entries that were replayed, and compared at each snapshot and at the head.
    replayed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<audit_check::Seen>,
    pub(super) findings: Vec<Found>,
    /// It has an audit trail and no log: of a node whose log is in etcd.
    #[serde(skip)]
    has_only_a_trail: bool,
}

#[derive(serde::Serialize)]
pub(super) struct Found {
    pub(super) damage: bool,
    pub(super) place: String,
    pub(super) what: String,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let mut diagnosis = match &args.etcd.log {
        Some(url) => doctor_etcd::examine(&args.etcd, url)?,
        None => examine_folder(args, &folder_or_default(args.data.as_ref()))?,
    };
    diagnosis.sound = !diagnosis.has_damage();
    args.output.answer(&diagnosis, text)?;
    Ok(if diagnosis.sound { 0 } else { exit::FAILED })
}

fn examine_folder(args: &DoctorArgs, data: &Path) -> Result<Diagnosis, Failure> {
    let unreadable = |what: String| not_examined(&data.display().to_string(), what);
    exists(data).map_err(unreadable)?;
    let mut diagnosis = Diagnosis { data: Some(data.to_path_buf()), ..Diagnosis::default() };
    diagnosis.examine_log(data)?;
    if diagnosis.position > 0 {
        diagnosis.examine_replay_in(data)?;
    }
    let has_trail = sereno_server::audit::folder_in(data).exists();
    diagnosis.has_only_a_trail = diagnosis.log_id.is_none() && !diagnosis.has_damage() && has_trail;
    if args.audit {
        let is_broken = diagnosis.has_damage();
        let log = audit_check::Log {
            data,
            in_use: diagnosis.in_use,
            can_be_replayed: diagnosis.position > 0 && !is_broken,
            is_elsewhere: diagnosis.log_id.is_none() && !is_broken,
        };
        let files_kept = usize::try_from(args.audit_files).unwrap_or(usize::MAX);
        let (seen, found) = audit_check::examine(&log, files_kept).map_err(unreadable)?;
        diagnosis.audit = Some(seen);
        diagnosis.findings.extend(found);
    }
    Ok(diagnosis)
}

/// It is not known whether anything is damaged.
pub(super) fn not_examined(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{what} could not be examined: {why}"))
        .hint("Nothing was changed, and this says nothing about the data: see to it that it can be read.")
        .exit(exit::NOT_EXAMINED)
}

fn cannot_open(data: &Path, error: &LogError) -> Failure {
    match error {
        // Damage that keeps even the examination from beginning.
        LogError::Damaged(_) => log_failure(data, error),
        error => not_examined(&data.display().to_string(), error),
    }
}

impl Diagnosis {
    /// Of a log in etcd, before anything was looked at.
    pub(super) fn of_log(log: String) -> Self {
        Self { log: Some(log), ..Self::default() }
    }

    pub(super) fn has_damage(&self) -> bool {
        self.findings.iter().any(|found| found.damage)
    }

    pub(super) fn found(
        &mut self,
        damage: bool,
        place: impl Into<String>,
        what: impl Into<String>,
    ) {
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

    fn examine_replay_in(&mut self, data: &Path) -> Result<(), Failure> {
        match open_for_examination(data) {
            Ok(log) => self.examine_replay(&log),
            Err(LogError::Damaged(what)) => self.found(true, "replay", what),
            Err(error) => return Err(not_examined(&data.display().to_string(), error)),
        }
        Ok(())
    }

    pub(super) fn examine_replay(&mut self, log: &dyn Source) {
        let replayed = beginning(log).and_then(|begins| {
            let before = begins.head().position.0;
            replay(log, begins)?;
            Ok(log.head().position.0 - before)
        });
        match replayed {
            Ok(count) => self.replayed = count,
            Err(what) => self.found(true, "replay", what),
        }
    }

    /// What was looked at, by name.
    fn place(&self) -> String {
        let folder = self.data.as_ref().map(|data| data.display().to_string());
        folder.or_else(|| self.log.clone()).unwrap_or_default()
    }
}

/// From `begins` by way of every snapshot to the head.
fn replay(log: &dyn Source, begins: State) -> Result<(), String> {
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
            diagnosis.place(),
            diagnosis.first,
            diagnosis.position,
            diagnosis.entries,
            snapshots(&diagnosis.snapshots),
            diagnosis.replayed,
        ),
        None if diagnosis.has_only_a_trail => format!(
            "{}: no log is kept here, but an audit trail: this is the folder of a node whose log is in etcd (examine \
             that with `sereno doctor --log URL`, and the trail with --audit), or the log was taken away",
            diagnosis.place()
        ),
        None if diagnosis.sound => {
            format!("{}: no log is kept here", diagnosis.place())
        }
        None => format!("{}: the log cannot be read", diagnosis.place()),
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
    let mut damaged = diagnosis.findings.iter().filter(|found| found.damage).peekable();
    if damaged.peek().is_none() {
        return match (diagnosis.has_only_a_trail, &diagnosis.audit) {
            (false, _) => "sound: everything is as it was written",
            (true, Some(_)) => "sound: the audit trail, and nothing else was examined",
            (true, None) => "nothing was examined",
        }
        .into();
    }
    let Some(data) = &diagnosis.data else {
        return "DAMAGED: stop all nodes, keep what etcd holds (`etcdctl snapshot save FILE`), and restore the last backup \
                under another prefix with `sereno restore`: see docs/cluster.md"
            .into();
    };
    if damaged.all(|found| found.place == audit_check::PLACE) {
        return format!(
            "DAMAGED: the audit trail only; the log is sound, and no backup is needed. Stop the service, keep {} as \
             evidence by moving it away, and start again: the new trail says from where on it records",
            sereno_server::audit::folder_in(data).display()
        );
    }
    format!(
        "DAMAGED: keep {} as it is, restore the last backup into another folder with `sereno restore`, and serve that",
        data.display()
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
