//! Events for the tests of the trail.

use sereno_core::{
    command::Family,
    entry::EntryHash,
    event::{Event, EventKind},
    ids::{ClusterTime, Position, Revision, Token},
    names::{Caller, NamespaceName, Owner, ResourceName},
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

/// One that does not belong into the trail.
pub(super) fn wait_ended(owner: &str) -> Event {
    event(owner, EventKind::WaitEnded { why: Some(WaitEnd::TimedOut), waited_ms: 1 })
}
