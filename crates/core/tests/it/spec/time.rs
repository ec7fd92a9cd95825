//! Time: what is due is ended, at most 1,000 an entry, and rights end at the deadline all the same (section 3).

use super::check;
use expect_test::expect;

#[test]
fn exactly_the_first_thousand_due_are_swept() {
    check(
        "
        fill 2500 ttl:5s
        due
        pass 4s
        step 1s
        due
        step 0s
        due
        step 1ms
        due
        step 1ms",
        expect![[r#"
            fill 2500 ttl:5s
                2500 of 2500
            due
                0 due, the oldest for 0s
            pass 4s
            step 1s
                (1000 due ended)
            due
                1500 due, the oldest for 0s
            step 0s
                (1000 due ended)
            due
                500 due, the oldest for 0s
            step 1ms
                (500 due ended)
            due
                0 due, the oldest for 0s
            step 1ms
        "#]],
    );
}

/// The sweep is busy with a thousand others; every command on what is due finds it ended.
#[test]
fn whatever_the_sweep_has_not_reached_is_ended_by_the_command_that_touches_it() {
    check(
        "
        fill 1000 ttl:5s
        acquire a id:1 ttl:5s by:w1
        acquire a id:2 ttl:30s wait:1m by:w2
        acquire b id:3 ttl:5s
        acquire c id:4 ttl:5s
        acquire d id:5 ttl:5s
        acquire e id:6 ttl:5s
        acquire f id:7 ttl:1h
        acquire f id:8 wait:5s
        acquire f id:9 wait:5s
        pass 4s
        -- w2 waited: w3 does not get past it
        { 1s
        acquire a id:10 by:w3
        release b #3
        renew c #4
        force-release d T4 id:11
        acquire-all e,g id:12
        abandon id:8
        acquire f id:9 wait:5s
        }
        due",
        expect![[r#"
            fill 1000 ttl:5s
                1000 of 1000
            acquire a id:1 ttl:5s by:w1
                r1001: granted a T1 for 5s
            acquire a id:2 ttl:30s wait:1m by:w2
                r1002: waiting at 1, 1m left
            acquire b id:3 ttl:5s
                r1003: granted b T2 for 5s
            acquire c id:4 ttl:5s
                r1004: granted c T3 for 5s
            acquire d id:5 ttl:5s
                r1005: granted d T4 for 5s
            acquire e id:6 ttl:5s
                r1006: granted e T5 for 5s
            acquire f id:7 ttl:1h
                r1007: granted f T6 for 1h
            acquire f id:8 wait:5s
                r1008: waiting at 1, 5s left
            acquire f id:9 wait:5s
                r1009: waiting at 2, 5s left
            pass 4s
            -- w2 waited: w3 does not get past it
            { 1s
            acquire a id:10 by:w3
                r2011: Locked [a: w2 T7 held 0s, 30s left, 0 waiting], retry in 30s
            release b #3
                r2013: not released: expired
            renew c #4
                r2015: LeaseEnded expired T3
            force-release d T4 id:11
                r2017: NotHolder
            acquire-all e,g id:12
                r2019: granted e T8, g T9 for 30s
            abandon id:8
                r2021: abandoned, was refused: WaitTimeout
            acquire f id:9 wait:5s
                r2023 as r2022: WaitTimeout timed out
                (1007 due ended)
                ~ id:2 r2010: granted a T7 for 30s
                ~ id:8 r2020: WaitTimeout timed out
                ~ id:9 r2022: WaitTimeout timed out
            due
                0 due, the oldest for 0s
        "#]],
    );
}

#[test]
fn a_poll_is_answered_with_the_grant_that_is_due_to_it() {
    check(
        "
        fill 1000 ttl:5s
        acquire a id:1 ttl:5s
        acquire a id:2 wait:1m ttl:7s
        acquire a id:3 wait:1m ttl:7s
        pass 4s
        { 1s
        acquire a id:2 wait:1m ttl:7s
        acquire a id:3 wait:1m ttl:7s
        }",
        expect![[r#"
            fill 1000 ttl:5s
                1000 of 1000
            acquire a id:1 ttl:5s
                r1001: granted a T1 for 5s
            acquire a id:2 wait:1m ttl:7s
                r1002: waiting at 1, 1m left
            acquire a id:3 wait:1m ttl:7s
                r1003: waiting at 2, 1m left
            pass 4s
            { 1s
            acquire a id:2 wait:1m ttl:7s
                r2005 as r2004: granted a T2 for 7s
            acquire a id:3 wait:1m ttl:7s
                r2006 as r1003: waiting at 1, 55s left
                (1001 due ended)
                ~ id:2 r2004: granted a T2 for 7s
        "#]],
    );
}

#[test]
fn a_spent_grant_is_known_as_such_before_it_is_swept() {
    check(
        "
        fill 1000 ttl:5s
        acquire a id:1 ttl:5s
        acquire b id:2 ttl:5s
        acquire-all c,d id:3 ttl:5s
        acquire d id:4 wait:1m
        pass 4s
        { 1s
        acquire a id:1 ttl:5s
        abandon id:2
        renew-many c#3,d#3
        desert id:1
        }
        due",
        expect![[r#"
            fill 1000 ttl:5s
                1000 of 1000
            acquire a id:1 ttl:5s
                r1001: granted a T1 for 5s
            acquire b id:2 ttl:5s
                r1002: granted b T2 for 5s
            acquire-all c,d id:3 ttl:5s
                r1003: granted c T3, d T4 for 5s
            acquire d id:4 wait:1m
                r1004: waiting at 1, 1m left
            pass 4s
            { 1s
            acquire a id:1 ttl:5s
                r2006 as r2005: LeaseEnded expired T1
            abandon id:2
                r2008: abandoned, was ended: expired
            renew-many c#3,d#3
                r2010: LeaseEnded expired T3 | LeaseEnded expired T4
            desert id:1
                r2011: left alone
                (1003 due ended)
                ~ id:4 r2009: granted d T5 for 30s
            due
                0 due, the oldest for 0s
        "#]],
    );
}

#[test]
fn a_due_lock_delay_is_ended_by_who_comes() {
    check(
        "
        namespace shop v:0 lockDelay:5s
        acquire a id:1 ttl:5s in:shop
        acquire a id:2 wait:1m ttl:1m in:shop
        pass 5s
        fill 1000 ttl:4999ms
        pass 4s
        { 1s
        acquire a id:3 in:shop
        }
        due",
        expect![[r#"
            namespace shop v:0 lockDelay:5s
                r1: version 1
            acquire a id:1 ttl:5s in:shop
                r2: granted a T1 for 5s
            acquire a id:2 wait:1m ttl:1m in:shop
                r3: waiting at 1, 1m left
            pass 5s
                (1 due ended)
            fill 1000 ttl:4999ms
                1000 of 1000
            pass 4s
            { 1s
            acquire a id:3 in:shop
                r2006: Locked [a: 2 T2 held 0s, 1m left, 0 waiting], retry in 1m
                (1001 due ended)
                ~ id:2 r2005: granted a T2 for 1m
            due
                0 due, the oldest for 0s
        "#]],
    );
}

#[test]
fn a_due_holder_is_ended_into_what_is_left_of_its_lock_delay() {
    check(
        "
        namespace shop v:0 lockDelay:5s
        fill 1000 ttl:4s
        acquire a id:1 ttl:4s in:shop
        acquire a id:2 wait:1m ttl:1m in:shop
        pass 3s
        step 900ms
        { 1s
        acquire a id:3 in:shop
        }",
        expect![[r#"
            namespace shop v:0 lockDelay:5s
                r1: version 1
            fill 1000 ttl:4s
                1000 of 1000
            acquire a id:1 ttl:4s in:shop
                r1002: granted a T1 for 4s
            acquire a id:2 wait:1m ttl:1m in:shop
                r1003: waiting at 1, 1m left
            pass 3s
            step 900ms
            { 1s
            acquire a id:3 in:shop
                r2005: Locked [a: delayed, 4100ms left, 1 waiting], retry in 4100ms
                (1001 due ended)
        "#]],
    );
}

#[test]
fn counters_fall_when_swept_and_the_refusal_says_so() {
    check(
        "
        namespace shop v:0 maxLeases:1 maxWaiters:1
        fill 1000 ttl:5s
        acquire a id:1 in:shop ttl:5s
        acquire a id:2 in:shop wait:5s
        pass 4s
        { 1s
        acquire b id:3 in:shop
        acquire b id:3 in:shop
        }
        acquire b id:3 in:shop
        acquire b id:4 in:shop",
        expect![[r#"
            namespace shop v:0 maxLeases:1 maxWaiters:1
                r1: version 1
            fill 1000 ttl:5s
                1000 of 1000
            acquire a id:1 in:shop ttl:5s
                r1002: granted a T1 for 5s
            acquire a id:2 in:shop wait:5s
                r1003: waiting at 1, 5s left
            pass 4s
            { 1s
            acquire b id:3 in:shop
                r2004: LimitReached maxLeases is 1, sweep pending, retry in 1s
            acquire b id:3 in:shop
                r2005 as r2004: LimitReached maxLeases is 1, sweep pending, retry in 1s
                (1000 due ended)
            acquire b id:3 in:shop
                r2008 as r2004: LimitReached maxLeases is 1, retry in 1s
                (2 due ended)
                ~ id:2 r2007: WaitTimeout timed out
            acquire b id:4 in:shop
                r2009: granted b T2 for 30s
        "#]],
    );
}

#[test]
fn a_free_name_with_none_but_due_waiters_is_free() {
    check(
        "
        acquire a id:1 ttl:1h
        fill-waits a 1500 wait:5s
        pass 4s
        -- 500 are due and unswept: they have no rights any more
        { 1s
        release a #1
        acquire a id:2
        acquire a id:3 wait:5s
        release a #1
        }
        due
        step 0s
        get a",
        expect![[r#"
            acquire a id:1 ttl:1h
                r1: granted a T1 for 1h
            fill-waits a 1500 wait:5s
                1500 of 1500
            pass 4s
            -- 500 are due and unswept: they have no rights any more
            { 1s
            release a #1
                r2502: released
            acquire a id:2
                r2503: granted a T2 for 30s
            acquire a id:3 wait:5s
                r2504: waiting at 501, 5s left
            release a #1
                r2505: not released: released
                (1000 due ended)
                ~ 1000 others
            due
                500 due, the oldest for 0s
            step 0s
                (500 due ended)
                ~ 500 others
            get a
                2 T2 held 0s, 30s left; queue ["3"]
        "#]],
    );
}

#[test]
fn lock_delay_is_used_up_by_a_late_sweep() {
    check(
        "
        namespace shop v:0 lockDelay:100ms
        fill 3000 ttl:5s
        acquire a id:1 ttl:5s in:shop
        acquire a id:2 wait:1m in:shop
        pass 4s
        step 1s
        step 50ms
        -- 60 ms of the delay have passed when the holder's end is noticed
        step 10ms
        step 39ms
        step 1ms",
        expect![[r#"
            namespace shop v:0 lockDelay:100ms
                r1: version 1
            fill 3000 ttl:5s
                3000 of 3000
            acquire a id:1 ttl:5s in:shop
                r3002: granted a T1 for 5s
            acquire a id:2 wait:1m in:shop
                r3003: waiting at 1, 1m left
            pass 4s
            step 1s
                (1000 due ended)
            step 50ms
                (1000 due ended)
            -- 60 ms of the delay have passed when the holder's end is noticed
            step 10ms
                (1000 due ended)
            step 39ms
                (1 due ended)
            step 1ms
                (1 due ended)
                ~ id:2 r6005: granted a T2 for 30s
        "#]],
    );
}

#[test]
fn a_full_queue_of_due_waiters_says_that_the_sweep_is_pending() {
    check(
        "
        fill 1000 ttl:5s
        acquire a id:1 ttl:1h
        fill-waits a 10000 wait:5s
        acquire a id:2 wait:5s
        pass 4s
        { 1s
        acquire a id:3 wait:5s
        }",
        expect![[r#"
            fill 1000 ttl:5s
                1000 of 1000
            acquire a id:1 ttl:1h
                r1001: granted a T1 for 1h
            fill-waits a 10000 wait:5s
                10000 of 10000
            acquire a id:2 wait:5s
                r11002: QueueFull waiters of one resource is 10000, retry in 1s
            pass 4s
            { 1s
            acquire a id:3 wait:5s
                r12003: QueueFull waiters of one resource is 10000, sweep pending, retry in 1s
                (1000 due ended)
        "#]],
    );
}
