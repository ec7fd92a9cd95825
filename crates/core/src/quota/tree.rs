//! One quota's tree. Every change of use goes through [`Tree::post`], so the sums can not drift from their parts.
//!
//! `claim(n) = direct use of n + Σ children max(claim(c), effective guarantee of c)`: what `n` takes of its parent,
//! and what its own limit has to hold.

use super::account::Account;
use crate::{
    command::NodeLimits,
    ids::{ClusterTime, Revision},
    names::{Owner, QuotaName, QuotaPath},
    outcome::{Drift, Layer},
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, HashMap};

/// One node. Sums are of the node and all below it, `direct_` ones of the node alone.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) path: QuotaPath,
    pub(crate) parent: Option<u32>,
    /// By their last segment.
    pub(crate) children: BTreeMap<String, u32>,
    pub(crate) limits: NodeLimits,
    pub(crate) version: u64,
    pub(crate) updated_at: ClusterTime,
    pub(crate) updated_in: Revision,
    pub(crate) committed: u64,
    pub(crate) reserved: u64,
    pub(crate) direct_committed: u64,
    pub(crate) direct_reserved: u64,
    pub(crate) claim: u64,
    /// What of `guaranteed` counts: less of it after a cut above.
    pub(crate) effective: u64,
    /// Sum of the children's `guaranteed`, and of what counts of it.
    pub(crate) promised: u64,
    pub(crate) promised_effective: u64,
    /// Reserved by each owner. Never iterated.
    pub(crate) owners: HashMap<Owner, u64>,
    /// Direct committed use, by owner.
    pub(crate) accounts: BTreeMap<Owner, Account>,
    /// The last reserve of this very node that did not pass.
    pub(crate) refusal: Option<Box<LastRefusal>>,
    /// The last report of each who counts its use.
    pub(crate) reports: BTreeMap<Owner, Report>,
}

/// Why a reserve did not pass.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct LastRefusal {
    pub(crate) at: ClusterTime,
    pub(crate) revision: Revision,
    pub(crate) owner: Owner,
    pub(crate) amount: u64,
    pub(crate) layers: Vec<Layer>,
}

/// A count of real use.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Report {
    pub(crate) epoch: u64,
    pub(crate) read_at: ClusterTime,
    pub(crate) drift: Drift,
    /// The drift of the report before it; 0: none of the same sign.
    pub(crate) drift_before: i64,
    /// It has been compensated.
    pub(crate) is_compensated: bool,
}

impl Node {
    /// One that may use nothing.
    pub(crate) fn new(path: QuotaPath, parent: Option<u32>, now: ClusterTime) -> Self {
        Self {
            path,
            parent,
            children: BTreeMap::new(),
            limits: NodeLimits::of(0),
            version: 0,
            updated_at: now,
            updated_in: Revision(0),
            committed: 0,
            reserved: 0,
            direct_committed: 0,
            direct_reserved: 0,
            claim: 0,
            effective: 0,
            promised: 0,
            promised_effective: 0,
            owners: HashMap::new(),
            accounts: BTreeMap::new(),
            refusal: None,
            reports: BTreeMap::new(),
        }
    }

    /// The most that may be used.
    pub(crate) fn cap(&self) -> u64 {
        self.limits.limit + self.limits.burst
    }

    /// What its parent counts it for.
    pub(crate) fn counted(&self) -> u64 {
        self.claim.max(self.effective)
    }

    /// Its own use without what is below it.
    pub(crate) fn direct(&self) -> u64 {
        self.direct_committed + self.direct_reserved
    }

    /// Claims above the cap: left by a cut of limits, or by what turned out to be used.
    pub(crate) fn debt(&self) -> u64 {
        self.claim.saturating_sub(self.cap())
    }

    /// Nothing is used, reserved or kept for anybody.
    pub(crate) fn is_unused(&self) -> bool {
        self.committed == 0 && self.reserved == 0 && self.accounts.is_empty()
    }
}

/// A change of use at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) committed: i64,
    pub(crate) reserved: i64,
}

/// A tree of nodes, by number. A number is used again after its node was removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// What it counts. `None` only in tests of the arithmetic.
    pub(crate) name: Option<QuotaName>,
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) vacant: Vec<u32>,
    /// By path.
    pub(crate) index: BTreeMap<QuotaPath, u32>,
}

impl Tree {
    pub(crate) fn node(&self, id: u32) -> &Node {
        self.nodes[id as usize].as_ref().expect("a node that is named is there")
    }

    pub(crate) fn node_mut(&mut self, id: u32) -> &mut Node {
        self.nodes[id as usize].as_mut().expect("a node that is named is there")
    }

    /// The node at a path.
    pub(crate) fn find(&self, path: &QuotaPath) -> Option<u32> {
        self.index.get(path).copied()
    }

    /// The path's layers that are there, from the root on.
    pub(crate) fn known_layers(&self, path: &QuotaPath) -> usize {
        (0..=path.depth()).take_while(|&depth| self.find(&path.ancestor(depth)).is_some()).count()
    }

    /// The node and all above it, root first.
    pub(crate) fn chain(&self, id: u32) -> Vec<u32> {
        let mut chain = Vec::with_capacity(4);
        let mut next = Some(id);
        while let Some(id) = next {
            chain.push(id);
            next = self.node(id).parent;
        }
        chain.reverse();
        chain
    }

    /// Puts a node without use at a path whose parent is there.
    pub(crate) fn insert(&mut self, node: Node) -> u32 {
        let path = node.path.clone();
        let id = match self.vacant.pop() {
            Some(id) => {
                self.nodes[id as usize] = Some(node);
                id
            }
            None => {
                self.nodes.push(Some(node));
                u32::try_from(self.nodes.len() - 1).expect("trees are small")
            }
        };
        self.link(id, &path);
        id
    }

    /// Makes a node known to its parent and to those who look for its path.
    pub(crate) fn link(&mut self, id: u32, path: &QuotaPath) {
        assert!(self.index.insert(path.clone(), id).is_none(), "a path has one node");
        let parent = self.node(id).parent;
        assert!(parent.is_none() == path.as_str().is_empty(), "the root alone has no parent");
        if let Some(parent) = parent {
            let name = path.segments().last().expect("below the root there is a name").to_string();
            self.node_mut(parent).children.insert(name, id);
        }
    }

    /// Takes out a node that is unused and has no children.
    pub(crate) fn remove(&mut self, id: u32) {
        let node = self.nodes[id as usize].take().expect("a node that is removed is there");
        assert!(node.is_unused() && node.children.is_empty(), "only what is unused is removed");
        self.index.remove(&node.path).expect("every node is found by its path");
        self.vacant.push(id);
        if let Some(parent) = node.parent {
            let name = node.path.segments().last().expect("below the root there is a name");
            self.node_mut(parent).children.remove(name).expect("every child is known");
        }
    }

    /// Changes the direct use of a node, and with it all sums above. `layer` is called for each layer, from the node
    /// up, after its change.
    pub(crate) fn post(&mut self, id: u32, posting: Posting, mut layer: impl FnMut(u32, &Node)) {
        let node = self.node_mut(id);
        node.direct_committed = changed(node.direct_committed, posting.committed);
        node.direct_reserved = changed(node.direct_reserved, posting.reserved);
        let mut delta = posting.committed + posting.reserved;
        let mut next = Some(id);
        while let Some(id) = next {
            let node = self.node_mut(id);
            node.committed = changed(node.committed, posting.committed);
            node.reserved = changed(node.reserved, posting.reserved);
            delta = shift_claim(node, delta);
            layer(id, node);
            next = node.parent;
        }
    }

    /// Counts what an owner has reserved, at a node and all above it.
    pub(crate) fn post_owner(&mut self, id: u32, owner: &Owner, reserved: i64) {
        let mut next = Some(id);
        while let Some(id) = next.filter(|_| reserved != 0) {
            let node = self.node_mut(id);
            match node.owners.get_mut(owner) {
                Some(count) => {
                    *count = changed(*count, reserved);
                    if *count == 0 {
                        node.owners.remove(owner);
                    }
                }
                None => {
                    node.owners.insert(owner.clone(), changed(0, reserved));
                }
            }
            next = node.parent;
        }
    }

    /// Carries a change of a node's claim up to the root.
    pub(crate) fn raise_claims(&mut self, id: Option<u32>, mut delta: i64) {
        let mut next = id;
        while let Some(id) = next.filter(|_| delta != 0) {
            let node = self.node_mut(id);
            delta = shift_claim(node, delta);
            next = node.parent;
        }
    }

    /// The largest amount that passes at a node, by the limits alone; the same for each layer above it, root first.
    /// 0 where a layer is in debt.
    pub(crate) fn available(&self, id: u32) -> Vec<u64> {
        let mut chain = self.chain(id);
        let mut passes = vec![0; chain.len()];
        let mut above = u64::MAX;
        for (index, id) in chain.drain(..).enumerate() {
            let node = self.node(id);
            let Some(room) = node.cap().checked_sub(node.claim) else { break };
            let kept_for_it = node.effective.saturating_sub(node.claim);
            above = room.min(above.saturating_add(kept_for_it));
            passes[index] = above;
        }
        passes
    }
}

/// Changes a claim, and gives by how much that changes the parent's.
fn shift_claim(node: &mut Node, delta: i64) -> i64 {
    let before = node.counted();
    node.claim = changed(node.claim, delta);
    difference(node.counted(), before)
}

/// A counter after a change. None is ever negative (S9).
pub(crate) fn changed(counter: u64, by: i64) -> u64 {
    counter.checked_add_signed(by).expect("no counter is ever negative (S9)")
}

/// What has to be added to `before` to give `after`.
pub(crate) fn difference(after: u64, before: u64) -> i64 {
    signed(after) - signed(before)
}

/// An amount as a change.
pub(crate) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).expect("amounts are far below 2^63")
}
