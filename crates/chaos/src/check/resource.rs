//! S3 and the end of the chain: what became of what was written under the lock.

use super::Violation;
use crate::resource::{Fate, Visit};
use std::collections::{BTreeMap, BTreeSet};

/// What the protected resource lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Elements written under lock and fence.
    pub fenced: usize,
    /// Of these, lost: a violation.
    pub fenced_lost: usize,
    /// Late writes that the fence refused.
    pub refused: usize,
    /// Elements written under the lock only.
    pub plain: usize,
    /// Of these, overwritten by somebody who had read before them. Every lease has this.
    pub plain_lost: usize,
    /// Entries into what the mutex alone guards.
    pub entries: usize,
    /// Of these, while somebody else was inside. Every lease has this.
    pub overlapping: usize,
}

/// Walks through what the resource did, in its order.
pub(super) fn check(visits: &[Visit]) -> (Vec<Violation>, Losses) {
    let (mut violations, mut losses) = (Vec::new(), Losses::default());
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut written: BTreeMap<&str, (BTreeSet<u64>, &BTreeSet<u64>, bool)> = BTreeMap::new();
    static NOTHING: BTreeSet<u64> = BTreeSet::new();
    for visit in visits {
        if let Some(token) = visit.token.filter(|_| visit.fate != Fate::Refused) {
            let highest = highest.entry(&visit.name).or_default();
            if token < *highest {
                let message = format!("{} took {token} after {highest}: {visit:?}", visit.name);
                violations.push(Violation::new("S3", message));
            }
            *highest = token.max(*highest);
        }
        match &visit.fate {
            Fate::Refused => losses.refused += 1,
            Fate::Read => {}
            Fate::Wrote { element, all } => {
                let of = written
                    .entry(&visit.name)
                    .or_insert_with(|| (BTreeSet::new(), &NOTHING, visit.token.is_some()));
                of.0.insert(*element);
                of.1 = all;
            }
            Fate::Entered { others } => {
                losses.entries += 1;
                losses.overlapping += usize::from(*others > 0);
            }
        }
    }
    for (name, (elements, all, is_fenced)) in written {
        let lost: Vec<_> = elements.difference(all).collect();
        if is_fenced {
            losses.fenced += elements.len();
            losses.fenced_lost += lost.len();
            if !lost.is_empty() {
                let message = format!("{name} lost {lost:?}, written under lock and fence");
                violations.push(Violation::new("S3", message));
            }
        } else {
            losses.plain += elements.len();
            losses.plain_lost += lost.len();
        }
    }
    (violations, losses)
}
