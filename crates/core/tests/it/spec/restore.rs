//! A backup restored: nothing is granted during the pause, waits are over, the rest stands (section 4).

use super::check;
use expect_test::expect;

#[test]
fn nothing_is_granted_during_the_pause() {
    check(
        "
        acquire a id:1 ttl:1m
        acquire a id:2 wait:1m
        acquire b id:3
        release b #3
        restore floor:+5m pause:10s
        lead n2
        acquire a id:1 ttl:1m
        acquire a id:2 wait:1m
        acquire b id:3
        acquire c id:4
        acquire a id:5 wait:5s
        acquire-all c id:6
        -- holders go on, and may end
        renew a #1
        release a #1
        abandon id:7
        pass 9s
        step 999ms
        acquire c id:4
        step 1ms
        -- not remembered: the same ids are granted now
        acquire c id:4
        acquire-all d id:6
        acquire e id:7",
        expect![[r#"
            acquire a id:1 ttl:1m
                r1: granted a T1 for 1m
            acquire a id:2 wait:1m
                r2: waiting at 1, 1m left
            acquire b id:3
                r3: granted b T2 for 30s
            release b #3
                r4: released
            restore floor:+5m pause:10s
            lead n2
            acquire a id:1 ttl:1m
                r6 as r1: granted a T1 for 1m
            acquire a id:2 wait:1m
                r7 as r5: WaitTimeout restored
            acquire b id:3
                r8 as r4: LeaseEnded released T2
            acquire c id:4
                r9: Unavailable paused, retry in 10s
            acquire a id:5 wait:5s
                r10: Unavailable paused, retry in 10s
            acquire-all c id:6
                r11: Unavailable paused, retry in 10s
            -- holders go on, and may end
            renew a #1
                r12: renewed T1 for 1m
            release a #1
                r13: released
            abandon id:7
                r14: abandoned, was unseen
            pass 9s
            step 999ms
            acquire c id:4
                r15: Unavailable paused, retry in 1ms
            step 1ms
            -- not remembered: the same ids are granted now
            acquire c id:4
                r16: granted c T3 for 30s
            acquire-all d id:6
                r17: granted d T4 for 30s
            acquire e id:7
                r18 as r14: Abandoned
        "#]],
    );
}

#[test]
fn deadlines_and_delays_of_the_backup_stand() {
    check(
        "
        namespace default v:1 lockDelay:5s
        acquire a id:1 ttl:10s
        acquire b id:2 ttl:5s
        acquire b id:3 wait:10m
        pass 6s
        restore floor:+5m pause:1s
        lead n2
        get a
        get b
        pass 4s
        get a
        get b
        pass 5s
        get a",
        expect![[r#"
            namespace default v:1 lockDelay:5s
                r1: version 2
            acquire a id:1 ttl:10s
                r2: granted a T1 for 10s
            acquire b id:2 ttl:5s
                r3: granted b T2 for 5s
            acquire b id:3 wait:10m
                r4: waiting at 1, 10m left
            pass 6s
                (1 due ended)
            restore floor:+5m pause:1s
            lead n2
            get a
                1 T1 held 6s, 4s left; queue []
            get b
                delayed, 4s left; queue []
            pass 4s
                (2 due ended)
            get a
                delayed, 5s left; queue []
            get b
                free; queue []
            pass 5s
                (1 due ended)
            get a
                free; queue []
        "#]],
    );
}
