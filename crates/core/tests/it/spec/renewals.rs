//! Renew, RenewMany, maxHold (section 8), and that a deadline never comes nearer (S8).

use super::check;
use expect_test::expect;

#[test]
fn without_a_ttl_the_one_last_granted() {
    check(
        "
        acquire a id:1 ttl:10s
        pass 4s
        renew a #1
        renew a #1 ttl:20s
        pass 4s
        renew a #1",
        expect![[r#"
            acquire a id:1 ttl:10s
                r1: granted a T1 for 10s
            pass 4s
            renew a #1
                r2: renewed T1 for 10s
            renew a #1 ttl:20s
                r3: renewed T1 for 20s
            pass 4s
            renew a #1
                r4: renewed T1 for 20s
        "#]],
    );
}

#[test]
fn never_an_earlier_deadline() {
    check(
        "
        acquire a id:1 ttl:30s
        renew a #1 ttl:5s
        -- now 5 s is the TTL last granted, but 30 s were promised
        renew a #1
        pass 26s
        renew a #1",
        expect![[r#"
            acquire a id:1 ttl:30s
                r1: granted a T1 for 30s
            renew a #1 ttl:5s
                r2: renewed T1 for 30s
            -- now 5 s is the TTL last granted, but 30 s were promised
            renew a #1
                r3: renewed T1 for 30s
            pass 26s
            renew a #1
                r4: renewed T1 for 5s
        "#]],
    );
}

#[test]
fn it_never_resurrects() {
    check(
        "
        acquire a id:1 ttl:5s
        pass 4s
        step 1s
        renew a #1
        get a
        acquire a id:2 ttl:5s
        release a #2
        renew a #2
        renew a #77",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            pass 4s
            step 1s
                (1 due ended)
            renew a #1
                r3: LeaseEnded expired T1
            get a
                free; queue []
            acquire a id:2 ttl:5s
                r4: granted a T2 for 5s
            release a #2
                r5: released
            renew a #2
                r6: LeaseEnded released T2
            renew a #77
                r7: NotHolder
        "#]],
    );
}

#[test]
fn to_the_millisecond() {
    check(
        "
        acquire a id:1 ttl:5s
        pass 4s
        step 999ms
        renew a #1 ttl:5s
        pass 4s
        step 999ms
        get a
        step 1ms
        get a",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            pass 4s
            step 999ms
            renew a #1 ttl:5s
                r2: renewed T1 for 5s
            pass 4s
            step 999ms
            get a
                1 T1 held 9998ms, 1ms left; queue []
            step 1ms
                (1 due ended)
            get a
                free; queue []
        "#]],
    );
}

#[test]
fn a_ttl_out_of_bounds_changes_nothing() {
    check(
        "
        acquire a id:1 ttl:5s
        renew a #1 ttl:999ms
        renew a #1 ttl:max
        get a",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            renew a #1 ttl:999ms
                r2: InvalidArgument leaseTtl: must be 1000 to 3600000 (durations in ms), is 999
            renew a #1 ttl:max
                r3: InvalidArgument leaseTtl: must be 1000 to 3600000 (durations in ms), is 18446744073709551615
            get a
                1 T1 held 0s, 5s left; queue []
        "#]],
    );
}

#[test]
fn max_hold_shorter_than_the_ttl() {
    check(
        "
        acquire a id:1 ttl:10s hold:5s
        renew a #1
        pass 5s
        release a #1",
        expect![[r#"
            acquire a id:1 ttl:10s hold:5s
                r1: granted a T1 for 5s of at most 5s
            renew a #1
                r2: MaxHoldReached T1 ends in 5s
            pass 5s
                (1 due ended)
            release a #1
                r4: not released: maxHold
        "#]],
    );
}

#[test]
fn the_namespace_bounds_every_hold() {
    check(
        "
        namespace default v:1 maxHold:20s
        acquire a id:1 ttl:10s
        acquire b id:2 ttl:10s hold:15s
        acquire c id:3 ttl:10s hold:21s
        pass 9s
        renew a #1 ttl:30s
        -- a policy binds those who come after it
        namespace default v:2
        renew a #1
        acquire d id:4 ttl:10s",
        expect![[r#"
            namespace default v:1 maxHold:20s
                r1: version 2
            acquire a id:1 ttl:10s
                r2: granted a T1 for 10s of at most 20s
            acquire b id:2 ttl:10s hold:15s
                r3: granted b T2 for 10s of at most 15s
            acquire c id:3 ttl:10s hold:21s
                r4: InvalidArgument maxHold: must be 1000 to 20000 (durations in ms), is 21000
            pass 9s
            renew a #1 ttl:30s
                r5: renewed T1 for 11s of at most 11s, clipped
            -- a policy binds those who come after it
            namespace default v:2
                r6: version 3
            renew a #1
                r7: MaxHoldReached T1 ends in 11s
            acquire d id:4 ttl:10s
                r8: granted d T3 for 10s
        "#]],
    );
}

#[test]
fn a_lower_maximum_does_not_touch_what_was_granted() {
    check(
        "
        acquire a id:1 ttl:30s
        namespace default v:1 defaultTtl:5s maxTtl:5s
        renew a #1 ttl:30s
        pass 20s
        renew a #1",
        expect![[r#"
            acquire a id:1 ttl:30s
                r1: granted a T1 for 30s
            namespace default v:1 defaultTtl:5s maxTtl:5s
                r2: version 2
            renew a #1 ttl:30s
                r3: InvalidArgument leaseTtl: must be 1000 to 5000 (durations in ms), is 30000
            pass 20s
            renew a #1
                r4: renewed T1 for 30s
        "#]],
    );
}

#[test]
fn renew_many_decides_each_by_itself() {
    check(
        "
        acquire a id:1 ttl:10s
        acquire b id:2 ttl:10s hold:12s
        acquire c id:3 ttl:10s
        acquire d id:4 ttl:5s
        release c #3
        pass 5s
        renew-many a#1,b#2,c#3,d#4,e#5,a#2
        renew-many a#1,b#2 ttl:20s
        renew-many a#1 in:nowhere
        renew-many",
        expect![[r#"
            acquire a id:1 ttl:10s
                r1: granted a T1 for 10s
            acquire b id:2 ttl:10s hold:12s
                r2: granted b T2 for 10s of at most 12s
            acquire c id:3 ttl:10s
                r3: granted c T3 for 10s
            acquire d id:4 ttl:5s
                r4: granted d T4 for 5s
            release c #3
                r5: released
            pass 5s
                (1 due ended)
            renew-many a#1,b#2,c#3,d#4,e#5,a#2
                r7: renewed T1 for 10s | renewed T2 for 7s of at most 7s, clipped | LeaseEnded released T3 | LeaseEnded expired T4 | NotHolder | NotHolder
            renew-many a#1,b#2 ttl:20s
                r8: renewed T1 for 20s | MaxHoldReached T2 ends in 7s
            renew-many a#1 in:nowhere
                r9: NotFound
            renew-many
                r10: InvalidArgument leases: must be 1 to 1000 (durations in ms), is 0
        "#]],
    );
}

#[test]
fn a_due_lease_is_ended_not_renewed_by_renew_many() {
    check(
        "
        acquire a id:1 ttl:5s
        acquire a id:2 ttl:5s wait:10s
        pass 4s
        step 1s
        renew-many a#1,a#2",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            acquire a id:2 ttl:5s wait:10s
                r2: waiting at 1, 10s left
            pass 4s
            step 1s
                (1 due ended)
                ~ id:2 r3: granted a T2 for 5s
            renew-many a#1,a#2
                r4: LeaseEnded expired T1 | renewed T2 for 5s
        "#]],
    );
}

#[test]
fn max_hold_clips_and_then_refuses() {
    check(
        "
        events
        acquire a id:1 ttl:10s hold:15s
        pass 4s
        renew a #1
        pass 4s
        renew a #1
        pass 2s
        renew a #1
        renew a #1 ttl:1s
        pass 5s
        renew a #1
        acquire a id:1 ttl:10s hold:15s",
        expect![[r#"
            acquire a id:1 ttl:10s hold:15s
                r1: granted a T1 for 10s of at most 15s
                * r1 lock/default/a 1: granted T1
            pass 4s
            renew a #1
                r2: renewed T1 for 10s of at most 11s
            pass 4s
            renew a #1
                r3: renewed T1 for 7s of at most 7s, clipped
            pass 2s
            renew a #1
                r4: MaxHoldReached T1 ends in 5s
                * r4 lock/default/a 1: refused MaxHoldReached
            renew a #1 ttl:1s
                r5: MaxHoldReached T1 ends in 5s
                * r5 lock/default/a 1: refused MaxHoldReached
            pass 5s
                (1 due ended)
                * r6 lock/default/a 1: ended T1 maxHold held 15s
            renew a #1
                r7: LeaseEnded maxHold T1
            acquire a id:1 ttl:10s hold:15s
                r8 as r6: LeaseEnded maxHold T1
        "#]],
    );
}
