//! What the other nodes' presence records change, and what a leader tells calls while its log is away.

use super::{
    asks::{Ask, acquire, release},
    shared::{Shared, presence_of},
    world::{WALL_US, settings},
};
use crate::{
    handle::{Reply, Undecided},
    node::{CallId, Input, Presence},
};
use sereno_core::{command::Operation, ids::Position, limits};
use sereno_log::{Append, memory::Memory};

/// A node that leads, alone so far.
pub(super) fn leading() -> Shared {
    let mut shared = Shared::at(Memory::default());
    shared.pass(2_100);
    assert!(shared.node.is_leader());
    shared
}

pub(super) fn reply(shared: &Shared, id: u64) -> &Reply {
    let found = shared.replies.iter().find(|(of, _)| *of == CallId(id));
    &found.expect("it is answered").1
}

pub(super) fn is_unavailable(reply: &Reply) -> bool {
    matches!(reply, Reply::Undecided(Undecided::Unavailable { .. }))
}

/// Nodes of two versions share a log: the newer ones' records are longer.
#[test]
fn a_record_of_a_newer_version_is_read() {
    let record = Presence { level_max: 9, beat: 3, ..presence_of("n2") };
    let mut bytes = record.to_bytes();
    assert_eq!(Presence::from_bytes(&bytes), Some(record.clone()));
    bytes.extend_from_slice(b"of a later version");
    assert_eq!(Presence::from_bytes(&bytes), Some(record.clone()));
    // And the older ones' are shorter: they end before `twin`.
    let older = borsh::to_vec(&record).expect("memory takes all");
    assert_eq!(Presence::from_bytes(&older), Some(record.clone()));
    let with_twin = Presence { twin: Some("there".into()), ..record };
    assert_eq!(Presence::from_bytes(&with_twin.to_bytes()), Some(with_twin));
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
    let told = |shared: &Shared| shared.node.status(shared.now.mono).twin;
    assert_eq!(told(&shared), Some(settings().writer.node_id));
    shared.pass(12_000);
    assert_eq!(told(&shared), None);
    assert!(shared.node.is_leader(), "the other one has gone");
}

/// Whoever asks any node learns which ones were there, and since when they are not.
#[test]
fn a_node_that_has_gone_is_remembered_for_a_day() {
    let mut shared = leading();
    let ids = |shared: &Shared| {
        let peers = shared.node.status(shared.now.mono).peers;
        peers.into_iter().map(|it| (it.node_id, it.gone)).collect::<Vec<_>>()
    };
    let is = |id: &str, gone: bool| (id.to_owned(), gone);
    let old = Presence { level_max: 1, ..presence_of("n2") };
    shared.give(Input::Present(vec![old, presence_of("n3")]));
    assert_eq!(ids(&shared), [is("n2", false), is("n3", false)]);
    shared.pass(1_000);
    shared.present(2, &[("n3", WALL_US)]);
    assert_eq!(ids(&shared), [is("n2", true), is("n3", false)]);
    shared.pass(4_000);
    assert_eq!(shared.node.status(shared.now.mono).peers[0].silent_ms, 5_000);
    // Nothing rests on it: it cannot keep the others at its level.
    shared.ask(9, Ask::new(Operation::RaiseLevel { level: 2 }), false);
    shared.pass(100);
    assert!(matches!(reply(&shared, 9), Reply::Decided(_)), "{:?}", reply(&shared, 9));
    // It comes back as what it is.
    shared.present(3, &[("n2", WALL_US), ("n3", WALL_US)]);
    assert_eq!(ids(&shared), [is("n2", false), is("n3", false)]);
    shared.present(4, &[("n3", WALL_US)]);
    shared.now.mono = shared.now.mono.plus_ms(24 * 3_600_000 + 1);
    shared.present(5, &[("n3", WALL_US)]);
    assert_eq!(ids(&shared), [is("n3", false)]);
}

/// As where each start of a container has another id.
#[test]
fn of_many_that_have_gone_the_newest_are_remembered() {
    let mut shared = leading();
    for start in 0..70 {
        shared.present(1, &[(&format!("pod-{start:02}"), WALL_US)]);
        shared.pass(1_000);
    }
    shared.present(1, &[]);
    let peers = shared.node.status(shared.now.mono).peers;
    assert_eq!(peers.len(), 64);
    assert_eq!(peers[0].node_id, "pod-06");
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
