//! Why an ask does not pass: every exhausted layer, with figures.

use super::{Space, State};
use crate::{
    command::{Item, NodeRef},
    names::Owner,
    outcome::{Code, Detail, Exhausted, Layer, Refusal, Shortage},
    planted::{self, Planted},
    quota::{Asked, Kept, LastRefusal, Trial, TrialRow},
};

/// When another try makes sense, where nothing better is known.
const RETRY_AFTER_MS: u64 = 1_000;

impl State {
    pub(super) fn exhausted(&self, layers: Vec<Layer>) -> Refusal {
        let is_known = layers.iter().all(|layer| layer.kind != Shortage::Unknown);
        let sweep_pending = self.is_sweep_pending();
        let detail = Detail::Exhausted(Exhausted { layers, sweep_pending });
        let refusal = Refusal::new(Code::QuotaExhausted).with(detail);
        Refusal { retry_after_ms: is_known.then_some(RETRY_AFTER_MS), ..refusal }
    }

    /// Counters fall when objects are swept: while any is due, they may be about to.
    pub(super) fn is_sweep_pending(&self) -> bool {
        self.deadlines.first().is_some_and(|&(deadline, _)| deadline <= self.time)
    }

    /// Keeps why these nodes were last refused.
    pub(super) fn note_quota_refusal(
        &mut self,
        namespace: u32,
        owner: &Owner,
        asks: &[Asked],
        layers: &[Layer],
    ) {
        let (at, revision) = (self.time, self.revision);
        for ask in asks {
            let (owner, layers) = (owner.clone(), layers.to_vec());
            let last = LastRefusal { at, revision, owner, amount: ask.amount, layers };
            self.space_mut(namespace).node_mut(ask.place).refusal = Some(Box::new(last));
        }
    }
}

impl Space {
    /// The layers that are exhausted, those of an owner's bound last.
    pub(super) fn short_layers(
        &self,
        trial: &Trial,
        kept: &Kept,
        owner_layers: Vec<Layer>,
    ) -> Vec<Layer> {
        let short = trial.short(&self.trees, kept).map(|row| self.short_layer(row, kept));
        short.chain(owner_layers).collect()
    }

    fn short_layer(&self, row: &TrialRow, kept: &Kept) -> Layer {
        let node = self.node(row.place);
        let cap = node.cap();
        let used = node.committed + node.reserved;
        let kind = if used + row.asked > cap {
            if node.limits.burst > 0 { Shortage::Burst } else { Shortage::Limit }
        } else if row.claim_after > cap {
            Shortage::Guarantee
        } else {
            Shortage::Waiting
        };
        let kept = if row.raises() { kept.at(row.place) } else { 0 };
        let shortfall = (row.claim_after + kept).saturating_sub(cap);
        Layer {
            node: self.name(row.place),
            limit: node.limits.limit,
            burst: node.limits.burst,
            committed: node.committed,
            reserved: node.reserved,
            available: row.asked.saturating_sub(shortfall),
            asked: row.asked,
            shortfall,
            version: node.version,
            kind,
        }
    }

    /// The layers at which this owner may not reserve so much.
    pub(super) fn owner_layers(&self, trial: &Trial, owner: &Owner) -> Vec<Layer> {
        trial.rows.iter().filter_map(|row| self.owner_layer(row, owner)).collect()
    }

    fn owner_layer(&self, row: &TrialRow, owner: &Owner) -> Option<Layer> {
        let node = self.node(row.place);
        let max = node.limits.owner_reserved_max;
        let limit = max.filter(|_| !planted::has(Planted::OwnerBoundIgnored))?;
        let reserved = node.owners.get(owner).copied().unwrap_or(0);
        let shortfall = (reserved + row.asked).saturating_sub(limit);
        (shortfall > 0).then(|| Layer {
            node: self.name(row.place),
            limit,
            burst: 0,
            committed: 0,
            reserved,
            available: row.asked.saturating_sub(shortfall),
            asked: row.asked,
            shortfall,
            version: node.version,
            kind: Shortage::OwnerMax,
        })
    }

    /// The layers of an ask that have no limit, each once.
    pub(super) fn unknown_layers(&self, item: &Item, layers: &mut Vec<Layer>) {
        let NodeRef { quota, path } = &item.node;
        let known = self.index.get(quota);
        let known = known.map_or(0, |&tree| self.trees[tree as usize].known_layers(path));
        for depth in known..=path.depth() {
            let node = NodeRef { quota: quota.clone(), path: path.ancestor(depth) };
            if let Some(layer) = layers.iter_mut().find(|layer| layer.node == node) {
                layer.asked += item.amount;
                layer.shortfall += item.amount;
                continue;
            }
            layers.push(Layer {
                node,
                limit: 0,
                burst: 0,
                committed: 0,
                reserved: 0,
                available: 0,
                asked: item.amount,
                shortfall: item.amount,
                version: 0,
                kind: Shortage::Unknown,
            });
        }
    }
}
