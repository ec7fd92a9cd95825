//! Waits and hand-overs that nobody asks for (section 6).

use super::check;
use expect_test::expect;

#[test]
fn a_deserted_wait_is_ended() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire a id:2 wait:1m
        acquire a id:3 wait:1m
        pass 10s
        events
        desert id:2
        acquire a id:2 wait:1m
        release a #1",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire a id:2 wait:1m
                r2: waiting at 1, 1m left
            acquire a id:3 wait:1m
                r3: waiting at 2, 1m left
            pass 10s
            desert id:2
                r4: ended
                ~ id:2 r4: WaitTimeout deserted
                * r4 lock/default/a 2: wait ended deserted after 10s
            acquire a id:2 wait:1m
                r5 as r4: WaitTimeout deserted
            release a #1
                r6: released
                ~ id:3 r6: granted a T2 for 30s
                * r6 lock/default/a 1: ended T1 released held 10s
                * r6 lock/default/a 3: granted T2 waited 10s
        "#]],
    );
}

#[test]
fn a_wait_asked_for_since_is_not_deserted() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire a id:2 wait:1m
        pass 5s
        acquire a id:2 wait:1m
        desert id:2 asked:r2
        -- an ask in the very entry, before it
        {
        acquire a id:2 wait:1m
        desert id:2 asked:r3
        }
        get a
        desert id:2",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire a id:2 wait:1m
                r2: waiting at 1, 1m left
            pass 5s
            acquire a id:2 wait:1m
                r3 as r2: waiting at 1, 55s left
            desert id:2 asked:r2
                r4: left alone
            -- an ask in the very entry, before it
            {
            acquire a id:2 wait:1m
                r5 as r2: waiting at 1, 55s left
            desert id:2 asked:r3
                r6: left alone
            get a
                1 T1 held 5s, 55s left; queue ["2"]
            desert id:2
                r7: ended
                ~ id:2 r7: WaitTimeout deserted
        "#]],
    );
}

#[test]
fn a_deserted_hand_over_is_taken_back() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire a id:2 wait:1m
        acquire a id:3 wait:1m
        release a #1
        pass 10s
        desert id:2
        -- it is spent
        acquire a id:2 wait:1m
        renew a #2",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire a id:2 wait:1m
                r2: waiting at 1, 1m left
            acquire a id:3 wait:1m
                r3: waiting at 2, 1m left
            release a #1
                r4: released
                ~ id:2 r4: granted a T2 for 30s
            pass 10s
            desert id:2
                r5: ended
                ~ id:3 r5: granted a T3 for 30s
            -- it is spent
            acquire a id:2 wait:1m
                r6 as r5: LeaseEnded abandoned T2
            renew a #2
                r7: LeaseEnded abandoned T2
        "#]],
    );
}

#[test]
fn a_hand_over_asked_for_renewed_or_granted_at_once_stays() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire b id:2 ttl:1m
        acquire a id:3 wait:1m ttl:1m
        acquire b id:4 wait:1m ttl:1m
        release a #1
        release b #2
        acquire a id:3 wait:1m ttl:1m
        desert id:3 asked:r3
        renew b #4
        desert id:4 asked:r4
        acquire c id:5
        desert id:5
        desert id:77
        get a
        get b
        get c",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire b id:2 ttl:1m
                r2: granted b T2 for 1m
            acquire a id:3 wait:1m ttl:1m
                r3: waiting at 1, 1m left
            acquire b id:4 wait:1m ttl:1m
                r4: waiting at 1, 1m left
            release a #1
                r5: released
                ~ id:3 r5: granted a T3 for 1m
            release b #2
                r6: released
                ~ id:4 r6: granted b T4 for 1m
            acquire a id:3 wait:1m ttl:1m
                r7 as r5: granted a T3 for 1m
            desert id:3 asked:r3
                r8: left alone
            renew b #4
                r9: renewed T4 for 1m
            desert id:4 asked:r4
                r10: left alone
            acquire c id:5
                r11: granted c T5 for 30s
            desert id:5
                r12: left alone
            desert id:77
                r13: left alone
            get a
                3 T3 held 0s, 1m left; queue []
            get b
                4 T4 held 0s, 1m left; queue []
            get c
                5 T5 held 0s, 30s left; queue []
        "#]],
    );
}
