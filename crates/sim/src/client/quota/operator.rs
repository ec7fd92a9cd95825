//! Operators of quotas: limits cut and raised, quarantine settled, use counted and set right, shares lent.

use super::{DOING_MS, NODES, namespace};
use crate::world::World;
use sereno_core::{
    command::{
        Adjust, Adjustment, NodeLimits, NodeRef, Operation, QuotaCommand, Reconcile, RemoveNode,
        ReportUsage, ReservationRef, Settle, Settlement, ShareGrant, ShareReclaim, ShareReturn,
    },
    ids::ReservationId,
    names::{Owner, Reason, RegionName},
    outcome::ReservationState,
    query::{ListReservations, NodeView},
};

fn reason() -> Reason {
    Reason::new("an operator wants it").expect("a valid reason")
}

impl World {
    pub(super) fn quota_operator_begins(&mut self, client: usize) {
        let operations = match self.random.between(0, 99) {
            0..=44 => self.change_limit(),
            45..=49 => self.remove_node(),
            50..=64 => self.settle_one(),
            65..=79 => self.report_and_reconcile(),
            80..=91 => self.adjust_one(),
            _ => self.lend(),
        };
        match operations {
            Some(operations) => self.client_does(client, operations, DOING_MS),
            None => self.client_rests(client),
        }
    }

    /// As the operator reads it: it may be another by the time that the write lands.
    fn node_seen(&mut self) -> Option<NodeView> {
        let node = self.some_node();
        self.truth.state.quota_node(&namespace(), &node).flatten()
    }

    fn change_limit(&mut self) -> Option<Vec<Operation>> {
        let view = self.node_seen()?;
        let NodeRef { quota, path } = &view.node;
        let is_it = |of: &&(&str, &str, u64, u64)| of.0 == quota.as_str() && of.1 == path.as_str();
        let &(.., usual, guaranteed) = NODES.iter().find(is_it)?;
        let limit = match self.random.between(0, 9) {
            0..=1 => usual / 4,
            2..=3 => usual / 2,
            4..=7 => usual,
            _ => usual + usual / 2,
        };
        let is_root = path.as_str().is_empty();
        let is_promised = self.random.in_1000(700);
        let is_bounded = self.random.in_1000(250);
        let is_patient = is_root && self.random.in_1000(500);
        let limits = NodeLimits {
            limit,
            burst: [0, 0, 2, 8][self.random.below(4)],
            guaranteed: if is_promised { guaranteed.min(limit) } else { 0 },
            weight: self.random.between(1, 5),
            owner_reserved_max: is_bounded.then(|| self.random.between(2, 20)),
            patience_ms: is_patient.then(|| self.random.between(0, 4_000)),
            home: None,
        };
        let version = view.version - u64::from(self.random.in_1000(60));
        Some(vec![self.put_limit(view.node, limits, version)])
    }

    fn remove_node(&mut self) -> Option<Vec<Operation>> {
        let view = self.node_seen()?;
        let remove = RemoveNode {
            namespace: namespace(),
            node: view.node,
            expected_version: view.version,
            request_id: self.request_id(),
        };
        Some(vec![Operation::Quota(QuotaCommand::RemoveNode(remove))])
    }

    fn settle_one(&mut self) -> Option<Vec<Operation>> {
        let state = Some(ReservationState::Quarantined);
        let list = ListReservations { state, limit: 10, ..ListReservations::default() };
        let page = self.truth.state.list_reservations(&namespace(), &list)?;
        if page.reservations.is_empty() {
            return None;
        }
        let one = &page.reservations[self.random.below(page.reservations.len())];
        let of = ReservationRef {
            namespace: namespace(),
            reservation: one.reservation,
            fence: Some(one.fence),
        };
        let settlement = [Settlement::Commit, Settlement::Release][self.random.below(2)];
        let request_id = self.request_id();
        let settle = Settle { of, settlement, reason: reason(), request_id };
        Some(vec![Operation::Quota(QuotaCommand::Settle(settle))])
    }

    /// What is there in reality is mostly less than what the books say: work dies, and nobody gives back.
    fn report_and_reconcile(&mut self) -> Option<Vec<Operation>> {
        let view = self.node_seen()?;
        let reporter = ["counter-a", "counter-b"][self.random.below(2)];
        let reporter = Owner::new(reporter).expect("a valid owner");
        let reports = self.truth.state.quota_reports(&namespace(), &view.node).flatten()?;
        let last = reports.iter().find(|report| report.reporter == reporter);
        let epoch = last.map_or(0, |report| report.epoch) + 1;
        let observed = match self.random.between(0, 9) {
            0..=1 => view.committed,
            2..=6 => self.random.between(0, view.committed),
            _ => view.committed + self.random.between(0, 30),
        };
        let report = ReportUsage {
            namespace: namespace(),
            node: view.node.clone(),
            reporter: reporter.clone(),
            epoch,
            observed,
            as_of: self.truth.state.revision(),
            committed_then: view.committed,
            read_at: self.truth.state.time(),
            request_id: self.request_id(),
        };
        let reconcile = Reconcile {
            namespace: namespace(),
            node: view.node,
            reporter,
            epoch,
            dry_run: self.random.in_1000(150),
            at_once: self.random.in_1000(700),
            request_id: self.request_id(),
        };
        // Some compensate twice: by another request nothing is done again.
        let mut again = reconcile.clone();
        again.request_id = self.request_id();
        let mut operations =
            vec![QuotaCommand::Reconcile(reconcile), QuotaCommand::ReportUsage(report)];
        if self.random.in_1000(300) {
            operations.insert(0, QuotaCommand::Reconcile(again));
        }
        Some(operations.into_iter().map(Operation::Quota).collect())
    }

    fn adjust_one(&mut self) -> Option<Vec<Operation>> {
        let view = self.node_seen()?;
        let accounts = self.truth.state.quota_accounts(&namespace(), &view.node, "", 10);
        let accounts = accounts.flatten()?;
        let (owner, change) = match accounts.is_empty() || self.random.in_1000(250) {
            true => (self.some_team(), Adjustment::Add(self.random.between(1, 4))),
            false => {
                let one = &accounts[self.random.below(accounts.len())];
                let most = one.committed + u64::from(self.random.in_1000(100));
                (one.owner.clone(), Adjustment::Subtract(self.random.between(1, most)))
            }
        };
        let (node, request_id) = (view.node, self.request_id());
        let adjust =
            Adjust { namespace: namespace(), node, owner, change, reason: reason(), request_id };
        Some(vec![Operation::Quota(QuotaCommand::Adjust(adjust))])
    }

    /// Lends to another region, or takes back what that gives back, or reclaims it.
    fn lend(&mut self) -> Option<Vec<Operation>> {
        let shares = self.truth.state.quota_shares(&namespace())?;
        let request_id = self.request_id();
        if shares.len() < 3 && (shares.is_empty() || self.random.in_1000(400)) {
            let amount = self.random.between(1, 5);
            let grant = ShareGrant {
                namespace: namespace(),
                node: self.some_node(),
                region: RegionName::new("us-east").expect("a valid name"),
                amount,
                overdraft_cap: self.random.between(0, amount),
                share: ReservationId(self.random.id()),
                request_id,
            };
            return Some(vec![Operation::Quota(QuotaCommand::ShareGrant(grant))]);
        }
        let one = &shares[self.random.below(shares.len())];
        if self.random.in_1000(300) {
            let (share, reason) = (one.share, reason());
            let reclaim = ShareReclaim { namespace: namespace(), share, reason, request_id };
            return Some(vec![Operation::Quota(QuotaCommand::ShareReclaim(reclaim))]);
        }
        let spent = self.random.between(0, one.amount);
        let returned = self.random.between(0, one.amount - spent);
        let (share, namespace) = (one.share, namespace());
        let back = ShareReturn { namespace, share, returned, spent, request_id };
        Some(vec![Operation::Quota(QuotaCommand::ShareReturn(back))])
    }
}
