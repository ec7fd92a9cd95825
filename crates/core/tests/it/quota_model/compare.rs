//! What was answered, in the reference's few words; and the figures of all nodes.

use super::books::{Books, Phase};
use sereno_core::{
    State,
    command::NodeRef,
    names::NamespaceName,
    outcome::{Detail, Done, Outcome, QuotaDone, ReservationState, Shortage},
    query::{ListReservations, ReservationView},
};

/// A node by its whole name.
pub(super) fn name(node: &NodeRef) -> String {
    format!("{}/{}", node.quota, node.path)
}

pub(super) fn said(outcome: &Outcome, granted: bool) -> String {
    match &outcome.result {
        Ok(Done::Waiting(_)) => "waiting".into(),
        Ok(Done::Quota(done)) => match done {
            QuotaDone::LimitPut { version, .. } => format!("version {version}"),
            QuotaDone::Reserved(_) if granted => "granted".into(),
            QuotaDone::Reserved(reserved) => format!("held for {}", reserved.expires_in_ms),
            QuotaDone::Committed(done) => {
                format!("committed {}", done.taken.iter().map(|item| item.amount).sum::<u64>())
            }
            QuotaDone::Released { already: None, .. } => "released".into(),
            QuotaDone::Released { already: Some(end), .. } => format!("already {}", end.as_str()),
            QuotaDone::Returned { left, .. } => format!("returned, {left} left"),
            QuotaDone::Settled { .. } => "settled".into(),
            QuotaDone::Adjusted { committed, .. } => format!("adjusted to {committed}"),
            other => panic!("not generated: {other:?}"),
        },
        Ok(other) => panic!("not of a quota: {other:?}"),
        Err(refusal) => match &refusal.detail {
            Detail::Exhausted(of) if refusal.code == sereno_core::outcome::Code::QuotaExhausted => {
                let layers = of.layers.iter().filter(|layer| layer.kind != Shortage::OwnerMax);
                let mut names: Vec<_> = layers.map(|layer| name(&layer.node)).collect();
                names.sort();
                format!("exhausted {}", names.join(" "))
            }
            _ => format!("{:?}", refusal.code),
        },
    }
}

/// Every figure of every node, and who has what, as the reference has it.
pub(super) fn compare(state: &State, namespace: &NamespaceName, books: &Books) {
    for (node, (limits, version)) in &books.limits {
        let view = state.quota_node(namespace, node).flatten().expect("the node is there");
        let (committed, reserved) = books.used(node);
        let claim = books.claim(node, &Default::default());
        let named = name(node);
        assert_eq!(view.limits, *limits, "{named}");
        assert_eq!(view.version, *version, "{named}");
        assert_eq!((view.committed, view.reserved), (committed, reserved), "use of {named}");
        let direct = view.direct_committed + view.direct_reserved;
        assert_eq!(direct, books.direct(node), "direct use of {named}");
        assert_eq!(view.effective_guaranteed, books.effective(node), "guarantee of {named}");
        assert_eq!(view.debt, claim.saturating_sub(books.cap(node)), "debt of {named}");
        assert_eq!(view.available, books.available(node), "available of {named}");
    }
    let list = ListReservations { limit: 1_000, ..ListReservations::default() };
    let page = state.list_reservations(namespace, &list).expect("the namespace is there");
    assert_eq!(page.reservations.len(), books.reservations.len(), "who holds or waits");
    let mut sorted: Vec<_> = books.reservations.iter().collect();
    sorted.sort_by_key(|of| of.number);
    for (view, of) in page.reservations.iter().zip(sorted) {
        compare_one(view, of, books.now);
    }
}

fn compare_one(view: &ReservationView, of: &super::books::Reservation, now: u64) {
    let state = match of.phase {
        Phase::Waiting => ReservationState::Waiting,
        Phase::Reserved => ReservationState::Reserved,
        Phase::InFlight => ReservationState::InFlight,
        Phase::Quarantined => ReservationState::Quarantined,
    };
    assert_eq!((view.state, view.owner.as_str()), (state, of.owner.as_str()));
    let left = if of.phase == Phase::Quarantined { 0 } else { of.deadline.saturating_sub(now) };
    assert_eq!(view.expires_in_ms, left, "of {of:?}");
    let mut items: Vec<_> =
        view.items.iter().map(|item| (item.node.clone(), item.amount)).collect();
    items.sort();
    assert!(items.into_iter().eq(of.items.clone()), "of {of:?}");
}
