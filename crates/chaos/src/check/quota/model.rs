//! A tree that is its root alone, with one limit, as a model for the linearizability check: who has reserved how much of
//! it, and what each commit has used. It knows nothing of revisions.

use crate::check::linear::{Model, Operation, Refuted, check};
use std::fmt;

/// A reservation, or a commit, by its place in the projection's lists.
pub(super) type Id = u32;
pub(super) type Amount = u16;

/// No amount is smaller than 1, so no more than a tree's limit stand beside each other.
const PARTS_MAX: usize = 12;

/// What an answer says, at some moment between call and answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// So much is reserved; the fence, and what is free then.
    Grant { id: Id, amount: Amount, fence: Option<u64>, free: Option<u64> },
    /// It has this amount from here on.
    Resize { id: Id, amount: Amount, free: Option<u64> },
    /// So much of it is used (`None`: all), and the rest is free, or stays.
    Commit { id: Id, commit: Id, taken: Option<Amount>, is_final: bool },
    /// It had gone, and is used all the same.
    Readmit { id: Id, commit: Id, amount: Amount },
    /// It is free again.
    End(Id),
    /// So much of a commit is free again; what it has left then.
    Return { commit: Id, amount: Amount, left: Option<u64> },
    /// It is held; so much of it, and so much is free.
    Holds { id: Id, amount: Option<u64>, free: Option<u64> },
    /// It is not held.
    Lacks(Id),
    /// So much is committed and reserved.
    Shows { committed: u64, reserved: u64 },
    /// So much is committed and reserved, and so much more does not go in.
    Full { committed: u64, reserved: u64, asked: u64 },
    /// The commit has this much left, and no more.
    Left { commit: Id, left: u64 },
}

/// What a part of the limit is taken by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum By {
    #[default]
    Nobody,
    Reservation(Id),
    Commit(Id),
}

/// What is taken, and the last fence. The limit cannot be passed: there is no such state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Books {
    limit: u64,
    parts: [(By, Amount); PARTS_MAX],
    fence: u64,
}

impl Books {
    pub(super) fn new(limit: u64) -> Self {
        assert!(limit <= PARTS_MAX as u64, "a solo tree is small");
        Self { limit, parts: [(By::Nobody, 0); PARTS_MAX], fence: 0 }
    }

    fn sum(&self, of: impl Fn(By) -> bool) -> u64 {
        self.parts.iter().filter(|(by, _)| of(*by)).map(|(_, amount)| u64::from(*amount)).sum()
    }

    fn free(&self) -> u64 {
        self.limit - self.sum(|_| true)
    }

    fn has(&self, by: By) -> Option<Amount> {
        self.parts.iter().find(|(whose, _)| *whose == by).map(|(_, amount)| *amount)
    }

    /// It has this amount; nothing: it is gone. `None`: there is no room.
    fn with(mut self, by: By, amount: Amount) -> Option<Self> {
        let before = self.has(by).unwrap_or(0);
        if u64::from(amount) > self.free() + u64::from(before) {
            return None;
        }
        let mut parts = self.parts.iter_mut();
        match parts.find(|(whose, _)| *whose == by) {
            Some(part) => part.1 = amount,
            None if amount > 0 => {
                let part = self.parts.iter_mut().find(|(whose, _)| *whose == By::Nobody);
                *part.expect("no more than the limit") = (by, amount);
            }
            None => {}
        }
        for part in self.parts.iter_mut().filter(|(_, amount)| *amount == 0) {
            *part = (By::Nobody, 0);
        }
        // One state is one value.
        self.parts.sort_unstable();
        Some(self)
    }

    fn shows(&self, committed: u64, reserved: u64) -> bool {
        self.sum(|by| matches!(by, By::Commit(_))) == committed
            && self.sum(|by| matches!(by, By::Reservation(_))) == reserved
    }
}

struct Tree;

fn is_told<T: PartialEq>(told: &Option<T>, is: T) -> bool {
    told.as_ref().is_none_or(|told| *told == is)
}

impl Model for Tree {
    type State = Books;
    type Act = Act;

    fn step(books: &Books, act: &Act) -> Option<Books> {
        let held = |id| books.has(By::Reservation(id));
        let same = |holds: bool| holds.then_some(*books);
        match *act {
            Act::Grant { id, amount, fence, free } => {
                let rises = fence.is_none_or(|fence| fence > books.fence);
                let granted = books.with(By::Reservation(id), amount)?;
                let fence = fence.unwrap_or(books.fence);
                let fits = held(id).is_none() && rises && is_told(&free, granted.free());
                fits.then_some(Books { fence, ..granted })
            }
            Act::Resize { id, amount, free } => {
                held(id)?;
                let resized = books.with(By::Reservation(id), amount)?;
                is_told(&free, resized.free()).then_some(resized)
            }
            Act::Commit { id, commit, taken, is_final } => {
                let amount = held(id)?;
                let taken = taken.unwrap_or(amount);
                let rest = amount.checked_sub(taken)?;
                let rest = if is_final { 0 } else { rest };
                books.with(By::Reservation(id), rest)?.with(By::Commit(commit), taken)
            }
            Act::Readmit { id, commit, amount } => {
                let fits = held(id).is_none() && books.has(By::Commit(commit)).is_none();
                fits.then(|| books.with(By::Commit(commit), amount))?
            }
            Act::End(id) => {
                held(id)?;
                books.with(By::Reservation(id), 0)
            }
            Act::Return { commit, amount, left } => {
                let rest = books.has(By::Commit(commit))?.checked_sub(amount)?;
                let returned = books.with(By::Commit(commit), rest)?;
                is_told(&left, u64::from(rest)).then_some(returned)
            }
            Act::Holds { id, amount, free } => {
                let is = u64::from(held(id)?);
                same(is_told(&amount, is) && is_told(&free, books.free()))
            }
            Act::Lacks(id) => same(held(id).is_none()),
            Act::Shows { committed, reserved } => same(books.shows(committed, reserved)),
            Act::Full { committed, reserved, asked } => {
                same(books.shows(committed, reserved) && asked > books.free())
            }
            Act::Left { commit, left } => {
                same(u64::from(books.has(By::Commit(commit)).unwrap_or(0)) == left)
            }
        }
    }

    fn is_read(act: &Act) -> bool {
        matches!(
            act,
            Act::Holds { .. }
                | Act::Lacks(_)
                | Act::Shows { .. }
                | Act::Full { .. }
                | Act::Left { .. }
        )
    }
}

/// The shortest beginning of a history that has no explanation.
#[derive(Clone, Debug)]
pub(super) struct Counterexample {
    why: Refuted,
    /// Those whose answers it needs, and what may have happened besides.
    operations: Vec<Operation<Act>>,
}

/// So many are shown: the last ones.
const SHOWN: usize = 60;

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.operations.len();
        writeln!(f, "{:?}: no order explains these {count} operations", self.why)?;
        let origin = self.operations.iter().map(|it| it.start).min().unwrap_or_default();
        if count > SHOWN {
            writeln!(f, "  (the last {SHOWN} of them)")?;
        }
        for operation in &self.operations[count.saturating_sub(SHOWN)..] {
            let end = operation.end.map_or("?".into(), |end| format!("{}", end - origin));
            let (start, act, name) = (operation.start - origin, &operation.act, &operation.name);
            writeln!(f, "  {start:>10} .. {end:>10} us  {act:?}  {name}")?;
        }
        Ok(())
    }
}

/// Whether the answers about one tree can be explained.
///
/// # Errors
/// The shortest beginning that cannot, without the reads that it does not need.
pub(super) fn explain(
    limit: u64,
    mut operations: Vec<Operation<Act>>,
) -> Result<(), Box<Counterexample>> {
    operations.sort_by_key(|operation| operation.start);
    let books = Books::new(limit);
    match check::<Tree>(books, &operations) {
        Ok(()) => Ok(()),
        Err(Refuted::TooHard) => {
            Err(Box::new(Counterexample { why: Refuted::TooHard, operations }))
        }
        Err(why) => {
            let operations = without_reads(books, beginning(books, &operations));
            Err(Box::new(Counterexample { why, operations }))
        }
    }
}

fn fails(books: Books, operations: &[Operation<Act>]) -> bool {
    check::<Tree>(books, operations) == Err(Refuted::Impossible)
}

/// Only answers up to some moment count: what was answered later is open. Of a lawful history each beginning is lawful.
fn up_to(operations: &[Operation<Act>], moment: u64) -> Vec<Operation<Act>> {
    let begun = operations.iter().filter(|it| it.start <= moment);
    let open = |it: &Operation<Act>| {
        let end = it.end.filter(|end| *end <= moment);
        // A read that is not answered says nothing.
        (end.is_some() || !Tree::is_read(&it.act)).then(|| Operation { end, ..it.clone() })
    };
    begun.filter_map(open).collect()
}

fn beginning(books: Books, operations: &[Operation<Act>]) -> Vec<Operation<Act>> {
    let mut ends: Vec<_> = operations.iter().filter_map(|it| it.end).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|end| !fails(books, &up_to(operations, *end)));
    ends.get(first).map_or_else(|| operations.to_vec(), |end| up_to(operations, *end))
}

/// Large bites first, for a history may have hundreds.
fn without_reads(books: Books, mut operations: Vec<Operation<Act>>) -> Vec<Operation<Act>> {
    let mut bite = operations.len();
    while bite > 0 {
        let mut from = 0;
        while from < operations.len() {
            let bitten = from..(from + bite).min(operations.len());
            let keeps = |(index, it): (usize, &Operation<Act>)| {
                let goes = bitten.contains(&index) && Tree::is_read(&it.act);
                (!goes).then(|| it.clone())
            };
            let rest: Vec<_> = operations.iter().enumerate().filter_map(keeps).collect();
            if rest.len() < operations.len() && fails(books, &rest) {
                operations = rest;
            } else {
                from += bite;
            }
        }
        bite /= 2;
    }
    operations
}
