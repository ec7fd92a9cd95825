//! Wrong histories of elections.

use super::{words::*, *};

const FAMILY: Family = Family::Election;

fn resign(request: &str) -> Op {
    Op::Release(lease_in(FAMILY, request))
}

fn first() -> Call {
    call(0, 5, campaign("first"), elected(1, 1))
}

/// Led, proclaimed, handed over, resigned, led by a candidate who campaigned twice.
fn lawful() -> Vec<Call> {
    vec![
        first(),
        call(6, 30, campaign("second"), elected(2, 5)),
        call(7, 8, campaign("third"), locked("first", 1, 2)),
        call(10, 12, proclaim("first"), proclaimed(3, 3)),
        call(20, 25, handoff("first", "second"), handed_off(2, 4)),
        call(31, 35, look(FAMILY), leader(Some(("second", 2)), 6)),
        call(40, 45, resign("second"), released(true, 7)),
        call(46, 48, look(FAMILY), leader(None, 7)),
        call(50, None, campaign("fourth"), unknown()),
        call(60, 65, campaign_as("fourth", "fifth"), elected(4, 9)),
        call(70, 75, look(FAMILY), leader(Some(("fourth", 4)), 9)),
        call(80, 85, proclaim("first"), refused(ErrorCode::LeaseEnded, 10)),
    ]
}

#[test]
fn lawful_elections_pass() {
    linearized(FAMILY, &lawful()).unwrap();
    assert_eq!(relied_on(lawful()), Vec::<&str>::new());
    assert_eq!(dead_requests(&lawful()), 0);
}

#[test]
fn wrong_elections_have_no_order() {
    let planted: [(&str, Vec<Call>); 7] = [
        ("two lead", vec![first(), call(10, 15, campaign("second"), elected(2, 2))]),
        (
            "a term falls",
            vec![
                call(0, 5, campaign("first"), elected(5, 1)),
                call(10, 15, resign("first"), released(true, 2)),
                call(20, 25, campaign("second"), elected(4, 3)),
            ],
        ),
        (
            "who has handed over proclaims",
            vec![
                first(),
                call(6, 30, campaign("second"), elected(2, 3)),
                call(20, 25, handoff("first", "second"), handed_off(2, 2)),
                call(40, 45, proclaim("first"), proclaimed(4, 4)),
            ],
        ),
        (
            "who was handed the lead has not got it",
            vec![
                first(),
                call(6, None, campaign("second"), unknown()),
                call(20, 25, handoff("first", "second"), handed_off(2, 2)),
                call(40, 45, look(FAMILY), leader(None, 2)),
            ],
        ),
        (
            "another takes the lead in between",
            vec![
                first(),
                call(6, 30, campaign("second"), elected(3, 4)),
                call(20, 25, handoff("first", "second"), handed_off(3, 3)),
                call(26, 28, campaign("third"), elected(2, 2)),
            ],
        ),
        (
            "who has resigned still leads",
            vec![
                first(),
                call(10, 15, resign("first"), released(true, 2)),
                call(20, 25, look(FAMILY), leader(Some(("first", 1)), 2)),
            ],
        ),
        (
            "a term that an operator has ended goes on",
            vec![
                first(),
                call(10, None, force(FAMILY, 1), unknown()),
                call(20, 25, force(FAMILY, 1), forced(1, 2)),
                call(30, 35, Op::Renew(lease_in(FAMILY, "first")), renewed(1, 3)),
            ],
        ),
    ];
    for (what, calls) in planted {
        assert!(linearized(FAMILY, &calls).is_err(), "not found: {what}");
    }
}

fn forced(token: u64, revision: u64) -> Heard {
    Heard::Forced(sereno_api::ForceReleased {
        released: true,
        fencing_token: token,
        replayed: true,
        original_revision: Some(1),
        revision,
        cluster_time_ms: revision,
    })
}

#[test]
fn a_term_that_is_no_term_of_the_heir_is_found() {
    let calls = [
        first(),
        call(6, 30, campaign("second"), elected(2, 3)),
        call(20, 25, handoff("first", "second"), handed_off(7, 2)),
    ];
    let mut places = project::by_place(&calls);
    let projection = places.get_mut(&(FAMILY, "a")).unwrap();
    projection.operations();
    assert_eq!(projection.contradictions.len(), 1, "{:?}", projection.contradictions);
}

#[test]
fn two_leaders_at_the_same_time_and_falling_terms_are_found() {
    let two = vec![first(), call(9_000, 9_500, campaign("second"), elected(2, 2))];
    assert_eq!(relied_on(two), ["S1, L4"]);
    // Who hands over has stopped before it asks.
    let handed = vec![
        first(),
        call(20, None, handoff("first", "second"), unknown()),
        call(6, 30, campaign("second"), elected(2, 2)),
    ];
    assert_eq!(relied_on(handed), Vec::<&str>::new());
    let falls = vec![
        call(0, 5, campaign("first"), elected(2, 1)),
        call(20_000, 20_005, campaign("second"), elected(1, 2)),
    ];
    assert_eq!(relied_on(falls), ["S2", "S2"], "of this election, and of all tokens");
}

#[test]
fn a_campaign_that_is_over_and_leads_later_is_found() {
    let over = call(0, 5, campaign("first"), refused(ErrorCode::WaitTimeout, 1));
    let check = |later| dead_requests(&[over.clone(), later]);
    assert_eq!(check(call(10, 15, campaign("first"), elected(1, 2))), 1);
    assert_eq!(check(call(10, 15, look(FAMILY), leader(Some(("first", 1)), 2))), 1);
    // A lock of that name is another thing.
    assert_eq!(check(call(10, 15, acquire("first"), granted(1, 2))), 0);
    // Its candidate's next campaign leads under the same name.
    let calls = [
        over,
        call(6, 9, campaign_as("first", "second"), elected(1, 2)),
        call(10, 15, look(FAMILY), leader(Some(("first", 1)), 2)),
    ];
    assert_eq!(dead_requests(&calls), 0);
}

#[test]
fn only_a_missing_heir_is_no_mistake_of_the_caller() {
    let missing = |op| dead_requests(&[call(0, 5, op, refused(ErrorCode::NotFound, 1))]);
    assert_eq!(missing(handoff("first", "nobody")), 0);
    assert_eq!(missing(proclaim("first")), 1);
}
