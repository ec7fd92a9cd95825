//! S4: only the current lease is renewed, released or ended by force, and only by who can name it.

use super::{Change, Ledger, Told};
use crate::place::Place;
use sereno_core::{
    command::{Family, LeaseRef},
    event::EventKind,
    names::NamespaceName,
    outcome::{End, Grant, Renewed},
};

pub(super) fn event(ledger: &Ledger, told: &Told, change: &Change) {
    let EventKind::Ended { token, end, .. } = change.kind else { return };
    let Change { place, lease, .. } = *change;
    let holder = ledger.holders.get(place);
    let is_it = holder.is_some_and(|holder| holder.token == *token && holder.lease == lease);
    assert!(is_it, "S4: {place}: only the current lease ends: {token}, held by {holder:?}");
    match end {
        End::Released | End::HandedOff | End::Finished if place.family != Family::Hold => assert!(
            told.released.contains(&lease),
            "S4: {place}: a lease is released by its owner: {token}"
        ),
        End::Forced => {
            assert!(told.forced.contains(token), "S4: {place}: {token} was ended by force");
        }
        // By the owner of a hold: `holds` looks at that.
        End::Released | End::Replaced => {}
        End::HandedOff | End::Finished => panic!("S4: {place}: a hold is not {end:?}"),
        End::Committed => panic!("S4: {place}: only a reservation of a quota is committed"),
        End::Expired | End::MaxHold | End::Abandoned => {}
    }
}

pub(super) fn renewed(
    ledger: &Ledger,
    family: Family,
    namespace: &NamespaceName,
    lease: &LeaseRef,
    renewed: &Renewed,
) {
    let hash = lease.lease_id.public_hash();
    // An overlapping run is named by its job, and leased by a longer name.
    let holder = match family {
        Family::Job => ledger.holder_by_lease(hash),
        _ => ledger.holders.get(&Place::new(family, namespace, &lease.resource)),
    };
    let is_it = holder.is_some_and(|it| it.token == renewed.token && it.lease == hash);
    assert!(is_it, "S4: only the current lease is renewed: {}, held by {holder:?}", renewed.token);
}

/// An answer says that it is held.
pub(super) fn granted(ledger: &Ledger, family: Family, namespace: &NamespaceName, grant: &Grant) {
    for (resource, token) in &grant.holdings {
        let holder = ledger.holders.get(&Place::new(family, namespace, resource));
        let is_held = holder.is_some_and(|holder| holder.token == *token);
        // Or a later command of the same entry has ended it.
        assert!(
            is_held || ledger.ended.contains(token),
            "S4: {resource}: what is answered as granted is held: {token}"
        );
    }
}
