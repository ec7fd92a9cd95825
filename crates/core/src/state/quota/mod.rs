//! Quotas (DESIGN.md section 11): what is kept of them, and who decides each command. The arithmetic is in
//! [`crate::quota`].

mod books;
mod change;
mod check;
mod commit;
mod deviations;
mod figures;
mod layers;
mod lifecycle;
mod limits;
mod order;
mod read;
mod reconcile;
mod request;
mod reserve;
mod save;
mod share;
mod wait;

use super::{
    State,
    memory::{Fingerprint, RecordId},
};
use crate::{
    command::{Family, Item, NodeRef, OnExpiry, QuotaCommand},
    ids::{ClusterTime, ObjectId, ReservationId, Revision, Token},
    names::{Caller, Labels, Owner, QuotaName},
    outcome::{Outcome, QuotaDone},
    quota::{Asked, Place, Tree},
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wait::{Lane, LaneKey};

pub(super) use save::QuotaRows;

const FAMILY: Family = Family::Quota;

/// All reservations of the service.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    /// Those that wait or hold.
    reservations: BTreeMap<ObjectId, Box<Reservation>>,
    /// Those, and the expired ones that may still be committed. Never iterated.
    by_name: HashMap<ReservationId, ObjectId>,
    /// Expired ones that may still be committed, and until when.
    late: BTreeMap<ObjectId, Late>,
    late_until: BTreeSet<(ClusterTime, ObjectId)>,
    /// What was answered to writes, as long as they are remembered. Never iterated.
    answers: HashMap<Fingerprint, QuotaDone>,
    /// Namespaces in which somebody waits.
    waited_for: BTreeSet<u32>,
    /// In this namespace something has changed since those who wait were looked at. Never longer than an entry.
    changed: Option<u32>,
    /// At the last look more could have been granted than one look may. Only says when to look next.
    pub(super) is_look_pending: bool,
}

/// The quotas of one namespace.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// By number; a quota keeps its number for ever.
    trees: Vec<Tree>,
    index: BTreeMap<QuotaName, u32>,
    /// Those who wait, by the nodes that they want.
    lanes: BTreeMap<LaneKey, Lane>,
    /// What other regions have been lent.
    shares: BTreeMap<ReservationId, share::Share>,
    /// Reservations that live or may still be committed late.
    reservations: u64,
    /// Nodes of live reservations, each for itself.
    open_items: u64,
    /// Accounts of all nodes.
    accounts: u64,
}

/// What a reservation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
enum Phase {
    Waiting,
    Reserved,
    InFlight,
    /// Without a deadline.
    Quarantined,
}

/// A reservation that has not ended.
#[derive(Clone, Debug)]
struct Reservation {
    namespace: u32,
    record: RecordId,
    name: ReservationId,
    owner: Owner,
    caller: Caller,
    labels: Labels,
    /// In the order asked for, each node once, none of them nothing.
    items: Vec<Asked>,
    phase: Phase,
    /// 0 while waiting.
    fence: Token,
    ttl_ms: u64,
    max_lifetime_ms: u64,
    on_expiry: OnExpiry,
    priority: u8,
    created_at: ClusterTime,
    granted_at: ClusterTime,
    /// Granted by a hand-over, not at once.
    waited: bool,
    /// Of the wait, or of the reservation; the last one in quarantine.
    deadline: ClusterTime,
    final_deadline: ClusterTime,
    /// The last revision at which its owner asked for it; see `EndDeserted`.
    asked_at: Revision,
}

/// What is kept of an expired reservation, so that it can be committed late, once.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Late {
    namespace: u32,
    name: ReservationId,
    owner: Owner,
    fence: Token,
    items: Vec<Item>,
    until: ClusterTime,
}

impl Reservation {
    fn is_holding(&self) -> bool {
        self.phase != Phase::Waiting
    }

    fn is_due(&self, now: ClusterTime) -> bool {
        self.phase != Phase::Quarantined && self.deadline <= now
    }
}

impl Quotas {
    /// When an object of a quota is due.
    pub(super) fn deadline_of(&self, id: ObjectId) -> Option<ClusterTime> {
        let of = self.reservations.get(&id)?;
        (of.phase != Phase::Quarantined).then_some(of.deadline)
    }

    pub(super) fn has(&self, id: ObjectId) -> bool {
        self.reservations.contains_key(&id)
    }

    /// The write with this request is no longer remembered.
    pub(super) fn forget_answer(&mut self, request: Fingerprint) {
        if !self.answers.is_empty() {
            self.answers.remove(&request);
        }
    }

    pub(super) fn namespace_of(&self, id: ObjectId) -> Option<u32> {
        self.reservations.get(&id).map(|of| of.namespace)
    }

    pub(super) fn is_waiting(&self, id: ObjectId) -> Option<bool> {
        self.reservations.get(&id).map(|of| !of.is_holding())
    }

    /// What has changed is looked at when the next entry begins.
    pub(super) fn forget_changes(&mut self) {
        self.changed = None;
    }

    /// How many have a deadline.
    pub(super) fn with_deadline(&self) -> usize {
        self.reservations.values().filter(|of| of.phase != Phase::Quarantined).count()
    }

    /// The namespace of each who waits.
    pub(super) fn waiting_namespaces(&self) -> impl Iterator<Item = u32> {
        self.reservations.values().filter(|of| !of.is_holding()).map(|of| of.namespace)
    }

    /// What was answered to a write.
    pub(super) fn answer(&self, request: Fingerprint) -> Option<&QuotaDone> {
        self.answers.get(&request)
    }

    /// The same read from a snapshot.
    pub(super) fn insert_answer(&mut self, request: Fingerprint, done: QuotaDone) {
        self.answers.insert(request, done);
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = ObjectId> {
        self.reservations.iter().filter(|(_, of)| !of.is_holding()).map(|(&id, _)| id)
    }

    pub(super) fn asked_at(&self, id: ObjectId) -> Option<Revision> {
        self.reservations.get(&id).map(|of| of.asked_at)
    }

    pub(super) fn longest_ttl_ms(&self) -> Option<u64> {
        self.reservations.values().map(|of| of.ttl_ms).max()
    }
}

impl Space {
    fn find(&self, node: &NodeRef) -> Option<Place> {
        let tree = *self.index.get(&node.quota)?;
        Some((tree, self.trees[tree as usize].find(&node.path)?))
    }

    fn tree(&self, place: Place) -> &Tree {
        &self.trees[place.0 as usize]
    }

    fn node(&self, place: Place) -> &crate::quota::Node {
        self.tree(place).node(place.1)
    }

    fn node_mut(&mut self, place: Place) -> &mut crate::quota::Node {
        self.trees[place.0 as usize].node_mut(place.1)
    }

    /// The node as callers name it.
    fn name(&self, place: Place) -> NodeRef {
        let tree = self.tree(place);
        let quota = tree.name.clone().expect("a quota with nodes has a name");
        NodeRef { quota, path: tree.node(place.1).path.clone() }
    }

    fn names(&self, items: &[Asked]) -> Vec<Item> {
        let name = |item: &Asked| Item { node: self.name(item.place), amount: item.amount };
        items.iter().map(name).collect()
    }
}

impl State {
    pub(super) fn quota(&mut self, caller: &Caller, op: &QuotaCommand) -> Outcome {
        match op {
            QuotaCommand::Reserve(op) => self.reserve(caller, op),
            QuotaCommand::PutLimit(put) => {
                self.quota_write(caller, op, None, |state, of| state.put_limit(caller, of, put))
            }
            QuotaCommand::RemoveNode(remove) => self
                .quota_write(caller, op, None, |state, of| state.remove_node(caller, of, remove)),
            QuotaCommand::Begin(begin) => {
                self.quota_write(caller, op, Some(&begin.of), |state, of| {
                    state.begin_work(caller, of, begin)
                })
            }
            QuotaCommand::Commit(commit) => {
                self.quota_write(caller, op, Some(&commit.of), |state, of| {
                    state.commit(caller, of, commit)
                })
            }
            QuotaCommand::Release(release) => {
                self.quota_write(caller, op, Some(&release.of), |state, of| {
                    state.release_reservation(caller, of, release)
                })
            }
            QuotaCommand::Extend(extend) => {
                self.quota_write(caller, op, Some(&extend.of), |state, of| {
                    state.extend_reservation(of, extend)
                })
            }
            QuotaCommand::Resize(resize) => {
                self.quota_write(caller, op, Some(&resize.of), |state, of| {
                    state.resize(caller, of, resize)
                })
            }
            QuotaCommand::Return(back) => {
                self.quota_write(caller, op, None, |state, of| state.return_use(caller, of, back))
            }
            QuotaCommand::Settle(settle) => {
                self.quota_write(caller, op, Some(&settle.of), |state, of| {
                    state.settle(caller, of, settle)
                })
            }
            QuotaCommand::ReportUsage(report) => self
                .quota_write(caller, op, None, |state, of| state.report_usage(caller, of, report)),
            QuotaCommand::Reconcile(reconcile) => {
                self.quota_write(caller, op, None, |state, of| {
                    state.reconcile(caller, of, reconcile)
                })
            }
            QuotaCommand::Adjust(adjust) => {
                self.quota_write(caller, op, None, |state, of| state.adjust(caller, of, adjust))
            }
            QuotaCommand::ShareGrant(grant) => {
                self.quota_write(caller, op, None, |state, of| state.grant_share(caller, of, grant))
            }
            QuotaCommand::ShareReturn(back) => {
                self.quota_write(caller, op, None, |state, of| state.return_share(caller, of, back))
            }
            QuotaCommand::ShareReclaim(reclaim) => {
                self.quota_write(caller, op, None, |state, of| {
                    state.reclaim_share(caller, of, reclaim)
                })
            }
        }
    }

    fn space(&self, namespace: u32) -> &Space {
        &self.namespaces[namespace as usize].quotas
    }

    fn space_mut(&mut self, namespace: u32) -> &mut Space {
        &mut self.namespaces[namespace as usize].quotas
    }

    fn reservation(&self, id: ObjectId) -> &Reservation {
        &self.quotas.reservations[&id]
    }

    fn reservation_mut(&mut self, id: ObjectId) -> &mut Reservation {
        self.quotas.reservations.get_mut(&id).expect("a reservation that is named lives")
    }
}
