//! Events for the tests of the trail.

use sereno_core::{
    command::{Family, NodeRef},
    entry::EntryHash,
    event::{Event, EventKind, LayerChange, LedgerLine, QuotaChange, QuotaEvent},
    ids::{ClusterTime, Position, ReservationId, Revision, Token},
    names::{Caller, NamespaceName, Owner, QuotaName, QuotaPath, Reason, ResourceName},
    outcome::{End, WaitEnd},
};
use sereno_node::events::EventBatch;

pub(super) fn batch(position: u64, events: Vec<Event>) -> EventBatch {
    EventBatch {
        position: Position(position),
        hash: EntryHash([position as u8; 32]),
        time: ClusterTime(position * 10),
        wall_us: 1_764_540_000_000_000 + position,
        revision: Revision(1),
        events,
    }
}

fn event(owner: &str, kind: EventKind) -> Event {
    Event {
        revision: Revision(1),
        family: Family::Lock,
        namespace: Some(NamespaceName::new("default").unwrap()),
        resource: Some(ResourceName::new("r").unwrap()),
        owner: Some(Owner::new(owner).unwrap()),
        caller: Caller::new("").unwrap(),
        lease_hash: Some(0x1234),
        kind,
    }
}

pub(super) fn granted(owner: &str, token: u64) -> Event {
    event(owner, EventKind::Granted { token: Token(token), waited_ms: None })
}

pub(super) fn ended(owner: &str, token: u64) -> Event {
    event(
        owner,
        EventKind::Ended { token: Token(token), end: End::Expired, held_ms: 5, reason: None },
    )
}

/// A change of a quota.
pub(super) fn changed(change: QuotaChange, lines: Vec<LedgerLine>) -> Event {
    let reservation = Some((ReservationId([1; 16]), Token(7)));
    let reason = Some(Reason::new("a \"test\"").unwrap());
    let of = QuotaEvent { reservation, change, lines, reason };
    let quota = event("anna", EventKind::Quota(Box::new(of)));
    Event { family: Family::Quota, lease_hash: None, ..quota }
}

pub(super) fn node(path: &str) -> NodeRef {
    NodeRef { quota: QuotaName::new("gpu").unwrap(), path: QuotaPath::new(path).unwrap() }
}

/// The root of a quota goes from so much reserved to so much.
pub(super) fn booked(before: u64, after: u64) -> Event {
    let layers = vec![LayerChange { committed: (0, 0), reserved: (before, after) }];
    let lines = vec![LedgerLine { node: node(""), layers }];
    changed(QuotaChange::Reserved { waited_ms: None }, lines)
}

/// One that does not belong into the trail.
pub(super) fn wait_ended(owner: &str) -> Event {
    event(owner, EventKind::WaitEnded { why: Some(WaitEnd::TimedOut), waited_ms: 1 })
}
