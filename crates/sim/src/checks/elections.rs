//! Elections: a candidate waits once, and a hand-off is to whoever was named, by the leader alone.

use super::{Change, Ledger, ledger::Waiter};
use sereno_core::{
    command::{ElectionCommand, Family, Operation},
    event::{Event, EventKind},
    outcome::{Done, End, Outcome},
};

pub(super) fn event(ledger: &Ledger, change: &Change) {
    let (Family::Election, EventKind::Queued) = (change.place.family, change.kind) else { return };
    let queue = ledger.queues.get(change.place);
    let is_same =
        |waiter: &Waiter| waiter.owner.as_ref() == change.owner && waiter.deadline > change.time;
    assert!(
        !queue.is_some_and(|queue| queue.iter().any(is_same)),
        "S7: {}: a candidate waits once, and an earlier campaign is over: {:?}",
        change.place,
        change.owner
    );
}

/// `events`: those of the outcome's revision.
pub(super) fn outcome<'a>(
    operation: &Operation,
    outcome: &Outcome,
    events: impl Iterator<Item = &'a Event>,
) {
    let Operation::Election(ElectionCommand::Handoff(op)) = operation else { return };
    let events: Vec<_> = events.collect();
    let Ok(Done::HandedOff { term }) = &outcome.result else {
        return assert!(events.is_empty(), "a refused hand-off changes nothing: {events:?}");
    };
    if outcome.replayed.is_some() {
        return assert!(events.is_empty(), "S4: a repeated hand-off changes nothing: {events:?}");
    }
    for event in events {
        match &event.kind {
            EventKind::Ended { end, .. } => assert!(
                *end == End::HandedOff && event.lease_hash == Some(op.lease.lease_id.public_hash()),
                "S4: a hand-off ends the leader's own term: {event:?}"
            ),
            EventKind::Granted { token, .. } => assert!(
                token == term && event.owner.as_ref() == Some(&op.to),
                "a hand-off is to {}: {event:?}",
                op.to
            ),
            _ => {}
        }
    }
}
