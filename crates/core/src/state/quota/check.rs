//! What must hold of all quotas: every sum is worked out anew from its parts.

use super::{Phase, Space, State};
use crate::{
    limits,
    names::Owner,
    quota::{Place, Tree},
    state::memory::Fate,
};
use std::collections::{BTreeMap, HashMap};

impl State {
    /// Panics with a message when an invariant is broken.
    pub(in crate::state) fn check_quotas_invariants(&self) {
        for (&id, of) in &self.quotas.reservations {
            assert!(id.0 < self.next_object, "objects are numbered as created");
            assert!(self.quotas.by_name.get(&of.name) == Some(&id), "found by its name");
            let has_deadline = self.deadlines.contains(&(of.deadline, id));
            assert!(has_deadline != (of.phase == Phase::Quarantined), "a deadline, or quarantine");
            assert!(self.memory.get(of.record).fate == Fate::Live(id), "it and its request");
            assert!(of.fence <= self.last_token, "no fence is above the last token (S2)");
            assert!((of.fence.0 == 0) != of.is_holding(), "who holds has a fence");
            assert!(!of.items.is_empty(), "a reservation is about something");
            assert!(of.items.iter().all(|item| item.amount > 0), "no item is about nothing");
        }
        for (id, late) in &self.quotas.late {
            assert!(self.quotas.late_until.contains(&(late.until, *id)), "kept until then");
            assert!(self.quotas.by_name.get(&late.name) == Some(id), "found by its name");
        }
        let known = self.quotas.reservations.len() + self.quotas.late.len();
        assert!(self.quotas.by_name.len() == known, "nothing else has a name");
        assert!(self.quotas.late_until.len() == self.quotas.late.len(), "each is forgotten once");
        for namespace in 0..self.namespaces.len() as u32 {
            self.check_space(namespace);
        }
    }

    fn check_space(&self, namespace: u32) {
        let space = self.space(namespace);
        let of_it =
            || self.quotas.reservations.values().filter(move |of| of.namespace == namespace);
        let late = self.quotas.late.values().filter(|late| late.namespace == namespace).count();
        assert!(space.reservations == (of_it().count() + late) as u64, "reservations are counted");
        let items: usize = of_it().map(|of| of.items.len()).sum();
        assert!(space.open_items == items as u64, "their nodes are counted");
        let waiting: usize = space.lanes.values().map(|lane| lane.len()).sum();
        let waits = of_it().filter(|of| !of.is_holding()).count();
        assert!(waiting == waits, "who waits stands in a lane");
        assert!(self.quotas.waited_for.contains(&namespace) == (waits > 0), "and is looked at");
        let mut reserved: BTreeMap<Place, u64> = BTreeMap::new();
        let mut owners: HashMap<(Place, &Owner), u64> = HashMap::new();
        for of in of_it().filter(|of| of.is_holding()) {
            for item in &of.items {
                *reserved.entry(item.place).or_default() += item.amount;
                for id in space.tree(item.place).chain(item.place.1) {
                    *owners.entry(((item.place.0, id), &of.owner)).or_default() += item.amount;
                }
            }
        }
        for share in space.shares.values() {
            assert!(share.amount > 0, "a share that is empty has ended");
            *reserved.entry(share.place).or_default() += share.kept();
            for id in space.tree(share.place).chain(share.place.1) {
                let count = owners.entry(((share.place.0, id), &share.owner)).or_default();
                *count += share.kept();
            }
        }
        owners.retain(|_, count| *count > 0);
        let mut accounts = 0;
        for (number, tree) in space.trees.iter().enumerate() {
            check_tree(tree);
            for (&_, &id) in &tree.index {
                let place = (number as u32, id);
                let node = tree.node(id);
                let own = reserved.get(&place).copied().unwrap_or(0);
                assert!(node.direct_reserved == own, "reserved is the sum of reservations (S9)");
                let count = |(owner, &count): (&Owner, &u64)| owners[&(place, owner)] == count;
                assert!(sorted(&node.owners).into_iter().all(count), "owners' counts are right");
                let held = owners.keys().filter(|(at, _)| *at == place).count();
                assert!(node.owners.len() == held, "every owner is counted");
                accounts += node.accounts.len() as u64;
            }
        }
        assert!(space.accounts == accounts, "accounts are counted");
        self.check_nobody_waits_in_vain(namespace, space);
    }

    /// Whoever could be granted has been, unless one look was not enough.
    fn check_nobody_waits_in_vain(&self, namespace: u32, space: &Space) {
        let may_grant = self.paused_until <= self.time && !self.quotas.is_look_pending;
        if may_grant && !space.lanes.is_empty() && self.quotas.changed.is_none() {
            assert!(self.next_waiting(namespace).is_none(), "nobody waits for what is free");
        }
    }
}

fn sorted(owners: &HashMap<Owner, u64>) -> Vec<(&Owner, &u64)> {
    let mut owners: Vec<_> = owners.iter().collect();
    owners.sort_unstable();
    owners
}

fn check_tree(tree: &Tree) {
    let live = tree.nodes.iter().flatten().count();
    assert!(tree.index.len() == live && live <= limits::QUOTA_NODES_MAX, "nodes are indexed");
    assert!(tree.nodes.len() == live + tree.vacant.len(), "numbers are used or free");
    let order = tree.top_down();
    assert!(order.len() == live, "every node hangs on the root");
    let mut anew = tree.clone();
    anew.weigh();
    for &id in &order {
        let (node, again) = (tree.node(id), anew.node(id));
        let children = || node.children.values().map(|&id| tree.node(id));
        let committed: u64 = children().map(|child| child.committed).sum();
        let reserved: u64 = children().map(|child| child.reserved).sum();
        assert!(node.committed == node.direct_committed + committed, "sums are sums");
        assert!(node.reserved == node.direct_reserved + reserved, "sums are sums");
        let promised: u64 = children().map(|child| child.limits.guaranteed).sum();
        assert!(node.promised == promised, "promises are counted");
        let of_accounts: u64 = node.accounts.values().map(|account| account.total()).sum();
        assert!(node.direct_committed == of_accounts, "committed use has its accounts");
        assert!(node.accounts.values().all(|account| account.total() > 0), "none is empty");
        assert!((node.claim, node.effective) == (again.claim, again.effective), "claims");
        assert!(node.promised_effective == again.promised_effective, "what counts of promises");
    }
}
