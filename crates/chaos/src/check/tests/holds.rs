//! Wrong histories of holds.

use super::{words::*, *};

const FAMILY: Family = Family::Hold;

fn anna() -> Call {
    call(0, 5, hold("anna", "h-1"), held("a", "anna", 1, false, 1))
}

/// Held, held again, refused to another, renewed, released, replaced.
fn lawful() -> Vec<Call> {
    vec![
        anna(),
        call(6, 8, hold("anna", "h-2"), held("a", "anna", 1, true, 2)),
        call(9, 12, hold("bert", "h-3"), refused_for(ErrorCode::Taken, "anna", 1, 3)),
        call(13, 15, renew_hold("anna", 1, "r-1"), extended(1, 4)),
        // Its answer is lost; the repeat says what it did.
        call(20, None, release_hold("anna", Some(1), "x-1"), unknown()),
        call(26, 28, look(FAMILY), shelf(None, 5)),
        call(30, 35, release_hold("anna", Some(1), "x-1"), hold_released(true, true, 6)),
        call(40, 45, hold("bert", "h-4"), held("a", "bert", 2, false, 7)),
        call(46, 48, look(FAMILY), shelf(Some(("bert", 2)), 7)),
        call(50, 55, hold_all(&["b"], "bert", "h-5", &[("a", 2)]), held("b", "bert", 3, false, 8)),
        call(60, 65, hold("anna", "h-6"), held("a", "anna", 4, false, 9)),
        call(66, 68, renew_hold("anna", 1, "r-2"), refused(ErrorCode::NotHolder, 10)),
        call(70, 75, release_hold("anna", None, "x-2"), hold_released(true, false, 11)),
        call(76, 78, look(FAMILY), shelf(None, 11)),
    ]
}

#[test]
fn lawful_holds_pass() {
    linearized(FAMILY, &lawful()).unwrap();
    assert_eq!(relied_on(lawful()), Vec::<&str>::new());
    assert_eq!(dead_requests(&lawful()), 0);
}

#[test]
fn wrong_holds_have_no_order() {
    let released =
        || call(10, 15, release_hold("anna", Some(1), "x-1"), hold_released(true, false, 2));
    let planted: [(&str, Vec<Call>); 8] = [
        (
            "the last pair is kept for two",
            vec![anna(), call(10, 15, hold("bert", "h-2"), held("a", "bert", 2, false, 2))],
        ),
        (
            "a renewal is forgotten",
            vec![
                anna(),
                call(5_000, 5_005, renew_hold("anna", 1, "r-1"), extended(1, 2)),
                call(11_000, 11_005, hold("bert", "h-2"), held("a", "bert", 2, false, 3)),
            ],
        ),
        (
            "another is refused for one who has gone",
            vec![
                anna(),
                released(),
                call(20, 25, hold("bert", "h-2"), refused_for(ErrorCode::Taken, "anna", 1, 3)),
            ],
        ),
        (
            "what was released is still theirs",
            vec![
                anna(),
                released(),
                call(20, 25, hold("anna", "h-2"), held("a", "anna", 1, true, 3)),
            ],
        ),
        (
            "what was replaced is still held",
            vec![
                anna(),
                call(
                    10,
                    15,
                    hold_all(&["b"], "anna", "h-2", &[("a", 1)]),
                    held("b", "anna", 2, false, 2),
                ),
                call(20, 25, look(FAMILY), shelf(Some(("anna", 1)), 2)),
            ],
        ),
        (
            "a late release ends the next hold",
            vec![
                anna(),
                released(),
                call(20, 25, hold("bert", "h-2"), held("a", "bert", 2, false, 3)),
                call(30, 35, release_hold("anna", Some(1), "x-2"), hold_released(true, false, 4)),
            ],
        ),
        (
            "without its fence a release ends nothing, and says that it did",
            vec![
                anna(),
                call(10, 15, release_hold("anna", None, "x-1"), hold_released(true, false, 2)),
                call(20, 25, look(FAMILY), shelf(Some(("anna", 1)), 2)),
            ],
        ),
        (
            "a fence falls",
            vec![
                call(0, 5, hold("anna", "h-1"), held("a", "anna", 5, false, 1)),
                call(10, 15, release_hold("anna", Some(5), "x-1"), hold_released(true, false, 2)),
                call(20, 25, hold("bert", "h-2"), held("a", "bert", 4, false, 3)),
            ],
        ),
    ];
    for (what, calls) in planted {
        assert!(linearized(FAMILY, &calls).is_err(), "not found: {what}");
    }
}

#[test]
fn one_fence_for_two_owners_is_found() {
    let bert = call(20, 25, hold("bert", "h-2"), held("a", "bert", 1, false, 2));
    let calls = [anna(), bert];
    let mut places = project::by_place(&calls);
    let projection = places.get_mut(&(FAMILY, "a")).unwrap();
    projection.operations();
    assert_eq!(projection.contradictions.len(), 1, "{:?}", projection.contradictions);
}

#[test]
fn a_thing_that_is_kept_for_two_at_the_same_time_is_found() {
    let both =
        vec![anna(), call(9_000, 9_500, hold("bert", "h-2"), held("a", "bert", 2, false, 2))];
    assert_eq!(relied_on(both), ["S1, L4"]);
    // Whoever releases, or asks for something else instead, has let go.
    for lets_go in [release_hold("anna", None, "x-1"), hold_all(&["b"], "anna", "h-3", &[("a", 1)])]
    {
        let calls = vec![
            anna(),
            call(10, None, lets_go, unknown()),
            call(20, 25, hold("bert", "h-2"), held("a", "bert", 2, false, 2)),
        ];
        assert_eq!(relied_on(calls), Vec::<&str>::new());
    }
}

#[test]
fn a_hold_that_was_refused_and_is_there_later_is_found() {
    let over = call(0, 5, hold("bert", "h-1"), refused_for(ErrorCode::Taken, "anna", 1, 1));
    let check = |request| {
        let later = call(10, 15, hold("bert", request), held("a", "bert", 2, false, 2));
        dead_requests(&[over.clone(), later])
    };
    assert_eq!(check("h-1"), 1);
    assert_eq!(check("h-2"), 0);
}
