//! The books against reality: reports of real use, and compensation of what differs.
//!
//! A report names what one read of the node said (`committedThen`, `asOfRevision`, `clusterTimeMs`), so no history is
//! kept. What differs is explained as far as it can be: use above the books by what is reserved now or was committed
//! since the read, use below them by what was returned since. The rest is drift.

use super::State;
use crate::{
    command::{NodeRef, Reconcile, ReportUsage},
    event::QuotaChange,
    ids::ObjectId,
    limits,
    names::{Caller, Invalid, Owner},
    outcome::{Code, Detail, Drift, QuotaDone, Reconciled, Refusal},
    policy::within,
    quota::{Node, Place, Report, signed},
    state::request::No,
};

/// So many accounts does one compensation look at; what they do not have stays drift.
const ACCOUNTS_MAX: usize = 1_000;

impl State {
    pub(super) fn report_usage(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &ReportUsage,
    ) -> Result<QuotaDone, No> {
        let place = self.place(namespace, &op.node)?;
        self.check_report(namespace, place, op)?;
        let node = self.space(namespace).node(place);
        let last = node.reports.get(&op.reporter);
        let drift = drift_reported(node, op, last);
        let same_sign = |last: &&Report| last.drift.drift.signum() == drift.drift.signum();
        let follows = |last: &&Report| last.epoch + 1 == op.epoch;
        let before = last.filter(follows).filter(same_sign);
        let drift_before = before.map_or(0, |last| last.drift.drift);
        let report = Report {
            epoch: op.epoch,
            read_at: op.read_at,
            drift: drift.clone(),
            drift_before,
            is_compensated: false,
        };
        let node = self.space_mut(namespace).node_mut(place);
        node.reports.insert(op.reporter.clone(), report);
        let change = QuotaChange::Reported {
            node: op.node.clone(),
            reporter: op.reporter.clone(),
            epoch: op.epoch,
            drift: drift.clone(),
        };
        self.node_event(caller, namespace, &op.node, Some(&op.reporter), change);
        Ok(QuotaDone::Reported(drift))
    }

    fn check_report(&self, namespace: u32, place: Place, op: &ReportUsage) -> Result<(), Refusal> {
        within("observed", op.observed, 0..=limits::QUOTA_AMOUNT_MAX)?;
        within("committedThen", op.committed_then, 0..=limits::QUOTA_AMOUNT_MAX)?;
        within("epoch", op.epoch, 1..=limits::QUOTA_AMOUNT_MAX)?;
        let rule = "lies ahead of the log: take all three from one read";
        if op.as_of > self.revision {
            return Err(Invalid::new("asOfRevision", rule).into());
        }
        if op.read_at > self.time {
            return Err(Invalid::new("clusterTimeMs", rule).into());
        }
        let reports = &self.space(namespace).node(place).reports;
        let last = reports.get(&op.reporter);
        let epoch = last.map_or(0, |last| last.epoch);
        let age_ms = op.read_at.until(self.time);
        if epoch >= op.epoch || age_ms > limits::REPORT_AGE_MS_MAX {
            let detail = Detail::Report { epoch, age_ms };
            return Err(Refusal::new(Code::StaleReport).with(detail));
        }
        if last.is_none() && reports.len() >= limits::QUOTA_REPORTERS_MAX {
            let max = limits::QUOTA_REPORTERS_MAX as u64;
            return Err(self.limit_reached("reporters of one node", max));
        }
        Ok(())
    }

    pub(super) fn reconcile(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &Reconcile,
    ) -> Result<QuotaDone, No> {
        let place = self.place(namespace, &op.node)?;
        let report = self.space(namespace).node(place).reports.get(&op.reporter);
        let (epoch, age_ms) =
            report.map_or((0, 0), |report| (report.epoch, report.read_at.until(self.time)));
        let report = report.filter(|_| epoch == op.epoch && age_ms <= limits::REPORT_AGE_MS_MAX);
        let Some(report) = report.cloned() else {
            let detail = Detail::Report { epoch, age_ms };
            return Err(Refusal::new(Code::StaleReport).with(detail).into());
        };
        let left = left_of(&report, self.space(namespace).node(place));
        let change = if op.at_once { left } else { agreed(left, report.drift_before) };
        let mut done = Reconciled {
            change: 0,
            dry_run: op.dry_run,
            already: report.is_compensated,
            waits_for_another: left != 0 && change == 0 && !report.is_compensated,
            commit: None,
        };
        if report.is_compensated || change == 0 {
            return Ok(QuotaDone::Reconciled(done));
        }
        if op.dry_run {
            done.change = change.max(-signed(self.owned(namespace, place)));
            return Ok(QuotaDone::Reconciled(done));
        }
        (done.change, done.commit) = self.compensate(caller, namespace, place, op, change)?;
        let node = self.space_mut(namespace).node_mut(place);
        let report = node.reports.get_mut(&op.reporter).expect("it was just read");
        report.is_compensated = true;
        Ok(QuotaDone::Reconciled(done))
    }

    /// What a compensation can take away: the accounts of the node itself.
    fn owned(&self, namespace: u32, place: Place) -> u64 {
        let accounts = &self.space(namespace).node(place).accounts;
        accounts.values().take(ACCOUNTS_MAX).map(|account| account.total()).sum()
    }

    /// Changes committed use of the node itself. What is missing comes in the reporter's name; what is too much goes
    /// from the accounts in the order of their owners.
    fn compensate(
        &mut self,
        caller: &Caller,
        namespace: u32,
        place: Place,
        op: &Reconcile,
        change: i64,
    ) -> Result<(i64, Option<ObjectId>), Refusal> {
        if change > 0 {
            let amount = change.unsigned_abs();
            let (lines, commit) = self.add_use(namespace, place, &op.reporter, amount)?;
            self.compensated(caller, namespace, &op.node, op, &op.reporter, lines);
            return Ok((change, Some(commit)));
        }
        let mut left = change.unsigned_abs();
        let accounts = &self.space(namespace).node(place).accounts;
        let owners = accounts.iter().take(ACCOUNTS_MAX);
        let owners: Vec<_> =
            owners.map(|(owner, account)| (owner.clone(), account.total())).collect();
        for (owner, has) in owners {
            let part = has.min(left);
            if part > 0 {
                let lines = self.subtract_use(namespace, place, &owner, part);
                self.compensated(caller, namespace, &op.node, op, &owner, lines);
                left -= part;
            }
        }
        Ok((change + signed(left), None))
    }

    fn compensated(
        &mut self,
        caller: &Caller,
        namespace: u32,
        node: &NodeRef,
        op: &Reconcile,
        owner: &Owner,
        lines: Vec<crate::event::LedgerLine>,
    ) {
        let (reporter, epoch) = (op.reporter.clone(), op.epoch);
        let change = QuotaChange::Reconciled { reporter, epoch };
        self.books_event(caller, namespace, node, owner, change, lines, None);
    }
}

/// What is left of a report's drift: what has been committed or returned since (another compensation, too) explains
/// more of it.
fn left_of(report: &Report, node: &Node) -> i64 {
    let Drift { observed, committed_then, drift, .. } = report.drift;
    let (_, now) = drift_of(node, observed, committed_then);
    match now.signum() == drift.signum() {
        true => drift.signum() * drift.abs().min(now.abs()),
        false => 0,
    }
}

/// What two reports in a row agree on.
fn agreed(now: i64, before: i64) -> i64 {
    match now.signum() == before.signum() {
        true => now.signum() * now.abs().min(before.abs()),
        false => 0,
    }
}

/// What of a difference is explained, and the rest.
fn drift_of(node: &Node, observed: u64, then: u64) -> (u64, i64) {
    let since_committed = node.committed.saturating_sub(then);
    let since_returned = then.saturating_sub(node.committed);
    let more = observed.saturating_sub(then);
    let less = then.saturating_sub(observed);
    let explained = more.min(node.reserved + since_committed) + less.min(since_returned);
    let rest = signed(more + less - explained);
    (explained, if less > 0 { -rest } else { rest })
}

fn drift_reported(node: &Node, op: &ReportUsage, last: Option<&Report>) -> Drift {
    let (observed, committed_then) = (op.observed, op.committed_then);
    let (explained, drift) = drift_of(node, observed, committed_then);
    let in_a_row = match last {
        _ if drift == 0 => 0,
        Some(last) if last.epoch + 1 == op.epoch && last.drift.drift.signum() == drift.signum() => {
            last.drift.in_a_row + 1
        }
        _ => 1,
    };
    Drift { observed, committed_then, explained, drift, in_a_row }
}
