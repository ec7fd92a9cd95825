//! The trees of limits: nodes put and removed.

use super::{Space, State};
use crate::{
    command::{NodeLimits, NodeRef, PutLimit, RemoveNode},
    event::QuotaChange,
    limits,
    names::{Caller, Invalid, QuotaName},
    outcome::{Code, Detail, Missing, QuotaDone, Refusal},
    policy::within,
    quota::{Node, Place, Tree},
    state::request::No,
};

impl NodeLimits {
    /// Checks every field against the service's limits, and the fields against each other.
    pub(super) fn check(&self, depth: usize) -> Result<(), Invalid> {
        let is_root = depth == 0;
        if self.home.is_some() && depth > 1 {
            return Err(Invalid::new("home", "is said by a root or a node right below it"));
        }
        within("limit", self.limit, 0..=limits::QUOTA_AMOUNT_MAX)?;
        within("burst", self.burst, 0..=limits::QUOTA_AMOUNT_MAX - self.limit)?;
        within("weight", self.weight, 1..=limits::QUOTA_WEIGHT_MAX)?;
        if self.guaranteed > self.limit {
            let rule = format!("must not be above limit, which is {}", self.limit);
            return Err(Invalid::new("guaranteed", rule));
        }
        if is_root && self.guaranteed > 0 {
            return Err(Invalid::new("guaranteed", "must be 0 at a root: nobody is beside it"));
        }
        match self.patience_ms {
            Some(_) if !is_root => {
                Err(Invalid::new("patience", "is said by the root of a quota for all of it"))
            }
            Some(patience_ms) => within("patience", patience_ms, 0..=limits::QUOTA_PATIENCE_MS_MAX),
            None => Ok(()),
        }
    }
}

impl State {
    pub(super) fn put_limit(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &PutLimit,
    ) -> Result<QuotaDone, No> {
        op.limits.check(op.node.path.depth()).map_err(refused)?;
        let place = match self.space(namespace).find(&op.node) {
            Some(place) => {
                let node = self.space(namespace).node(place);
                check_version(node.version, op.expected_version)?;
                let (parent, before) = (node.parent, node.limits.guaranteed);
                let tree = self.space(namespace).tree(place);
                check_guarantee(tree, parent, before, op.limits.guaranteed)?;
                let cap = op.limits.limit + op.limits.burst;
                if op.refuse_debt && self.space(namespace).node(place).claim > cap {
                    let rule = format!("is below what is claimed: {}", tree.node(place.1).claim);
                    return Err(refused(Invalid::new("limit", rule)));
                }
                place
            }
            None => {
                check_version(0, op.expected_version)?;
                self.create_node(namespace, &op.node, op.limits.guaranteed)?
            }
        };
        let (now, revision) = (self.time, self.revision);
        let space = self.space_mut(namespace);
        space.trees[place.0 as usize].set_limits(place.1, op.limits.clone());
        let node = space.node_mut(place);
        node.version += 1;
        (node.updated_at, node.updated_in) = (now, revision);
        let (version, debt) = (node.version, node.debt());
        self.quotas.changed = Some(namespace);
        let (node, limits) = (op.node.clone(), op.limits.clone());
        let change = QuotaChange::LimitPut { node, limits, version, debt };
        self.node_event(caller, namespace, &op.node, None, change);
        Ok(QuotaDone::LimitPut { version, debt })
    }

    /// A node without limits and use, below one that is there.
    fn create_node(
        &mut self,
        namespace: u32,
        node: &NodeRef,
        guaranteed: u64,
    ) -> Result<Place, No> {
        let parent = match node.path.depth() {
            0 => None,
            depth => {
                let above = NodeRef { path: node.path.ancestor(depth - 1), ..node.clone() };
                let parent = self.space(namespace).find(&above);
                Some(parent.ok_or_else(|| {
                    let rule = format!("put {:?} first: what is above it has no limit", above.path);
                    No::from(Refusal::from(Invalid::new("path", rule)))
                })?)
            }
        };
        if let Some(parent) = parent {
            let tree = self.space(namespace).tree(parent);
            if tree.index.len() >= limits::QUOTA_NODES_MAX {
                let max = limits::QUOTA_NODES_MAX as u64;
                return Err(self.limit_reached("nodes of one quota", max).into());
            }
            check_guarantee(tree, Some(parent.1), 0, guaranteed)?;
        }
        if parent.is_none() {
            self.check_quotas(namespace, &node.quota)?;
        }
        let now = self.time;
        let space = self.space_mut(namespace);
        let tree = space.tree_named(&node.quota);
        let new = Node::new(node.path.clone(), parent.map(|(_, id)| id), now);
        let id = space.trees[tree as usize].insert(new);
        Ok((tree, id))
    }

    fn check_quotas(&self, namespace: u32, quota: &QuotaName) -> Result<(), Refusal> {
        let space = self.space(namespace);
        let is_full = space.trees.len() >= limits::QUOTAS_PER_NAMESPACE_MAX;
        if is_full && !space.index.contains_key(quota) {
            let max = limits::QUOTAS_PER_NAMESPACE_MAX as u64;
            return Err(self.limit_reached("quotas of one namespace", max));
        }
        Ok(())
    }

    pub(super) fn remove_node(
        &mut self,
        caller: &Caller,
        namespace: u32,
        op: &RemoveNode,
    ) -> Result<QuotaDone, No> {
        let place = self.place(namespace, &op.node)?;
        let space = self.space(namespace);
        let node = space.node(place);
        check_version(node.version, op.expected_version)?;
        let is_waited_for = space.lanes.keys().any(|key| key.places.contains(&place));
        let in_the_way = match node {
            node if !node.children.is_empty() => "has nodes below it",
            node if !node.is_unused() => "is used: something is committed or reserved there",
            _ if is_waited_for => "is waited for",
            _ if space.shares.values().any(|share| share.place == place) => {
                "is lent to another region"
            }
            _ => "",
        };
        if !in_the_way.is_empty() {
            return Err(Refusal::from(Invalid::new("path", in_the_way)).into());
        }
        let tree = &mut self.space_mut(namespace).trees[place.0 as usize];
        // What it was promised goes back first.
        tree.set_limits(place.1, NodeLimits::of(0));
        tree.remove(place.1);
        self.quotas.changed = Some(namespace);
        let change = QuotaChange::NodeRemoved { node: op.node.clone() };
        self.node_event(caller, namespace, &op.node, None, change);
        Ok(QuotaDone::NodeRemoved)
    }

    /// A node that a write names.
    ///
    /// # Errors
    /// `NotFound` where there is none.
    pub(super) fn place(&self, namespace: u32, node: &NodeRef) -> Result<Place, Refusal> {
        let missing = || Refusal::new(Code::NotFound).with(Detail::Missing(Missing::Node));
        self.space(namespace).find(node).ok_or_else(missing)
    }
}

impl Space {
    /// The tree of a quota, which is made if there is none.
    pub(super) fn tree_named(&mut self, quota: &QuotaName) -> u32 {
        if let Some(&tree) = self.index.get(quota) {
            return tree;
        }
        let tree = u32::try_from(self.trees.len()).expect("quotas are few");
        self.trees.push(Tree { name: Some(quota.clone()), ..Tree::default() });
        self.index.insert(quota.clone(), tree);
        tree
    }
}

fn check_version(current: u64, expected: u64) -> Result<(), Refusal> {
    match current == expected {
        true => Ok(()),
        false => Err(Refusal::new(Code::VersionConflict).with(Detail::Version { current })),
    }
}

fn check_guarantee(
    tree: &Tree,
    parent: Option<u32>,
    before: u64,
    guaranteed: u64,
) -> Result<(), Refusal> {
    match tree.refuse_guarantee(parent, before, guaranteed) {
        Some(rule) => Err(Invalid::new("guaranteed", rule).into()),
        None => Ok(()),
    }
}

fn refused(invalid: Invalid) -> No {
    Refusal::from(invalid).into()
}
