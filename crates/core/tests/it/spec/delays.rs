//! The lock delay: after an expiry or a forced release nobody is granted for that long (section 8).

use super::check;
use expect_test::expect;

#[test]
fn lock_delay_after_an_expiry() {
    check(
        "
        namespace default v:1 lockDelay:3s
        events
        acquire a id:1 ttl:5s
        acquire a id:2 ttl:5s wait:1m
        pass 5s
        get a
        acquire a id:3
        step 1s
        step 1s
        step 999ms
        step 1ms",
        expect![[r#"
            namespace default v:1 lockDelay:3s
                r1: version 2
            acquire a id:1 ttl:5s
                r2: granted a T1 for 5s
                * r2 lock/default/a 1: granted T1
            acquire a id:2 ttl:5s wait:1m
                r3: waiting at 1, 1m left
                * r3 lock/default/a 2: queued
            pass 5s
                (1 due ended)
                * r4 lock/default/a 1: ended T1 expired held 5s
            get a
                delayed, 3s left; queue ["2"]
            acquire a id:3
                r5: Locked [a: delayed, 3s left, 1 waiting], retry in 3s
            step 1s
            step 1s
            step 999ms
            step 1ms
                (1 due ended)
                ~ id:2 r6: granted a T2 for 5s
                * r6 lock/default/a 2: granted T2 waited 8s
        "#]],
    );
}

#[test]
fn lock_delay_counts_from_the_deadline() {
    check(
        "
        namespace default v:1 lockDelay:500ms
        acquire a id:1 ttl:5s
        acquire a id:2 ttl:5s wait:1m
        pass 4s
        step 900ms
        -- ended 800 ms late: nothing is left of the delay
        step 900ms",
        expect![[r#"
            namespace default v:1 lockDelay:500ms
                r1: version 2
            acquire a id:1 ttl:5s
                r2: granted a T1 for 5s
            acquire a id:2 ttl:5s wait:1m
                r3: waiting at 1, 1m left
            pass 4s
            step 900ms
            -- ended 800 ms late: nothing is left of the delay
            step 900ms
                (1 due ended)
                ~ id:2 r4: granted a T2 for 5s
        "#]],
    );
}

#[test]
fn lock_delay_after_a_forced_release_and_after_max_hold() {
    check(
        "
        namespace default v:1 lockDelay:3s
        acquire a id:1
        force-release a T1 id:9
        acquire a id:2
        pass 3s
        acquire a id:3 ttl:5s hold:5s
        pass 5s
        acquire a id:4
        get a",
        expect![[r#"
            namespace default v:1 lockDelay:3s
                r1: version 2
            acquire a id:1
                r2: granted a T1 for 30s
            force-release a T1 id:9
                r3: force-released T1
            acquire a id:2
                r4: Locked [a: delayed, 3s left, 0 waiting], retry in 3s
            pass 3s
                (1 due ended)
            acquire a id:3 ttl:5s hold:5s
                r6: granted a T2 for 5s of at most 5s
            pass 5s
                (1 due ended)
            acquire a id:4
                r8: Locked [a: delayed, 3s left, 0 waiting], retry in 3s
            get a
                delayed, 3s left; queue []
        "#]],
    );
}

#[test]
fn no_lock_delay_after_a_release() {
    check(
        "
        namespace default v:1 lockDelay:3s
        acquire a id:1
        acquire a id:2 wait:10s
        release a #1",
        expect![[r#"
            namespace default v:1 lockDelay:3s
                r1: version 2
            acquire a id:1
                r2: granted a T1 for 30s
            acquire a id:2 wait:10s
                r3: waiting at 1, 10s left
            release a #1
                r4: released
                ~ id:2 r4: granted a T2 for 30s
        "#]],
    );
}

#[test]
fn a_wait_may_end_in_the_delay() {
    check(
        "
        namespace default v:1 lockDelay:10s
        acquire a id:1 ttl:5s
        acquire a id:2 wait:8s
        pass 7s
        get a
        pass 1s
        pass 7s
        get a",
        expect![[r#"
            namespace default v:1 lockDelay:10s
                r1: version 2
            acquire a id:1 ttl:5s
                r2: granted a T1 for 5s
            acquire a id:2 wait:8s
                r3: waiting at 1, 8s left
            pass 7s
                (1 due ended)
            get a
                delayed, 8s left; queue ["2"]
            pass 1s
                (1 due ended)
                ~ id:2 r5: WaitTimeout timed out
            pass 7s
                (1 due ended)
            get a
                free; queue []
        "#]],
    );
}

#[test]
fn a_delay_keeps_its_share_of_the_leases() {
    check(
        "
        namespace default v:1 lockDelay:10s maxLeases:1
        acquire a id:1 ttl:5s
        acquire a id:2 ttl:5s wait:1m
        pass 5s
        acquire b id:3
        pass 10s
        get a",
        expect![[r#"
            namespace default v:1 lockDelay:10s maxLeases:1
                r1: version 2
            acquire a id:1 ttl:5s
                r2: granted a T1 for 5s
            acquire a id:2 ttl:5s wait:1m
                r3: waiting at 1, 1m left
            pass 5s
                (1 due ended)
            acquire b id:3
                r5: LimitReached maxLeases is 1, retry in 1s
            pass 10s
                (1 due ended)
                ~ id:2 r6: granted a T2 for 5s
            get a
                2 T2 held 0s, 5s left; queue []
        "#]],
    );
}
