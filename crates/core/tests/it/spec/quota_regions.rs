//! Regions: homes, and shares that another region may use (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn elsewhere_the_home_is_named_and_only_what_gives_back_passes() {
    check_quotas(
        "
        namespace shop v:0
        limit gpu 10 in:shop
        acquire a id:1 in:shop
        reserve gpu=2 id:2 in:shop
        events
        region eu
        region eu
        home shop us v:2
        home shop us v:1
        home nowhere us v:1
        snapshot
        acquire b id:3 in:shop
        renew a #1 in:shop
        reserve gpu=1 id:4 in:shop
        commit R2 in:shop
        release a #1 in:shop
        drop R2 in:shop
        acquire b id:3
        home shop eu v:2
        acquire b id:3 in:shop",
        expect![[r#"
            namespace shop v:0
                r2: version 1
            limit gpu 10 in:shop
                r3: limit version 1
            acquire a id:1 in:shop
                r4: granted a T1 for 30s
            reserve gpu=2 id:2 in:shop
                r5: reserved R2 T2 gpu=2 (8 left) for 1m of at most 24h
            region eu
                r6: region set
                * r6 admin: region Some("eu")
            region eu
                r7: region set
            home shop us v:2
                r8: VersionConflict version is 1
            home shop us v:1
                r9: version 2
                * r9 admin/shop: home Some("us")
            home nowhere us v:1
                r10: NotFound
            snapshot
            acquire b id:3 in:shop
                r11: WrongRegion home is us
            renew a #1 in:shop
                r12: WrongRegion home is us
            reserve gpu=1 id:4 in:shop
                r13: WrongRegion home is us
            commit R2 in:shop
                r14: WrongRegion home is us
            release a #1 in:shop
                r15: released
                * r15 lock/shop/a 1: ended T1 released held 0s
            drop R2 in:shop
                r16: released gpu=2
                * r16 quota/shop 2: released R2 T2 [gpu 0+2>0]
            acquire b id:3
                r17: granted b T3 for 30s
                * r17 lock/default/b 3: granted T3
            home shop eu v:2
                r18: version 3
                * r18 admin/shop: home Some("eu")
            acquire b id:3 in:shop
                r19: granted b T4 for 30s
                * r19 lock/shop/b 3: granted T4
        "#]],
    );
}

/// A release there would hand over to who waits; and whoever had an answer before has it again (S6).
#[test]
fn a_home_that_is_moved_ends_all_waits_and_changes_no_answer() {
    check_quotas(
        "
        namespace shop v:0
        limit gpu 10 in:shop
        acquire a id:1 in:shop
        acquire a id:2 wait:1m in:shop
        reserve gpu=10 id:3 in:shop
        reserve gpu=1 id:4 wait:1m in:shop
        acquire b id:5
        acquire b id:6 wait:1m
        region eu
        events
        home shop us v:1
        acquire a id:1 in:shop
        acquire a id:2 wait:1m in:shop
        reserve gpu=10 id:3 in:shop
        reserve gpu=1 id:4 wait:1m in:shop
        release a #1 in:shop
        drop R3 in:shop
        home shop eu v:2
        acquire c id:7 in:shop
        acquire c id:8 wait:1m in:shop
        region us",
        expect![[r#"
            namespace shop v:0
                r2: version 1
            limit gpu 10 in:shop
                r3: limit version 1
            acquire a id:1 in:shop
                r4: granted a T1 for 30s
            acquire a id:2 wait:1m in:shop
                r5: waiting at 1, 1m left
            reserve gpu=10 id:3 in:shop
                r6: reserved R3 T2 gpu=10 (0 left) for 1m of at most 24h
            reserve gpu=1 id:4 wait:1m in:shop
                r7: waiting at 1, 1m left
            acquire b id:5
                r8: granted b T3 for 30s
            acquire b id:6 wait:1m
                r9: waiting at 1, 1m left
            region eu
                r10: region set
            home shop us v:1
                r11: version 2
                ~ id:2 r11: WaitTimeout homeMoved
                ~ id:4 r11: WaitTimeout homeMoved
                * r11 admin/shop: home Some("us")
                * r11 lock/shop/a 2: wait ended homeMoved after 0s
                * r11 quota/shop 4: wait ended homeMoved after 0s
            acquire a id:1 in:shop
                r12 as r4: granted a T1 for 30s
            acquire a id:2 wait:1m in:shop
                r13 as r11: WaitTimeout homeMoved
            reserve gpu=10 id:3 in:shop
                r14 as r6: reserved R3 T2 gpu=10 (0 left) for 1m of at most 24h
            reserve gpu=1 id:4 wait:1m in:shop
                r15 as r11: WaitTimeout homeMoved
            release a #1 in:shop
                r16: released
                * r16 lock/shop/a 1: ended T1 released held 0s
            drop R3 in:shop
                r17: released gpu=10
                * r17 quota/shop 3: released R3 T2 [gpu 0+10>0]
            home shop eu v:2
                r18: version 3
                * r18 admin/shop: home Some("eu")
            acquire c id:7 in:shop
                r19: granted c T4 for 30s
                * r19 lock/shop/c 7: granted T4
            acquire c id:8 wait:1m in:shop
                r20: waiting at 1, 1m left
                * r20 lock/shop/c 8: queued
            region us
                r21: region set
                ~ id:8 r21: WaitTimeout homeMoved
                * r21 admin: region Some("us")
                * r21 lock/shop/c 8: wait ended homeMoved after 0s
        "#]],
    );
}

#[test]
fn a_namespace_can_be_created_with_its_home() {
    check_quotas(
        "
        region eu
        home shop us v:0
        home shop us v:0
        acquire a id:1 in:shop
        home here eu v:0
        acquire a id:1 in:here",
        expect![[r#"
            region eu
                r2: region set
            home shop us v:0
                r3: version 1
            home shop us v:0
                r4: VersionConflict version is 1
            acquire a id:1 in:shop
                r5: WrongRegion home is us
            home here eu v:0
                r6: version 1
            acquire a id:1 in:here
                r7: granted a T1 for 30s
        "#]],
    );
}

#[test]
fn a_tenant_has_a_home_and_is_lent_a_share_elsewhere() {
    check_quotas(
        "
        region us
        limit gpu 10
        limit gpu/acme 0 home:eu
        limit gpu/acme/vision 5
        limit gpu/bolt 5 home:us
        reserve gpu/acme/vision=1 id:1
        reserve gpu/bolt=1,gpu/acme=1 id:2
        reserve gpu/bolt=1 id:3
        -- a share that was granted at home is the limit here
        limit gpu/acme 4 home:eu v:1
        reserve gpu/acme/vision=3 id:4
        -- it goes back only as far as it is free
        limit gpu/acme 2 home:eu v:2 refuse:debt
        limit gpu/acme 3 home:eu v:2 refuse:debt
        limit gpu/acme/vision/anna 1 home:eu",
        expect![[r#"
            region us
                r2: region set
            limit gpu 10
                r3: limit version 1
            limit gpu/acme 0 home:eu
                r4: limit version 1
            limit gpu/acme/vision 5
                r5: limit version 1
            limit gpu/bolt 5 home:us
                r6: limit version 1
            reserve gpu/acme/vision=1 id:1
                r7: WrongRegion home is eu
            reserve gpu/bolt=1,gpu/acme=1 id:2
                r8: WrongRegion home is eu
            reserve gpu/bolt=1 id:3
                r9: reserved R3 T1 gpu/bolt=1 (9/4 left) for 1m of at most 24h
            -- a share that was granted at home is the limit here
            limit gpu/acme 4 home:eu v:1
                r10: limit version 2
            reserve gpu/acme/vision=3 id:4
                r11: reserved R4 T2 gpu/acme/vision=3 (6/1/1 left) for 1m of at most 24h
            -- it goes back only as far as it is free
            limit gpu/acme 2 home:eu v:2 refuse:debt
                r12: InvalidArgument limit: is below what is claimed: 3
            limit gpu/acme 3 home:eu v:2 refuse:debt
                r13: limit version 3
            limit gpu/acme/vision/anna 1 home:eu
                r14: InvalidArgument home: is said by a root or a node right below it
        "#]],
    );
}

#[test]
fn time_never_takes_a_share_back() {
    check_quotas(
        "
        limit gpu 10
        share gpu 6 to:us cap:2 id:1
        share gpu 5 to:us cap:2 id:2
        reserve gpu=4 id:3 ttl:10m
        book gpu
        pass 1h
        book gpu
        share-return R1 returned:1
        share-return R1 returned:6
        reserve gpu=5 id:4
        commit R4
        share-return R1 returned:4 spent:1
        book gpu
        share-return R1 returned:1
        remove gpu v:1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            share gpu 6 to:us cap:2 id:1
                r3: share R1 of 6, 6 kept
            share gpu 5 to:us cap:2 id:2
                r4: QuotaExhausted [gpu v1 limit 10: 0 used, 6 reserved, 4 of 5 pass, 1 short], retry in 1s
            reserve gpu=4 id:3 ttl:10m
                r5: reserved R3 T1 gpu=4 (0 left) for 10m of at most 24h
            book gpu
                0 used, 10 reserved of 10, 0 available
            pass 1h
                (1 due ended)
            book gpu
                0 used, 6 reserved of 10, 4 available
            share-return R1 returned:1
                r7: share R1 of 5, 5 kept
            share-return R1 returned:6
                r8: ExceedsReservation gpu of region:us has 5, 6 asked
            reserve gpu=5 id:4
                r9: reserved R4 T2 gpu=5 (0 left) for 1m of at most 24h
            commit R4
                r10: C1 took gpu=5
            share-return R1 returned:4 spent:1
                r11: share R1 of 0, 0 kept C2
            book gpu
                6 used, 0 reserved of 10, 4 available
            share-return R1 returned:1
                r12: NotFound no such share
            remove gpu v:1
                r13: InvalidArgument path: is used: something is committed or reserved there
        "#]],
    );
}

#[test]
fn a_reclaim_lends_its_cap_again_and_the_debt_is_settled_by_the_report() {
    check_quotas(
        "
        limit gpu 10
        share gpu 6 to:us cap:2 id:1
        reserve gpu=4 id:2 ttl:10m
        events
        share-reclaim R1 reason:silence id:9
        share-reclaim R1 reason:silence id:9
        share-reclaim R1 reason:silence
        reserve gpu=3 id:3
        reserve gpu=2 id:4 ttl:10m
        snapshot
        -- what comes back makes up for what was lent first
        share-return R1 returned:1
        book gpu
        share-return R1 returned:1
        book gpu
        share-return R1 spent:4
        book gpu
        limit gpu 9 v:1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            share gpu 6 to:us cap:2 id:1
                r3: share R1 of 6, 6 kept
            reserve gpu=4 id:2 ttl:10m
                r4: reserved R2 T1 gpu=4 (0 left) for 10m of at most 24h
            share-reclaim R1 reason:silence id:9
                r5: share R1 of 6, 4 kept, reclaimed
                * r5 quota/default/gpu region:us: share R1 reclaimed, 2 lent: silence [gpu 0+10>8]
            share-reclaim R1 reason:silence id:9
                r6 as r5: share R1 of 6, 4 kept, reclaimed
            share-reclaim R1 reason:silence
                r7: InvalidArgument shareId: has been reclaimed: its region has to report
            reserve gpu=3 id:3
                r8: QuotaExhausted [gpu v1 limit 10: 0 used, 8 reserved, 2 of 3 pass, 1 short], retry in 1s
            reserve gpu=2 id:4 ttl:10m
                r9: reserved R4 T2 gpu=2 (0 left) for 10m of at most 24h
                * r9 quota/default 4: reserved R4 T2 [gpu 0+8>10]
            snapshot
            -- what comes back makes up for what was lent first
            share-return R1 returned:1
                r10: share R1 of 5, 4 kept, reclaimed
                * r10 quota/default/gpu region:us: share R1 returned
            book gpu
                0 used, 10 reserved of 10, 0 available
            share-return R1 returned:1
                r11: share R1 of 4, 4 kept, reclaimed
                * r11 quota/default/gpu region:us: share R1 returned
            book gpu
                0 used, 10 reserved of 10, 0 available
            share-return R1 spent:4
                r12: share R1 of 0, 0 kept, reclaimed C1
                * r12 quota/default/gpu region:us: share R1 returned C1 [gpu 0>4+10>6]
            book gpu
                4 used, 6 reserved of 10, 0 available
            limit gpu 9 v:1
                r13: limit version 2, debt 1
                * r13 quota/default/gpu: limit put, version 2, debt 1
        "#]],
    );
}

#[test]
fn the_worst_overshoot_is_the_sum_of_the_caps() {
    check_quotas(
        "
        limit gpu 10
        share gpu 6 to:us cap:2 id:1
        share gpu 4 to:asia cap:3 id:2
        share-reclaim R1
        share-reclaim R2
        reserve gpu=6 id:3
        reserve gpu=5 id:4
        commit R4
        -- both had used all of theirs
        share-return R1 spent:6
        share-return R2 spent:4
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            share gpu 6 to:us cap:2 id:1
                r3: share R1 of 6, 6 kept
            share gpu 4 to:asia cap:3 id:2
                r4: share R2 of 4, 4 kept
            share-reclaim R1
                r5: share R1 of 6, 4 kept, reclaimed
            share-reclaim R2
                r6: share R2 of 4, 1 kept, reclaimed
            reserve gpu=6 id:3
                r7: QuotaExhausted [gpu v1 limit 10: 0 used, 5 reserved, 5 of 6 pass, 1 short], retry in 1s
            reserve gpu=5 id:4
                r8: reserved R4 T1 gpu=5 (0 left) for 1m of at most 24h
            commit R4
                r9: C1 took gpu=5
            -- both had used all of theirs
            share-return R1 spent:6
                r10: share R1 of 0, 0 kept, reclaimed C2
            share-return R2 spent:4
                r11: share R2 of 0, 0 kept, reclaimed C3
            book gpu
                15 used, 0 reserved of 10, 0 available, debt 5
        "#]],
    );
}
