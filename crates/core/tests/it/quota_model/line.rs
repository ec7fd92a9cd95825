//! Who goes next, naively: all who wait are sorted anew for every grant.

use super::books::{Amounts, Books, Phase, Reservation, chain, parent};
use sereno_core::command::NodeRef;
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

/// Use and weight of whoever the ask belongs to at its worst exhausted node.
#[derive(Clone, Debug)]
struct Share {
    used: u64,
    weight: u64,
    tenant: Option<NodeRef>,
}

impl Share {
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
        let none = Amounts::new();
        let exhausted: Vec<_> = heads.iter().flat_map(|of| self.short(&of.items, &none)).collect();
        let shares: BTreeMap<u64, Share> =
            heads.iter().map(|of| (of.number, self.share(of, &exhausted))).collect();
        let best = |tenant: &Option<NodeRef>, own: u64| {
            let peers = heads.iter().filter(|of| !self.waited_too_long(of));
            let peers = peers.filter(|of| shares[&of.number].tenant == *tenant);
            let best = peers.map(|of| (Reverse(of.priority), of.number)).min();
            if tenant.is_none() { own } else { best.map_or(own, |(_, number)| number) }
        };
        let bests: BTreeMap<u64, u64> = heads
            .iter()
            .map(|of| (of.number, best(&shares[&of.number].tenant, of.number)))
            .collect();
        heads.sort_by(|one, two| {
            match (self.waited_too_long(one), self.waited_too_long(two)) {
                (true, true) => one.number.cmp(&two.number),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => {
                    let (s1, s2) = (&shares[&one.number], &shares[&two.number]);
                    let rank = |of: &Reservation, _: &Share| {
                        (bests[&of.number], Reverse(of.priority), of.number)
                    };
                    s1.cmp(s2).then_with(|| rank(one, s1).cmp(&rank(two, s2)))
                }
            }
        });
        heads
    }

    fn share(&self, of: &Reservation, exhausted: &[NodeRef]) -> Share {
        let layers = Self::layers(&of.items);
        let mut largest = Share { used: 0, weight: 1, tenant: None };
        for node in layers.iter().filter(|node| exhausted.contains(node)) {
            if !self.raises(node, &of.items) {
                continue;
            }
            let below: Vec<_> =
                layers.iter().filter(|child| parent(child).as_ref() == Some(node)).collect();
            let mut shares: Vec<_> = below
                .iter()
                .map(|child| {
                    let (committed, reserved) = self.used(child);
                    let weight = self.limits[child].0.weight;
                    Share { used: committed + reserved, weight, tenant: Some((*child).clone()) }
                })
                .collect();
            if below.is_empty() {
                let used = self.direct(node);
                shares.push(Share { used, weight: 1, tenant: Some(node.clone()) });
            }
            for share in shares {
                let is_larger = match share.cmp(&largest) {
                    Ordering::Greater => true,
                    Ordering::Equal => largest.tenant.is_none() || share.tenant < largest.tenant,
                    Ordering::Less => largest.tenant.is_none(),
                };
                if is_larger {
                    largest = share;
                }
            }
        }
        largest
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
                let (claim, effective) = (self.claim(&node, &Amounts::new()), self.effective(&node));
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
            short.iter().for_each(|node| self.keep_all(node, &mut kept));
            if self.waited_too_long(head) {
                self.keep_ask(&head.items, &mut kept);
            }
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
            short.iter().for_each(|node| self.keep_all(node, &mut kept));
            if self.waited_too_long(head) {
                self.keep_ask(&head.items, &mut kept);
            }
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
