//! One leased name (a lock, an election, a thing on hold, a job) as a model for the linearizability check: who has it.
//! It knows nothing of revisions.

use super::linear::{Model, Operation, Refuted, check};
use std::fmt;

/// A lease, by its place in the projection's list.
pub(super) type Lease = u32;

/// What an answer says of the name, at some moment between call and answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It was granted.
    Grant(Lease, Option<u64>),
    /// The lease ended: released, expired, ended by force.
    End(Lease),
    /// The lease ended, if it had not before.
    Gone(Lease),
    /// This lease held.
    Holds(Lease),
    /// This lease did not hold.
    Lacks(Lease),
    /// Nobody held.
    Free,
}

impl Act {
    /// The lease that it is about.
    pub(super) fn lease(&self) -> Option<Lease> {
        match self {
            Self::Grant(lease, _)
            | Self::End(lease)
            | Self::Gone(lease)
            | Self::Holds(lease)
            | Self::Lacks(lease) => Some(*lease),
            Self::Free => None,
        }
    }
}

/// Who holds, and the last token granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Leased {
    holder: Option<Lease>,
    token: u64,
}

struct OneHolder;

impl Model for OneHolder {
    type State = Leased;
    type Act = Act;

    fn step(leased: &Leased, act: &Act) -> Option<Leased> {
        let holds = |lease| leased.holder == Some(lease);
        match *act {
            Act::Grant(lease, token) => {
                let rises = token.is_none_or(|token| token > leased.token);
                let granted = Leased { holder: Some(lease), token: token.unwrap_or(leased.token) };
                (leased.holder.is_none() && rises).then_some(granted)
            }
            Act::End(lease) => holds(lease).then_some(Leased { holder: None, ..*leased }),
            Act::Gone(lease) if holds(lease) => Some(Leased { holder: None, ..*leased }),
            Act::Gone(_) => Some(*leased),
            Act::Holds(lease) => holds(lease).then_some(*leased),
            Act::Lacks(lease) => (!holds(lease)).then_some(*leased),
            Act::Free => leased.holder.is_none().then_some(*leased),
        }
    }

    fn is_read(act: &Act) -> bool {
        matches!(act, Act::Holds(_) | Act::Lacks(_) | Act::Free)
    }
}

/// A part of a history that has no explanation, and no part of which can be left out.
#[derive(Clone, Debug)]
pub(super) struct Counterexample {
    why: Refuted,
    /// In the order of starts.
    pub(super) operations: Vec<Operation<Act>>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:?}: no order explains these {} operations",
            self.why,
            self.operations.len()
        )?;
        let origin = self.operations.iter().map(|it| it.start).min().unwrap_or_default();
        for operation in &self.operations {
            let end = operation.end.map_or("?".into(), |end| format!("{}", end - origin));
            let (start, act, name) = (operation.start - origin, &operation.act, &operation.name);
            writeln!(f, "  {start:>10} .. {end:>10} us  {act:?}  {name}")?;
        }
        Ok(())
    }
}

/// Whether the answers about one name can be explained.
///
/// # Errors
/// The smallest part that cannot.
pub(super) fn explain(mut operations: Vec<Operation<Act>>) -> Result<(), Box<Counterexample>> {
    operations.sort_by_key(|operation| operation.start);
    match check::<OneHolder>(Leased::default(), &operations) {
        Ok(()) => Ok(()),
        Err(why) => {
            let operations = match why {
                Refuted::Impossible => shrink(operations),
                Refuted::TooHard => operations,
            };
            Err(Box::new(Counterexample { why, operations }))
        }
    }
}

/// Leaves out what is not needed: first whole leases, of which a lawful history stays lawful, then single reads.
fn shrink(mut operations: Vec<Operation<Act>>) -> Vec<Operation<Act>> {
    let mut leases: Vec<_> = operations.iter().filter_map(|it| it.act.lease()).collect();
    leases.sort_unstable();
    leases.dedup();
    // Large bites first, for a history may have thousands.
    let mut bite = leases.len();
    while bite > 0 {
        for bitten in leases.chunks(bite) {
            let keeps = |it: &Operation<Act>| it.act.lease().is_none_or(|it| !bitten.contains(&it));
            leave_out(&mut operations, keeps);
        }
        bite /= 2;
    }
    let mut index = 0;
    while index < operations.len() {
        let is_read = OneHolder::is_read(&operations[index].act);
        let gone = operations[index].clone();
        let keeps = |it: &Operation<Act>| it.name != gone.name || it.act != gone.act;
        if !(is_read && leave_out(&mut operations, keeps)) {
            index += 1;
        }
    }
    operations
}

fn leave_out(
    operations: &mut Vec<Operation<Act>>,
    keeps: impl Fn(&Operation<Act>) -> bool,
) -> bool {
    let rest: Vec<_> = operations.iter().filter(|it| keeps(it)).cloned().collect();
    let is_smaller = rest.len() < operations.len();
    let fails =
        is_smaller && check::<OneHolder>(Leased::default(), &rest) == Err(Refuted::Impossible);
    if fails {
        *operations = rest;
    }
    fails
}
