//! Figures of all quotas, for metrics.

use super::{Space, State};
use crate::query::{NodeView, QuotaFigures};
use std::collections::BTreeMap;

impl State {
    /// Every quota with its root and the nodes right below it, until so many nodes have been looked at: what comes after
    /// those, by names, is left out.
    pub fn quota_figures(&self, nodes_max: usize) -> Vec<QuotaFigures> {
        let mut left = nodes_max;
        let mut all = Vec::new();
        for (name, &id) in &self.namespace_index {
            let space = self.space(id);
            let (waiters, lent) = (space.waiters_by_tree(), space.lent_by_tree());
            for (quota, &tree) in &space.index {
                if left == 0 {
                    return all;
                }
                let nodes = self.top_nodes(space, tree, left);
                left -= nodes.len();
                let (lent, lent_twice) = lent.get(&tree).copied().unwrap_or_default();
                all.push(QuotaFigures {
                    namespace: name.clone(),
                    quota: quota.clone(),
                    nodes,
                    waiters: waiters.get(&tree).copied().unwrap_or_default(),
                    lent,
                    lent_twice,
                });
            }
        }
        all
    }

    fn top_nodes(&self, space: &Space, tree: u32, max: usize) -> Vec<NodeView> {
        let of = &space.trees[tree as usize];
        let root = of.index.get("").copied();
        let children = root.iter().flat_map(|&root| of.node(root).children.values().copied());
        let tops = root.iter().copied().chain(children).take(max);
        tops.map(|id| self.node_view(space, (tree, id))).collect()
    }

    /// Reservations that an operator has to settle.
    pub fn quarantined(&self) -> u64 {
        // Every object but those in quarantine has one deadline.
        let objects = self.claims.len() + self.delays.len() + self.quotas.reservations.len();
        (objects - self.deadlines.len()) as u64
    }
}

impl Space {
    /// Who waits, in each tree that they want something of.
    fn waiters_by_tree(&self) -> BTreeMap<u32, u64> {
        let mut waiters = BTreeMap::new();
        for (key, lane) in &self.lanes {
            let mut trees: Vec<_> = key.places.iter().map(|place| place.0).collect();
            trees.dedup();
            for tree in trees {
                *waiters.entry(tree).or_default() += lane.len() as u64;
            }
        }
        waiters
    }

    /// What other regions may use of each tree, and what of that was lent again.
    fn lent_by_tree(&self) -> BTreeMap<u32, (u64, u64)> {
        let mut lent: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for share in self.shares.values() {
            let (amount, twice) = lent.entry(share.place.0).or_default();
            *amount += share.amount;
            *twice += share.amount - share.kept();
        }
        lent
    }
}
