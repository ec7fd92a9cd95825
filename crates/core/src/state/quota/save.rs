//! Quotas in a snapshot (version 3, from level 4 on). Sums and indexes are not stored: they are rebuilt, and checked.

use super::{Late, Phase, Reservation, Space, State};
use crate::{
    command::{NodeLimits, OnExpiry},
    ids::{ClusterTime, ObjectId, ReservationId, Revision, Token},
    names::{Caller, Labels, Owner, QuotaName, QuotaPath},
    quota::{Account, Asked, LastRefusal, Node, Place, Posting, Report, Tree, signed},
    state::{memory::Record, snapshot::SnapshotError},
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

#[derive(BorshSerialize, BorshDeserialize)]
struct NodeRow {
    path: QuotaPath,
    limits: NodeLimits,
    version: u64,
    updated_at: ClusterTime,
    updated_in: Revision,
    accounts: BTreeMap<Owner, Account>,
    refusal: Option<LastRefusal>,
    reports: BTreeMap<Owner, Report>,
}

/// A tree: its nodes by number, and which numbers are free, the next one last.
type TreeRow = (QuotaName, Vec<Option<NodeRow>>, Vec<u32>);

#[derive(BorshSerialize, BorshDeserialize)]
struct ReservationRow {
    id: ObjectId,
    record: Record,
    namespace: u32,
    name: ReservationId,
    owner: Owner,
    caller: Caller,
    labels: Labels,
    items: Vec<(Place, u64)>,
    phase: Phase,
    fence: Token,
    ttl_ms: u64,
    max_lifetime_ms: u64,
    on_expiry: OnExpiry,
    priority: u8,
    created_at: ClusterTime,
    granted_at: ClusterTime,
    waited: bool,
    deadline: ClusterTime,
    final_deadline: ClusterTime,
    asked_at: Revision,
}

/// Writes and reads what a snapshot has of quotas.
pub(in crate::state) struct QuotaRows;

impl QuotaRows {
    /// The trees of one namespace.
    pub(in crate::state) fn write_space(space: &Space, writer: &mut impl Write) -> io::Result<()> {
        (space.trees.len() as u64).serialize(writer)?;
        for tree in &space.trees {
            let row = |node: &Option<Node>| node.as_ref().map(node_row);
            let nodes: Vec<_> = tree.nodes.iter().map(row).collect();
            (&tree.name.as_ref().expect("a quota has a name"), nodes, &tree.vacant)
                .serialize(writer)?;
        }
        space.shares.serialize(writer)
    }

    /// The same read, with the use that is committed.
    pub(in crate::state) fn read_space(reader: &mut impl Read) -> io::Result<Space> {
        let mut space = Space::default();
        for number in 0..u64::deserialize_reader(reader)? {
            let (name, nodes, vacant) = TreeRow::deserialize_reader(reader)?;
            space.index.insert(name.clone(), number as u32);
            let tree = tree_of(name, nodes, vacant)?;
            for node in tree.nodes.iter().flatten() {
                space.accounts += node.accounts.len() as u64;
            }
            space.trees.push(tree);
        }
        space.shares = BTreeMap::deserialize_reader(reader)?;
        for share in space.shares.values() {
            let posting = Posting { committed: 0, reserved: signed(share.kept()) };
            let tree = &mut space.trees[share.place.0 as usize];
            tree.post(share.place.1, posting, |_, _| {});
            tree.post_owner(share.place.1, &share.owner, posting.reserved);
        }
        Ok(space)
    }

    /// All reservations, and the expired ones that may be committed late.
    pub(in crate::state) fn write(state: &State, writer: &mut impl Write) -> io::Result<()> {
        (state.quotas.reservations.len() as u64).serialize(writer)?;
        for (&id, of) in &state.quotas.reservations {
            reservation_row(state.memory.get(of.record), id, of).serialize(writer)?;
        }
        (state.quotas.late.len() as u64).serialize(writer)?;
        for (id, late) in &state.quotas.late {
            (id, late).serialize(writer)?;
        }
        Ok(())
    }

    /// The same read into a state that has its namespaces.
    pub(in crate::state) fn read(
        state: &mut State,
        reader: &mut impl Read,
    ) -> Result<(), SnapshotError> {
        for _ in 0..u64::deserialize_reader(reader)? {
            let row = ReservationRow::deserialize_reader(reader)?;
            state.count_record(&row.record)?;
            state.insert_reservation(row);
        }
        for _ in 0..u64::deserialize_reader(reader)? {
            let (id, late) = <(ObjectId, Late)>::deserialize_reader(reader)?;
            state.space_mut(late.namespace).reservations += 1;
            state.quotas.by_name.insert(late.name, id);
            state.quotas.late_until.insert((late.until, id));
            state.quotas.late.insert(id, late);
        }
        for namespace in &mut state.namespaces {
            namespace.quotas.trees.iter_mut().for_each(Tree::weigh);
        }
        state.quotas.forget_changes();
        Ok(())
    }
}

impl State {
    fn insert_reservation(&mut self, row: ReservationRow) {
        let id = row.id;
        let items = row.items.into_iter().map(|(place, amount)| Asked { place, amount }).collect();
        let reservation = Reservation {
            namespace: row.namespace,
            record: self.memory.insert(row.record),
            name: row.name,
            owner: row.owner,
            caller: row.caller,
            labels: row.labels,
            items,
            phase: row.phase,
            fence: row.fence,
            ttl_ms: row.ttl_ms,
            max_lifetime_ms: row.max_lifetime_ms,
            on_expiry: row.on_expiry,
            priority: row.priority,
            created_at: row.created_at,
            granted_at: row.granted_at,
            waited: row.waited,
            deadline: row.deadline,
            final_deadline: row.final_deadline,
            asked_at: row.asked_at,
        };
        if reservation.phase == Phase::Waiting {
            self.join_lane(id, &reservation);
        } else {
            let take = |item: &Asked| {
                (item.place, Posting { committed: 0, reserved: signed(item.amount) })
            };
            let changes: Vec<_> = reservation.items.iter().map(take).collect();
            self.post(reservation.namespace, &reservation.owner, &changes);
        }
        if reservation.phase != Phase::Quarantined {
            self.deadlines.insert((reservation.deadline, id));
        }
        self.count_reservation(&reservation, id);
        self.quotas.reservations.insert(id, Box::new(reservation));
    }
}

fn node_row(node: &Node) -> NodeRow {
    NodeRow {
        path: node.path.clone(),
        limits: node.limits.clone(),
        version: node.version,
        updated_at: node.updated_at,
        updated_in: node.updated_in,
        accounts: node.accounts.clone(),
        refusal: node.refusal.as_deref().cloned(),
        reports: node.reports.clone(),
    }
}

fn tree_of(name: QuotaName, rows: Vec<Option<NodeRow>>, vacant: Vec<u32>) -> io::Result<Tree> {
    let mut by_path: BTreeMap<QuotaPath, u32> = BTreeMap::new();
    for (id, row) in rows.iter().enumerate() {
        if let Some(row) = row {
            by_path.insert(row.path.clone(), id as u32);
        }
    }
    let orphan = || io::Error::new(io::ErrorKind::InvalidData, "a node of a quota has no parent");
    let mut tree = Tree { name: Some(name), vacant, ..Tree::default() };
    for row in rows {
        tree.nodes.push(match row {
            Some(row) => {
                let parent = match row.path.depth() {
                    0 => None,
                    depth => Some(*by_path.get(&row.path.ancestor(depth - 1)).ok_or_else(orphan)?),
                };
                Some(node_of(row, parent))
            }
            None => None,
        });
    }
    // A path follows on those that it begins with, so every parent is linked before its children.
    for (path, &id) in &by_path {
        tree.link(id, path);
        let (parent, guaranteed) = (tree.node(id).parent, tree.node(id).limits.guaranteed);
        if let Some(parent) = parent {
            tree.node_mut(parent).promised += guaranteed;
        }
    }
    for &id in by_path.values() {
        let committed = tree.node(id).accounts.values().map(|account| account.total()).sum();
        tree.post(id, Posting { committed: signed(committed), reserved: 0 }, |_, _| {});
    }
    Ok(tree)
}

fn node_of(row: NodeRow, parent: Option<u32>) -> Node {
    Node {
        limits: row.limits,
        version: row.version,
        updated_in: row.updated_in,
        accounts: row.accounts,
        refusal: row.refusal.map(Box::new),
        reports: row.reports,
        ..Node::new(row.path, parent, row.updated_at)
    }
}

fn reservation_row(record: &Record, id: ObjectId, of: &Reservation) -> ReservationRow {
    ReservationRow {
        id,
        record: record.clone(),
        namespace: of.namespace,
        name: of.name,
        owner: of.owner.clone(),
        caller: of.caller.clone(),
        labels: of.labels.clone(),
        items: of.items.iter().map(|item| (item.place, item.amount)).collect(),
        phase: of.phase,
        fence: of.fence,
        ttl_ms: of.ttl_ms,
        max_lifetime_ms: of.max_lifetime_ms,
        on_expiry: of.on_expiry,
        priority: of.priority,
        created_at: of.created_at,
        granted_at: of.granted_at,
        waited: of.waited,
        deadline: of.deadline,
        final_deadline: of.final_deadline,
        asked_at: of.asked_at,
    }
}
