//! What is answered and read is what the book says.

use super::{Items, Quotas, key_of, summed};
use sereno_core::{
    State,
    command::{Command, Family, Item, NodeRef, Operation, QuotaCommand},
    ids::{ClusterTime, ObjectId, ReservationId, Token},
    names::{NamespaceName, Owner},
    outcome::{
        AbandonedWas, Detail, Done, Layer, Outcome, QuotaDone, ReservationState, Reserved, Shortage,
    },
    query::{ListReservations, NodeView, ReservationView},
};
use std::collections::BTreeMap;

/// More than there ever are.
const ROWS: usize = 1_000;

impl Quotas {
    /// A command is answered. `is_alone`: nothing else has come about in its revision.
    pub(in crate::checks) fn outcome(
        &mut self,
        command: &Command,
        outcome: &Outcome,
        is_alone: bool,
    ) {
        let is_fresh = outcome.replayed.is_none();
        if let (Operation::Abandon(op), Ok(Done::Abandoned { was })) =
            (&command.operation, &outcome.result)
            && op.family == Family::Quota
            && *was != AbandonedWas::Done
        {
            let key = crate::checks::request_key(op.family, &op.namespace, &op.request_id);
            self.waits.dies(key);
        }
        let Operation::Quota(op) = &command.operation else { return };
        match (op, &outcome.result) {
            (QuotaCommand::Reserve(op), Ok(Done::Waiting(_))) => {
                self.waits.asked_again(&key_of(op), outcome.time);
            }
            (QuotaCommand::Reserve(op), Ok(Done::Quota(QuotaDone::Reserved(reserved)))) => {
                let granted = self.granted.get(&key_of(op));
                assert!(
                    granted == Some(&reserved.fence),
                    "S6: the same request, the same reservation: {granted:?}, told {reserved:?}"
                );
                assert!(
                    !is_fresh || reserved.reservation == op.reservation,
                    "a reservation has the name that the door drew: {reserved:?}"
                );
                self.told(outcome.time, reserved);
            }
            (_, Ok(Done::Quota(QuotaDone::Reserved(reserved)))) if is_fresh => {
                self.told(outcome.time, reserved);
            }
            (QuotaCommand::Commit(_), Ok(Done::Quota(QuotaDone::Committed(done)))) => {
                for (node, amount) in summed(&done.taken) {
                    let lot = self.lots.get(&(done.commit, node));
                    assert!(
                        lot.is_some_and(|lot| lot.committed == amount),
                        "S10: a commit is answered as it was made: {done:?}, {lot:?}"
                    );
                }
            }
            (QuotaCommand::Reconcile(_), Ok(Done::Quota(QuotaDone::Reconciled(done))))
                if is_fresh =>
            {
                let (revision, change) = self.reconciled;
                let change = if revision == outcome.revision { change } else { 0 };
                assert!(
                    done.dry_run && change == 0 || done.change == change,
                    "S9: a compensation does what it answers: {done:?}, and {change:+}"
                );
            }
            // A resize is looked at as if what it gives back were free.
            (QuotaCommand::Reserve(_) | QuotaCommand::Commit(_), Err(refusal)) if is_alone => {
                if let Detail::Exhausted(exhausted) = &refusal.detail {
                    exhausted.layers.iter().for_each(|layer| self.check_layer(layer));
                }
            }
            _ => {}
        }
    }

    /// A reservation was told of: it is held, with these items, and its deadline comes no nearer.
    pub(in crate::checks) fn told(&mut self, time: ClusterTime, reserved: &Reserved) {
        let ended = self.ended.get(&reserved.fence).copied();
        let Some(held) = self.held.get_mut(&reserved.fence) else {
            // Or a later command of the same entry has ended it.
            return assert!(ended.is_some(), "S10: what is told as reserved is held: {reserved:?}");
        };
        let items: Vec<Item> = reserved.items.iter().map(|one| one.item.clone()).collect();
        let items = summed(&items);
        assert!(items == held.items, "S10: what is told is held: {items:?}, {held:?}");
        if reserved.state == ReservationState::Quarantined {
            return assert!(held.is_quarantined, "only who was quarantined is told so: {held:?}");
        }
        let deadline = time.plus(reserved.expires_in_ms);
        assert!(
            deadline >= held.deadline,
            "S8: no deadline comes nearer: {deadline} after {} of {}",
            held.deadline,
            reserved.fence
        );
        held.deadline = deadline;
    }

    /// A worker is told that use of a commit has come back. It had that commit from this reservation.
    pub(crate) fn came_back(&self, commit: ObjectId, node: &NodeRef, name: ReservationId) {
        let lot = self.lots.get(&(commit, node.clone()));
        assert!(
            lot.is_none_or(|lot| lot.name == name),
            "S10: a return frees what its commit has used: {commit:?} of {name}, and {lot:?}"
        );
    }

    /// A layer that did not let an ask pass, with its figures.
    fn check_layer(&self, layer: &Layer) {
        assert!(layer.shortfall > 0, "a layer that is named is short: {layer:?}");
        if matches!(layer.kind, Shortage::OwnerMax | Shortage::Unknown) {
            return;
        }
        let sum = self.books.sum(&layer.node);
        let (limits, version) = &self.books.nodes[&layer.node];
        assert!(
            (layer.committed, layer.reserved) == (sum.committed, sum.reserved)
                && (layer.limit, layer.burst) == (limits.limit, limits.burst)
                && layer.version == *version,
            "S9: a refusal's figures are the books': {layer:?}, and {sum:?} of {limits:?}"
        );
    }

    /// The state after an entry: the same rules, sums, owners and reservations.
    pub(in crate::checks) fn compare(&mut self, state: &State) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        let namespace = NamespaceName::new(NamespaceName::DEFAULT).expect("a valid name");
        for (node, (limits, version)) in &self.books.nodes {
            let view = state.quota_node(&namespace, node).flatten();
            let view = view.unwrap_or_else(|| panic!("S9: {node:?} is there"));
            assert!(
                view.limits == *limits && view.version == *version,
                "S9: a node has the rules that were put: {view:?}, not {limits:?}"
            );
            self.compare_node(&view);
            let accounts = state.quota_accounts(&namespace, node, "", ROWS).flatten();
            let accounts = accounts.expect("a node that is there has accounts");
            let accounts: BTreeMap<Owner, u64> =
                accounts.into_iter().map(|one| (one.owner, one.committed)).collect();
            let own = self.accounts.iter().filter(|((at, _), _)| at == node);
            let own = own.map(|((_, owner), &amount)| (owner.clone(), amount)).collect();
            assert!(accounts == own, "S10: use has its owners: {node:?} {accounts:?}, due {own:?}");
        }
        if self.held.len() + self.waits.len() >= ROWS {
            return;
        }
        let list = ListReservations { limit: ROWS, ..ListReservations::default() };
        let page = state.list_reservations(&namespace, &list).expect("the default is there");
        let (holding, waiting): (Vec<_>, Vec<_>) =
            page.reservations.into_iter().partition(|view| view.state != ReservationState::Waiting);
        assert!(waiting.len() == self.waits.len(), "S7: who waits does: {waiting:?}");
        let holding: BTreeMap<Token, ReservationView> =
            holding.into_iter().map(|view| (view.fence, view)).collect();
        let fences: Vec<_> = holding.keys().collect();
        assert!(
            fences.iter().copied().eq(self.held.keys()),
            "S10: what has not ended is there, and nothing else: {fences:?}, due {:?}",
            self.held.keys()
        );
        for (fence, view) in &holding {
            let held = &self.held[fence];
            let items: Items = summed(&view.items);
            let is_quarantined = view.state == ReservationState::Quarantined;
            assert!(
                items == held.items
                    && is_quarantined == held.is_quarantined
                    && view.reservation == held.name
                    && view.owner == held.owner,
                "S10: a reservation is what it was made: {view:?}, due {held:?}"
            );
        }
    }

    fn compare_node(&self, view: &NodeView) {
        let node = &view.node;
        let (sum, claim) = (self.books.sum(node), self.books.claim(node));
        assert!(
            (view.committed, view.reserved) == (sum.committed, sum.reserved),
            "S9: sums are sums: {view:?}, due {sum:?}"
        );
        let debt = claim.saturating_sub(self.books.cap(node));
        assert!(
            view.debt == debt && view.effective_guaranteed == self.books.effective(node),
            "S9: claims and guarantees are worked out alike: {view:?}, due a debt of {debt}"
        );
    }
}
