//! Acquire, release and what others are told: section 8.

use super::check;
use expect_test::expect;

#[test]
fn a_free_name_is_granted_and_released() {
    check(
        "
        acquire a id:1 by:w1 ttl:10s
        get a
        pass 4s
        get a
        release a #1
        get a
        -- repeatable, and honest about it
        release a #1
        release a #77
        acquire a id:2 by:w2 ttl:10s",
        expect![[r#"
            acquire a id:1 by:w1 ttl:10s
                r1: granted a T1 for 10s
            get a
                w1 T1 held 0s, 10s left; queue []
            pass 4s
            get a
                w1 T1 held 4s, 6s left; queue []
            release a #1
                r2: released
            get a
                free; queue []
            -- repeatable, and honest about it
            release a #1
                r3: not released: released
            release a #77
                r4: not released: unknown
            acquire a id:2 by:w2 ttl:10s
                r5: granted a T2 for 10s
        "#]],
    );
}

#[test]
fn a_held_name_is_refused_with_its_holder() {
    check(
        "
        acquire a id:1 by:w1 ttl:10s
        pass 4s
        acquire a id:2 by:w2
        -- other names are free
        acquire a/b id:3 by:w2
        -- and so is the same name elsewhere
        namespace shop v:0
        acquire a id:4 by:w2 in:shop
        acquire a id:5 by:w2 in:nowhere",
        expect![[r#"
            acquire a id:1 by:w1 ttl:10s
                r1: granted a T1 for 10s
            pass 4s
            acquire a id:2 by:w2
                r2: Locked [a: w1 T1 held 4s, 6s left, 0 waiting], retry in 6s
            -- other names are free
            acquire a/b id:3 by:w2
                r3: granted a/b T2 for 30s
            -- and so is the same name elsewhere
            namespace shop v:0
                r4: version 1
            acquire a id:4 by:w2 in:shop
                r5: granted a T3 for 30s
            acquire a id:5 by:w2 in:nowhere
                r6: NotFound
        "#]],
    );
}

#[test]
fn defaults_come_from_the_namespace() {
    check(
        "
        acquire a id:1
        namespace default v:1 defaultTtl:7s fencing:enforced
        acquire b id:2
        acquire c id:3 fencing:bestEffort",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            namespace default v:1 defaultTtl:7s fencing:enforced
                r2: version 2
            acquire b id:2
                r3: granted b T2 for 7s enforced
            acquire c id:3 fencing:bestEffort
                r4: granted c T3 for 7s
        "#]],
    );
}

#[test]
fn fields_out_of_bounds_are_refused_and_remembered() {
    check(
        "
        acquire a id:1 ttl:999ms
        acquire a id:2 ttl:3600001ms
        acquire a id:3 wait:600001ms
        acquire a id:4 hold:999ms
        acquire a id:5 hold:max
        acquire a id:6 ttl:max
        acquire a id:7 wait:max
        acquire a id:1 ttl:999ms
        -- nothing of it has changed anything
        get a
        acquire a id:8 ttl:1h wait:10m hold:720h",
        expect![[r#"
            acquire a id:1 ttl:999ms
                r1: InvalidArgument leaseTtl: must be 1000 to 3600000 (durations in ms), is 999
            acquire a id:2 ttl:3600001ms
                r2: InvalidArgument leaseTtl: must be 1000 to 3600000 (durations in ms), is 3600001
            acquire a id:3 wait:600001ms
                r3: InvalidArgument waitTimeout: must be 0 to 600000 (durations in ms), is 600001
            acquire a id:4 hold:999ms
                r4: InvalidArgument maxHold: must be 1000 to 2592000000 (durations in ms), is 999
            acquire a id:5 hold:max
                r5: InvalidArgument maxHold: must be 1000 to 2592000000 (durations in ms), is 18446744073709551615
            acquire a id:6 ttl:max
                r6: InvalidArgument leaseTtl: must be 1000 to 3600000 (durations in ms), is 18446744073709551615
            acquire a id:7 wait:max
                r7: InvalidArgument waitTimeout: must be 0 to 600000 (durations in ms), is 18446744073709551615
            acquire a id:1 ttl:999ms
                r8 as r1: InvalidArgument leaseTtl: must be 1000 to 3600000 (durations in ms), is 999
            -- nothing of it has changed anything
            get a
                free; queue []
            acquire a id:8 ttl:1h wait:10m hold:720h
                r9: granted a T1 for 1h of at most 720h
        "#]],
    );
}

#[test]
fn required_fencing() {
    check(
        "
        namespace shop v:0 fencing:enforced fencingRequired:1
        events
        acquire a id:1 in:shop
        acquire b id:2 in:shop fencing:bestEffort
        acquire b id:2 in:shop fencing:bestEffort
        acquire b id:3 in:shop fencing:enforced
        -- a namespace that demands it cannot say otherwise by default
        namespace bar v:0 fencingRequired:1",
        expect![[r#"
            namespace shop v:0 fencing:enforced fencingRequired:1
                r1: version 1
            acquire a id:1 in:shop
                r2: granted a T1 for 30s enforced
                * r2 lock/shop/a 1: granted T1
            acquire b id:2 in:shop fencing:bestEffort
                r3: FencingRequired
                * r3 lock/shop/b 2: refused FencingRequired
            acquire b id:2 in:shop fencing:bestEffort
                r4 as r3: FencingRequired
            acquire b id:3 in:shop fencing:enforced
                r5: granted b T2 for 30s enforced
                * r5 lock/shop/b 3: granted T2
            -- a namespace that demands it cannot say otherwise by default
            namespace bar v:0 fencingRequired:1
                r6: InvalidArgument fencing: must be enforced where fencingRequired is true
        "#]],
    );
}

#[test]
fn the_lease_id_is_the_proof_and_the_owner_is_only_for_people() {
    check(
        "
        acquire a id:1 by:w1
        acquire b id:2 by:w1
        -- another lease of the same owner
        release a #2
        renew a #2
        -- the right lease, another resource
        release b #1
        renew b #1
        -- the right lease, another namespace
        namespace shop v:0
        release a #1 in:shop
        renew a #1 in:shop
        release a #1 in:nowhere
        renew a #1 in:nowhere
        get a
        get b",
        expect![[r#"
            acquire a id:1 by:w1
                r1: granted a T1 for 30s
            acquire b id:2 by:w1
                r2: granted b T2 for 30s
            -- another lease of the same owner
            release a #2
                r3: not released: unknown
            renew a #2
                r4: NotHolder
            -- the right lease, another resource
            release b #1
                r5: not released: unknown
            renew b #1
                r6: NotHolder
            -- the right lease, another namespace
            namespace shop v:0
                r7: version 1
            release a #1 in:shop
                r8: not released: unknown
            renew a #1 in:shop
                r9: NotHolder
            release a #1 in:nowhere
                r10: NotFound
            renew a #1 in:nowhere
                r11: NotFound
            get a
                w1 T1 held 0s, 30s left; queue []
            get b
                w1 T2 held 0s, 30s left; queue []
        "#]],
    );
}

#[test]
fn labels_and_owner_belong_to_the_request() {
    check(
        "
        acquire a id:1 by:w1 label:job=7
        acquire a id:1 by:w1 label:job=8
        acquire a id:1 by:w2 label:job=7
        acquire a id:1 by:w1 label:job=7",
        expect![[r#"
            acquire a id:1 by:w1 label:job=7
                r1: granted a T1 for 30s
            acquire a id:1 by:w1 label:job=8
                r2: RequestIdReused
            acquire a id:1 by:w2 label:job=7
                r3: RequestIdReused
            acquire a id:1 by:w1 label:job=7
                r4 as r1: granted a T1 for 30s
        "#]],
    );
}

#[test]
fn a_lease_id_is_drawn_anew_for_each_request() {
    check(
        "
        acquire a id:1
        acquire b id:2 lease:1
        acquire b id:3 lease:0
        -- which is the node's mistake, not an answer for good
        acquire b id:2",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            acquire b id:2 lease:1
                r2: InvalidArgument leaseId: must be drawn at random by the node
            acquire b id:3 lease:0
                r3: InvalidArgument leaseId: must be drawn at random by the node
            -- which is the node's mistake, not an answer for good
            acquire b id:2
                r4: granted b T2 for 30s
        "#]],
    );
}
