//! What a standby passes on, and what it answers by itself.

use super::{
    asks::{abandon, acquire, release, renew},
    peers::{is_unavailable, reply},
    shared::{OTHER, Shared},
};
use crate::{
    handle::{Reply, Undecided},
    node::{CallId, Input},
    peer::{Request, Response},
};
use sereno_core::limits;

fn linked() -> Shared {
    let mut shared = Shared::following();
    shared.give(Input::Linked(OTHER.into()));
    shared
}

fn is_passed_on(shared: &Shared, id: u64) -> bool {
    let is_it = |request: &Request| matches!(request, Request::Call(call) if call.id == CallId(id));
    shared.requests.iter().any(is_it)
}

/// What it would answer rests on a state that others left behind long ago.
#[test]
fn a_door_far_behind_the_leader_says_so() {
    let mut shared = linked();
    let own = shared.node.state().time();
    let heard = |shared: &mut Shared, ahead_ms| {
        let pong = Response::Pong(own.plus(ahead_ms));
        shared.give(Input::Responded(OTHER.into(), pong));
    };
    heard(&mut shared, 5_000);
    shared.call(1, false);
    assert!(is_passed_on(&shared, 1), "five seconds are allowed");
    heard(&mut shared, 5_001);
    shared.call(2, false);
    shared.ask(3, release("a", 1), false);
    for id in [2, 3] {
        let Reply::Undecided(Undecided::Unavailable { reason, retry_after_ms }) =
            reply(&shared, id)
        else {
            panic!("{:?}", reply(&shared, id))
        };
        assert!(reason.contains("5001 ms behind"), "{reason}");
        assert_eq!(*retry_after_ms, 1_000);
        assert!(!is_passed_on(&shared, id));
    }
    assert_eq!(shared.node.status(shared.now.mono).behind_ms, 5_001);
    // What a leader before has told says nothing about the present one.
    let leads = shared.other_announces("elsewhere");
    shared.fetched(vec![leads]);
    assert_eq!(shared.node.status(shared.now.mono).behind_ms, 0);
}

/// A flood of acquires at this door keeps nobody's renewal, release or abandon from the leader.
#[test]
fn each_kind_of_call_has_its_own_bound() {
    let mut shared = linked();
    let ordinary = limits::INTAKE_ORDINARY_MAX as u64;
    for n in 0..ordinary {
        shared.ask(n, acquire("a", n), false);
    }
    assert!(shared.replies.is_empty());
    shared.call(1_000_000, false);
    let is_overloaded =
        |reply: &Reply| matches!(reply, Reply::Undecided(Undecided::Overloaded { .. }));
    assert!(is_overloaded(reply(&shared, 1_000_000)));
    let renewals = limits::INTAKE_RENEWALS_MAX as u64;
    for n in 0..renewals {
        shared.ask(2_000_000 + n, renew("a", n), false);
    }
    shared.ask(3_000_000, renew("a", 1), false);
    assert!(is_overloaded(reply(&shared, 3_000_000)), "they have a bound, too");
    shared.ask(3_000_001, release("a", 1), false);
    shared.ask(3_000_002, abandon(1), false);
    for id in [2_000_000, 2_000_000 + renewals - 1, 3_000_001, 3_000_002] {
        assert!(is_passed_on(&shared, id), "{id}");
    }
    assert_eq!(shared.replies.len(), 2);
    // Each answer makes room for one of its kind.
    let unknown = Reply::Undecided(Undecided::Unknown);
    let answer = Response::Reply(CallId(7), unknown.clone());
    shared.give(Input::Responded(OTHER.into(), answer));
    assert_eq!(reply(&shared, 7), &unknown);
    shared.call(4_000_000, false);
    assert!(is_passed_on(&shared, 4_000_000));
    shared.ask(4_000_001, renew("a", 2), false);
    assert!(is_overloaded(reply(&shared, 4_000_001)));
    // And so does a caller who has gone.
    shared.give(Input::Cancelled(CallId(2_000_000)));
    shared.ask(4_000_002, renew("a", 2), false);
    assert!(is_passed_on(&shared, 4_000_002));
    // With the link all of them are gone, and there is room again.
    shared.give(Input::LinkLost(OTHER.into()));
    shared.call(5_000_000, false);
    assert!(is_unavailable(reply(&shared, 5_000_000)));
    shared.give(Input::Linked(OTHER.into()));
    shared.call(5_000_001, false);
    assert!(is_passed_on(&shared, 5_000_001));
    let open = shared.node.status(shared.now.mono).intake;
    assert_eq!(open, 1);
}
