//! Guarantees, and what of them counts after a cut: `guaranteed x base / Σ guaranteed`, where the base is what counts
//! of the parent's own guarantee, and the limit of a root.

use super::tree::{Node, Tree, changed, difference};
use crate::command::NodeLimits;

impl Node {
    /// What it can pass on to its children.
    fn base(&self) -> u64 {
        match self.parent {
            None => self.limits.limit,
            Some(_) => self.effective,
        }
    }

    /// Its children are promised more than it can pass on.
    fn is_cut(&self) -> bool {
        self.promised > self.base()
    }

    /// What counts of a child's guarantee.
    fn share_of(&self, guaranteed: u64) -> u64 {
        if !self.is_cut() {
            return guaranteed;
        }
        let share = u128::from(guaranteed) * u128::from(self.base()) / u128::from(self.promised);
        u64::try_from(share).expect("a part of an amount is an amount")
    }
}

impl Tree {
    /// Sets a node's rules. What counts of guarantees, and every claim, follows.
    pub(crate) fn set_limits(&mut self, id: u32, limits: NodeLimits) {
        let parent = self.node(id).parent;
        let was_cut = self.is_cut_around(id, parent);
        let guaranteed = limits.guaranteed;
        let old = std::mem::replace(&mut self.node_mut(id).limits, limits);
        if let Some(parent) = parent {
            let node = self.node_mut(parent);
            node.promised = changed(node.promised, difference(guaranteed, old.guaranteed));
        }
        if was_cut || self.is_cut_around(id, parent) {
            return self.weigh();
        }
        let Some(parent) = parent else { return };
        let node = self.node_mut(id);
        let (counted, effective) = (node.counted(), node.effective);
        node.effective = guaranteed;
        let by = difference(node.counted(), counted);
        let above = self.node_mut(parent);
        above.promised_effective =
            changed(above.promised_effective, difference(guaranteed, effective));
        self.raise_claims(Some(parent), by);
    }

    fn is_cut_around(&self, id: u32, parent: Option<u32>) -> bool {
        // What counts of the node itself may be about to change: its children are looked at with it.
        let is_cut = |id: u32| {
            let node = self.node(id);
            let base =
                if node.parent.is_none() { node.limits.limit } else { node.limits.guaranteed };
            node.is_cut() || node.promised > base
        };
        is_cut(id) || parent.is_some_and(is_cut)
    }

    /// Works out anew what counts of all guarantees, and all claims. Time in proportion to the tree: only changes of
    /// rules need it.
    pub(crate) fn weigh(&mut self) {
        let order = self.top_down();
        for &id in &order {
            let node = self.node(id);
            let effective = match node.parent {
                None => 0,
                Some(parent) => self.node(parent).share_of(node.limits.guaranteed),
            };
            self.node_mut(id).effective = effective;
        }
        for &id in &order {
            let node = self.node_mut(id);
            node.claim = node.direct();
            node.promised_effective = 0;
        }
        for &id in order.iter().rev() {
            let node = self.node(id);
            let (counted, effective) = (node.counted(), node.effective);
            if let Some(parent) = node.parent {
                let parent = self.node_mut(parent);
                parent.claim += counted;
                parent.promised_effective += effective;
            }
        }
    }

    /// Every node after its parent.
    pub(crate) fn top_down(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.index.len());
        order.extend(self.index.first_key_value().map(|(_, &root)| root));
        let mut next = 0;
        while let Some(&id) = order.get(next) {
            order.extend(self.node(id).children.values());
            next += 1;
        }
        order
    }

    /// Why these rules cannot be set: the guarantees that they would break, in words.
    pub(crate) fn refuse_guarantee(
        &self,
        parent: Option<u32>,
        before: u64,
        guaranteed: u64,
    ) -> Option<String> {
        let parent = self.node(parent?);
        let promised = parent.promised - before + guaranteed;
        let own = match parent.parent {
            None => parent.limits.limit,
            Some(_) => parent.limits.guaranteed,
        };
        if promised <= own || guaranteed <= before {
            return None;
        }
        let whose = if parent.parent.is_none() { "limit" } else { "guaranteed" };
        Some(format!(
            "the node above would guarantee {promised} to its children, and its own {whose} is {own}"
        ))
    }
}
