//! The books, naively: who has what at which node, and what the formulas make of it.

use sereno_core::{
    command::{NodeLimits, NodeRef, OnExpiry},
    names::QuotaPath,
};
use std::collections::BTreeMap;

/// Amounts by node.
pub(super) type Amounts = BTreeMap<NodeRef, u64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Waiting,
    Reserved,
    InFlight,
    Quarantined,
}

#[derive(Clone, Debug)]
pub(super) struct Reservation {
    /// Numbers rise in the order of requests.
    pub(super) number: u64,
    pub(super) owner: String,
    pub(super) items: Amounts,
    pub(super) phase: Phase,
    pub(super) on_expiry: OnExpiry,
    pub(super) priority: u8,
    pub(super) ttl_ms: u64,
    pub(super) lifetime_ms: u64,
    pub(super) created_at: u64,
    pub(super) deadline: u64,
    pub(super) end_of_life: u64,
}

impl Reservation {
    pub(super) fn is_holding(&self) -> bool {
        self.phase != Phase::Waiting
    }

    pub(super) fn is_due(&self, now: u64) -> bool {
        self.phase != Phase::Quarantined && self.deadline <= now
    }
}

/// What one commit has left at one node.
#[derive(Clone, Debug)]
pub(super) struct Lot {
    /// Commits in the order in which they are made.
    pub(super) commit: usize,
    pub(super) node: NodeRef,
    pub(super) owner: String,
    pub(super) left: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    pub(super) now: u64,
    pub(super) limits: BTreeMap<NodeRef, (NodeLimits, u64)>,
    pub(super) reservations: Vec<Reservation>,
    pub(super) lots: Vec<Lot>,
}

pub(super) fn parent(node: &NodeRef) -> Option<NodeRef> {
    let depth = node.path.depth();
    (depth > 0).then(|| NodeRef { path: node.path.ancestor(depth - 1), ..node.clone() })
}

/// The node and all above it, root first.
pub(super) fn chain(node: &NodeRef) -> Vec<NodeRef> {
    let at = |depth| NodeRef { path: node.path.ancestor(depth), ..node.clone() };
    (0..=node.path.depth()).map(at).collect()
}

fn is_within(node: &NodeRef, of: &NodeRef) -> bool {
    node.quota == of.quota && node.path.ancestor(of.path.depth()) == of.path
}

impl Books {
    pub(super) fn cap(&self, node: &NodeRef) -> u64 {
        self.limits.get(node).map_or(0, |(limits, _)| limits.limit + limits.burst)
    }

    fn children<'a>(&'a self, of: &'a NodeRef) -> impl Iterator<Item = &'a NodeRef> {
        self.limits.keys().filter(move |node| parent(node).as_ref() == Some(of))
    }

    /// What the node passes on: its limit if it is a root, else what counts of its own guarantee.
    fn base(&self, node: &NodeRef) -> u64 {
        match parent(node) {
            None => self.limits[node].0.limit,
            Some(_) => self.effective(node),
        }
    }

    pub(super) fn promised(&self, node: &NodeRef) -> u64 {
        self.children(node).map(|child| self.limits[child].0.guaranteed).sum()
    }

    pub(super) fn effective(&self, node: &NodeRef) -> u64 {
        let Some(above) = parent(node) else { return 0 };
        let guaranteed = self.limits[node].0.guaranteed;
        let (promised, base) = (self.promised(&above), self.base(&above));
        if promised <= base { guaranteed } else { guaranteed * base / promised }
    }

    pub(super) fn reserved(&self, at: impl Fn(&NodeRef) -> bool, owner: Option<&str>) -> u64 {
        let of = self.reservations.iter().filter(|of| of.is_holding());
        let of = of.filter(|of| owner.is_none_or(|owner| of.owner == owner));
        of.flat_map(|of| &of.items).filter(|(node, _)| at(node)).map(|(_, amount)| amount).sum()
    }

    pub(super) fn committed(&self, at: impl Fn(&NodeRef) -> bool) -> u64 {
        self.lots.iter().filter(|lot| at(&lot.node)).map(|lot| lot.left).sum()
    }

    pub(super) fn direct(&self, node: &NodeRef) -> u64 {
        self.committed(|at| at == node) + self.reserved(|at| at == node, None)
    }

    /// With all below.
    pub(super) fn used(&self, node: &NodeRef) -> (u64, u64) {
        let within = |at: &NodeRef| is_within(at, node);
        (self.committed(within), self.reserved(within, None))
    }

    pub(super) fn owner_reserved(&self, node: &NodeRef, owner: &str) -> u64 {
        self.reserved(|at| is_within(at, node), Some(owner))
    }

    /// The formula, with an ask counted in.
    pub(super) fn claim(&self, node: &NodeRef, ask: &Amounts) -> u64 {
        let counted = |child: &NodeRef| self.claim(child, ask).max(self.effective(child));
        let below: u64 = self.children(node).map(counted).sum();
        self.direct(node) + ask.get(node).copied().unwrap_or(0) + below
    }

    /// Every layer of an ask, each once.
    pub(super) fn layers(ask: &Amounts) -> Vec<NodeRef> {
        let mut layers: Vec<NodeRef> = ask.keys().flat_map(chain).collect();
        layers.sort();
        layers.dedup();
        layers
    }

    pub(super) fn raises(&self, node: &NodeRef, ask: &Amounts) -> bool {
        self.claim(node, ask) > self.claim(node, &Amounts::new())
    }

    /// The layers that do not hold an ask, with what is kept for others.
    pub(super) fn short(&self, ask: &Amounts, kept: &Amounts) -> Vec<NodeRef> {
        let is_short = |node: &NodeRef| {
            let (claim, cap) = (self.claim(node, ask), self.cap(node));
            let kept = kept.get(node).copied().unwrap_or(0);
            claim > cap || (self.raises(node, ask) && claim + kept > cap)
        };
        let mut layers = Self::layers(ask);
        layers.retain(is_short);
        layers
    }

    pub(super) fn is_owner_full(&self, ask: &Amounts, owner: &str) -> bool {
        Self::layers(ask).iter().any(|node| {
            let asked: u64 =
                ask.iter().filter(|(at, _)| is_within(at, node)).map(|(_, amount)| amount).sum();
            let max = self.limits[node].0.owner_reserved_max;
            max.is_some_and(|max| self.owner_reserved(node, owner) + asked > max)
        })
    }

    /// The largest amount that passes, found by trying.
    pub(super) fn available(&self, node: &NodeRef) -> u64 {
        let passes = |amount: &u64| {
            let ask = Amounts::from([(node.clone(), *amount)]);
            self.short(&ask, &Amounts::new()).is_empty()
        };
        (1..=self.cap(node)).take_while(passes).last().unwrap_or(0)
    }

    /// Nothing used at all.
    pub(super) fn idle(&self) -> Self {
        Self { now: self.now, limits: self.limits.clone(), ..Self::default() }
    }

    pub(super) fn patience_ms(&self, ask: &Amounts) -> u64 {
        let of = |node: &NodeRef| {
            let root = NodeRef { path: QuotaPath::root(), ..node.clone() };
            self.limits[&root].0.patience_ms.unwrap_or(30_000)
        };
        ask.keys().map(of).min().expect("an ask names a node")
    }
}
