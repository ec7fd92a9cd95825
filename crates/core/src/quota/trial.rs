//! A trial: what claims would be with an ask counted in, without changing anything. And what is kept for those who
//! wait in front.

use super::{
    Place,
    tree::{Node, Tree},
};
use crate::planted::{self, Planted};
use std::collections::BTreeMap;

/// An amount at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) place: Place,
    pub(crate) amount: u64,
}

/// One layer of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrialRow {
    pub(crate) place: Place,
    /// Summed over all items at or below the node.
    pub(crate) asked: u64,
    pub(crate) claim_before: u64,
    pub(crate) claim_after: u64,
}

impl TrialRow {
    /// The ask takes something of this node that nobody has kept for it.
    pub(crate) fn raises(&self) -> bool {
        self.claim_after > self.claim_before
    }
}

/// Every layer of an ask, each node once; of each tree the root first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial {
    pub(crate) rows: Vec<TrialRow>,
}

impl Trial {
    /// With the use of now.
    pub(crate) fn of(trees: &[Tree], asks: &[Asked]) -> Self {
        Self::on(trees, asks, |node| match planted::has(Planted::GuaranteeIgnored) {
            true => node.committed + node.reserved,
            false => node.claim,
        })
    }

    /// As if nobody used anything.
    pub(crate) fn when_idle(trees: &[Tree], asks: &[Asked]) -> Self {
        Self::on(trees, asks, |node| node.promised_effective)
    }

    fn on(trees: &[Tree], asks: &[Asked], claim: impl Fn(&Node) -> u64) -> Self {
        let mut trial = Self { rows: Vec::with_capacity(asks.len() * 4) };
        for ask in asks {
            trial.count(trees, ask, &claim);
        }
        trial
    }

    fn count(&mut self, trees: &[Tree], ask: &Asked, claim: &impl Fn(&Node) -> u64) {
        let (tree, at) = ask.place;
        let tree_of = &trees[tree as usize];
        let begin = self.rows.len();
        let (mut next, mut delta) = (Some(at), ask.amount);
        while let Some(id) = next {
            let node = tree_of.node(id);
            let index = self.rows[..begin].iter().position(|row| row.place == (tree, id));
            let index = index.unwrap_or_else(|| {
                let now = claim(node);
                let (claim_before, claim_after) = (now, now);
                self.rows.push(TrialRow { place: (tree, id), asked: 0, claim_before, claim_after });
                self.rows.len() - 1
            });
            let row = &mut self.rows[index];
            let counted = row.claim_after.max(node.effective);
            row.asked += ask.amount;
            row.claim_after += delta;
            delta = row.claim_after.max(node.effective) - counted;
            next = node.parent;
        }
        self.rows[begin..].reverse();
    }

    /// The layers that do not hold the ask, with what is kept for others counted in.
    pub(crate) fn short<'a>(
        &'a self,
        trees: &'a [Tree],
        kept: &'a Kept,
    ) -> impl Iterator<Item = &'a TrialRow> {
        self.rows.iter().filter(|row| {
            let cap = trees[row.place.0 as usize].node(row.place.1).cap();
            row.claim_after > cap || (row.raises() && row.claim_after + kept.at(row.place) > cap)
        })
    }

    /// Whether the ask passes.
    pub(crate) fn passes(&self, trees: &[Tree], kept: &Kept) -> bool {
        self.short(trees, kept).next().is_none()
    }
}

/// What is kept at nodes for those who wait in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(BTreeMap<Place, u64>);

impl Kept {
    pub(crate) fn at(&self, place: Place) -> u64 {
        self.0.get(&place).copied().unwrap_or(0)
    }

    /// All that is free at a node is kept.
    pub(crate) fn all(&mut self, trees: &[Tree], place: Place) {
        let node = trees[place.0 as usize].node(place.1);
        let free = node.cap().saturating_sub(node.claim);
        let kept = self.0.entry(place).or_default();
        *kept = free.max(*kept);
    }

    /// So much is kept at every layer as this ask can take of it: what a node cannot hold, it does not ask of its
    /// parent either.
    pub(crate) fn ask(&mut self, trees: &[Tree], ask: &Asked) {
        let (tree, at) = ask.place;
        let (mut next, mut delta) = (Some(at), ask.amount);
        while let Some(id) = next.filter(|_| delta > 0) {
            let node = trees[tree as usize].node(id);
            let kept = self.0.entry((tree, id)).or_default();
            let free = node.cap().saturating_sub(node.claim + *kept);
            let counted = (node.claim + *kept).max(node.effective);
            *kept += delta.min(free);
            delta = (node.claim + *kept).max(node.effective) - counted;
            next = node.parent;
        }
    }
}

/// What several asks want together of each node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted(BTreeMap<Place, u64>);

impl Wanted {
    /// One more of them.
    pub(crate) fn add(&mut self, trees: &[Tree], ask: &Asked) {
        let (tree, at) = ask.place;
        let (mut next, mut delta) = (Some(at), ask.amount);
        while let Some(id) = next.filter(|_| delta > 0) {
            let node = trees[tree as usize].node(id);
            let wanted = self.0.entry((tree, id)).or_default();
            let counted = node.claim.saturating_add(*wanted).max(node.effective);
            // Thousands may want more than there are numbers; it is too much all the same.
            *wanted = wanted.saturating_add(delta);
            delta = node.claim.saturating_add(*wanted).max(node.effective) - counted;
            next = node.parent;
        }
    }

    /// The node does not hold them all.
    pub(crate) fn is_contended(&self, trees: &[Tree], place: Place) -> bool {
        let node = trees[place.0 as usize].node(place.1);
        node.claim.saturating_add(self.0.get(&place).copied().unwrap_or(0)) > node.cap()
    }
}
