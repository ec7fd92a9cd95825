//! The reply memory: same answer to the same request (S6), a dead request stays dead (S7), and for how long.

use super::check;
use expect_test::expect;

#[test]
fn the_same_request_gets_the_same_grant() {
    check(
        "
        acquire a id:1 by:w1 ttl:10s
        pass 3s
        acquire a id:1 by:w1 ttl:10s
        renew a #1 ttl:20s
        acquire a id:1 by:w1 ttl:10s
        -- waitTimeout is no part of its content
        acquire a id:1 by:w1 ttl:10s wait:5s",
        expect![[r#"
            acquire a id:1 by:w1 ttl:10s
                r1: granted a T1 for 10s
            pass 3s
            acquire a id:1 by:w1 ttl:10s
                r2 as r1: granted a T1 for 7s
            renew a #1 ttl:20s
                r3: renewed T1 for 20s
            acquire a id:1 by:w1 ttl:10s
                r4 as r1: granted a T1 for 20s
            -- waitTimeout is no part of its content
            acquire a id:1 by:w1 ttl:10s wait:5s
                r5 as r1: granted a T1 for 20s
        "#]],
    );
}

#[test]
fn other_content_is_refused_and_changes_nothing() {
    check(
        "
        acquire a id:1 by:w1 ttl:10s
        acquire b id:1 by:w1 ttl:10s
        acquire a id:1 by:w2 ttl:10s
        acquire a id:1 by:w1 ttl:11s
        acquire a id:1 by:w1
        acquire a id:1 by:w1 ttl:10s hold:1m
        acquire a id:1 by:w1 ttl:10s fencing:bestEffort
        acquire a id:1 by:w1 ttl:10s",
        expect![[r#"
            acquire a id:1 by:w1 ttl:10s
                r1: granted a T1 for 10s
            acquire b id:1 by:w1 ttl:10s
                r2: RequestIdReused
            acquire a id:1 by:w2 ttl:10s
                r3: RequestIdReused
            acquire a id:1 by:w1 ttl:11s
                r4: RequestIdReused
            acquire a id:1 by:w1
                r5: RequestIdReused
            acquire a id:1 by:w1 ttl:10s hold:1m
                r6: RequestIdReused
            acquire a id:1 by:w1 ttl:10s fencing:bestEffort
                r7: RequestIdReused
            acquire a id:1 by:w1 ttl:10s
                r8 as r1: granted a T1 for 10s
        "#]],
    );
}

#[test]
fn the_scope_is_namespace_and_caller() {
    check(
        "
        namespace shop v:0
        acquire a id:1 caller:bob
        acquire a id:1 caller:eve in:shop
        acquire b id:1
        acquire a id:1 caller:bob",
        expect![[r#"
            namespace shop v:0
                r1: version 1
            acquire a id:1 caller:bob
                r2: granted a T1 for 30s
            acquire a id:1 caller:eve in:shop
                r3: granted a T2 for 30s
            acquire b id:1
                r4: granted b T3 for 30s
            acquire a id:1 caller:bob
                r5 as r2: granted a T1 for 30s
        "#]],
    );
}

#[test]
fn a_spent_request_says_how_it_ended() {
    check(
        "
        acquire a id:1 ttl:5s
        acquire b id:2 ttl:5s
        acquire c id:3 ttl:5s hold:5s
        acquire d id:4 ttl:5s
        acquire e id:5 ttl:5s
        release b #2
        force-release d T4 id:9
        abandon id:5
        pass 5s
        acquire a id:1 ttl:5s
        acquire b id:2 ttl:5s
        acquire c id:3 ttl:5s hold:5s
        acquire d id:4 ttl:5s
        acquire e id:5 ttl:5s",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            acquire b id:2 ttl:5s
                r2: granted b T2 for 5s
            acquire c id:3 ttl:5s hold:5s
                r3: granted c T3 for 5s of at most 5s
            acquire d id:4 ttl:5s
                r4: granted d T4 for 5s
            acquire e id:5 ttl:5s
                r5: granted e T5 for 5s
            release b #2
                r6: released
            force-release d T4 id:9
                r7: force-released T4
            abandon id:5
                r8: abandoned, was granted
            pass 5s
                (2 due ended)
            acquire a id:1 ttl:5s
                r11 as r9: LeaseEnded expired T1
            acquire b id:2 ttl:5s
                r12 as r6: LeaseEnded released T2
            acquire c id:3 ttl:5s hold:5s
                r13 as r10: LeaseEnded maxHold T3
            acquire d id:4 ttl:5s
                r14 as r7: LeaseEnded forced T4
            acquire e id:5 ttl:5s
                r15 as r8: LeaseEnded abandoned T5
        "#]],
    );
}

#[test]
fn refusals_and_releases_are_remembered_for_90_s() {
    check(
        "
        acquire a id:1
        acquire a id:2
        acquire b id:3
        release b #3
        acquire a id:4 wait:1s
        renew a #1 ttl:1h
        pass 1s
        pass 89s
        -- 90 s after the refusal and the release: forgotten, so these are new
        acquire a id:2
        acquire b id:3
        -- 89 s after the time-out of the wait
        acquire a id:4 wait:1s
        step 999ms
        acquire a id:4 wait:1s
        step 1ms
        acquire a id:4 wait:1s",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            acquire a id:2
                r2: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
            acquire b id:3
                r3: granted b T2 for 30s
            release b #3
                r4: released
            acquire a id:4 wait:1s
                r5: waiting at 1, 1s left
            renew a #1 ttl:1h
                r6: renewed T1 for 1h
            pass 1s
                (1 due ended)
                ~ id:4 r7: WaitTimeout timed out
            pass 89s
            -- 90 s after the refusal and the release: forgotten, so these are new
            acquire a id:2
                r8: Locked [a: 1 T1 held 90s, 3510s left, 0 waiting], retry in 3510s
            acquire b id:3
                r9: granted b T3 for 30s
            -- 89 s after the time-out of the wait
            acquire a id:4 wait:1s
                r10 as r7: WaitTimeout timed out
            step 999ms
            acquire a id:4 wait:1s
                r11 as r7: WaitTimeout timed out
            step 1ms
            acquire a id:4 wait:1s
                r12: waiting at 1, 1s left
        "#]],
    );
}

#[test]
fn other_endings_are_remembered_for_5_min_from_the_end() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire b id:2 ttl:1h
        acquire c id:3 ttl:1m hold:1m
        acquire d id:4 ttl:1h
        pass 60s
        force-release b T2 id:9
        abandon id:4
        pass 299s
        step 999ms
        acquire a id:1 ttl:1m
        acquire b id:2 ttl:1h
        acquire c id:3 ttl:1m hold:1m
        acquire d id:4 ttl:1h
        force-release b T2 id:9
        renew a #1
        step 1ms
        renew a #1
        acquire a id:1 ttl:1m
        acquire b id:2 ttl:1h
        force-release b T2 id:9",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire b id:2 ttl:1h
                r2: granted b T2 for 1h
            acquire c id:3 ttl:1m hold:1m
                r3: granted c T3 for 1m of at most 1m
            acquire d id:4 ttl:1h
                r4: granted d T4 for 1h
            pass 60s
                (2 due ended)
            force-release b T2 id:9
                r7: force-released T2
            abandon id:4
                r8: abandoned, was granted
            pass 299s
            step 999ms
            acquire a id:1 ttl:1m
                r9 as r5: LeaseEnded expired T1
            acquire b id:2 ttl:1h
                r10 as r7: LeaseEnded forced T2
            acquire c id:3 ttl:1m hold:1m
                r11 as r6: LeaseEnded maxHold T3
            acquire d id:4 ttl:1h
                r12 as r8: LeaseEnded abandoned T4
            force-release b T2 id:9
                r13 as r7: force-released T2
            renew a #1
                r14: LeaseEnded expired T1
            step 1ms
            renew a #1
                r15: NotHolder
            acquire a id:1 ttl:1m
                r16: granted a T5 for 1m
            acquire b id:2 ttl:1h
                r17: granted b T6 for 1h
            force-release b T2 id:9
                r18: NotHolder
        "#]],
    );
}

#[test]
fn a_held_or_waiting_request_is_never_forgotten() {
    check(
        "
        acquire a id:1 ttl:1h
        acquire a id:2 wait:10m
        pass 9m
        acquire a id:1 ttl:1h
        acquire a id:2 wait:10m",
        expect![[r#"
            acquire a id:1 ttl:1h
                r1: granted a T1 for 1h
            acquire a id:2 wait:10m
                r2: waiting at 1, 10m left
            pass 9m
            acquire a id:1 ttl:1h
                r3 as r1: granted a T1 for 51m
            acquire a id:2 wait:10m
                r4 as r2: waiting at 1, 1m left
        "#]],
    );
}

#[test]
fn windows_are_the_namespaces_and_fixed_at_the_end() {
    check(
        "
        namespace shop v:0 refusals:2m endings:10m
        acquire a id:1 in:shop
        release a #1 in:shop
        -- a shorter one does not reach back
        namespace shop v:1
        pass 110s
        acquire a id:1 in:shop
        pass 10s
        acquire a id:1 in:shop",
        expect![[r#"
            namespace shop v:0 refusals:2m endings:10m
                r1: version 1
            acquire a id:1 in:shop
                r2: granted a T1 for 30s
            release a #1 in:shop
                r3: released
            -- a shorter one does not reach back
            namespace shop v:1
                r4: version 2
            pass 110s
            acquire a id:1 in:shop
                r5 as r3: LeaseEnded released T1
            pass 10s
            acquire a id:1 in:shop
                r6: granted a T2 for 30s
        "#]],
    );
}

#[test]
fn a_request_that_waited_and_ended_is_never_granted_later() {
    check(
        "
        acquire a id:1 ttl:1h
        acquire a id:2 wait:1s
        acquire a id:3 wait:1m
        acquire a id:4 wait:1m
        abandon id:3
        desert id:4
        pass 1s
        release a #1
        acquire a id:2 wait:1s
        acquire a id:3 wait:1m
        acquire a id:4 wait:1m
        pass 80s
        acquire a id:2 wait:1s
        acquire a id:3 wait:1m
        acquire a id:4 wait:1m
        get a",
        expect![[r#"
            acquire a id:1 ttl:1h
                r1: granted a T1 for 1h
            acquire a id:2 wait:1s
                r2: waiting at 1, 1s left
            acquire a id:3 wait:1m
                r3: waiting at 2, 1m left
            acquire a id:4 wait:1m
                r4: waiting at 3, 1m left
            abandon id:3
                r5: abandoned, was waiting
                ~ id:3 r5: Abandoned
            desert id:4
                r6: ended
                ~ id:4 r6: WaitTimeout deserted
            pass 1s
                (1 due ended)
                ~ id:2 r7: WaitTimeout timed out
            release a #1
                r8: released
            acquire a id:2 wait:1s
                r9 as r7: WaitTimeout timed out
            acquire a id:3 wait:1m
                r10 as r5: Abandoned
            acquire a id:4 wait:1m
                r11 as r6: WaitTimeout deserted
            pass 80s
            acquire a id:2 wait:1s
                r12 as r7: WaitTimeout timed out
            acquire a id:3 wait:1m
                r13 as r5: Abandoned
            acquire a id:4 wait:1m
                r14 as r6: WaitTimeout deserted
            get a
                free; queue []
        "#]],
    );
}

#[test]
fn a_refusal_stays_whatever_happens_to_the_holder() {
    check(
        "
        acquire a id:1
        acquire a id:2
        release a #1
        acquire a id:2
        acquire a id:2 wait:10s
        acquire a id:3",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            acquire a id:2
                r2: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
            release a #1
                r3: released
            acquire a id:2
                r4 as r2: Locked [], retry in 0s
            acquire a id:2 wait:10s
                r5 as r2: Locked [], retry in 0s
            acquire a id:3
                r6: granted a T2 for 30s
        "#]],
    );
}
