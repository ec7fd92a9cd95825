//! S8 and L4: no lease ends before the TTL of its last answer has passed, in cluster time; and in real time not before
//! its holder's own clock has told it so.

use super::{Change, Ledger, Told};
use crate::place::Place;
use sereno_core::{
    event::EventKind,
    ids::{ClusterTime, Token},
    outcome::{End, Grant, Renewed},
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines {
    /// In cluster time, by the lease's public hash; the furthest that was ever answered.
    of: BTreeMap<u64, ClusterTime>,
}

impl Deadlines {
    pub(super) fn of(&self, lease: u64) -> Option<ClusterTime> {
        self.of.get(&lease).copied()
    }

    pub(super) fn granted(&mut self, time: ClusterTime, grant: &Grant) {
        let of = self.of.entry(grant.lease_id.public_hash()).or_default();
        *of = time.plus(grant.expires_in_ms).max(*of);
    }

    /// A renewal has named this deadline.
    pub(super) fn renewed(&mut self, lease: u64, deadline: ClusterTime, renewed: &Renewed) {
        let of = self.of.entry(lease).or_default();
        assert!(
            deadline >= *of,
            "S8: a renewal brings no deadline nearer: {deadline} after {of} of {}",
            renewed.token
        );
        *of = deadline;
    }

    pub(super) fn event(&self, ledger: &Ledger, told: &Told, change: &Change) {
        let EventKind::Ended { token, end, .. } = change.kind else { return };
        let Change { place, lease, time, now, .. } = *change;
        let belief = told.belief(*token, now);
        match end {
            End::Expired | End::MaxHold => {
                let due = self.of(lease).unwrap_or_default();
                assert!(
                    time >= due,
                    "S8: {place}: no lease ends before its deadline: {token} at {time}, due {due}"
                );
                assert!(
                    belief.is_none(),
                    "L4: {place}: who loses a lease knows it before: {token} of {belief:?} at {now}"
                );
            }
            End::Abandoned => {
                let by_owner = |request| told.abandoned.contains(request);
                assert!(
                    ledger.request_of(lease).is_some_and(by_owner) || belief.is_none(),
                    "S8: {place}: a lease that its owner relies on is not taken back: {token}"
                );
            }
            End::Released | End::Forced | End::HandedOff | End::Finished | End::Replaced => {}
            End::Committed => panic!("S8: {place}: only a reservation of a quota is committed"),
        }
    }
}

/// A client is told that it holds, and will rely on it.
pub(super) fn relies(ledger: &Ledger, told: &Told, place: &Place, token: Token) {
    let holder = ledger.holders.get(place);
    let is_it = holder.is_some_and(|holder| holder.token == token);
    assert!(
        is_it || told.may_end_unseen(token),
        "S8: {place}: who is told that it holds does so: {token}, held by {holder:?}"
    );
}
