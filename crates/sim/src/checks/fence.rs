//! S3: a guarded resource never takes a write of a token lower than the highest it has taken: after the next holder's
//! first write, a zombie changes nothing. And who holds is never refused.

use super::{Ledger, Told};
use crate::{clock::Real, event::Write, place::Place};
use sereno_core::ids::Token;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Fence {
    /// The last write that each resource has taken: token and lease.
    taken: BTreeMap<Place, (Token, u64)>,
}

impl Fence {
    pub(super) fn taken(&mut self, write: &Write) {
        let Write { place, token, lease, .. } = write;
        let before = self.taken.insert(place.clone(), (*token, *lease));
        let Some((last, of)) = before else { return };
        assert!(*token >= last, "S3: {place} has taken {last}, and then a write of {token}");
        assert!(
            *token > last || *lease == of,
            "S3: {place}: two leases write with one token: {token}"
        );
    }

    pub(super) fn refused(&self, ledger: &Ledger, told: &Told, write: &Write, now: Real) {
        let Write { place, token, .. } = write;
        let holder = ledger.holders.get(place);
        let is_held = holder.is_some_and(|holder| holder.token == *token);
        // A backup does not know of a forced release after it, nor does the one whose lease that was.
        let is_held = is_held && !told.may_end_unseen(*token);
        assert!(
            !is_held || told.belief(*token, now).is_none(),
            "S3: {place}: who holds is not refused: {token}"
        );
    }
}
