//! S1: a resource has at most one valid lease, in the log and in the world.

use super::{Change, Ledger, Told};
use sereno_core::{event::EventKind, ids::Token};
use std::collections::BTreeMap;

/// Who held each resource last, also before the log was replaced by another.
#[derive(Debug, Default)]
pub(super) struct OneHolder {
    last: BTreeMap<crate::place::Place, Token>,
}

impl OneHolder {
    pub(super) fn event(&mut self, ledger: &Ledger, told: &Told, change: &Change) {
        let EventKind::Granted { token, .. } = change.kind else { return };
        let place = change.place;
        let holder = ledger.holders.get(place);
        assert!(
            holder.is_none(),
            "S1: {place} has one valid lease: {token} is granted, held by {holder:?}"
        );
        let before = self.last.insert(place.clone(), *token);
        let Some(before) = before.filter(|before| !told.may_end_unseen(*before)) else { return };
        let belief = told.belief(before, change.now);
        assert!(
            belief.is_none(),
            "S1: {place} has one holder: {token} is granted while {belief:?} relies on {before}"
        );
    }
}
