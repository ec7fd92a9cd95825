//! The queue: order, hand-over, wait time-outs (section 8, L3).

use super::check;
use expect_test::expect;

#[test]
fn waiters_are_served_in_order_one_wake_each() {
    check(
        "
        acquire a id:1 by:w1 ttl:1m
        acquire a id:2 by:w2 ttl:10s wait:30s
        acquire a id:3 by:w3 ttl:20s wait:30s
        get a
        -- a poll tells the place, and changes nothing
        pass 1s
        acquire a id:3 by:w3 ttl:20s wait:30s
        release a #1
        -- the poll is answered with the grant
        acquire a id:2 by:w2 ttl:10s
        release a #2
        release a #3
        get a",
        expect![[r#"
            acquire a id:1 by:w1 ttl:1m
                r1: granted a T1 for 1m
            acquire a id:2 by:w2 ttl:10s wait:30s
                r2: waiting at 1, 30s left
            acquire a id:3 by:w3 ttl:20s wait:30s
                r3: waiting at 2, 30s left
            get a
                w1 T1 held 0s, 1m left; queue ["w2", "w3"]
            -- a poll tells the place, and changes nothing
            pass 1s
            acquire a id:3 by:w3 ttl:20s wait:30s
                r4 as r3: waiting at 2, 29s left
            release a #1
                r5: released
                ~ id:2 r5: granted a T2 for 10s
            -- the poll is answered with the grant
            acquire a id:2 by:w2 ttl:10s
                r6 as r5: granted a T2 for 10s
            release a #2
                r7: released
                ~ id:3 r7: granted a T3 for 20s
            release a #3
                r8: released
            get a
                free; queue []
        "#]],
    );
}

#[test]
fn who_does_not_wait_does_not_pass_those_who_do() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire a id:2 wait:30s
        release a #1
        acquire a id:3",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire a id:2 wait:30s
                r2: waiting at 1, 30s left
            release a #1
                r3: released
                ~ id:2 r3: granted a T2 for 30s
            acquire a id:3
                r4: Locked [a: 2 T2 held 0s, 30s left, 0 waiting], retry in 30s
        "#]],
    );
}

#[test]
fn the_first_wait_timeout_holds() {
    check(
        "
        acquire a id:1 ttl:1h
        acquire a id:2 wait:5s
        pass 4s
        acquire a id:2 wait:10m
        step 999ms
        acquire a id:2 wait:10m
        step 1ms
        acquire a id:2 wait:10m",
        expect![[r#"
            acquire a id:1 ttl:1h
                r1: granted a T1 for 1h
            acquire a id:2 wait:5s
                r2: waiting at 1, 5s left
            pass 4s
            acquire a id:2 wait:10m
                r3 as r2: waiting at 1, 1s left
            step 999ms
            acquire a id:2 wait:10m
                r4 as r2: waiting at 1, 1ms left
            step 1ms
                (1 due ended)
                ~ id:2 r5: WaitTimeout timed out
            acquire a id:2 wait:10m
                r6 as r5: WaitTimeout timed out
        "#]],
    );
}

#[test]
fn a_wait_that_timed_out_is_never_granted() {
    check(
        "
        acquire a id:1 ttl:10s
        acquire a id:2 wait:2s
        pass 2s
        release a #1
        acquire a id:2 wait:2s
        get a
        acquire a id:3",
        expect![[r#"
            acquire a id:1 ttl:10s
                r1: granted a T1 for 10s
            acquire a id:2 wait:2s
                r2: waiting at 1, 2s left
            pass 2s
                (1 due ended)
                ~ id:2 r3: WaitTimeout timed out
            release a #1
                r4: released
            acquire a id:2 wait:2s
                r5 as r3: WaitTimeout timed out
            get a
                free; queue []
            acquire a id:3
                r6: granted a T2 for 30s
        "#]],
    );
}

#[test]
fn a_hand_over_skips_who_is_due() {
    check(
        "
        -- lease and first wait end in the same millisecond
        acquire a id:1 ttl:5s
        acquire a id:2 wait:5s
        acquire a id:3 wait:6s
        pass 4s
        step 1s
        acquire a id:2 wait:5s",
        expect![[r#"
            -- lease and first wait end in the same millisecond
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            acquire a id:2 wait:5s
                r2: waiting at 1, 5s left
            acquire a id:3 wait:6s
                r3: waiting at 2, 6s left
            pass 4s
            step 1s
                (2 due ended)
                ~ id:3 r4: granted a T2 for 30s
                ~ id:2 r5: WaitTimeout timed out
            acquire a id:2 wait:5s
                r6 as r5: WaitTimeout timed out
        "#]],
    );
}

#[test]
fn a_wait_ends_with_the_entry_that_could_have_served_it() {
    check(
        "
        acquire a id:1 ttl:2s
        acquire a id:2 wait:3s
        step 1s
        step 999ms
        step 1ms
        get a",
        expect![[r#"
            acquire a id:1 ttl:2s
                r1: granted a T1 for 2s
            acquire a id:2 wait:3s
                r2: waiting at 1, 3s left
            step 1s
            step 999ms
            step 1ms
                (1 due ended)
                ~ id:2 r3: granted a T2 for 30s
            get a
                2 T2 held 0s, 30s left; queue []
        "#]],
    );
}

#[test]
fn all_waits_due_leave_the_name_free() {
    check(
        "
        acquire a id:1 ttl:5s
        acquire a id:2 wait:5s
        acquire a id:3 wait:4s
        pass 4s
        step 1s
        get a
        acquire a id:4",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            acquire a id:2 wait:5s
                r2: waiting at 1, 5s left
            acquire a id:3 wait:4s
                r3: waiting at 2, 4s left
            pass 4s
                (1 due ended)
                ~ id:3 r4: WaitTimeout timed out
            step 1s
                (2 due ended)
                ~ id:2 r6: WaitTimeout timed out
            get a
                free; queue []
            acquire a id:4
                r7: granted a T2 for 30s
        "#]],
    );
}

#[test]
fn a_queue_is_of_one_name() {
    check(
        "
        acquire a id:1
        acquire b id:2
        acquire a id:3 wait:10s
        acquire b id:4 wait:10s
        release b #2
        get a
        get b",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            acquire b id:2
                r2: granted b T2 for 30s
            acquire a id:3 wait:10s
                r3: waiting at 1, 10s left
            acquire b id:4 wait:10s
                r4: waiting at 1, 10s left
            release b #2
                r5: released
                ~ id:4 r5: granted b T3 for 30s
            get a
                1 T1 held 0s, 30s left; queue ["3"]
            get b
                4 T3 held 0s, 30s left; queue []
        "#]],
    );
}

#[test]
fn the_ttl_asked_for_counts_from_the_grant() {
    check(
        "
        acquire a id:1 ttl:30s
        acquire a id:2 ttl:10s hold:15s wait:1m
        pass 29s
        release a #1
        pass 9s
        renew a #2",
        expect![[r#"
            acquire a id:1 ttl:30s
                r1: granted a T1 for 30s
            acquire a id:2 ttl:10s hold:15s wait:1m
                r2: waiting at 1, 1m left
            pass 29s
            release a #1
                r3: released
                ~ id:2 r3: granted a T2 for 10s of at most 15s
            pass 9s
            renew a #2
                r4: renewed T2 for 6s of at most 6s, clipped
        "#]],
    );
}

#[test]
fn the_queue_has_a_maximum() {
    check(
        "
        namespace default v:1 maxWaiters:2
        acquire a id:1
        acquire a id:2 wait:10s
        acquire b id:3
        acquire b id:4 wait:10s
        events
        acquire b id:5 wait:10s
        acquire b id:5 wait:10s
        abandon id:4
        acquire b id:6 wait:10s",
        expect![[r#"
            namespace default v:1 maxWaiters:2
                r1: version 2
            acquire a id:1
                r2: granted a T1 for 30s
            acquire a id:2 wait:10s
                r3: waiting at 1, 10s left
            acquire b id:3
                r4: granted b T2 for 30s
            acquire b id:4 wait:10s
                r5: waiting at 1, 10s left
            acquire b id:5 wait:10s
                r6: LimitReached maxWaiters is 2, retry in 1s
                * r6 lock/default/b 5: refused LimitReached
            acquire b id:5 wait:10s
                r7 as r6: LimitReached maxWaiters is 2, retry in 1s
            abandon id:4
                r8: abandoned, was waiting
                ~ id:4 r8: Abandoned
                * r8 lock/default/b 4: wait ended abandoned after 0s
            acquire b id:6 wait:10s
                r9: waiting at 1, 10s left
                * r9 lock/default/b 6: queued
        "#]],
    );
}
