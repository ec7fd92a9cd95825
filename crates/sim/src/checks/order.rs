//! L3: waiters of a resource are served in order, and nobody barges past a queue.

use super::{Change, Ledger, ledger::Waiter};
use sereno_core::event::EventKind;

pub(super) fn event(ledger: &Ledger, change: &Change) {
    let EventKind::Granted { waited_ms, .. } = change.kind else { return };
    let Change { place, lease, time, .. } = *change;
    if ledger.handing_off.contains(place) {
        return; // The one that was named comes first.
    }
    let Some(queue) = ledger.queues.get(place) else { return };
    let is_live = |waiter: &Waiter| waiter.deadline > time;
    if waited_ms.is_some() {
        let in_front = queue.iter().take_while(|waiter| waiter.lease != lease);
        assert!(
            !in_front.into_iter().any(is_live),
            "L3: {place}: waiters are served in order: {queue:?}"
        );
    } else {
        assert!(!queue.iter().any(is_live), "L3: {place}: nobody barges past a queue: {queue:?}");
    }
}
