//! Who goes next, naively: all who wait are sorted anew for every grant.

use super::books::{Amounts, Books, Phase, Reservation, chain, parent};
use sereno_core::command::NodeRef;
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

/// Where an ask stands: whether it takes something of a contended node, and whose share counts.
#[derive(Clone, Debug)]
struct Standing {
    takes: bool,
    used: u64,
    weight: u64,
    tenant: Option<NodeRef>,
}

impl Standing {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.used * other.weight).cmp(&(other.used * self.weight))
    }
}

type Lane = (Vec<NodeRef>, u64);

fn lane_of(of: &Reservation) -> Lane {
    let nodes: Vec<_> = of.items.keys().cloned().collect();
    let alone = if nodes.len() > 1 { of.number } else { 0 };
    (nodes, alone)
}

impl Books {
    fn waited_too_long(&self, of: &Reservation) -> bool {
        of.created_at + self.patience_ms(&of.items) < self.now
    }

    /// Lanes, each in its own order, without those who cannot be granted whatever is free.
    fn lanes(&self) -> BTreeMap<Lane, Vec<&Reservation>> {
        let mut lanes: BTreeMap<Lane, Vec<&Reservation>> = BTreeMap::new();
        for of in self.reservations.iter().filter(|of| of.phase == Phase::Waiting) {
            if of.deadline > self.now && !self.is_owner_full(&of.items, &of.owner) {
                lanes.entry(lane_of(of)).or_default().push(of);
            }
        }
        for lane in lanes.values_mut() {
            lane.sort_by_key(|of| match self.waited_too_long(of) {
                true => (0, Reverse(0), of.number),
                false => (1, Reverse(of.priority), of.number),
            });
        }
        lanes
    }

    /// The first of each lane, in order.
    fn heads(&self) -> Vec<&Reservation> {
        let mut heads: Vec<_> = self.lanes().values().map(|lane| lane[0]).collect();
        let mut all = Amounts::new();
        for (node, amount) in heads.iter().flat_map(|of| &of.items) {
            *all.entry(node.clone()).or_default() += amount;
        }
        let is_contended = |node: &&NodeRef| self.claim(node, &all) > self.cap(node);
        let contended: Vec<_> = self.limits.keys().filter(is_contended).cloned().collect();
        let standings: BTreeMap<u64, Standing> =
            heads.iter().map(|of| (of.number, self.standing(of, &contended))).collect();
        let best = |of: &Reservation| {
            let tenant = &standings[&of.number].tenant;
            let peers = heads.iter().filter(|peer| standings[&peer.number].tenant == *tenant);
            let best = peers.map(|of| (Reverse(of.priority), of.number)).min();
            if tenant.is_none() { of.number } else { best.expect("itself").1 }
        };
        let bests: BTreeMap<u64, u64> = heads.iter().map(|of| (of.number, best(of))).collect();
        let rank = |of: &Reservation| (bests[&of.number], Reverse(of.priority), of.number);
        let class = |of: &Reservation| match (standings[&of.number].takes, self.waited_too_long(of))
        {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        heads.sort_by(|one, two| match (class(one), class(two)) {
            (0, 0) => rank(one).cmp(&rank(two)),
            (1, 1) => one.number.cmp(&two.number),
            (2, 2) => {
                let share = standings[&one.number].cmp(&standings[&two.number]);
                share.then_with(|| rank(one).cmp(&rank(two)))
            }
            (one, two) => one.cmp(&two),
        });
        heads
    }

    fn standing(&self, of: &Reservation, contended: &[NodeRef]) -> Standing {
        let layers = Self::layers(&of.items);
        let mut found = Vec::new();
        for node in layers.iter().filter(|node| contended.contains(node)) {
            let takes = self.raises(node, &of.items);
            let below: Vec<_> =
                layers.iter().filter(|child| parent(child).as_ref() == Some(node)).collect();
            for child in &below {
                let (committed, reserved) = self.used(child);
                let (used, weight) = (committed + reserved, self.limits[child].0.weight);
                found.push(Standing { takes, used, weight, tenant: Some((*child).clone()) });
            }
            if below.is_empty() {
                let (used, tenant) = (self.direct(node), Some(node.clone()));
                found.push(Standing { takes, used, weight: 1, tenant });
            }
        }
        let none = Standing { takes: false, used: 0, weight: 1, tenant: None };
        let takers = found.iter().filter(|one| one.takes);
        let largest =
            takers.max_by(|one, two| one.cmp(two).then_with(|| two.tenant.cmp(&one.tenant)));
        let first = found.iter().min_by(|one, two| one.tenant.cmp(&two.tenant));
        largest.or(first).cloned().unwrap_or(none)
    }

    fn keep_all(&self, node: &NodeRef, kept: &mut Amounts) {
        let free = self.cap(node).saturating_sub(self.claim(node, &Amounts::new()));
        let kept = kept.entry(node.clone()).or_default();
        *kept = free.max(*kept);
    }

    fn keep_ask(&self, ask: &Amounts, kept: &mut Amounts) {
        for (node, &amount) in ask {
            let mut wanted = amount;
            for node in chain(node).into_iter().rev() {
                if wanted == 0 {
                    break;
                }
                let (claim, effective) =
                    (self.claim(&node, &Amounts::new()), self.effective(&node));
                let cap = self.cap(&node);
                let own = kept.entry(node).or_default();
                let before = (claim + *own).max(effective);
                *own += wanted.min(cap.saturating_sub(claim + *own));
                wanted = (claim + *own).max(effective) - before;
            }
        }
    }

    /// The first who can be granted.
    pub(super) fn next_waiting(&self) -> Option<u64> {
        let mut kept = Amounts::new();
        let lanes = self.lanes();
        for head in self.heads() {
            let short = self.short(&head.items, &kept);
            if short.is_empty() {
                return Some(head.number);
            }
            if self.waited_too_long(head) {
                self.keep_ask(&head.items, &mut kept);
            }
            short.iter().for_each(|node| self.keep_all(node, &mut kept));
            let behind = lanes[&lane_of(head)].iter().filter(|of| of.number != head.number);
            let passes = |of: &&&Reservation| self.short(&of.items, &kept).is_empty();
            if let Some(of) = behind.clone().find(passes) {
                return Some(of.number);
            }
        }
        None
    }

    /// What a new ask may not take.
    pub(super) fn kept(&self) -> Amounts {
        let mut kept = Amounts::new();
        for head in self.heads() {
            let short = self.short(&head.items, &kept);
            if short.is_empty() {
                self.keep_ask(&head.items, &mut kept);
                continue;
            }
            if self.waited_too_long(head) {
                self.keep_ask(&head.items, &mut kept);
            }
            short.iter().for_each(|node| self.keep_all(node, &mut kept));
        }
        // Nor may it pass anybody else who waits for a node that is short.
        for lane in self.lanes().values() {
            for of in lane {
                for node in self.short(&of.items, &Amounts::new()) {
                    self.keep_all(&node, &mut kept);
                }
            }
        }
        kept
    }
}
