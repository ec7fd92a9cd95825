//! Wrong histories of jobs.

use super::{words::*, *};
use crate::check::slots;

const FAMILY: Family = Family::Job;

fn first() -> Call {
    call(0, 5, claim(1, "first"), claimed(1, 1, 1, 1))
}

fn over() -> Call {
    call(10, 15, finish("first"), finished(1, 1, "succeeded", 2))
}

fn put() -> Call {
    let op = Op::PutJob { resource: "a".into(), all: false, retries: 1 };
    let put = sereno_api::JobPut { job: "a".into(), version: 1, revision: 1, cluster_time_ms: 1 };
    call(0, 1, op, Heard::JobPut(put))
}

/// Claimed, refused to another, finished; given back, claimed again; died, finished late.
fn lawful() -> Vec<Call> {
    vec![
        put(),
        first(),
        call(6, 8, claim(1, "second"), refused_for(ErrorCode::RunClaimed, "first", 1, 2)),
        over(),
        call(16, 18, look(FAMILY), ledger(1, "succeeded", "first", 1, 3)),
        call(20, 25, claim(2, "third"), claimed(2, 1, 2, 4)),
        call(30, 35, abandon(FAMILY, "third"), abandoned(AbandonedWas::Granted, 5)),
        call(40, 45, claim(2, "fourth"), claimed(2, 1, 3, 6)),
        call(46, 48, look(FAMILY), ledger(2, "claimed", "fourth", 3, 6)),
        call(12_000, 12_005, finish("fourth"), finished(2, 1, "succeeded", 7)),
        call(13_000, 13_005, claim(2, "fifth"), refused(ErrorCode::RunFinished, 8)),
    ]
}

fn slots(calls: &[Call]) -> Vec<&'static str> {
    slots::check(calls).into_iter().map(|it| it.promise).collect()
}

#[test]
fn lawful_jobs_pass() {
    linearized(FAMILY, &lawful()).unwrap();
    assert_eq!(relied_on(lawful()), Vec::<&str>::new());
    assert_eq!(dead_requests(&lawful()), 0);
    assert_eq!(slots(&lawful()), Vec::<&str>::new());
}

#[test]
fn wrong_claims_have_no_order() {
    let planted: [(&str, Vec<Call>); 5] = [
        (
            "two attempts at a slot",
            vec![first(), call(10, 15, claim(1, "second"), claimed(1, 2, 2, 2))],
        ),
        (
            "two slots at the same time",
            vec![first(), call(10, 15, claim(2, "second"), claimed(2, 1, 2, 2))],
        ),
        (
            "whoever has finished still runs",
            vec![first(), over(), call(20, 25, look(FAMILY), ledger(1, "claimed", "first", 1, 2))],
        ),
        (
            "an attempt that was given back is renewed",
            vec![
                first(),
                call(10, 15, abandon(FAMILY, "first"), abandoned(AbandonedWas::Granted, 2)),
                call(20, 25, Op::Renew(lease_in(FAMILY, "first")), renewed(1, 3)),
            ],
        ),
        (
            "another is refused for one who has finished",
            vec![
                first(),
                over(),
                call(20, 25, claim(2, "second"), refused_for(ErrorCode::RunClaimed, "first", 1, 3)),
            ],
        ),
    ];
    for (what, calls) in planted {
        assert!(linearized(FAMILY, &calls).is_err(), "not found: {what}");
    }
}

#[test]
fn two_attempts_at_the_same_time_are_found() {
    let two = vec![first(), call(9_000, 9_500, claim(1, "second"), claimed(1, 2, 2, 2))];
    assert_eq!(relied_on(two), ["S1, L4"]);
}

#[test]
fn a_finished_slot_that_runs_again_is_found() {
    let again = || call(20, 25, claim(1, "second"), claimed(1, 2, 2, 3));
    assert_eq!(slots(&[first(), over(), again()]), ["one run of a slot"]);
    // As others have seen it to be over.
    for (state, count) in
        [("succeeded", 1), ("failed", 1), ("lost", 1), ("skipped", 1), ("retry", 0)]
    {
        let seen = call(10, 15, look(FAMILY), ledger(1, state, "first", 1, 2));
        assert_eq!(slots(&[first(), seen, again()]).len(), count, "{state}");
    }
    // Asked for before anybody knew.
    let before = call(12, 25, claim(1, "second"), claimed(1, 2, 2, 3));
    assert_eq!(slots(&[first(), over(), before]), Vec::<&str>::new());
}

#[test]
fn attempts_that_are_not_counted_are_found() {
    let second = |attempt| call(20_000, 20_005, claim(1, "second"), claimed(1, attempt, 2, 3));
    assert_eq!(slots(&[first(), second(2)]), Vec::<&str>::new());
    assert_eq!(slots(&[first(), second(1)]), ["one run of a slot"], "it was not given back");
    let given_back = call(10, None, abandon(FAMILY, "first"), unknown());
    assert_eq!(slots(&[first(), given_back, second(1)]), Vec::<&str>::new());
    // One retry is allowed.
    assert_eq!(slots(&[put(), first(), second(2)]), Vec::<&str>::new());
    assert_eq!(slots(&[put(), first(), second(3)]), ["retries"]);
}

#[test]
fn a_claim_that_was_refused_and_runs_later_is_found() {
    let refused = refused_for(ErrorCode::RunClaimed, "other", 1, 1);
    let over = call(0, 5, claim(1, "first"), refused);
    let later = call(10, 15, claim(1, "first"), claimed(1, 1, 2, 2));
    assert_eq!(dead_requests(&[over.clone(), later]), 1);
    let seen = call(10, 15, look(FAMILY), ledger(1, "claimed", "first", 2, 2));
    assert_eq!(dead_requests(&[over, seen]), 1);
}
