//! How ownerships end: expiry, forced release, abandon; and S4: no late copy touches the next holder.

use super::check;
use expect_test::expect;

#[test]
fn a_late_release_or_renewal_never_touches_the_next_holder() {
    check(
        "
        acquire a id:1 ttl:5s
        acquire a id:2 ttl:30s wait:30s
        pass 5s
        release a #1
        renew a #1
        renew-many a#1
        force-release a T1 id:9
        get a",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            acquire a id:2 ttl:30s wait:30s
                r2: waiting at 1, 30s left
            pass 5s
                (1 due ended)
                ~ id:2 r3: granted a T2 for 30s
            release a #1
                r4: not released: expired
            renew a #1
                r5: LeaseEnded expired T1
            renew-many a#1
                r6: LeaseEnded expired T1
            force-release a T1 id:9
                r7: NotHolder
            get a
                2 T2 held 0s, 30s left; queue []
        "#]],
    );
}

#[test]
fn abandon_of_a_grant_releases_it() {
    check(
        "
        events
        acquire a id:1
        abandon id:1
        abandon id:1
        acquire a id:1
        renew a #1
        release a #1
        -- no lock delay after it
        namespace default v:1 lockDelay:10s
        acquire a id:2
        abandon id:2
        acquire a id:3",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
                * r1 lock/default/a 1: granted T1
            abandon id:1
                r2: abandoned, was granted
                * r2 lock/default/a 1: ended T1 abandoned held 0s
            abandon id:1
                r3: abandoned, was ended: abandoned
            acquire a id:1
                r4 as r2: LeaseEnded abandoned T1
            renew a #1
                r5: LeaseEnded abandoned T1
            release a #1
                r6: not released: abandoned
            -- no lock delay after it
            namespace default v:1 lockDelay:10s
                r7: version 2
                * r7 lock/default: namespace put, version 2
            acquire a id:2
                r8: granted a T2 for 30s
                * r8 lock/default/a 2: granted T2
            abandon id:2
                r9: abandoned, was granted
                * r9 lock/default/a 2: ended T2 abandoned held 0s
            acquire a id:3
                r10: granted a T3 for 30s
                * r10 lock/default/a 3: granted T3
        "#]],
    );
}

#[test]
fn abandon_of_a_wait_removes_it() {
    check(
        "
        events
        acquire a id:1
        acquire a id:2 wait:10s
        acquire a id:3 wait:10s
        abandon id:2
        abandon id:2
        acquire a id:2 wait:10s
        release a #1
        get a",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
                * r1 lock/default/a 1: granted T1
            acquire a id:2 wait:10s
                r2: waiting at 1, 10s left
                * r2 lock/default/a 2: queued
            acquire a id:3 wait:10s
                r3: waiting at 2, 10s left
                * r3 lock/default/a 3: queued
            abandon id:2
                r4: abandoned, was waiting
                ~ id:2 r4: Abandoned
                * r4 lock/default/a 2: wait ended abandoned after 0s
            abandon id:2
                r5: abandoned, was refused: Abandoned
            acquire a id:2 wait:10s
                r6 as r4: Abandoned
            release a #1
                r7: released
                ~ id:3 r7: granted a T2 for 30s
                * r7 lock/default/a 1: ended T1 released held 0s
                * r7 lock/default/a 3: granted T2 waited 0s
            get a
                3 T2 held 0s, 30s left; queue []
        "#]],
    );
}

#[test]
fn abandon_of_a_request_not_seen_yet_forbids_it() {
    check(
        "
        abandon id:1
        abandon id:1
        acquire a id:1
        acquire b id:1 by:other
        acquire-all a,b id:1
        pass 89s
        acquire a id:1
        get a",
        expect![[r#"
            abandon id:1
                r1: abandoned, was unseen
            abandon id:1
                r2: abandoned, was refused: Abandoned
            acquire a id:1
                r3 as r1: Abandoned
            acquire b id:1 by:other
                r4 as r1: Abandoned
            acquire-all a,b id:1
                r5 as r1: Abandoned
            pass 89s
            acquire a id:1
                r6 as r1: Abandoned
            get a
                free; queue []
        "#]],
    );
}

#[test]
fn abandon_of_a_refusal_changes_nothing() {
    check(
        "
        acquire a id:1
        acquire a id:2
        abandon id:2
        acquire a id:2",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            acquire a id:2
                r2: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
            abandon id:2
                r3: abandoned, was refused: Locked
            acquire a id:2
                r4 as r2: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
        "#]],
    );
}

#[test]
fn abandon_is_of_the_callers_own_request() {
    check(
        "
        acquire a id:1 caller:bob
        abandon id:1
        get a
        abandon id:1 caller:bob
        get a",
        expect![[r#"
            acquire a id:1 caller:bob
                r1: granted a T1 for 30s
            abandon id:1
                r2: abandoned, was unseen
            get a
                1 T1 held 0s, 30s left; queue []
            abandon id:1 caller:bob
                r3: abandoned, was granted
            get a
                free; queue []
        "#]],
    );
}

#[test]
fn force_release_ends_the_lease_with_that_token() {
    check(
        "
        events
        acquire a id:1 by:w1 caller:w
        acquire a id:2 by:w2 wait:10s caller:w
        force-release a T1 id:9 reason:wedged caller:ops
        -- repeated, it is the same answer, and the next holder stays
        force-release a T1 id:9 reason:wedged caller:ops
        force-release a T1 id:8 reason:wedged caller:ops
        force-release a T2 id:9 reason:wedged caller:ops
        acquire a id:1 by:w1 caller:w
        renew a #1
        get a
        force-release b T1 id:7 caller:ops
        force-release a T2 id:6 in:nowhere caller:ops",
        expect![[r#"
            acquire a id:1 by:w1 caller:w
                r1: granted a T1 for 30s
                * r1 lock/default/a w1: granted T1 by w
            acquire a id:2 by:w2 wait:10s caller:w
                r2: waiting at 1, 10s left
                * r2 lock/default/a w2: queued by w
            force-release a T1 id:9 reason:wedged caller:ops
                r3: force-released T1
                ~ id:2 r3: granted a T2 for 30s
                * r3 lock/default/a w1: ended T1 forced held 0s: wedged by ops
                * r3 lock/default/a w2: granted T2 waited 0s by w
            -- repeated, it is the same answer, and the next holder stays
            force-release a T1 id:9 reason:wedged caller:ops
                r4 as r3: force-released T1
            force-release a T1 id:8 reason:wedged caller:ops
                r5: NotHolder
            force-release a T2 id:9 reason:wedged caller:ops
                r6: RequestIdReused
            acquire a id:1 by:w1 caller:w
                r7 as r3: LeaseEnded forced T1
            renew a #1
                r8: LeaseEnded forced T1
            get a
                w2 T2 held 0s, 30s left; queue []
            force-release b T1 id:7 caller:ops
                r9: NotHolder
            force-release a T2 id:6 in:nowhere caller:ops
                r10: NotFound
        "#]],
    );
}

#[test]
fn operators_writes_are_another_family_of_request_ids() {
    check(
        "
        acquire a id:1
        force-release a T1 id:1
        acquire a id:1",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            force-release a T1 id:1
                r2: force-released T1
            acquire a id:1
                r3 as r2: LeaseEnded forced T1
        "#]],
    );
}

#[test]
fn operators_writes_are_not_abandoned() {
    check(
        "
        acquire a id:1
        force-release a T1 id:9
        abandon id:9 family:admin
        abandon id:8 family:admin
        force-release a T1 id:9",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            force-release a T1 id:9
                r2: force-released T1
            abandon id:9 family:admin
                r3: InvalidArgument family: operators' writes are decided at once, and stay
            abandon id:8 family:admin
                r4: InvalidArgument family: operators' writes are decided at once, and stay
            force-release a T1 id:9
                r5 as r2: force-released T1
        "#]],
    );
}

/// Whoever can name the lease may release it; the audit trail has to say who did.
#[test]
fn a_release_is_told_with_the_caller_who_asked() {
    check(
        "
        events
        acquire a id:1 by:w1 caller:w
        acquire a id:2 by:w2 caller:w wait:10s
        release a #1 caller:cleaner",
        expect![[r#"
            acquire a id:1 by:w1 caller:w
                r1: granted a T1 for 30s
                * r1 lock/default/a w1: granted T1 by w
            acquire a id:2 by:w2 caller:w wait:10s
                r2: waiting at 1, 10s left
                * r2 lock/default/a w2: queued by w
            release a #1 caller:cleaner
                r3: released
                ~ id:2 r3: granted a T2 for 30s
                * r3 lock/default/a w1: ended T1 released held 0s by cleaner
                * r3 lock/default/a w2: granted T2 waited 0s by w
        "#]],
    );
}
