//! Reads of quotas. They end nothing: a reservation that is due and unswept is shown with 0 ms left, and counts.

use super::{Reservation, Space, State};
use crate::{
    command::{Item, NodeRef},
    ids::{ObjectId, ReservationId},
    limits,
    names::{NamespaceName, QuotaName},
    query::{
        AccountView, Explanation, ListNodes, ListReservations, NodeView, RefusalView, ReportView,
        ReservationPage, ReservationView,
    },
    quota::{LastRefusal, Place},
};
use std::ops::Bound::{Excluded, Included, Unbounded};

impl State {
    /// One node; the outer `None`: there is no such namespace.
    pub fn quota_node(
        &self,
        namespace: &NamespaceName,
        node: &NodeRef,
    ) -> Option<Option<NodeView>> {
        let space = self.space(self.namespace_id(namespace)?);
        Some(space.find(node).map(|place| self.node_view(space, place)))
    }

    /// The names of all quotas; `None`: there is no such namespace.
    pub fn quotas(&self, namespace: &NamespaceName) -> Option<Vec<QuotaName>> {
        let space = self.space(self.namespace_id(namespace)?);
        Some(space.index.keys().cloned().collect())
    }

    /// Nodes by path; the last row's is where the next page begins. `None`: there is no such namespace.
    pub fn list_quota_nodes(
        &self,
        namespace: &NamespaceName,
        list: &ListNodes,
    ) -> Option<Vec<NodeView>> {
        let space = self.space(self.namespace_id(namespace)?);
        let Some(&tree) = space.index.get(&list.quota) else { return Some(Vec::new()) };
        let from = match list.after.as_deref() {
            Some(after) if after >= list.prefix.as_str() => Excluded(after),
            _ => Included(list.prefix.as_str()),
        };
        let nodes = space.trees[tree as usize].index.range::<str, _>((from, Unbounded));
        let nodes = nodes.take_while(|(path, _)| path.as_str().starts_with(&list.prefix));
        let nodes = nodes.take(list.limit.clamp(1, limits::PAGE_ROWS_MAX));
        Some(nodes.map(|(_, &id)| self.node_view(space, (tree, id))).collect())
    }

    /// Why a node does not give more; the outer `None`: there is no such namespace.
    pub fn explain_quota(
        &self,
        namespace: &NamespaceName,
        node: &NodeRef,
        limit: usize,
    ) -> Option<Option<Explanation>> {
        let space = self.space(self.namespace_id(namespace)?);
        let Some(place) = space.find(node) else { return Some(None) };
        let list = ListReservations { node: Some(node.clone()), limit, ..Default::default() };
        let page = self.list_reservations(namespace, &list)?;
        let layer = |id| self.node_view(space, (place.0, id));
        let refusal = space.node(place).refusal.as_deref();
        Some(Some(Explanation {
            layers: space.tree(place).chain(place.1).into_iter().map(layer).collect(),
            last_refusal: refusal.map(|last| self.refusal_view(last)),
            holders: page.reservations,
            has_more: page.next.is_some(),
        }))
    }

    /// Reservations that have not ended, oldest first; `None`: there is no such namespace.
    pub fn list_reservations(
        &self,
        namespace: &NamespaceName,
        list: &ListReservations,
    ) -> Option<ReservationPage> {
        let home = self.namespace_id(namespace)?;
        let space = self.space(home);
        let limit = list.limit.clamp(1, limits::PAGE_ROWS_MAX);
        let mut page = ReservationPage { reservations: Vec::new(), next: None };
        let after = ObjectId(list.after.0.saturating_add(1));
        let mut rows = self.quotas.reservations.range(after..).enumerate().peekable();
        while let Some((examined, (&id, of))) = rows.next() {
            if of.namespace == home && is_listed(space, list, of) {
                page.reservations.push(self.reservation_view(space, id, of));
            }
            if page.reservations.len() == limit || examined + 1 == limits::PAGE_EXAMINED_MAX {
                page.next = rows.peek().map(|_| id);
                break;
            }
        }
        Some(page)
    }

    /// One reservation that has not ended; the outer `None`: there is no such namespace.
    pub fn reservation_named(
        &self,
        namespace: &NamespaceName,
        name: ReservationId,
    ) -> Option<Option<ReservationView>> {
        let home = self.namespace_id(namespace)?;
        let id = self.quotas.by_name.get(&name).copied();
        let of = id.and_then(|id| Some((id, self.quotas.reservations.get(&id)?)));
        let of = of.filter(|(_, of)| of.namespace == home);
        Some(of.map(|(id, of)| self.reservation_view(self.space(home), id, of)))
    }

    /// Committed use of a node itself, by owner after `after`; the outer `None`: there is no such namespace.
    pub fn quota_accounts(
        &self,
        namespace: &NamespaceName,
        node: &NodeRef,
        after: &str,
        limit: usize,
    ) -> Option<Option<Vec<AccountView>>> {
        let space = self.space(self.namespace_id(namespace)?);
        let Some(place) = space.find(node) else { return Some(None) };
        let accounts = space.node(place).accounts.range::<str, _>((Excluded(after), Unbounded));
        let view = |(owner, account): (&crate::names::Owner, &crate::quota::Account)| AccountView {
            owner: owner.clone(),
            committed: account.total(),
            commits: account.lots().map(|lot| (lot.commit, lot.left)).collect(),
            folded: account.folded(),
        };
        Some(Some(accounts.take(limit).map(view).collect()))
    }

    /// The last reports about a node; the outer `None`: there is no such namespace.
    pub fn quota_reports(
        &self,
        namespace: &NamespaceName,
        node: &NodeRef,
    ) -> Option<Option<Vec<ReportView>>> {
        let space = self.space(self.namespace_id(namespace)?);
        let Some(place) = space.find(node) else { return Some(None) };
        let view = |(reporter, report): (&crate::names::Owner, &crate::quota::Report)| ReportView {
            reporter: reporter.clone(),
            epoch: report.epoch,
            age_ms: report.read_at.until(self.time),
            drift: report.drift.clone(),
            is_compensated: report.is_compensated,
        };
        Some(Some(space.node(place).reports.iter().map(view).collect()))
    }

    pub(super) fn node_view(&self, space: &Space, place: Place) -> NodeView {
        let (tree, node) = (space.tree(place), space.node(place));
        let available = tree.available(place.1);
        NodeView {
            node: space.name(place),
            limits: node.limits.clone(),
            version: node.version,
            updated_ago_ms: node.updated_at.until(self.time),
            updated_in: node.updated_in,
            committed: node.committed,
            reserved: node.reserved,
            direct_committed: node.direct_committed,
            direct_reserved: node.direct_reserved,
            available: available.last().copied().unwrap_or(0),
            debt: node.debt(),
            effective_guaranteed: node.effective,
            waiters: space.waiting_at(place) as u64,
            sweep_pending: self.is_sweep_pending(),
        }
    }

    fn refusal_view(&self, last: &LastRefusal) -> RefusalView {
        RefusalView {
            ago_ms: last.at.until(self.time),
            revision: last.revision,
            owner: last.owner.clone(),
            amount: last.amount,
            layers: last.layers.clone(),
        }
    }

    fn reservation_view(&self, space: &Space, id: ObjectId, of: &Reservation) -> ReservationView {
        let is_holding = of.is_holding();
        let name =
            |item: &crate::quota::Asked| Item { node: space.name(item.place), amount: item.amount };
        ReservationView {
            claim: id,
            reservation: of.name,
            fence: of.fence,
            state: of.state(),
            owner: of.owner.clone(),
            caller: of.caller.clone(),
            items: of.items.iter().map(name).collect(),
            on_expiry: of.on_expiry,
            priority: of.priority,
            age_ms: of.created_at.until(self.time),
            held_for_ms: if is_holding { of.granted_at.until(self.time) } else { 0 },
            expires_in_ms: match of.phase {
                super::Phase::Quarantined => 0,
                _ => self.time.until(of.deadline),
            },
            labels: of.labels.clone(),
        }
    }
}

fn is_listed(space: &Space, list: &ListReservations, of: &Reservation) -> bool {
    let is_below = |node: &NodeRef, place: Place| {
        let own = space.name(place);
        own.quota == node.quota && own.path.ancestor(node.path.depth()) == node.path
    };
    list.owner.as_ref().is_none_or(|owner| *owner == of.owner)
        && list.state.is_none_or(|state| state == of.state())
        && (list.node.as_ref())
            .is_none_or(|node| of.items.iter().any(|item| is_below(node, item.place)))
}
