//! The books as a naive reader keeps them: rules and direct use of each node, and every sum worked out anew from
//! those. What the ledger's lines say is compared with it, before and after.

use sereno_core::{
    command::{NodeLimits, NodeRef},
    event::{LayerChange, LedgerLine},
    names::QuotaPath,
};
use std::collections::BTreeMap;

/// Use of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) committed: u64,
    pub(super) reserved: u64,
}

/// What a change does to the direct use of nodes: committed and reserved.
pub(super) type Moves = BTreeMap<NodeRef, (i64, i64)>;

/// Counts one more change of a node.
pub(super) fn count(moves: &mut Moves, node: &NodeRef, committed: i64, reserved: i64) {
    let entry = moves.entry(node.clone()).or_default();
    *entry = (entry.0 + committed, entry.1 + reserved);
    if *entry == (0, 0) {
        moves.remove(node);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    /// Rules and their version.
    pub(super) nodes: BTreeMap<NodeRef, (NodeLimits, u64)>,
    direct: BTreeMap<NodeRef, Use>,
}

fn is_at_or_below(node: &NodeRef, above: &NodeRef) -> bool {
    let (path, top) = (node.path.as_str(), above.path.as_str());
    let rest = path.strip_prefix(top);
    let is_under =
        rest.is_some_and(|rest| top.is_empty() || rest.is_empty() || rest.starts_with('/'));
    node.quota == above.quota && is_under
}

/// The node and all above it, root first.
pub(super) fn layers(node: &NodeRef) -> Vec<NodeRef> {
    let at = |depth| NodeRef { quota: node.quota.clone(), path: node.path.ancestor(depth) };
    (0..=node.path.depth()).map(at).collect()
}

fn parent(node: &NodeRef) -> Option<NodeRef> {
    let depth = node.path.depth().checked_sub(1)?;
    let path: QuotaPath = node.path.ancestor(depth);
    Some(NodeRef { quota: node.quota.clone(), path })
}

impl Books {
    fn direct(&self, node: &NodeRef) -> Use {
        self.direct.get(node).copied().unwrap_or_default()
    }

    /// Of the node and all below it.
    pub(super) fn sum(&self, above: &NodeRef) -> Use {
        let mut sum = Use::default();
        for (_, of) in self.direct.iter().filter(|(node, _)| is_at_or_below(node, above)) {
            sum.committed += of.committed;
            sum.reserved += of.reserved;
        }
        sum
    }

    fn limits(&self, node: &NodeRef) -> &NodeLimits {
        &self.nodes.get(node).unwrap_or_else(|| panic!("S9: {node:?} has rules")).0
    }

    /// What the node may use.
    pub(super) fn cap(&self, node: &NodeRef) -> u64 {
        self.limits(node).limit + self.limits(node).burst
    }

    fn children<'a>(&'a self, node: &'a NodeRef) -> impl Iterator<Item = &'a NodeRef> {
        self.nodes.keys().filter(move |one| parent(one).as_ref() == Some(node))
    }

    /// What counts of a node's guarantee: less of it after a cut above.
    pub(super) fn effective(&self, node: &NodeRef) -> u64 {
        let Some(above) = parent(node) else { return 0 };
        let promised: u64 = self.children(&above).map(|one| self.limits(one).guaranteed).sum();
        let base = match parent(&above) {
            None => self.limits(&above).limit,
            Some(_) => self.effective(&above),
        };
        let own = self.limits(node).guaranteed;
        if promised <= base { own } else { own * base / promised }
    }

    /// What the node takes of its parent: `direct + Σ children max(claim, guarantee)`.
    pub(super) fn claim(&self, node: &NodeRef) -> u64 {
        let direct = self.direct(node);
        let counted = |child: &NodeRef| self.claim(child).max(self.effective(child));
        direct.committed + direct.reserved + self.children(node).map(counted).sum::<u64>()
    }

    /// By how much each node is above what it may use.
    pub(super) fn excess(&self) -> BTreeMap<NodeRef, u64> {
        let over = |node: &NodeRef| {
            let over = self.claim(node).checked_sub(self.cap(node)).filter(|&over| over > 0)?;
            Some((node.clone(), over))
        };
        self.nodes.keys().filter_map(over).collect()
    }

    /// A node that goes has nothing.
    pub(super) fn remove(&mut self, node: &NodeRef) {
        let sum = self.sum(node);
        assert!(
            sum == Use::default(),
            "S9: a node that is removed is unused: {node:?} has {sum:?}"
        );
        assert!(self.children(node).next().is_none(), "S9: and has nothing below it: {node:?}");
        self.nodes.remove(node).expect("S9: what is removed was there");
    }

    /// Enters a line of the ledger. What it says of every layer, before and after, has to be so.
    pub(super) fn enter(&mut self, line: &LedgerLine, moves: &mut Moves) {
        let all = layers(&line.node);
        assert!(line.layers.len() == all.len(), "the ledger names every layer: {line:?}");
        self.compare(line, &all, |layer| (layer.committed.0, layer.reserved.0), "before");
        let last = line.layers.last().expect("a node is a layer of itself");
        let difference = |(before, after): (u64, u64)| after as i64 - before as i64;
        let (committed, reserved) = (difference(last.committed), difference(last.reserved));
        let direct = self.direct.entry(line.node.clone()).or_default();
        let changed = |before: u64, by: i64| {
            let after = before.checked_add_signed(by);
            after.unwrap_or_else(|| {
                panic!("S9: no counter is negative: {before} {by:+} at {line:?}")
            })
        };
        direct.committed = changed(direct.committed, committed);
        direct.reserved = changed(direct.reserved, reserved);
        self.compare(line, &all, |layer| (layer.committed.1, layer.reserved.1), "after");
        count(moves, &line.node, committed, reserved);
    }

    fn compare(
        &self,
        line: &LedgerLine,
        layers: &[NodeRef],
        of: impl Fn(&LayerChange) -> (u64, u64),
        when: &str,
    ) {
        for (node, layer) in layers.iter().zip(&line.layers) {
            let sum = self.sum(node);
            assert!(
                of(layer) == (sum.committed, sum.reserved),
                "S9: sums are sums: {when} a change of {:?} the ledger has {:?} at {:?}, and it is {sum:?}",
                line.node.path,
                of(layer),
                node.path
            );
        }
    }
}
