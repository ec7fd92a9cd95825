//! `sereno quota return`, `settle`, `report` and `adjust`: the books against reality.

use super::{
    node::{self, Amount, Node},
    quotas,
};
use crate::{failure::Failure, locks::InNamespace, output::Output, values};
use clap::{ArgGroup, Args, ValueEnum};
use sereno_client::{
    Client, UsageReport,
    api::{Adjusted, Drift, Settled, Settlement},
    last_epoch,
};

/// Give committed use back: the real thing is gone.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReturnArgs {
    /// The commit's number, as `commit` has told it; see also `sereno quota get`.
    #[arg(value_name = "COMMIT", value_parser = values::whole)]
    commit: u64,
    /// How much, and of which of its nodes: at most what it has left there.
    #[arg(value_name = "NODE=AMOUNT", value_parser = node::amount)]
    amount: Amount,
    /// The owner of the reservation that was committed.
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    owner: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// End a reservation in quarantine, in an operator's name.
///
/// Its deadline has passed and nobody knows what became of its work: look, and say what it was.
#[derive(Clone, Debug, Args)]
pub(crate) struct SettleArgs {
    /// The reservation; list them with `sereno quota reservations --state quarantined`.
    #[arg(value_name = "RESERVATION", value_parser = node::id)]
    reservation: String,
    /// All of it is used, or none of it.
    #[arg(value_enum, value_name = "HOW")]
    how: SettlementArg,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// See [`Settlement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SettlementArg {
    Commit,
    Release,
}

/// Report what is really used. The books stay as they are.
///
/// The count is held against what is committed: what of the difference reservations in flight explain is no drift. It
/// has to be made right before this call, which reads the node; or give the three figures of the read that the count
/// was made after.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// The node: with all below it.
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Node,
    /// What is there in reality.
    #[arg(long, value_name = "AMOUNT", value_parser = node::units)]
    observed: u64,
    /// Who counts: one name for each way of counting.
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    reporter: String,
    /// Which count of theirs. [default: the one after their last]
    #[arg(long, value_name = "NUMBER", value_parser = values::count(u64::MAX))]
    epoch: Option<u64>,
    /// `revision` of an earlier read of the node.
    #[arg(long, value_name = "REVISION", value_parser = values::whole, requires_all = ["committed_then", "cluster_time_ms"])]
    as_of_revision: Option<u64>,
    /// `committed` of that read.
    #[arg(long, value_name = "AMOUNT", value_parser = node::units, requires_all = ["as_of_revision", "cluster_time_ms"])]
    committed_then: Option<u64>,
    /// `clusterTimeMs` of that read.
    #[arg(long, value_name = "MS", value_parser = values::whole, requires_all = ["as_of_revision", "committed_then"])]
    cluster_time_ms: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// Change committed use, in an operator's name.
///
/// It says what is real, so no limit is asked; what is above one shows as debt.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("change").args(["add", "subtract"]).required(true))]
pub(crate) struct AdjustArgs {
    /// The node itself, not what is below it.
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Node,
    /// So much more is used.
    #[arg(long, value_name = "AMOUNT", value_parser = values::count(sereno_core::limits::QUOTA_AMOUNT_MAX))]
    add: Option<u64>,
    /// So much less is used: at most what the owner has committed there.
    #[arg(long, value_name = "AMOUNT", value_parser = values::count(sereno_core::limits::QUOTA_AMOUNT_MAX))]
    subtract: Option<u64>,
    /// Whose use.
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    owner: String,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn return_use(client: &Client, args: ReturnArgs) -> Result<u8, Failure> {
    let (quotas, Amount { node, amount }) = (quotas(client, &args.at), &args.amount);
    let (quota, path) = (&node.quota, &node.path);
    let returned = quotas.return_use(args.commit, quota, path, &args.owner, *amount).await?;
    args.output.answer(&returned, |it| {
        format!(
            "{node}={} is free again; commit {} has {} left there",
            it.amount, it.commit_id, it.left
        )
    })?;
    Ok(0)
}

pub(super) async fn settle(client: &Client, args: SettleArgs) -> Result<u8, Failure> {
    let settlement = match args.how {
        SettlementArg::Commit => Settlement::Commit,
        SettlementArg::Release => Settlement::Release,
    };
    let quotas = quotas(client, &args.at);
    let settled = quotas.settle(&args.reservation, settlement, &args.reason).await?;
    args.output.answer(&settled, |it| settled_text(&args.reservation, it))?;
    Ok(0)
}

fn settled_text(reservation: &str, settled: &Settled) -> String {
    match settled.commit_id {
        Some(commit) => format!("{reservation} is settled: all of it is used (commit {commit})"),
        None => format!("{reservation} is settled: its capacity is free again"),
    }
}

pub(super) async fn report(client: &Client, args: ReportArgs) -> Result<u8, Failure> {
    let (quotas, node) = (quotas(client, &args.at), &args.node);
    let read = quotas.get(&node.quota, &node.path).await?;
    let epoch = args.epoch.unwrap_or_else(|| last_epoch(&read, &args.reporter) + 1);
    let mut report = UsageReport::against(&read, &args.reporter, epoch, args.observed);
    if let (Some(revision), Some(committed), Some(time)) =
        (args.as_of_revision, args.committed_then, args.cluster_time_ms)
    {
        (report.as_of_revision, report.committed_then) = (revision, committed);
        report.cluster_time_ms = time;
    }
    let reported = quotas.report_usage(report).await?;
    args.output.answer(&reported, |it| {
        format!("report {epoch} of {} on {node}: {}", args.reporter, drift_text(&it.drift))
    })?;
    Ok(0)
}

fn drift_text(drift: &Drift) -> String {
    let Drift { observed, committed_then, explained, drift, in_a_row } = drift;
    let what = format!("{observed} seen, {committed_then} committed, {explained} explained");
    match drift {
        0 => format!("{what}, no drift"),
        drift => format!("{what}, drift {drift:+} ({in_a_row} in a row)"),
    }
}

pub(super) async fn adjust(client: &Client, args: AdjustArgs) -> Result<u8, Failure> {
    let (quotas, node) = (quotas(client, &args.at), &args.node);
    let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    let change = match args.subtract {
        Some(less) => -signed(less),
        None => signed(args.add.unwrap_or_default()),
    };
    let (quota, path) = (&node.quota, &node.path);
    let adjusted = quotas.adjust(quota, path, &args.owner, change, &args.reason).await?;
    args.output.answer(&adjusted, |it| adjusted_text(node, &args.owner, it))?;
    Ok(0)
}

fn adjusted_text(node: &Node, owner: &str, adjusted: &Adjusted) -> String {
    let text = format!("{owner} uses {} at {node} now", adjusted.committed);
    match adjusted.commit_id {
        Some(commit) => format!("{text} (commit {commit})"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_told_with_its_sign() {
        let mut drift =
            Drift { observed: 7, committed_then: 10, explained: 0, drift: -3, in_a_row: 2 };
        assert!(drift_text(&drift).ends_with("drift -3 (2 in a row)"));
        drift.drift = 0;
        assert!(drift_text(&drift).ends_with("no drift"));
    }
}
