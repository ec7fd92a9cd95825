//! What the other nodes' presence records change, and what a leader tells calls while its log is away.

use super::{
    asks::{acquire, release},
    shared::{Shared, presence_of},
    world::settings,
};
use crate::{
    handle::{Reply, Undecided},
    node::{CallId, Input, Presence},
};
use sereno_core::{ids::Position, limits};
use sereno_log::{Append, memory::Memory};

/// A node that leads, alone so far.
fn leading() -> Shared {
    let mut shared = Shared::at(Memory::default());
    shared.pass(2_100);
    assert!(shared.node.is_leader());
    shared
}

fn reply(shared: &Shared, id: u64) -> &Reply {
    let found = shared.replies.iter().find(|(of, _)| *of == CallId(id));
    &found.expect("it is answered").1
}

fn is_unavailable(reply: &Reply) -> bool {
    matches!(reply, Reply::Undecided(Undecided::Unavailable { .. }))
}

/// Nodes of two versions share a log: the newer ones' records are longer.
#[test]
fn a_record_of_a_newer_version_is_read() {
    let record = Presence { level_max: 9, beat: 3, ..presence_of("n2") };
    let mut bytes = record.to_bytes();
    assert_eq!(Presence::from_bytes(&bytes), Some(record.clone()));
    bytes.extend_from_slice(b"of a later version");
    assert_eq!(Presence::from_bytes(&bytes), Some(record));
    assert_eq!(Presence::from_bytes(b"no record"), None);
}

/// Whoever can write to etcd can write one. It must not end the process.
#[test]
fn a_record_with_a_clock_that_no_clock_shows_is_none() {
    for (wall_us, is_read) in
        [(limits::WALL_US_MAX, true), (limits::WALL_US_MAX + 1, false), (u64::MAX, false)]
    {
        let bytes = Presence { wall_us, ..presence_of("n2") }.to_bytes();
        assert_eq!(Presence::from_bytes(&bytes).is_some(), is_read, "{wall_us}");
    }
}

/// Neither of two processes with one id can be told by its record: it does not lead. What a process before this one has
/// left behind is no twin.
#[test]
fn a_node_with_a_twin_does_not_lead() {
    let own_id = |beat| Presence { start: 77, beat, ..presence_of(&settings().writer.node_id) };
    let mut shared = Shared::at(Memory::default());
    shared.give(Input::Present(vec![own_id(5)]));
    shared.pass(2_100);
    assert!(shared.node.is_leader(), "it was here before, and is not any more");

    let mut shared = Shared::at(Memory::default());
    for beat in 5..8 {
        shared.give(Input::Present(vec![own_id(beat)]));
        shared.pass(1_000);
    }
    assert!(!shared.node.is_leader());
    let why = shared.node.not_ready.clone().expect("it says why");
    assert!(why.contains("id"), "{why}");
    shared.pass(12_000);
    assert!(shared.node.is_leader(), "the other one has gone");
}

#[test]
fn a_snapshot_that_another_node_has_saved_is_known() {
    let mut shared = leading();
    shared.pass(5_000);
    let now = shared.now.mono;
    // Another one that knows of none, or of one that cannot be yet.
    for snapshot in [None, Some(u64::MAX)] {
        shared.give(Input::Present(vec![Presence { snapshot, ..presence_of("n2") }]));
        assert_eq!(shared.node.status(now).snapshot, None);
    }
    let before = shared.node.status(now).log_bytes_since_snapshot;
    shared.give(Input::Present(vec![Presence { snapshot: Some(2), ..presence_of("n2") }]));
    let status = shared.node.status(now);
    assert_eq!(status.snapshot, Some(Position(2)));
    assert_eq!(status.snapshot_age_ms, Some(0));
    assert!(status.log_bytes_since_snapshot < before, "counted from there: {status:?}");
    // An older one changes nothing.
    shared.pass(1_000);
    shared.give(Input::Present(vec![Presence { snapshot: Some(1), ..presence_of("n3") }]));
    assert_eq!(shared.node.status(shared.now.mono).snapshot, Some(Position(2)));
}

/// Nobody has to wait for a deadline to learn what the leader knows. What keeps or ends a lease waits for the log.
#[test]
fn while_the_log_is_away_new_calls_are_refused_at_once() {
    let mut shared = leading();
    shared.ask(1, acquire("a", 1), false);
    shared.lands = false;
    shared.pass(600);
    let silent = |shared: &mut Shared| {
        shared.sent = None;
        shared.give(Input::Appended(Append::Unknown("lost".into())));
    };
    silent(&mut shared);
    shared.ask(2, acquire("b", 2), false);
    assert!(!shared.replies.iter().any(|(id, _)| *id == CallId(2)), "it may be back soon");
    shared.pass(3_100);
    silent(&mut shared);
    shared.ask(3, acquire("c", 3), false);
    assert!(is_unavailable(reply(&shared, 3)));
    shared.ask(4, release("a", 1), false);
    assert!(!shared.replies.iter().any(|(id, _)| *id == CallId(4)), "it waits for the log");
}
