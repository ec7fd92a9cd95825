//! S9 and S10: nothing is oversold, no counter is negative, and each reservation ends exactly once; with S6 and S7 for
//! those who ask for quota, and S8 for what they have.
//!
//! A book of its own: what each change has to do is worked out from the commands that the log carries and from what
//! was reserved before; the ledger's events have to say just that. The state's own sums are only looked at to
//! compare ([`answers`]).

mod answers;
mod books;
mod changes;
mod uses;
mod waits;

use super::{Marks, Told, request_key};
use crate::clock::Real;
use books::{Books, Moves};
use sereno_core::{
    command::{Command, Family, Item, NodeRef, OnExpiry, Operation, QuotaCommand, Reserve},
    event::{Event, EventKind},
    ids::{ClusterTime, ObjectId, ReservationId, Revision, Token},
    names::Owner,
};
use std::collections::BTreeMap;
use waits::Waits;

/// Amounts by node.
type Items = BTreeMap<NodeRef, u64>;

/// Something reserved that has not ended.
#[derive(Clone, Debug)]
struct Held {
    name: ReservationId,
    request: String,
    owner: Owner,
    items: Items,
    /// The furthest that was answered.
    deadline: ClusterTime,
    on_expiry: OnExpiry,
    is_quarantined: bool,
}

/// What an expired reservation may be admitted again for.
#[derive(Clone, Debug)]
struct Late {
    owner: Owner,
    items: Items,
}

/// What another region may use.
#[derive(Clone, Debug)]
struct Share {
    node: NodeRef,
    amount: u64,
    lent: u64,
    cap: u64,
}

/// What one commit has used at one node, and what of it has come back.
#[derive(Clone, Debug)]
struct Lot {
    /// Of which reservation.
    name: ReservationId,
    owner: Owner,
    committed: u64,
    returned: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    books: Books,
    /// How far nodes were above their limits after the last change.
    excess: BTreeMap<NodeRef, u64>,
    /// What the log has been asked, by the name that the door drew.
    asks: BTreeMap<ReservationId, Reserve>,
    held: BTreeMap<Token, Held>,
    late: BTreeMap<ReservationId, Late>,
    ended: BTreeMap<Token, &'static str>,
    /// By request: what it was granted.
    granted: BTreeMap<String, Token>,
    waits: Waits,
    lots: BTreeMap<(ObjectId, NodeRef), Lot>,
    accounts: BTreeMap<(NodeRef, Owner), u64>,
    shares: BTreeMap<ReservationId, Share>,
    /// What compensations have changed in this revision.
    reconciled: (Revision, i64),
    /// Something has changed since the state was last looked at.
    has_changed: bool,
}

/// When an event came about, and why.
pub(super) struct Moment<'a> {
    /// The command that it is of; none: the sweep.
    pub(super) cause: Option<&'a Command>,
    pub(super) time: ClusterTime,
    pub(super) announced_at: ClusterTime,
    pub(super) now: Real,
}

impl Moment<'_> {
    fn quota(&self) -> Option<&QuotaCommand> {
        match &self.cause?.operation {
            Operation::Quota(op) => Some(op),
            _ => None,
        }
    }
}

fn key_of(op: &Reserve) -> String {
    request_key(Family::Quota, &op.namespace, &op.request_id)
}

/// Summed by node.
fn summed(items: &[Item]) -> Items {
    let mut sums = Items::new();
    for item in items.iter().filter(|item| item.amount > 0) {
        *sums.entry(item.node.clone()).or_default() += item.amount;
    }
    sums
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).expect("amounts are small here")
}

impl Quotas {
    /// An entry carries this command.
    pub(super) fn carries(&mut self, command: &Command) {
        if let Operation::Quota(QuotaCommand::Reserve(op)) = &command.operation {
            self.asks.entry(op.reservation).or_insert_with(|| op.clone());
        }
    }

    pub(super) fn event(&mut self, event: &Event, moment: &Moment, told: &Told, marks: &mut Marks) {
        self.has_changed = true;
        let name = event.resource.as_ref().and_then(|name| ReservationId::from_hex(name.as_str()));
        match &event.kind {
            EventKind::Queued => {
                let name = name.expect("a reservation waits by its name");
                self.waits.begins(name, &self.asks[&name], moment);
                marks.mark("a reserve waits");
            }
            EventKind::WaitEnded { why, .. } => {
                let name = name.expect("a reservation waits by its name");
                self.waits.ends(name, *why, moment);
                marks.mark("a reserve has waited in vain");
            }
            EventKind::Quota(of) => {
                let mut moves = Moves::new();
                of.lines.iter().for_each(|line| self.books.enter(line, &mut moves));
                self.changes(event, of, &moves, moment, told, marks);
                self.check_excess(&of.change, marks);
            }
            _ => {}
        }
    }

    /// Reservations that have not come to their end, and those who wait. In quarantine they stay until an operator
    /// comes.
    pub(crate) fn unrest(&self) -> usize {
        self.held.values().filter(|held| !held.is_quarantined).count() + self.waits.len()
    }

    /// As a restore makes it: nobody waits any more.
    pub(super) fn restored(&mut self) {
        self.waits.all_end();
    }
}
