//! Wrong histories of quotas, for the checkers that know nothing of the log.

use super::{quota_words::*, *};
use crate::{check::quota, history::QuotaOp};
use sereno_api::OnExpiry;

/// The promises that are found broken.
fn broken(calls: &[Call]) -> Vec<&'static str> {
    quota::check(calls).violations.iter().map(|it| it.promise).collect()
}

/// Whether these calls on the solo tree have an order.
fn has_order(calls: &[Call]) -> bool {
    let calls: Vec<_> = std::iter::once(limit(SOLO, "", 5)).chain(calls.to_vec()).collect();
    !broken(&calls).contains(&"S9, S10")
}

/// Reserved, refused, used in parts, given back, late, and with answers that were lost.
fn lawful() -> Vec<Call> {
    let part = commit("r-1", "c-1", Some(1), false);
    let part_heard = committed(&part, "r-1", 11, 1, 2);
    let rest = commit("r-1", "c-2", Some(1), true);
    let rest_heard = committed(&rest, "r-1", 12, 1, 0);
    let late = commit("r-4", "c-4", None, true);
    let late_heard = readmitted(&late, "r-4", 14, 2);
    vec![
        reserves(10, "r-1", 1, 3, 2),
        exhausted(20, reserve("r-2", 3), 0, 3, 3),
        shows(30, (SOLO, ""), 0, 3),
        call(40, 45, part, part_heard),
        shows(50, (SOLO, ""), 1, 2),
        call(60, 65, rest, rest_heard),
        shows(70, (SOLO, ""), 2, 0),
        refuses(75, 11, 2, 1),
        gives_back(80, 11, "b-1", 1, 0),
        shows(90, (SOLO, ""), 1, 0),
        // Nobody was told of it, and others see it.
        call(100, None, reserve("r-3", 3), unknown()),
        exhausted(110, reserve("r-5", 3), 1, 3, 3),
        // It ends by itself, when its time is over.
        shows(10_200, (SOLO, ""), 1, 0),
        reserves(10_210, "r-4", 2, 2, 2),
        shows(20_300, (SOLO, ""), 1, 0),
        call(20_400, 20_405, late, late_heard),
        shows(20_410, (SOLO, ""), 3, 0),
        // A return without an answer may have happened, or not.
        call(20_420, None, give_back(14, "b-2", 2), unknown()),
        shows(20_430, (SOLO, ""), 3, 0),
        reserves(20_440, "r-6", 3, 4, 0),
        releases(20_450, "r-6", 4),
        shows(20_460, (SOLO, ""), 1, 0),
    ]
}

#[test]
fn lawful_quotas_pass() {
    let calls: Vec<_> = std::iter::once(limit(SOLO, "", 5)).chain(lawful()).collect();
    let checked = quota::check(&calls);
    assert_eq!(checked.violations, []);
    assert!(checked.ordered > 20 && checked.moments > 10, "{checked:?}");
}

#[test]
fn wrong_quotas_have_no_order() {
    let three = || reserves(10, "r-1", 1, 3, 2);
    let more = commit("r-1", "c-1", Some(4), true);
    let more_heard = committed(&more, "r-1", 11, 4, 0);
    let late = commit("r-1", "c-1", None, true);
    let late_heard = readmitted(&late, "r-1", 11, 3);
    let resize =
        Op::Quota(QuotaOp::Resize { of: of("r-1", "z-1"), items: vec![item(SOLO, "", 5)] });
    let resized = reserved_of(&resize, "r-1", 1, &[item(SOLO, "", 5)], 0);
    let planted: Vec<(&str, Vec<Call>)> = vec![
        ("oversold", vec![three(), reserves(20, "r-2", 2, 3, 0)]),
        ("free again before its deadline", vec![three(), reserves(9_000, "r-2", 2, 5, 0)]),
        (
            "refused for what was released",
            vec![three(), releases(20, "r-1", 3), exhausted(30, reserve("r-2", 3), 0, 3, 3)],
        ),
        ("refused though there is room", vec![exhausted(20, reserve("r-2", 3), 0, 0, 3)]),
        ("used twice", vec![three(), commits(20, "r-1", 11, 3), commits(30, "r-1", 12, 3)]),
        (
            "used after it was released",
            vec![three(), releases(20, "r-1", 3), commits(30, "r-1", 11, 3)],
        ),
        ("more is used than was reserved", vec![three(), call(20, 25, more, more_heard)]),
        (
            "a commit is forgotten",
            vec![three(), commits(20, "r-1", 11, 3), shows(30, (SOLO, ""), 0, 0)],
        ),
        (
            "what was used is still reserved, too",
            vec![three(), commits(20, "r-1", 11, 3), shows(30, (SOLO, ""), 3, 2)],
        ),
        (
            "given back twice",
            vec![
                three(),
                commits(20, "r-1", 11, 3),
                gives_back(30, 11, "b-1", 2, 1),
                gives_back(40, 11, "b-2", 2, 0),
            ],
        ),
        (
            "a return is forgotten",
            vec![
                three(),
                commits(20, "r-1", 11, 3),
                gives_back(30, 11, "b-1", 3, 0),
                shows(40, (SOLO, ""), 3, 0),
            ],
        ),
        (
            "a return says that more is left than there is",
            vec![three(), commits(20, "r-1", 11, 3), gives_back(30, 11, "b-1", 1, 3)],
        ),
        (
            "a return is refused for want of what is there",
            vec![three(), commits(20, "r-1", 11, 3), refuses(30, 11, 4, 2)],
        ),
        (
            "it grows where there is no room",
            vec![three(), reserves(20, "r-2", 2, 1, 1), call(30, 35, resize, resized)],
        ),
        (
            "a late one is let in where there is no room",
            vec![three(), reserves(12_000, "r-2", 2, 3, 2), call(12_010, 12_015, late, late_heard)],
        ),
        ("a fence falls", vec![reserves(10, "r-1", 5, 1, 4), reserves(20, "r-2", 4, 1, 3)]),
        ("another amount is said to be free", vec![reserves(10, "r-1", 1, 3, 1)]),
    ];
    for (what, calls) in planted {
        assert!(!has_order(&calls), "not found: {what}");
    }
}

#[test]
fn the_counterexample_ends_where_the_history_turns_wrong() {
    let mut calls = vec![limit(SOLO, "", 5)];
    for round in 0..50_u64 {
        let (at, request) = (10 + round * 100, format!("round-{round}"));
        calls.push(reserves(at, &request, round + 1, 2, 3));
        calls.push(shows(at + 10, (SOLO, ""), 0, 2));
        calls.push(releases(at + 20, &request, 2));
    }
    calls.push(shows(2_550, (SOLO, ""), 1, 0));
    let found = quota::check(&calls).violations;
    let message = &found.iter().find(|it| it.promise == "S9, S10").expect("it is found").message;
    assert!(message.contains("Shows { committed: 1"), "{message}");
    assert!(!message.contains("round-30"), "what comes later is left out: {message}");
    assert!(!message.contains("committed: 0"), "reads that are not needed are left out: {message}");
}

/// Two items of one tree, under one root.
fn tree(root: u64) -> Vec<Call> {
    vec![limit("t", "", root), limit("t", "a", 4), limit("t", "b", 4)]
}

fn takes(at: u64, request: &str, path: &str, amount: u64, fate: OnExpiry) -> Call {
    let items = vec![item("t", path, amount)];
    let op = reserve_of(request, items.clone(), fate);
    let heard = reserved_of(&op, request, at, &items, 0);
    call(at, at + 5, op, heard)
}

#[test]
fn more_than_a_layer_holds_by_what_clients_were_told_is_found() {
    let both = |root, second| {
        let mut calls = tree(root);
        calls.push(takes(10, "r-1", "a", 4, OnExpiry::Release));
        calls.push(takes(second, "r-2", "b", 4, OnExpiry::Release));
        broken(&calls)
    };
    assert_eq!(both(8, 20), Vec::<&str>::new());
    assert_eq!(both(7, 20), ["S9"], "the root is passed, and no other layer");
    assert_eq!(both(7, 9_000), ["S9"], "before its deadline");
    assert_eq!(both(7, 11_000), Vec::<&str>::new(), "it may have expired");
    let mut calls = tree(8);
    calls.push(takes(10, "r-1", "a", 5, OnExpiry::Release));
    assert_eq!(broken(&calls), ["S9"], "at the leaf");
    // What is used at its deadline, or waits for an operator, is not free then.
    for fate in [OnExpiry::Commit, OnExpiry::Quarantine] {
        let mut calls = tree(7);
        calls.push(takes(10, "r-1", "a", 4, fate));
        calls.push(takes(11_000, "r-2", "b", 4, OnExpiry::Release));
        assert_eq!(broken(&calls), ["S9"]);
    }
}

#[test]
fn whoever_may_have_let_go_is_not_counted() {
    let root = || vec![limit(SOLO, "", 3), reserves(10, "r-1", 1, 3, 0)];
    let lets_go: [Op; 4] = [
        release("r-1"),
        commit("r-1", "c-1", Some(1), true),
        Op::Abandon { family: Family::Quota, resource: "r-1".into(), request: "r-1".into() },
        Op::Quota(QuotaOp::Resize { of: of("r-1", "z-1"), items: vec![item(SOLO, "", 1)] }),
    ];
    for op in lets_go {
        let mut calls = root();
        calls.push(call(20, None, op.clone(), unknown()));
        calls.push(reserves(30, "r-2", 2, 2, 0));
        assert!(!broken(&calls).contains(&"S9"), "{op:?}");
    }
    let mut calls = root();
    calls.push(reserves(30, "r-2", 2, 2, 0));
    assert!(broken(&calls).contains(&"S9"));
}

#[test]
fn an_answer_that_shows_less_than_is_surely_used_is_found() {
    let then = |call: Call| {
        let mut calls = tree(8);
        calls.push(takes(10, "r-1", "a", 4, OnExpiry::Release));
        calls.push(call);
        broken(&calls)
    };
    assert_eq!(then(shows(20, ("t", ""), 0, 4)), Vec::<&str>::new());
    assert_eq!(then(shows(20, ("t", ""), 0, 3)), ["S5 (quota)"]);
    assert_eq!(then(shows(20, ("t", "a"), 1, 2)), ["S5 (quota)"]);
    assert_eq!(then(shows(20, ("t", "b"), 0, 0)), Vec::<&str>::new());
    assert_eq!(then(shows(10_500, ("t", "a"), 0, 0)), Vec::<&str>::new(), "it may have expired");
}

#[test]
fn a_reservation_that_ends_twice_or_lives_on_is_found() {
    let mut calls = vec![limit(SOLO, "", 5), reserves(10, "r-1", 1, 3, 2)];
    calls.push(releases(20, "r-1", 3));
    assert!(!broken(&calls).contains(&"S10"));
    let mut twice = calls.clone();
    twice.push(commits(30, "r-1", 11, 3));
    assert!(broken(&twice).contains(&"S10"));
    let mut lives = calls.clone();
    let extend = Op::Quota(QuotaOp::Extend { of: of("r-1", "e-1"), ttl_ms: 10_000 });
    let heard = reserved_of(&extend, "r-1", 1, &[item(SOLO, "", 3)], 2);
    lives.push(call(30, 35, extend, heard));
    assert!(broken(&lives).contains(&"S10"));
    let mut readmitted_twice = vec![limit(SOLO, "", 5), reserves(10, "r-1", 1, 1, 4)];
    for number in [11, 12] {
        let op = commit("r-1", &format!("c-{number}"), None, true);
        let heard = readmitted(&op, "r-1", number, 1);
        readmitted_twice.push(call(11_000 + number * 10, 11_005 + number * 10, op, heard));
    }
    assert!(broken(&readmitted_twice).contains(&"S10"));
}

#[test]
fn one_name_for_two_is_found() {
    let mut calls = vec![limit(SOLO, "", 5)];
    calls.extend([reserves(10, "r-1", 1, 1, 4), reserves(20, "r-2", 2, 1, 3)]);
    calls.extend([commits(30, "r-1", 11, 1), commits(40, "r-2", 12, 1)]);
    assert!(!broken(&calls).contains(&"S10"));
    let op = commit("r-2", "commit-12", None, true);
    calls[4] = call(40, 45, op.clone(), committed(&op, "r-2", 11, 1, 0));
    assert!(broken(&calls).contains(&"S10"), "one commit for two");
}

#[test]
fn returns_of_more_than_was_used_are_found() {
    let used = || vec![limit(SOLO, "", 5), reserves(10, "r-1", 1, 3, 2), commits(20, "r-1", 11, 3)];
    let then = |back: Vec<Call>| broken(&[used(), back].concat());
    let lawful = vec![gives_back(30, 11, "b-1", 1, 2), gives_back(40, 11, "b-2", 2, 0)];
    assert_eq!(then(lawful), Vec::<&str>::new());
    let doubled = vec![gives_back(30, 11, "b-1", 2, 1), gives_back(40, 11, "b-2", 2, 0)];
    assert!(then(doubled).contains(&"returns"));
    assert!(then(vec![gives_back(30, 11, "b-1", 1, 3)]).contains(&"returns"));
    // The same request again is the same return.
    let repeated = vec![gives_back(30, 11, "b-1", 2, 1), gives_back(40, 11, "b-1", 2, 1)];
    assert!(!then(repeated).contains(&"returns"));
}

#[test]
fn books_that_are_not_what_was_done_are_found() {
    let done = || {
        vec![
            limit("t", "", 8),
            limit("t", "a", 4),
            takes(10, "r-1", "a", 2, OnExpiry::Commit),
            takes(20, "r-2", "a", 1, OnExpiry::Quarantine),
            takes(30, "r-3", "a", 1, OnExpiry::Release),
        ]
    };
    let at_the_end = |path: &str, committed, reserved| {
        let mut calls = done();
        calls.push(shows(60_000, ("t", path), committed, reserved));
        let checked = quota::check(&calls);
        assert_eq!((checked.balanced.nodes, checked.balanced.exact), (1, 1));
        checked.violations.iter().map(|it| it.promise).collect::<Vec<_>>()
    };
    assert_eq!(at_the_end("a", 2, 1), Vec::<&str>::new());
    assert_eq!(at_the_end("", 2, 1), Vec::<&str>::new());
    for (committed, reserved) in [(3, 1), (2, 2), (4, 0)] {
        assert_eq!(at_the_end("", committed, reserved), ["books"], "{committed} {reserved}");
    }
    assert!(at_the_end("a", 1, 1).contains(&"books"));
    // A lost answer leaves a span.
    let mut calls = done();
    calls.push(call(
        50,
        None,
        reserve_of("r-4", vec![item("t", "a", 1)], OnExpiry::Commit),
        unknown(),
    ));
    for (committed, is_lawful) in [(2, true), (3, true), (4, false)] {
        let mut calls = calls.clone();
        calls.push(shows(60_000, ("t", "a"), committed, 1));
        let checked = quota::check(&calls);
        let found = checked.violations.iter().any(|it| it.promise == "books");
        assert_eq!((found, checked.balanced.exact), (!is_lawful, 0), "{committed}");
    }
}

#[test]
fn a_refused_reserve_that_holds_later_and_a_fence_that_falls_are_found() {
    let over = exhausted(10, reserve("r-1", 3), 0, 5, 3);
    let held = || reserves(20, "r-1", 7, 3, 2);
    assert_eq!(dead_requests(&[over.clone(), held()]), 1);
    assert_eq!(dead_requests(&[over, reserves(20, "r-2", 7, 3, 2)]), 0);
    let lock = call(0, 5, acquire("first"), granted(9, 1));
    assert_eq!(relied_on(vec![lock, held()]), ["S2"]);
}
