//! Namespaces: versions, limits, policies (section 13); levels and the hold on trimming.

use super::check;
use expect_test::expect;

#[test]
fn versions() {
    check(
        "
        events
        namespace shop v:1
        namespace shop v:0 maxTtl:1m
        namespace shop v:0
        namespace shop v:1 maxTtl:2m
        namespace default v:0
        namespace default v:1 maxTtl:1m",
        expect![[r#"
            namespace shop v:1
                r1: VersionConflict version is 0
            namespace shop v:0 maxTtl:1m
                r2: version 1
                * r2 lock/shop: namespace put, version 1
            namespace shop v:0
                r3: VersionConflict version is 1
            namespace shop v:1 maxTtl:2m
                r4: version 2
                * r4 lock/shop: namespace put, version 2
            namespace default v:0
                r5: VersionConflict version is 1
            namespace default v:1 maxTtl:1m
                r6: version 2
                * r6 lock/default: namespace put, version 2
        "#]],
    );
}

#[test]
fn policies_are_checked() {
    check(
        "
        namespace shop v:0 minTtl:999ms
        namespace shop v:0 minTtl:10s maxTtl:5s defaultTtl:5s
        namespace shop v:0 maxTtl:3600001ms
        namespace shop v:0 defaultTtl:61s maxTtl:60s
        namespace shop v:0 maxHold:999ms
        namespace shop v:0 maxHold:max
        namespace shop v:0 lockDelay:60001ms
        namespace shop v:0 maxLeases:1000001
        namespace shop v:0 maxWaiters:1000001
        namespace shop v:0 perSecond:0
        namespace shop v:0 refusals:89s
        namespace shop v:0 endings:max
        namespace shop v:0 records:0
        namespace shop v:0 records:2000001
        acquire a id:1 in:shop",
        expect![[r#"
            namespace shop v:0 minTtl:999ms
                r1: InvalidArgument minTtl: must be 1000 to 3600000 (durations in ms), is 999
            namespace shop v:0 minTtl:10s maxTtl:5s defaultTtl:5s
                r2: InvalidArgument minTtl: must not be above maxTtl
            namespace shop v:0 maxTtl:3600001ms
                r3: InvalidArgument maxTtl: must be 1000 to 3600000 (durations in ms), is 3600001
            namespace shop v:0 defaultTtl:61s maxTtl:60s
                r4: InvalidArgument defaultTtl: must be 1000 to 60000 (durations in ms), is 61000
            namespace shop v:0 maxHold:999ms
                r5: InvalidArgument maxHold: must be 1000 to 2592000000 (durations in ms), is 999
            namespace shop v:0 maxHold:max
                r6: InvalidArgument maxHold: must be 1000 to 2592000000 (durations in ms), is 18446744073709551615
            namespace shop v:0 lockDelay:60001ms
                r7: InvalidArgument lockDelay: must be 0 to 60000 (durations in ms), is 60001
            namespace shop v:0 maxLeases:1000001
                r8: InvalidArgument maxLeases: must be 0 to 1000000 (durations in ms), is 1000001
            namespace shop v:0 maxWaiters:1000001
                r9: InvalidArgument maxWaiters: must be 0 to 1000000 (durations in ms), is 1000001
            namespace shop v:0 perSecond:0
                r10: InvalidArgument requestsPerSecond: must be 1 to 1000000 (durations in ms), is 0
            namespace shop v:0 refusals:89s
                r11: InvalidArgument replyMemory.refusals: must be 90000 to 86400000 (durations in ms), is 89000
            namespace shop v:0 endings:max
                r12: InvalidArgument replyMemory.endings: must be 90000 to 86400000 (durations in ms), is 18446744073709551615
            namespace shop v:0 records:0
                r13: InvalidArgument replyMemory.records: must be 1 to 2000000 (durations in ms), is 0
            namespace shop v:0 records:2000001
                r14: InvalidArgument replyMemory.records: must be 1 to 2000000 (durations in ms), is 2000001
            acquire a id:1 in:shop
                r15: NotFound
        "#]],
    );
}

#[test]
fn max_leases() {
    check(
        "
        namespace default v:1 maxLeases:2
        events
        acquire a id:1 ttl:5s
        acquire b id:2 ttl:5s
        acquire c id:3
        acquire c id:3
        -- a wait is not stopped by it, and a hand-over takes the place of the one before
        acquire a id:4 wait:30s ttl:5s
        release a #1
        release b #2
        acquire c id:5
        -- the request that was refused stays so
        acquire c id:3",
        expect![[r#"
            namespace default v:1 maxLeases:2
                r1: version 2
            acquire a id:1 ttl:5s
                r2: granted a T1 for 5s
                * r2 lock/default/a 1: granted T1
            acquire b id:2 ttl:5s
                r3: granted b T2 for 5s
                * r3 lock/default/b 2: granted T2
            acquire c id:3
                r4: LimitReached maxLeases is 2, retry in 1s
                * r4 lock/default/c 3: refused LimitReached
            acquire c id:3
                r5 as r4: LimitReached maxLeases is 2, retry in 1s
            -- a wait is not stopped by it, and a hand-over takes the place of the one before
            acquire a id:4 wait:30s ttl:5s
                r6: waiting at 1, 30s left
                * r6 lock/default/a 4: queued
            release a #1
                r7: released
                ~ id:4 r7: granted a T3 for 5s
                * r7 lock/default/a 1: ended T1 released held 0s
                * r7 lock/default/a 4: granted T3 waited 0s
            release b #2
                r8: released
                * r8 lock/default/b 2: ended T2 released held 0s
            acquire c id:5
                r9: granted c T4 for 30s
                * r9 lock/default/c 5: granted T4
            -- the request that was refused stays so
            acquire c id:3
                r10 as r4: LimitReached maxLeases is 2, retry in 1s
        "#]],
    );
}

#[test]
fn max_waiters_of_zero_means_nobody_waits() {
    check(
        "
        namespace default v:1 maxWaiters:0
        acquire a id:1
        acquire a id:2 wait:5s
        acquire a id:3",
        expect![[r#"
            namespace default v:1 maxWaiters:0
                r1: version 2
            acquire a id:1
                r2: granted a T1 for 30s
            acquire a id:2 wait:5s
                r3: LimitReached maxWaiters is 0, retry in 1s
            acquire a id:3
                r4: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
        "#]],
    );
}

#[test]
fn min_ttl_of_the_service_and_of_a_namespace() {
    check(
        "
        namespace shop v:0 minTtl:5s
        acquire a id:1 in:shop ttl:4999ms
        acquire b id:2 in:shop ttl:5s
        acquire c id:3 ttl:1s",
        expect![[r#"
            namespace shop v:0 minTtl:5s
                r1: version 1
            acquire a id:1 in:shop ttl:4999ms
                r2: InvalidArgument leaseTtl: must be 5000 to 3600000 (durations in ms), is 4999
            acquire b id:2 in:shop ttl:5s
                r3: granted b T1 for 5s
            acquire c id:3 ttl:1s
                r4: granted c T2 for 1s
        "#]],
    );
}

#[test]
fn levels_and_the_hold_on_trimming() {
    check(
        "
        events
        raise-level 1
        raise-level 0
        hold-trim",
        expect![[r#"
            raise-level 1
                r1: level 1
            raise-level 0
                r2: level 1
            hold-trim
                r3: trim held
                * r3 admin: trim held
        "#]],
    );
}

/// Level 1 tells of every floor that is set, level 2 only of one that raises the tokens.
#[test]
fn a_floor_below_the_tokens_is_told_of_at_level_1_only() {
    check(
        "
        events
        token-floor -24h id:1
        raise-level 2
        token-floor -24h id:2
        token-floor +1h id:3",
        expect![[r#"
            token-floor -24h id:1
                r1: floor set
                * r1 admin: token floor set
            raise-level 2
                r2: level 2
                * r2 admin: level 2
            token-floor -24h id:2
                r3: floor set
            token-floor +1h id:3
                r4: floor set
                * r4 admin: token floor set
        "#]],
    );
}

#[test]
fn a_limit_is_named_the_same_however_the_request_is_repeated() {
    check(
        "
        namespace default v:1 maxLeases:0
        acquire a id:1 wait:5s
        acquire a id:1 wait:5s
        -- and maxWaiters, even when it is not asked for again
        namespace default v:2 maxWaiters:0
        acquire a id:2
        acquire a id:3 wait:5s
        acquire a id:3
        abandon id:3",
        expect![[r#"
            namespace default v:1 maxLeases:0
                r1: version 2
            acquire a id:1 wait:5s
                r2: LimitReached maxLeases is 0, retry in 1s
            acquire a id:1 wait:5s
                r3 as r2: LimitReached maxLeases is 0, retry in 1s
            -- and maxWaiters, even when it is not asked for again
            namespace default v:2 maxWaiters:0
                r4: version 3
            acquire a id:2
                r5: granted a T1 for 30s
            acquire a id:3 wait:5s
                r6: LimitReached maxWaiters is 0, retry in 1s
            acquire a id:3
                r7 as r6: LimitReached maxWaiters is 0, retry in 1s
            abandon id:3
                r8: abandoned, was refused: LimitReached
        "#]],
    );
}
