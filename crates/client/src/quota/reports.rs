//! The books against reality, and operators' writes.

use super::plain::Quotas;
use crate::{core::random_id, error::Error, transport::Ask};
use sereno_api::{
    AdjustRequest, Adjusted, Adjustment, QuotaNodeRead, ReconcileRequest, Reconciled,
    ReportUsageRequest, ReturnRequest, Returned, SettleRequest, Settled, Settlement,
    ShareGrantRequest, ShareReclaimRequest, ShareReturnRequest, Shared, UsageReported,
};

/// One count of real use, against what one read of the node said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReport {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// Who counts.
    pub reporter: String,
    /// Which count of theirs: 1, 2, 3.
    pub epoch: u64,
    /// What is there in reality, at the node and all below it.
    pub observed: u64,
    /// `revision` of the read.
    pub as_of_revision: u64,
    /// `committed` of the read.
    pub committed_then: u64,
    /// `cluster_time_ms` of the read.
    pub cluster_time_ms: u64,
}

/// Which report to compensate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// Whose report.
    pub reporter: String,
    /// Which of theirs: the last one.
    pub epoch: u64,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Do not wait for a second report that says the same.
    pub at_once: bool,
}

impl UsageReport {
    /// What was counted right after this read.
    pub fn against(
        read: &QuotaNodeRead,
        reporter: impl Into<String>,
        epoch: u64,
        observed: u64,
    ) -> Self {
        Self {
            quota: read.node.quota.clone(),
            path: read.node.path.clone(),
            reporter: reporter.into(),
            epoch,
            observed,
            as_of_revision: read.revision,
            committed_then: read.node.committed,
            cluster_time_ms: read.cluster_time_ms,
        }
    }
}

/// The last epoch of this reporter at the node; 0: none.
pub fn last_epoch(read: &QuotaNodeRead, reporter: &str) -> u64 {
    let report = read.reports.iter().find(|report| report.reporter == reporter);
    report.map_or(0, |report| report.epoch)
}

impl Quotas {
    /// Says what is really used. The books stay as they are.
    ///
    /// # Errors
    /// [`Error::Refused`] with `STALE_REPORT` for a count that is not after the reporter's last, or is over an hour old.
    pub async fn report_usage(&self, report: UsageReport) -> Result<UsageReported, Error> {
        let request = ReportUsageRequest {
            namespace: self.namespace.clone(),
            quota: report.quota,
            path: report.path,
            reporter: report.reporter,
            epoch: report.epoch,
            observed: report.observed,
            as_of_revision: report.as_of_revision,
            committed_then: report.committed_then,
            cluster_time_ms: report.cluster_time_ms,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ReportUsageRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/report-usage", &request)
        };
        self.client.core().run_call(ask).await
    }

    /// Brings committed use to what was reported, once; unless told otherwise only what two reports in a row agree on.
    ///
    /// # Errors
    /// [`Error::Refused`] with `STALE_REPORT` where that is not the reporter's last, or is over an hour old.
    pub async fn reconcile(&self, what: Reconciliation) -> Result<Reconciled, Error> {
        let request = ReconcileRequest {
            namespace: self.namespace.clone(),
            quota: what.quota,
            path: what.path,
            reporter: what.reporter,
            epoch: what.epoch,
            dry_run: what.dry_run,
            at_once: what.at_once,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ReconcileRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/reconcile", &request)
        };
        self.client.core().run_call(ask).await
    }

    /// Changes what an owner has committed at a node, in an operator's name: it says what is real, so no limit is
    /// asked. `reason` goes into the audit trail.
    ///
    /// # Errors
    /// [`Error::Refused`] with `EXCEEDS_RESERVATION` for less than nothing.
    pub async fn adjust(
        &self,
        quota: &str,
        path: &str,
        owner: &str,
        change: i64,
        reason: &str,
    ) -> Result<Adjusted, Error> {
        let request = AdjustRequest {
            namespace: self.namespace.clone(),
            quota: quota.into(),
            path: path.into(),
            owner: owner.into(),
            change: if change < 0 { Adjustment::Subtract } else { Adjustment::Add },
            amount: change.unsigned_abs(),
            reason: reason.into(),
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/quotas/adjust", &AdjustRequest { born_at, ..request.clone() })
        };
        self.client.core().run_call(ask).await
    }

    /// The real thing is gone: so much of a commit at this node is free again. `owner`: the reservation's.
    ///
    /// # Errors
    /// [`Error::Refused`] with `EXCEEDS_RESERVATION` for more than the commit has left there.
    pub async fn return_use(
        &self,
        commit_id: u64,
        quota: &str,
        path: &str,
        owner: &str,
        amount: u64,
    ) -> Result<Returned, Error> {
        let request = ReturnRequest {
            namespace: self.namespace.clone(),
            commit_id,
            quota: quota.into(),
            path: path.into(),
            owner: owner.into(),
            amount,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/quotas/return", &ReturnRequest { born_at, ..request.clone() })
        };
        self.client.core().run_call(ask).await
    }

    /// Ends a reservation in quarantine, in an operator's name. `reason` goes into the audit trail.
    ///
    /// # Errors
    /// [`Error::Refused`] where it is not in quarantine: its owner ends it.
    pub async fn settle(
        &self,
        reservation_id: &str,
        settlement: Settlement,
        reason: &str,
    ) -> Result<Settled, Error> {
        let request = SettleRequest {
            namespace: self.namespace.clone(),
            reservation_id: reservation_id.into(),
            fence: None,
            settlement,
            reason: reason.into(),
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/quotas/settle", &SettleRequest { born_at, ..request.clone() })
        };
        self.client.core().run_call(ask).await
    }

    /// Lends capacity to another region until that gives it back. `overdraft_cap`: so much of it may be lent again by
    /// [`Self::reclaim_share`] while the region may still use it.
    ///
    /// # Errors
    /// [`Error::Refused`] with `QUOTA_EXHAUSTED` where there is not so much.
    pub async fn grant_share(
        &self,
        quota: &str,
        path: &str,
        region: &str,
        amount: u64,
        overdraft_cap: u64,
    ) -> Result<Shared, Error> {
        let request = ShareGrantRequest {
            namespace: self.namespace.clone(),
            quota: quota.into(),
            path: path.into(),
            region: region.into(),
            amount,
            overdraft_cap,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/quotas/share-grant", &ShareGrantRequest { born_at, ..request.clone() })
        };
        self.client.core().run_call(ask).await
    }

    /// The region gives back of its share, and says what of it it uses for good; after it has lowered its own limit by
    /// both.
    ///
    /// # Errors
    /// [`Error::Refused`] with `EXCEEDS_RESERVATION` for more than it has.
    pub async fn return_share(
        &self,
        share_id: &str,
        returned: u64,
        spent: u64,
    ) -> Result<Shared, Error> {
        let request = ShareReturnRequest {
            namespace: self.namespace.clone(),
            share_id: share_id.into(),
            returned,
            spent,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ShareReturnRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/share-return", &request)
        };
        self.client.core().run_call(ask).await
    }

    /// Lends a share again that its region does not give back: its overdraft cap at most, once. `reason` goes into the
    /// audit trail.
    ///
    /// # Errors
    /// [`Error::Refused`] where it was reclaimed before.
    pub async fn reclaim_share(&self, share_id: &str, reason: &str) -> Result<Shared, Error> {
        let request = ShareReclaimRequest {
            namespace: self.namespace.clone(),
            share_id: share_id.into(),
            reason: reason.into(),
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ShareReclaimRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/share-reclaim", &request)
        };
        self.client.core().run_call(ask).await
    }
}
