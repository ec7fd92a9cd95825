//! The checkers that know nothing of the log.

use super::*;
use crate::{
    check::resource,
    history::Held,
    resource::{Fate, Resource, Visit, What},
};
use std::collections::BTreeSet;

/// The counterexample for these calls, if there is one.
fn linearized(calls: &[Call]) -> Result<(), String> {
    super::linearized(Family::Lock, calls)
}

/// One after the other, as it should be.
fn lawful() -> Vec<Call> {
    vec![
        call(0, 5, acquire("first"), granted(1, 1)),
        call(6, 8, acquire("other"), locked("first", 1, 2)),
        call(9, 12, get(), read(Some(("first", 1)), 2)),
        call(20, 25, Op::Renew(lease("first")), renewed(1, 3)),
        call(30, 35, Op::Release(lease("first")), released(true, 4)),
        call(40, 45, get(), read(None, 4)),
        call(50, 55, acquire("second"), granted(2, 5)),
        call(60, 65, Op::Release(lease("first")), released(false, 6)),
    ]
}

#[test]
fn lawful_histories_have_an_order() {
    linearized(&lawful()).unwrap();
    // A grant that nobody was told of, but that others saw, and that ended by itself.
    linearized(&[
        call(0, None, acquire("silent"), unknown()),
        call(20, 25, get(), read(Some(("silent", 7)), 3)),
        call(12_000, 12_001, acquire("next"), granted(8, 5)),
    ])
    .unwrap();
    // A release without an answer may have happened, at any time after it was sent.
    linearized(&[
        call(0, 5, acquire("first"), granted(1, 1)),
        call(10, None, Op::Release(lease("first")), unknown()),
        call(20, 25, get(), read(Some(("first", 1)), 2)),
        call(30, 35, acquire("second"), granted(2, 5)),
    ])
    .unwrap();
    // An expiry, no sooner than promised.
    let late = [
        call(0, 5, acquire("first"), granted(1, 1)),
        call(9_900, 9_905, acquire("second"), granted(2, 2)),
    ];
    linearized(&late).unwrap();
}

#[test]
fn wrong_histories_have_none() {
    let first = || call(0, 5, acquire("first"), granted(1, 1));
    let planted: Vec<(&str, Vec<Call>)> = vec![
        ("two hold it", vec![first(), call(10, 15, acquire("second"), granted(2, 2))]),
        (
            "a lease expires too early",
            vec![first(), call(9_000, 9_800, acquire("second"), granted(2, 2))],
        ),
        (
            "a renewal is forgotten",
            vec![
                first(),
                call(5_000, 5_005, Op::Renew(lease("first")), renewed(1, 2)),
                call(11_000, 11_005, acquire("second"), granted(2, 3)),
            ],
        ),
        ("a read is stale", vec![first(), call(10, 15, get(), read(None, 1))]),
        (
            "a release is lost",
            vec![
                first(),
                call(10, 15, Op::Release(lease("first")), released(true, 2)),
                call(20, 25, get(), read(Some(("first", 1)), 2)),
            ],
        ),
        (
            "a late release ends the next lease",
            vec![
                first(),
                call(10, 15, Op::Release(lease("first")), released(true, 2)),
                call(20, 25, acquire("second"), granted(2, 3)),
                call(30, 35, Op::Release(lease("first")), released(true, 4)),
            ],
        ),
        (
            "a lease comes back to life",
            vec![
                first(),
                call(10, 15, Op::Release(lease("first")), released(true, 2)),
                call(20, 25, Op::Renew(lease("first")), renewed(1, 3)),
            ],
        ),
        (
            "a token falls",
            vec![
                call(0, 5, acquire("first"), granted(5, 1)),
                call(10, 15, Op::Release(lease("first")), released(true, 2)),
                call(20, 25, acquire("second"), granted(4, 3)),
            ],
        ),
        (
            "somebody is refused for one who has gone",
            vec![
                first(),
                call(10, 15, Op::Release(lease("first")), released(true, 2)),
                call(20, 25, acquire("second"), locked("first", 1, 3)),
            ],
        ),
        (
            "an abandoned grant goes on",
            vec![
                first(),
                call(10, 15, abandon(Family::Lock, "first"), abandoned(AbandonedWas::Granted, 2)),
                call(20, 25, get(), read(Some(("first", 1)), 2)),
            ],
        ),
    ];
    for (what, calls) in planted {
        assert!(linearized(&calls).is_err(), "not found: {what}");
    }
}

#[test]
fn the_counterexample_has_nothing_that_is_not_needed() {
    let mut calls = Vec::new();
    // Much that is lawful, before and after.
    for round in 0..200_u64 {
        let (at, request) = (round * 100, format!("round-{round}"));
        calls.push(call(at, at + 5, acquire(&request), granted(round + 1, 3 * round)));
        calls.push(call(at + 10, at + 12, get(), read(Some((&request, round + 1)), 3 * round)));
        calls.push(call(
            at + 20,
            at + 25,
            Op::Release(lease(&request)),
            released(true, 3 * round + 1),
        ));
    }
    linearized(&calls).unwrap();
    calls.push(call(10_011, 10_013, acquire("intruder"), granted(5_000, 1)));
    let message = linearized(&calls).unwrap_err();
    assert!(message.contains("intruder"), "{message}");
    assert!(
        message.contains("these 4 operations") || message.contains("these 5 operations"),
        "{message}"
    );
}

/// Waits that were seen to wait, and never to hold, may not make the search try each of them everywhere.
#[test]
fn many_waits_in_vain_do_not_make_it_hard() {
    use sereno_api::{Waiting, WaitingState};
    let mut calls = vec![call(0, 5, acquire("first"), granted(1, 1))];
    for waiter in 0..60 {
        let heard = Heard::Waiting(Waiting {
            state: WaitingState::Waiting,
            resource: "a".into(),
            place: 1,
            wait_expires_in_ms: 10,
            replayed: false,
            original_revision: None,
            revision: 2,
            cluster_time_ms: 2,
        });
        calls.push(call(10 + waiter, 100, acquire(&format!("waiter-{waiter}")), heard));
    }
    calls.push(call(200, 205, Op::Release(lease("first")), released(true, 3)));
    linearized(&calls).unwrap();
    calls.push(call(300, 305, get(), read(Some(("first", 1)), 4)));
    let message = linearized(&calls).unwrap_err();
    assert!(message.contains("Impossible"), "{message}");
}

#[test]
fn one_request_has_one_token() {
    let calls = [
        call(0, 5, acquire("first"), granted(1, 1)),
        call(10, 15, acquire("first"), granted(2, 2)),
    ];
    let mut places = project::by_place(&calls);
    let projection = places.get_mut(&(Family::Lock, "a")).unwrap();
    projection.operations();
    assert_eq!(projection.contradictions.len(), 1);
}

#[test]
fn two_that_rely_on_a_lock_at_the_same_time_are_found() {
    let check = |calls: Vec<Call>, guards: Vec<Held>| {
        let found = intervals::check(&History { calls, guards });
        found.into_iter().map(|it| it.promise).collect::<Vec<_>>()
    };
    assert_eq!(check(lawful(), Vec::new()), Vec::<&str>::new());
    // By plain calls: the second is told while the first may still rely on its lease.
    let overlapping = vec![
        call(0, 5, acquire("first"), granted(1, 1)),
        call(9_000, 9_500, acquire("second"), granted(2, 2)),
    ];
    assert_eq!(check(overlapping, Vec::new()), ["S1, L4"]);
    // Who is told of a renewal after its own deadline has stopped, and may not begin again.
    let too_late = vec![
        call(0, 5, acquire("first"), granted(1, 1)),
        call(9_000, 12_000, Op::Renew(lease("first")), renewed(1, 2)),
        call(12_500, 12_600, acquire("second"), granted(2, 3)),
    ];
    assert_eq!(check(too_late, Vec::new()), Vec::<&str>::new());
    // By guards of the SDK.
    let held = |token, since, until| Held {
        place: "lock/g".into(),
        token,
        since: ms(since),
        until: ms(until),
    };
    assert_eq!(
        check(Vec::new(), vec![held(1, 0, 10), held(1, 0, 20), held(2, 21, 30)]),
        Vec::<&str>::new()
    );
    assert_eq!(
        check(Vec::new(), vec![held(1, 0, 10), held(1, 0, 20), held(2, 15, 30)]),
        ["S1, L4"]
    );
    assert_eq!(check(Vec::new(), vec![held(2, 0, 10), held(1, 15, 30)]), ["S2"]);
}

#[test]
fn a_token_that_falls_from_lock_to_lock_is_found() {
    let other =
        Op::Acquire { resource: "b".into(), request: "other".into(), wait_ms: 0, ttl_ms: 10_000 };
    let calls = |token| {
        vec![
            call(0, 5, acquire("first"), granted(7, 1)),
            call(10, 15, other.clone(), granted(token, 2)),
        ]
    };
    let check = |calls| intervals::check(&History { calls, guards: Vec::new() }).len();
    assert_eq!(check(calls(8)), 0);
    assert_eq!(check(calls(6)), 1);
}

#[test]
fn a_wait_that_is_over_and_granted_later_is_found() {
    let over = call(0, 5, acquire("first"), refused(ErrorCode::WaitTimeout, 1));
    let check = |later| requests::check(&[over.clone(), later], &Truth::default()).len();
    assert_eq!(check(call(10, 15, get(), read(None, 2))), 0);
    assert_eq!(check(call(10, 15, acquire("first"), granted(1, 2))), 1);
    assert_eq!(check(call(10, 15, get(), read(Some(("first", 1)), 2))), 1);
    assert_eq!(check(call(10, 15, acquire("second"), locked("first", 1, 2))), 1);
    let unseen = call(0, 5, abandon(Family::Lock, "second"), abandoned(AbandonedWas::Unseen, 1));
    let later = call(10, 15, acquire("second"), granted(1, 2));
    assert_eq!(requests::check(&[unseen, later], &Truth::default()).len(), 1);
}

#[test]
fn a_client_that_is_blamed_for_what_it_did_not_do_is_found() {
    let check = |code| {
        let heard = Heard::Problem(Box::new(Problem::new(code, "planted")));
        requests::check(&[call(0, 5, acquire("first"), heard)], &Truth::default()).len()
    };
    assert_eq!(check(ErrorCode::Unavailable), 0);
    assert_eq!(check(ErrorCode::Overloaded), 0);
    assert_eq!(check(ErrorCode::InvalidArgument), 1);
}

/// A resource that forgets its fence, and one that does not.
#[test]
fn what_is_lost_under_a_fence_is_found() {
    let elements = |all: &[u64]| all.iter().copied().collect::<BTreeSet<_>>();
    let mut resource = Resource::default();
    let mut ask = |name: &str, token, what| {
        resource.visit(crate::resource::Ask { name: name.into(), token, what }).done
    };
    // A reads, B reads and writes, A writes what it has read: with the fence it is refused.
    for (name, old, new) in [("fenced", Some(1), Some(2)), ("plain", None, None)] {
        assert!(ask(name, old, What::Read));
        assert!(ask(name, new, What::Read));
        assert!(ask(name, new, What::Write { element: 20, all: elements(&[20]) }));
        let late = ask(name, old, What::Write { element: 10, all: elements(&[10]) });
        assert_eq!(late, name == "plain");
    }
    assert!(ask("room", None, What::Enter));
    assert!(ask("room", None, What::Enter));
    let (violations, losses) = resource::check(&resource.visits);
    assert_eq!(violations, []);
    assert_eq!((losses.fenced, losses.refused), (1, 1));
    assert_eq!((losses.plain, losses.plain_lost), (2, 1), "told, and no violation");
    assert_eq!((losses.entries, losses.overlapping), (2, 1));

    let wrote = |token, element| Visit {
        at: 0,
        name: "fenced".into(),
        token: Some(token),
        fate: Fate::Wrote { element, all: elements(&[element]) },
    };
    let (violations, _) = resource::check(&[wrote(2, 20), wrote(1, 10)]);
    assert_eq!(violations.len(), 2, "a lower token, and a lost element: {violations:?}");
}
