//! The books at the end: what every node shows when all is over, against what all that clients did comes to. Where an answer
//! was lost there is a span instead of a figure.

use super::{
    bounds::layers,
    ends::{commits, most},
    known::{Amounts, Known, Node, Reservation, Write},
};
use crate::{
    check::Violation,
    client::quotas::QUIET,
    clock::Micros,
    history::{Call, Family, Heard, Op, QuotaHeard, QuotaOp},
};
use sereno_api::OnExpiry;
use std::collections::BTreeMap;

/// At least, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span(u64, u64);

impl Span {
    fn add(&mut self, least: u64, most: u64) {
        self.0 += least;
        self.1 += most;
    }

    fn has(self, amount: u64) -> bool {
        (self.0..=self.1).contains(&amount)
    }
}

/// Of one node: committed, and reserved.
#[derive(Clone, Copy, Debug, Default)]
struct Books {
    committed: Span,
    reserved: Span,
}

/// How many nodes were compared, and of how many all was known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balanced {
    /// Compared with what they show in the end.
    pub nodes: usize,
    /// Nothing about them is uncertain.
    pub exact: usize,
}

/// The violations, and what was compared.
pub(super) fn check(known: &Known<'_>, calls: &[Call]) -> (Vec<Violation>, Balanced) {
    let (books, last) = (books(known), last_write(calls));
    let (mut violations, mut balanced) = (Vec::new(), BTreeMap::new());
    for call in known.reads.iter().filter(|call| call.start >= last + QUIET) {
        let Heard::Quota(QuotaHeard::Node(read)) = &call.heard else { continue };
        let node: Node<'_> = (&read.node.quota, &read.node.path);
        let due = books.get(&node).copied().unwrap_or_default();
        let (committed, reserved) = (read.node.committed, read.node.reserved);
        if !due.committed.has(committed) || !due.reserved.has(reserved) {
            let message = format!(
                "{node:?} has {committed} committed and {reserved} reserved in the end, not {due:?}"
            );
            violations.push(Violation::new("books", message));
        }
        let is_exact = due.committed.0 == due.committed.1 && due.reserved.0 == due.reserved.1;
        balanced.insert((node.0.to_owned(), node.1.to_owned()), is_exact);
    }
    let exact = balanced.values().filter(|exact| **exact).count();
    (violations, Balanced { nodes: balanced.len(), exact })
}

fn last_write(calls: &[Call]) -> Micros {
    let changes = |call: &&Call| match &call.op {
        Op::Quota(QuotaOp::Node { .. } | QuotaOp::Reservation { .. }) => false,
        op => op.request().0 == Family::Quota,
    };
    let ends = calls.iter().filter(changes).map(|call| call.end.unwrap_or(call.start));
    ends.max().unwrap_or(0)
}

fn books<'a>(known: &Known<'a>) -> BTreeMap<Node<'a>, Books> {
    let mut direct: BTreeMap<Node<'a>, Books> = BTreeMap::new();
    for of in known.reservations.values().filter(|of| of.may_be_granted()) {
        let used = used(of);
        for (node, most) in most(of) {
            let used = used.get(&node).copied().unwrap_or(0);
            let books = direct.entry(node).or_default();
            let rest = rest(of, most);
            let settled = of.writes.iter().any(|write| {
                matches!(write.told(), Some(QuotaHeard::Settled(it)) if it.commit_id.is_some())
            });
            match settled {
                // Of what an operator has settled only the most is known.
                true => books.committed.add(0, used),
                false => books.committed.add(used + rest.committed.0, used + rest.committed.1),
            }
            books.reserved.add(rest.reserved.0, rest.reserved.1);
        }
    }
    for it in known.returns.values().filter(|it| it.write.may_be_done()) {
        let committed = &mut direct.entry(it.node).or_default().committed;
        // At least that much was used, as it was given back.
        committed.0 = committed.0.saturating_sub(it.amount);
        if it.write.done.is_some() {
            committed.1 = committed.1.saturating_sub(it.amount);
        }
    }
    let mut sums: BTreeMap<Node<'a>, Books> = BTreeMap::new();
    for (node, books) in direct {
        for layer in layers(node) {
            let sum = sums.entry(layer).or_default();
            sum.committed.add(books.committed.0, books.committed.1);
            sum.reserved.add(books.reserved.0, books.reserved.1);
        }
    }
    sums
}

/// What its commits have used, as their answers say.
fn used<'a>(of: &Reservation<'a>) -> Amounts<'a> {
    let mut used = Amounts::new();
    for (node, amount) in commits(of).into_iter().flat_map(|(_, taken)| taken) {
        *used.entry(node).or_default() += amount;
    }
    used
}

/// What may have become of the rest, after all deadlines.
fn rest(of: &Reservation<'_>, most: u64) -> Books {
    let nothing = Books::default();
    let is_readmitted = |write: &Write<'_>| matches!(write.told(), Some(QuotaHeard::Committed(it)) if it.readmits.is_some());
    let ended = of.writes.iter().any(|write| write.ends() || is_readmitted(write));
    if ended {
        return nothing;
    }
    let may_be_used = of.writes.iter().any(|write| {
        let uses = matches!(write.op, Some(QuotaOp::Commit { .. } | QuotaOp::Settle { .. }));
        uses && write.is_unknown()
    });
    let (commits, keeps) =
        (of.fates.contains(&OnExpiry::Commit), of.fates.contains(&OnExpiry::Quarantine));
    // Nothing has changed it since its grant, and it has one fate: all of it came to that.
    let is_sure = of.granted.is_some()
        && of.fates.len() == 1
        && of.writes.iter().all(|write| {
            matches!(write.op, Some(QuotaOp::Begin { .. } | QuotaOp::Extend { .. }))
                || !write.may_be_done()
        });
    let span = |may_be: bool, is_sure: bool| match (may_be, is_sure) {
        (_, true) => Span(most, most),
        (true, false) => Span(0, most),
        (false, false) => Span(0, 0),
    };
    Books {
        committed: span(may_be_used || commits, is_sure && commits),
        reserved: span(keeps, is_sure && keeps),
    }
}
