//! `sereno quota reconcile --from usage.csv`: the books against a table of what is really used.

mod rows;
mod weigh;

use super::{node::Node, quotas};
use crate::{
    exit,
    failure::Failure,
    locks::InNamespace,
    output::{Output, table},
    values,
};
use clap::Args;
use rows::Row;
use sereno_client::{Client, Quotas, Reconciliation, UsageReport, api::QuotaNodeRead, last_epoch};
use std::path::PathBuf;
use weigh::{Weighed, Weighing, drift_before};

/// Hold the books against a table of what is really used; with --apply set them right.
///
/// The table has a head, and the columns quota, path and observed, in any order: what is there at the node and all below
/// it, counted just now. An empty path, or no such column, is the root.
///
/// Without --apply nothing is written: a table says what would be. With it each row is reported, and the drift of
/// which two reports in a row agree is compensated, the deepest nodes first; so run it after each of two counts, or
/// say --at-once. What reservations in flight explain is no drift. Each run counts as a count of its own, also of the same file: name
/// the epoch where a run may be repeated.
///
/// Reports are numbered by reporter and epoch: the columns reporter and epoch of a row say which it is, else --reporter
/// and --epoch, else the epoch after the reporter's last. An epoch that was reported before is not reported again.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReconcileArgs {
    /// The table, as CSV; - is standard input.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Report, and compensate.
    #[arg(long)]
    apply: bool,
    /// Do not wait for a second report that says the same.
    #[arg(long)]
    at_once: bool,
    /// Who counts, where the row does not say it: one name for each way of counting.
    #[arg(long, value_name = "TEXT", default_value = "csv", value_parser = values::owner)]
    reporter: String,
    /// Which count of theirs, where the row does not say it. [default: the one after their last]
    #[arg(long, value_name = "NUMBER", value_parser = values::count(u64::MAX))]
    epoch: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// One row of the answer.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    quota: String,
    path: String,
    reporter: String,
    epoch: u64,
    observed: u64,
    committed: u64,
    reserved: u64,
    explained: u64,
    drift: i64,
    /// By so much committed use was changed, or would be.
    change: i64,
    applied: bool,
    waits_for_another: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_id: Option<u64>,
    /// Why nothing could be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) async fn run(client: &Client, args: ReconcileArgs) -> Result<u8, Failure> {
    let rows = rows::read(&args.from)?;
    let quotas = quotas(client, &args.at);
    let mut lines = Vec::new();
    let mut weighing = Weighing::default();
    // All are read and reported before any is compensated: a count is of one moment.
    for row in rows {
        lines.push(look(&quotas, &args, &row, &mut weighing).await);
    }
    if args.apply {
        for line in lines.iter_mut().filter(|line| line.problem.is_none()) {
            settle(&quotas, &args, line).await;
        }
    }
    let has_failed = lines.iter().any(|line| line.problem.is_some());
    args.output.answer(&lines, |lines| text(lines, args.apply))?;
    Ok(if has_failed { exit::FAILED } else { 0 })
}

/// Reads one node, says what its row comes to, and reports it if that is asked for.
async fn look(quotas: &Quotas, args: &ReconcileArgs, row: &Row, weighing: &mut Weighing) -> Line {
    let reporter = row.reporter.clone().unwrap_or_else(|| args.reporter.clone());
    let epoch = row.epoch.or(args.epoch);
    let Node { quota, path } = row.node.clone();
    let mut line = Line {
        quota,
        path,
        reporter,
        epoch: epoch.unwrap_or_default(),
        observed: row.observed,
        committed: 0,
        reserved: 0,
        explained: 0,
        drift: 0,
        change: 0,
        applied: false,
        waits_for_another: false,
        commit_id: None,
        problem: None,
    };
    let read = match quotas.get(&line.quota, &line.path).await {
        Ok(read) => read,
        Err(error) => return line.failed(error.into()),
    };
    let last = last_epoch(&read, &line.reporter);
    line.epoch = epoch.unwrap_or(last + 1);
    (line.committed, line.reserved) = (read.node.committed, read.node.reserved);
    let is_reported = line.epoch == last;
    if is_reported {
        line.recall(&read);
    } else {
        let before = drift_before(&read, &line.reporter, line.epoch);
        let before = (!args.at_once).then_some(before);
        line.take(weighing.weigh(&read, line.observed, before));
    }
    if args.apply && !is_reported {
        let report = UsageReport::against(&read, &line.reporter, line.epoch, line.observed);
        match quotas.report_usage(report).await {
            Ok(reported) => {
                (line.explained, line.drift) = (reported.drift.explained, reported.drift.drift);
            }
            Err(error) => return line.failed(error.into()),
        }
    } else if is_reported && !args.apply {
        let dry = Reconciliation { dry_run: true, ..line.reconciliation(args.at_once) };
        match quotas.reconcile(dry).await {
            Ok(done) => {
                (line.change, line.waits_for_another) = (done.change, done.waits_for_another);
            }
            Err(error) => return line.failed(error.into()),
        }
    }
    line
}

/// Compensates what was reported.
async fn settle(quotas: &Quotas, args: &ReconcileArgs, line: &mut Line) {
    match quotas.reconcile(line.reconciliation(args.at_once)).await {
        Ok(done) => {
            (line.change, line.commit_id) = (done.change, done.commit_id);
            line.waits_for_another = done.waits_for_another;
            line.applied = done.change != 0;
        }
        Err(error) => line.problem = Some(Failure::from(error).what),
    }
}

impl Line {
    fn failed(self, failure: Failure) -> Self {
        Self { problem: Some(failure.what), ..self }
    }

    fn reconciliation(&self, at_once: bool) -> Reconciliation {
        Reconciliation {
            quota: self.quota.clone(),
            path: self.path.clone(),
            reporter: self.reporter.clone(),
            epoch: self.epoch,
            dry_run: false,
            at_once,
        }
    }

    /// What was reported before.
    fn recall(&mut self, read: &QuotaNodeRead) {
        let report = read.reports.iter().find(|report| report.reporter == self.reporter);
        if let Some(report) = report {
            self.observed = report.drift.observed;
            (self.explained, self.drift) = (report.drift.explained, report.drift.drift);
        }
    }

    fn take(&mut self, weighed: Weighed) {
        (self.explained, self.drift) = (weighed.explained, weighed.drift);
        (self.change, self.waits_for_another) = (weighed.change, weighed.waits_for_another);
    }
}

fn text(lines: &[Line], is_applied: bool) -> String {
    let cells = |line: &Line| {
        vec![
            Node::of(&line.quota, &line.path).to_string(),
            format!("{} {}", line.reporter, line.epoch),
            line.observed.to_string(),
            line.committed.to_string(),
            line.reserved.to_string(),
            line.explained.to_string(),
            format!("{:+}", line.drift),
            outcome(line, is_applied),
        ]
    };
    let head = ["NODE", "REPORT", "OBSERVED", "USED", "RESERVED", "EXPLAINED", "DRIFT", "OUTCOME"];
    let text = table(&head, &lines.iter().map(cells).collect::<Vec<_>>());
    match is_applied {
        true => text,
        false => text + "\n(nothing was written: --apply does it)",
    }
}

fn outcome(line: &Line, is_applied: bool) -> String {
    match (&line.problem, line.change) {
        (Some(problem), _) => problem.clone(),
        (None, 0) if line.waits_for_another && is_applied => {
            "reported; waits for another count that says the same".into()
        }
        (None, 0) if line.waits_for_another => {
            "would be reported, and wait for another count".into()
        }
        (None, 0) => "in order".into(),
        (None, change) if is_applied => match line.commit_id {
            Some(commit) => format!("changed by {change:+} (commit {commit})"),
            None => format!("changed by {change:+}"),
        },
        (None, change) => format!("would be changed by {change:+}"),
    }
}
