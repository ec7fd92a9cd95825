//! AcquireAll: all or none (section 8).

use super::check;
use expect_test::expect;

#[test]
fn all_or_none_with_one_lease_and_a_token_each() {
    check(
        "
        events
        acquire-all b,a,c id:1 ttl:10s
        get a
        renew b #1 ttl:20s
        get c
        release a #1
        -- one resource is gone; the request is spent, the rest is held
        get a
        get b
        acquire-all b,a,c id:1 ttl:10s
        renew a #1
        renew c #1
        release b #1
        release c #1
        acquire-all b,a,c id:1 ttl:10s",
        expect![[r#"
            acquire-all b,a,c id:1 ttl:10s
                r1: granted b T1, a T2, c T3 for 10s
                * r1 lock/default/b 1: granted T1
                * r1 lock/default/a 1: granted T2
                * r1 lock/default/c 1: granted T3
            get a
                1 T2 held 0s, 10s left; queue []
            renew b #1 ttl:20s
                r2: renewed T1 for 20s
            get c
                1 T3 held 0s, 20s left; queue []
            release a #1
                r3: released
                * r3 lock/default/a 1: ended T2 released held 0s
            -- one resource is gone; the request is spent, the rest is held
            get a
                free; queue []
            get b
                1 T1 held 0s, 20s left; queue []
            acquire-all b,a,c id:1 ttl:10s
                r4 as r3: LeaseEnded released T1
            renew a #1
                r5: LeaseEnded released T2
            renew c #1
                r6: renewed T3 for 20s
            release b #1
                r7: released
                * r7 lock/default/b 1: ended T1 released held 0s
            release c #1
                r8: released
                * r8 lock/default/c 1: ended T3 released held 0s
            acquire-all b,a,c id:1 ttl:10s
                r9 as r3: LeaseEnded released T1
        "#]],
    );
}

#[test]
fn refused_it_names_everything_in_the_way() {
    check(
        "
        acquire a id:1 by:w1
        acquire c id:2 by:w2
        acquire c id:3 by:w3 wait:10s
        acquire-all a,b,c id:4
        get b
        acquire-all a,b,c id:4",
        expect![[r#"
            acquire a id:1 by:w1
                r1: granted a T1 for 30s
            acquire c id:2 by:w2
                r2: granted c T2 for 30s
            acquire c id:3 by:w3 wait:10s
                r3: waiting at 1, 10s left
            acquire-all a,b,c id:4
                r4: Locked [a: w1 T1 held 0s, 30s left, 0 waiting; c: w2 T2 held 0s, 30s left, 1 waiting], retry in 30s
            get b
                free; queue []
            acquire-all a,b,c id:4
                r5 as r4: Locked [a: w1 T1 held 0s, 30s left, 0 waiting; c: w2 T2 held 0s, 30s left, 1 waiting], retry in 30s
        "#]],
    );
}

#[test]
fn resources_are_1_to_64_and_distinct() {
    check(
        "
        acquire-all id:1
        acquire-all a,b,a id:2
        acquire-all a1,a2,a3,a4,a5,a6,a7,a8,b1,b2,b3,b4,b5,b6,b7,b8,c1,c2,c3,c4,c5,c6,c7,c8,d1,d2,d3,d4,d5,d6,d7,d8,e1,e2,e3,e4,e5,e6,e7,e8,f1,f2,f3,f4,f5,f6,f7,f8,g1,g2,g3,g4,g5,g6,g7,g8,h1,h2,h3,h4,h5,h6,h7,h8,i1 id:3
        get a
        acquire-all id:1
        acquire-all a,b,a id:2",
        expect![[r#"
            acquire-all id:1
                r1: InvalidArgument resources: must be 1 to 64 (durations in ms), is 0
            acquire-all a,b,a id:2
                r2: InvalidArgument resources: names "a" twice
            acquire-all a1,a2,a3,a4,a5,a6,a7,a8,b1,b2,b3,b4,b5,b6,b7,b8,c1,c2,c3,c4,c5,c6,c7,c8,d1,d2,d3,d4,d5,d6,d7,d8,e1,e2,e3,e4,e5,e6,e7,e8,f1,f2,f3,f4,f5,f6,f7,f8,g1,g2,g3,g4,g5,g6,g7,g8,h1,h2,h3,h4,h5,h6,h7,h8,i1 id:3
                r3: InvalidArgument resources: must be 1 to 64 (durations in ms), is 65
            get a
                free; queue []
            acquire-all id:1
                r4 as r1: InvalidArgument resources: must be 1 to 64 (durations in ms), is 0
            acquire-all a,b,a id:2
                r5 as r2: InvalidArgument resources: names "a" twice
        "#]],
    );
}

#[test]
fn one_request_id_is_one_operation() {
    check(
        "
        acquire-all a id:1
        acquire a id:1
        acquire-all a,b id:1
        acquire-all a id:1",
        expect![[r#"
            acquire-all a id:1
                r1: granted a T1 for 30s
            acquire a id:1
                r2: RequestIdReused
            acquire-all a,b id:1
                r3: RequestIdReused
            acquire-all a id:1
                r4 as r1: granted a T1 for 30s
        "#]],
    );
}

#[test]
fn it_expires_as_one_and_each_name_is_handed_over() {
    check(
        "
        acquire-all a,b id:1 ttl:5s
        acquire b id:2 wait:10s
        acquire a id:3 wait:10s
        pass 4s
        events
        step 1s
        renew a #1
        release b #1",
        expect![[r#"
            acquire-all a,b id:1 ttl:5s
                r1: granted a T1, b T2 for 5s
            acquire b id:2 wait:10s
                r2: waiting at 1, 10s left
            acquire a id:3 wait:10s
                r3: waiting at 1, 10s left
            pass 4s
            step 1s
                (1 due ended)
                ~ id:3 r4: granted a T3 for 30s
                ~ id:2 r4: granted b T4 for 30s
                * r4 lock/default/a 1: ended T1 expired held 5s
                * r4 lock/default/a 3: granted T3 waited 5s
                * r4 lock/default/b 1: ended T2 expired held 5s
                * r4 lock/default/b 2: granted T4 waited 5s
            renew a #1
                r5: LeaseEnded expired T1
            release b #1
                r6: not released: expired
        "#]],
    );
}

#[test]
fn abandon_releases_all_that_is_left() {
    check(
        "
        acquire-all a,b,c id:1
        release b #1
        events
        abandon id:1
        get a
        get c",
        expect![[r#"
            acquire-all a,b,c id:1
                r1: granted a T1, b T2, c T3 for 30s
            release b #1
                r2: released
            abandon id:1
                r3: abandoned, was granted
                * r3 lock/default/a 1: ended T1 abandoned held 0s
                * r3 lock/default/c 1: ended T3 abandoned held 0s
            get a
                free; queue []
            get c
                free; queue []
        "#]],
    );
}

#[test]
fn a_forced_release_ends_only_the_one() {
    check(
        "
        acquire-all a,b id:1
        force-release a T1 id:9
        renew a #1
        renew b #1
        acquire-all a,b id:1",
        expect![[r#"
            acquire-all a,b id:1
                r1: granted a T1, b T2 for 30s
            force-release a T1 id:9
                r2: force-released T1
            renew a #1
                r3: LeaseEnded forced T1
            renew b #1
                r4: renewed T2 for 30s
            acquire-all a,b id:1
                r5 as r2: LeaseEnded forced T1
        "#]],
    );
}

#[test]
fn leases_are_counted_one_by_one() {
    check(
        "
        namespace default v:1 maxLeases:3
        acquire-all a,b id:1
        acquire-all c,d id:2
        acquire c id:3
        acquire d id:4",
        expect![[r#"
            namespace default v:1 maxLeases:3
                r1: version 2
            acquire-all a,b id:1
                r2: granted a T1, b T2 for 30s
            acquire-all c,d id:2
                r3: LimitReached maxLeases is 3, retry in 1s
            acquire c id:3
                r4: granted c T3 for 30s
            acquire d id:4
                r5: LimitReached maxLeases is 3, retry in 1s
        "#]],
    );
}

#[test]
fn a_part_lost_otherwise_is_remembered_as_long_as_any_other_loss() {
    check(
        "
        acquire-all a,b id:1 ttl:10s
        release a #1
        pass 10s
        -- b expired: 5 min count, not the 90 s of the release
        pass 91s
        renew b #1",
        expect![[r#"
            acquire-all a,b id:1 ttl:10s
                r1: granted a T1, b T2 for 10s
            release a #1
                r2: released
            pass 10s
                (1 due ended)
            -- b expired: 5 min count, not the 90 s of the release
            pass 91s
            renew b #1
                r4: LeaseEnded expired T2
        "#]],
    );
}

#[test]
fn the_answer_of_a_spent_request_stays_the_same() {
    check(
        "
        acquire-all a,b id:1 ttl:10s
        release a #1
        acquire-all a,b id:1 ttl:10s
        release b #1
        acquire-all a,b id:1 ttl:10s",
        expect![[r#"
            acquire-all a,b id:1 ttl:10s
                r1: granted a T1, b T2 for 10s
            release a #1
                r2: released
            acquire-all a,b id:1 ttl:10s
                r3 as r2: LeaseEnded released T1
            release b #1
                r4: released
            acquire-all a,b id:1 ttl:10s
                r5 as r2: LeaseEnded released T1
        "#]],
    );
}

#[test]
fn each_resource_is_remembered_with_its_own_end_and_token() {
    check(
        "
        acquire-all a,b,c id:1 ttl:10s
        release a #1
        force-release b T2 id:9
        snapshot
        pass 10s
        snapshot
        renew-many a#1,b#1,c#1,d#1
        release b #1
        release d #1
        acquire-all a,b,c id:1 ttl:10s",
        expect![[r#"
            acquire-all a,b,c id:1 ttl:10s
                r1: granted a T1, b T2, c T3 for 10s
            release a #1
                r2: released
            force-release b T2 id:9
                r3: force-released T2
            snapshot
            pass 10s
                (1 due ended)
            snapshot
            renew-many a#1,b#1,c#1,d#1
                r5: LeaseEnded released T1 | LeaseEnded forced T2 | LeaseEnded expired T3 | NotHolder
            release b #1
                r6: not released: forced
            release d #1
                r7: not released: unknown
            acquire-all a,b,c id:1 ttl:10s
                r8 as r2: LeaseEnded released T1
        "#]],
    );
}
