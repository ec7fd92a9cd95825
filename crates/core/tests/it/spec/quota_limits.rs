//! Quotas: trees of limits (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn limits_are_put_by_version_from_the_root_down() {
    check_quotas(
        "
        limit gpu/acme 8 v:0
        limit gpu 64 v:0 id:1
        limit gpu 64 v:0 id:1
        limit gpu 32 v:0 id:1
        limit gpu 32 v:0
        limit gpu 32 v:1
        limit gpu/acme 8 v:0
        limit gpu/acme/vision 8 guaranteed:9 v:0
        limit gpu/acme/vision 8 weight:0 v:0
        limit gpu/acme/vision 8 patience:1s v:0
        limit gpu 32 guaranteed:1 v:2
        limit gpu 4503599627370495 burst:1 v:2
        limit gpu 32 v:0 in:nowhere
        book gpu
        book gpu/acme
        book gpu/other",
        expect![[r#"
            limit gpu/acme 8 v:0
                r2: InvalidArgument path: put "" first: what is above it has no limit
            limit gpu 64 v:0 id:1
                r3: limit version 1
            limit gpu 64 v:0 id:1
                r4 as r3: limit version 1
            limit gpu 32 v:0 id:1
                r5: RequestIdReused
            limit gpu 32 v:0
                r6: VersionConflict version is 1
            limit gpu 32 v:1
                r7: limit version 2
            limit gpu/acme 8 v:0
                r8: limit version 1
            limit gpu/acme/vision 8 guaranteed:9 v:0
                r9: InvalidArgument guaranteed: must not be above limit, which is 8
            limit gpu/acme/vision 8 weight:0 v:0
                r10: InvalidArgument weight: must be 1 to 1000000 (durations in ms), is 0
            limit gpu/acme/vision 8 patience:1s v:0
                r11: InvalidArgument patience: is said by the root of a quota for all of it
            limit gpu 32 guaranteed:1 v:2
                r12: InvalidArgument guaranteed: must be 0 at a root: nobody is beside it
            limit gpu 4503599627370495 burst:1 v:2
                r13: InvalidArgument burst: must be 0 to 0 (durations in ms), is 1
            limit gpu 32 v:0 in:nowhere
                r14: NotFound
            book gpu
                0 used, 0 reserved of 32, 32 available
            book gpu/acme
                0 used, 0 reserved of 8, 8 available
            book gpu/other
                no such node
        "#]],
    );
}

#[test]
fn an_unknown_key_is_closed() {
    check_quotas(
        "
        limit gpu 64
        limit gpu/acme 8
        reserve bytes=1 id:1
        reserve gpu/acme/vision/anna=1,gpu/acme=1,gpu/acme/vision=2 id:2 wait:5s
        reserve gpu/acme=0 id:3
        reserve gpu/acme=4503599627370496 id:4",
        expect![[r#"
            limit gpu 64
                r2: limit version 1
            limit gpu/acme 8
                r3: limit version 1
            reserve bytes=1 id:1
                r4: QuotaExhausted [bytes v0 unknown 0: 0 used, 0 reserved, 0 of 1 pass, 1 short]
            reserve gpu/acme/vision/anna=1,gpu/acme=1,gpu/acme/vision=2 id:2 wait:5s
                r5: QuotaExhausted [gpu/acme/vision v0 unknown 0: 0 used, 0 reserved, 0 of 3 pass, 3 short; gpu/acme/vision/anna v0 unknown 0: 0 used, 0 reserved, 0 of 1 pass, 1 short]
            reserve gpu/acme=0 id:3
                r6: InvalidArgument amount: must be 1 to 4503599627370495 (durations in ms), is 0
            reserve gpu/acme=4503599627370496 id:4
                r7: InvalidArgument amount: must be 1 to 4503599627370495 (durations in ms), is 4503599627370496
        "#]],
    );
}

#[test]
fn after_a_cut_only_what_does_not_worsen_passes() {
    check_quotas(
        "
        limit gpu 64
        limit gpu/acme 32
        reserve gpu/acme=10 id:1
        reserve gpu/acme=10 id:2
        commit R2
        limit gpu/acme 12 v:1
        book gpu/acme
        book gpu
        reserve gpu/acme=1 id:3
        resize R1 gpu/acme=11
        resize R1 gpu/acme=9
        -- what is reserved can be committed all the same
        commit R1 gpu/acme=8
        book gpu/acme
        return C1 gpu/acme=7 by:2
        book gpu/acme
        reserve gpu/acme=1 id:4
        reserve gpu/acme=2 id:5",
        expect![[r#"
            limit gpu 64
                r2: limit version 1
            limit gpu/acme 32
                r3: limit version 1
            reserve gpu/acme=10 id:1
                r4: reserved R1 T1 gpu/acme=10 (54/22 left) for 1m of at most 24h
            reserve gpu/acme=10 id:2
                r5: reserved R2 T2 gpu/acme=10 (44/12 left) for 1m of at most 24h
            commit R2
                r6: C1 took gpu/acme=10
            limit gpu/acme 12 v:1
                r7: limit version 2, debt 8
            book gpu/acme
                10 used, 10 reserved of 12, 0 available, debt 8
            book gpu
                10 used, 10 reserved of 64, 44 available
            reserve gpu/acme=1 id:3
                r8: QuotaExhausted [gpu/acme v2 limit 12: 10 used, 10 reserved, 0 of 1 pass, 9 short], retry in 1s
            resize R1 gpu/acme=11
                r9: QuotaExhausted [gpu/acme v2 limit 12: 10 used, 10 reserved, 0 of 1 pass, 9 short], retry in 1s
            resize R1 gpu/acme=9
                r10: reserved R1 T1 gpu/acme=9 (45/0 left) for 1m of at most 24h
            -- what is reserved can be committed all the same
            commit R1 gpu/acme=8
                r11: C2 took gpu/acme=8, returned gpu/acme=1
            book gpu/acme
                18 used, 0 reserved of 12, 0 available, debt 6
            return C1 gpu/acme=7 by:2
                r12: returned 7 of C1, 3 left
            book gpu/acme
                11 used, 0 reserved of 12, 1 available
            reserve gpu/acme=1 id:4
                r13: reserved R4 T3 gpu/acme=1 (52/0 left) for 1m of at most 24h
            reserve gpu/acme=2 id:5
                r14: QuotaExhausted [gpu/acme v2 limit 12: 11 used, 1 reserved, 0 of 2 pass, 2 short], retry in 1s
        "#]],
    );
}

#[test]
fn burst_is_on_top_of_the_limit() {
    check_quotas(
        "
        limit gpu 10 burst:2
        reserve gpu=11 id:1
        reserve gpu=2 id:2
        reserve gpu=1 id:3
        book gpu",
        expect![[r#"
            limit gpu 10 burst:2
                r2: limit version 1
            reserve gpu=11 id:1
                r3: reserved R1 T1 gpu=11 (1 left) for 1m of at most 24h
            reserve gpu=2 id:2
                r4: QuotaExhausted [gpu v1 burst 10+2: 0 used, 11 reserved, 1 of 2 pass, 1 short], retry in 1s
            reserve gpu=1 id:3
                r5: reserved R3 T2 gpu=1 (0 left) for 1m of at most 24h
            book gpu
                0 used, 12 reserved of 10, 0 available, burst 2
        "#]],
    );
}

#[test]
fn a_guarantee_is_kept_from_all_others() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:4
        limit gpu/bolt 10
        limit gpu/acme/vision 10 guaranteed:3
        limit gpu/acme/speech 10
        reserve gpu/bolt=7 id:1
        reserve gpu/bolt=6 id:2
        book gpu/bolt
        book gpu/acme
        -- inside the guarantee what is kept for one child is kept from the other
        reserve gpu/acme/speech=2 id:3
        reserve gpu/acme/speech=1 id:4
        reserve gpu/acme/vision=3 id:5
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/acme 10 guaranteed:4
                r3: limit version 1
            limit gpu/bolt 10
                r4: limit version 1
            limit gpu/acme/vision 10 guaranteed:3
                r5: limit version 1
            limit gpu/acme/speech 10
                r6: limit version 1
            reserve gpu/bolt=7 id:1
                r7: QuotaExhausted [gpu v1 guarantee 10: 0 used, 0 reserved, 6 of 7 pass, 1 short]
            reserve gpu/bolt=6 id:2
                r8: reserved R2 T1 gpu/bolt=6 (0/0 left) for 1m of at most 24h
            book gpu/bolt
                0 used, 6 reserved of 10, 0 available
            book gpu/acme
                0 used, 0 reserved of 10, 1 available, 4 guaranteed
            -- inside the guarantee what is kept for one child is kept from the other
            reserve gpu/acme/speech=2 id:3
                r9: QuotaExhausted [gpu v1 guarantee 10: 0 used, 6 reserved, 1 of 2 pass, 1 short], retry in 1s
            reserve gpu/acme/speech=1 id:4
                r10: reserved R4 T2 gpu/acme/speech=1 (0/0/0 left) for 1m of at most 24h
            reserve gpu/acme/vision=3 id:5
                r11: reserved R5 T3 gpu/acme/vision=3 (0/0/0 left) for 1m of at most 24h
            book gpu
                0 used, 10 reserved of 10, 0 available
        "#]],
    );
}

#[test]
fn guarantees_do_not_exceed_what_is_above_except_after_a_cut() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:6
        limit gpu/bolt 10 guaranteed:5
        limit gpu/bolt 10 guaranteed:4
        limit gpu/acme/vision 10 guaranteed:7
        limit gpu/acme/vision 10 guaranteed:5
        limit gpu 5 v:1
        book gpu/acme
        book gpu/bolt
        book gpu/acme/vision
        -- raising is refused while the guarantees are cut, lowering is not
        limit gpu/bolt 10 guaranteed:5 v:1
        limit gpu/bolt 10 guaranteed:3 v:1
        book gpu/acme
        snapshot
        limit gpu 20 v:2
        book gpu/acme
        book gpu/acme/vision",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/acme 10 guaranteed:6
                r3: limit version 1
            limit gpu/bolt 10 guaranteed:5
                r4: InvalidArgument guaranteed: the node above would guarantee 11 to its children, and its own limit is 10
            limit gpu/bolt 10 guaranteed:4
                r5: limit version 1
            limit gpu/acme/vision 10 guaranteed:7
                r6: InvalidArgument guaranteed: the node above would guarantee 7 to its children, and its own guaranteed is 6
            limit gpu/acme/vision 10 guaranteed:5
                r7: limit version 1
            limit gpu 5 v:1
                r8: limit version 2
            book gpu/acme
                0 used, 0 reserved of 10, 0 available, 6 guaranteed (3 count)
            book gpu/bolt
                0 used, 0 reserved of 10, 2 available, 4 guaranteed (2 count)
            book gpu/acme/vision
                0 used, 0 reserved of 10, 3 available, 5 guaranteed (3 count)
            -- raising is refused while the guarantees are cut, lowering is not
            limit gpu/bolt 10 guaranteed:5 v:1
                r9: InvalidArgument guaranteed: the node above would guarantee 11 to its children, and its own limit is 5
            limit gpu/bolt 10 guaranteed:3 v:1
                r10: limit version 2
            book gpu/acme
                0 used, 0 reserved of 10, 1 available, 6 guaranteed (3 count)
            snapshot
            limit gpu 20 v:2
                r11: limit version 3
            book gpu/acme
                0 used, 0 reserved of 10, 5 available, 6 guaranteed
            book gpu/acme/vision
                0 used, 0 reserved of 10, 10 available, 5 guaranteed
        "#]],
    );
}

#[test]
fn one_owner_reserves_no_more_than_its_bound() {
    check_quotas(
        "
        limit gpu 10 owner:4
        limit gpu/acme 10
        reserve gpu/acme=3 by:w1 id:1
        reserve gpu/acme=2 by:w1 id:2 wait:5s
        reserve gpu/acme=4 by:w2 id:3
        -- committed use does not count against it
        commit R1
        reserve gpu/acme=2 by:w1 id:4
        resize R4 gpu/acme=4",
        expect![[r#"
            limit gpu 10 owner:4
                r2: limit version 1
            limit gpu/acme 10
                r3: limit version 1
            reserve gpu/acme=3 by:w1 id:1
                r4: reserved R1 T1 gpu/acme=3 (7/7 left) for 1m of at most 24h
            reserve gpu/acme=2 by:w1 id:2 wait:5s
                r5: QuotaExhausted [gpu v1 owner 4: 0 used, 3 reserved, 1 of 2 pass, 1 short]
            reserve gpu/acme=4 by:w2 id:3
                r6: reserved R3 T2 gpu/acme=4 (3/3 left) for 1m of at most 24h
            -- committed use does not count against it
            commit R1
                r7: C1 took gpu/acme=3
            reserve gpu/acme=2 by:w1 id:4
                r8: reserved R4 T3 gpu/acme=2 (1/1 left) for 1m of at most 24h
            resize R4 gpu/acme=4
                r9: QuotaExhausted [gpu v1 limit 10: 3 used, 6 reserved, 1 of 2 pass, 1 short; gpu/acme v1 limit 10: 3 used, 6 reserved, 1 of 2 pass, 1 short], retry in 1s
        "#]],
    );
}

#[test]
fn what_is_used_is_not_removed() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:5
        remove gpu v:1
        reserve gpu/acme=1 id:1
        remove gpu/acme v:1
        commit R1
        remove gpu/acme v:1
        return C1 gpu/acme=1 by:1
        remove gpu/acme v:2
        remove gpu/acme v:1
        remove gpu/acme v:1
        limit gpu/bolt 10 guaranteed:10
        snapshot
        limit gpu/acme 3
        book gpu/acme",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/acme 10 guaranteed:5
                r3: limit version 1
            remove gpu v:1
                r4: InvalidArgument path: has nodes below it
            reserve gpu/acme=1 id:1
                r5: reserved R1 T1 gpu/acme=1 (5/9 left) for 1m of at most 24h
            remove gpu/acme v:1
                r6: InvalidArgument path: is used: something is committed or reserved there
            commit R1
                r7: C1 took gpu/acme=1
            remove gpu/acme v:1
                r8: InvalidArgument path: is used: something is committed or reserved there
            return C1 gpu/acme=1 by:1
                r9: returned 1 of C1, 0 left
            remove gpu/acme v:2
                r10: VersionConflict version is 1
            remove gpu/acme v:1
                r11: removed
            remove gpu/acme v:1
                r12: NotFound no such node
            limit gpu/bolt 10 guaranteed:10
                r13: limit version 1
            snapshot
            limit gpu/acme 3
                r14: limit version 1
            book gpu/acme
                0 used, 0 reserved of 3, 0 available
        "#]],
    );
}
