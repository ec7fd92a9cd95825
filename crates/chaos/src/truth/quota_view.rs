//! What a read shows of a node of a quota's tree, or of a reservation, without its times: as the state has it, and as an
//! answer tells it.

use crate::history::{Heard, QuotaHeard};
use sereno_core::{
    State,
    command::{Item, NodeRef},
    ids::ReservationId,
    names::NamespaceName,
    query::{AccountView, ListNodes, NodeView},
};
use std::collections::BTreeMap;

/// A page of nodes is the whole tree: those of a run are small.
const NODES_MAX: usize = 100;
/// As many owners of a node as a run has, and more.
const OWNERS_MAX: usize = 1_000;

/// What there is to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaView {
    /// Of a node.
    Node(Box<Node>),
    /// Of a reservation.
    Reservation(Reservation),
    /// There is no such node, or no such reservation any more.
    Nothing,
}

/// A node: rules, books, and who has used what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    rules: [u64; 4],
    owner_reserved_max: Option<u64>,
    version: u64,
    updated_in: u64,
    /// Committed and reserved, all below it too and directly.
    books: [u64; 4],
    available: u64,
    debt: u64,
    effective_guaranteed: u64,
    waiters: u64,
    /// By owner.
    owners: Vec<Account>,
}

/// What an owner has used: all of it, what of it is folded, and each commit with what it has left.
type Account = (String, u64, u64, Vec<(u64, u64)>);

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    state: String,
    fence: Option<u64>,
    owner: String,
    items: Vec<(String, String, u64)>,
    on_expiry: String,
    priority: u8,
}

/// What a node is called here.
pub(super) fn node_key(quota: &str, path: &str) -> String {
    format!("node {quota}/{path}")
}

/// What a reservation is called here.
pub(super) fn reservation_key(name: &str) -> String {
    format!("reservation {name}")
}

/// All nodes of a namespace, as the state has them.
pub(super) fn nodes(state: &State, namespace: &NamespaceName) -> BTreeMap<String, QuotaView> {
    let mut all = BTreeMap::new();
    for quota in state.quotas(namespace).unwrap_or_default() {
        let (prefix, limit, after) = (String::new(), NODES_MAX, None);
        let list = ListNodes { quota, prefix, limit, after };
        for view in state.list_quota_nodes(namespace, &list).unwrap_or_default() {
            let NodeRef { quota, path } = &view.node;
            let key = node_key(quota.as_str(), path.as_str());
            let accounts = state.quota_accounts(namespace, &view.node, "", OWNERS_MAX);
            let node = of_node(&view, &accounts.flatten().unwrap_or_default());
            all.insert(key, QuotaView::Node(Box::new(node)));
        }
    }
    all
}

fn of_node(view: &NodeView, accounts: &[AccountView]) -> Node {
    let owner = |it: &AccountView| {
        let commits = it.commits.iter().map(|(commit, left)| (commit.0, *left)).collect();
        (it.owner.to_string(), it.committed, it.folded, commits)
    };
    let limits = &view.limits;
    Node {
        rules: [limits.limit, limits.burst, limits.guaranteed, limits.weight],
        owner_reserved_max: limits.owner_reserved_max,
        version: view.version,
        updated_in: view.updated_in.0,
        books: [view.committed, view.reserved, view.direct_committed, view.direct_reserved],
        available: view.available,
        debt: view.debt,
        effective_guaranteed: view.effective_guaranteed,
        waiters: view.waiters,
        owners: accounts.iter().map(owner).collect(),
    }
}

/// A reservation, as the state has it.
pub(super) fn reservation(
    state: &State,
    namespace: &NamespaceName,
    name: ReservationId,
) -> QuotaView {
    let Some(of) = state.reservation_named(namespace, name).flatten() else {
        return QuotaView::Nothing;
    };
    let item = |item: &Item| {
        let NodeRef { quota, path } = &item.node;
        (quota.to_string(), path.to_string(), item.amount)
    };
    QuotaView::Reservation(Reservation {
        state: format!("{:?}", of.state),
        fence: Some(of.fence.0).filter(|fence| *fence > 0),
        owner: of.owner.to_string(),
        items: of.items.iter().map(item).collect(),
        on_expiry: format!("{:?}", of.on_expiry),
        priority: of.priority,
    })
}

impl QuotaView {
    /// As a read tells it. Door and core name states and fates alike.
    pub fn told(heard: &Heard) -> Option<Self> {
        match heard {
            Heard::Quota(QuotaHeard::Node(read)) => Some(Self::Node(Box::new(told_node(read)))),
            Heard::Quota(QuotaHeard::Reservation(read)) => {
                let of = &read.reservation;
                let item = |item: &sereno_api::QuotaItem| {
                    (item.quota.clone(), item.path.clone(), item.amount)
                };
                Some(Self::Reservation(Reservation {
                    state: format!("{:?}", of.state),
                    fence: of.fence,
                    owner: of.owner.clone(),
                    items: of.items.iter().map(item).collect(),
                    on_expiry: format!("{:?}", of.on_expiry),
                    priority: of.priority,
                }))
            }
            _ => None,
        }
    }
}

fn told_node(read: &sereno_api::QuotaNodeRead) -> Node {
    let owner = |it: &sereno_api::OwnerUse| {
        let commits = it.commits.iter().map(|it| (it.commit_id, it.left)).collect();
        (it.owner.clone(), it.committed, it.folded, commits)
    };
    let node = &read.node;
    Node {
        rules: [node.limit, node.burst, node.guaranteed, node.weight],
        owner_reserved_max: node.owner_reserved_max,
        version: node.version,
        updated_in: node.updated_in_revision,
        books: [node.committed, node.reserved, node.direct_committed, node.direct_reserved],
        available: node.available,
        debt: node.debt,
        effective_guaranteed: node.effective_guaranteed,
        waiters: node.waiters,
        owners: read.owners.iter().map(owner).collect(),
    }
}
