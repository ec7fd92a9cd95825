//! In which order those who wait are tried.
//!
//! Those who wait for the same nodes stand in one *lane*. A node is *contended* if it does not hold the heads of all lanes
//! together. An order over the heads says who is in front:
//!
//! 1. who takes nothing of a contended node, for a guarantee below it holds the ask;
//! 2. who has waited longer than the quota's patience, the oldest first;
//! 3. then the tenant with the smallest share: use / weight of the contended node's child on the way, the largest
//!    where several nodes are contended;
//! 4. then the tenant whose best waiter is the oldest; inside a tenant by priority, then by age.

use super::{
    Reservation, Space, State,
    wait::{Lane, LaneKey},
};
use crate::{
    ids::ObjectId,
    limits,
    names::Owner,
    quota::{Asked, Place, Trial, TrialRow, Wanted},
};
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

/// The first of a lane, and where it stands among those of others.
pub(super) struct Head {
    pub(super) id: ObjectId,
    pub(super) asks: Vec<Asked>,
    pub(super) trial: Trial,
    pub(super) has_waited_too_long: bool,
    priority: Reverse<u8>,
    standing: Standing,
}

/// Where an ask stands against those of others.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// It takes something of a contended node.
    takes: bool,
    /// Use over weight of the tenant; of what is used directly at the contended node the weight is 1.
    used: u64,
    weight: u64,
    tenant: Option<Place>,
}

impl Standing {
    /// By share alone.
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (self.weight.max(1), other.weight.max(1));
        (u128::from(self.used) * u128::from(two)).cmp(&(u128::from(other.used) * u128::from(one)))
    }
}

impl State {
    /// The first of each lane, in order.
    pub(super) fn heads(&self, namespace: u32) -> impl Iterator<Item = (&LaneKey, Head)> {
        let space = self.space(namespace);
        let mut heads: Vec<_> =
            space.lanes.iter().filter_map(|(key, lane)| self.first_of(space, key, lane)).collect();
        let mut wanted = Wanted::default();
        for (_, head) in &heads {
            head.asks.iter().for_each(|ask| wanted.add(&space.trees, ask));
        }
        let mut best: BTreeMap<Place, (Reverse<u8>, ObjectId)> = BTreeMap::new();
        for (_, head) in &mut heads {
            head.standing = space.standing(&head.trial, &wanted);
            if let Some(tenant) = head.standing.tenant {
                let own = (head.priority, head.id);
                let best = best.entry(tenant).or_insert(own);
                *best = own.min(*best);
            }
        }
        let rank = |head: &Head| {
            let best = head.standing.tenant.map(|tenant| best[&tenant].1);
            (best.unwrap_or(head.id), head.standing.tenant, head.priority, head.id)
        };
        let class = |head: &Head| match (head.standing.takes, head.has_waited_too_long) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        heads.sort_by(|(_, one), (_, two)| {
            class(one).cmp(&class(two)).then_with(|| match class(one) {
                0 => rank(one).cmp(&rank(two)),
                1 => one.id.cmp(&two.id),
                _ => one.standing.cmp(&two.standing).then_with(|| rank(one).cmp(&rank(two))),
            })
        });
        heads.into_iter()
    }

    fn first_of<'a>(
        &self,
        space: &Space,
        key: &'a LaneKey,
        lane: &Lane,
    ) -> Option<(&'a LaneKey, Head)> {
        for id in self.in_order(space, key, lane) {
            let of = self.reservation(id);
            let trial = Trial::of(&space.trees, &of.items);
            if !self.is_eligible(space, of, &trial) {
                continue;
            }
            let head = Head {
                id,
                asks: of.items.clone(),
                trial,
                has_waited_too_long: self.has_waited_too_long(space, key, of),
                priority: Reverse(of.priority),
                standing: Standing::default(),
            };
            return Some((key, head));
        }
        None
    }

    /// A lane in its own order: who has waited too long first, by age, then by priority and age.
    pub(super) fn in_order<'a>(
        &'a self,
        space: &'a Space,
        key: &'a LaneKey,
        lane: &'a Lane,
    ) -> impl Iterator<Item = ObjectId> + 'a {
        let too_long =
            move |id: &ObjectId| self.has_waited_too_long(space, key, self.reservation(*id));
        let old = lane.by_age.iter().copied().take_while(too_long);
        let others = lane.by_rank.iter().map(|(_, id)| *id).filter(move |id| !too_long(id));
        old.chain(others)
    }

    fn has_waited_too_long(&self, space: &Space, key: &LaneKey, of: &Reservation) -> bool {
        let patience_ms = key.places.iter().map(|place| space.patience_ms(place.0)).min();
        let patience_ms = patience_ms.unwrap_or(limits::QUOTA_PATIENCE_MS_DEFAULT);
        of.created_at.plus(patience_ms) < self.time
    }

    /// A wait that is over is passed by, and so is one whose owner has too much reserved as it is.
    pub(super) fn is_eligible(&self, space: &Space, of: &Reservation, trial: &Trial) -> bool {
        of.deadline > self.time && !space.is_owner_full(trial, &of.owner)
    }
}

impl Space {
    fn patience_ms(&self, tree: u32) -> u64 {
        let tree = &self.trees[tree as usize];
        let root = tree.index.first_key_value().map(|(_, &root)| tree.node(root));
        let said = root.and_then(|root| root.limits.patience_ms);
        said.unwrap_or(limits::QUOTA_PATIENCE_MS_DEFAULT)
    }

    fn is_owner_full(&self, trial: &Trial, owner: &Owner) -> bool {
        trial.rows.iter().any(|row| {
            let node = self.node(row.place);
            let reserved = || node.owners.get(owner).copied().unwrap_or(0);
            node.limits.owner_reserved_max.is_some_and(|max| reserved() + row.asked > max)
        })
    }

    /// Where an ask stands: by the largest share at the contended nodes that it takes something of.
    fn standing(&self, trial: &Trial, wanted: &Wanted) -> Standing {
        let contended = trial.rows.iter().filter(|row| wanted.is_contended(&self.trees, row.place));
        let found: Vec<_> = contended.flat_map(|row| self.tenants(trial, row)).collect();
        let takers = found.iter().filter(|one| one.takes);
        let largest =
            takers.max_by(|one, two| one.cmp(two).then_with(|| two.tenant.cmp(&one.tenant)));
        let first = found.iter().min_by_key(|one| one.tenant);
        largest.or(first).copied().unwrap_or_default()
    }

    /// Those to whom an ask belongs at a contended node: its children on the way, or what is used there directly.
    fn tenants<'a>(
        &'a self,
        trial: &'a Trial,
        row: &'a TrialRow,
    ) -> impl Iterator<Item = Standing> + 'a {
        let takes = row.raises();
        let is_child = |other: &&TrialRow| {
            other.place.0 == row.place.0 && self.node(other.place).parent == Some(row.place.1)
        };
        let mut below = trial.rows.iter().filter(is_child).peekable();
        let used = self.node(row.place).direct();
        let direct = Standing { takes, used, weight: 1, tenant: Some(row.place) };
        let itself = below.peek().is_none().then_some(direct);
        let children = below.map(move |child| {
            let node = self.node(child.place);
            let used = node.committed + node.reserved;
            Standing { takes, used, weight: node.limits.weight, tenant: Some(child.place) }
        });
        children.chain(itself)
    }
}
