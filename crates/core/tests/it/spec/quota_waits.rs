//! Quotas: who waits, who goes next, what is kept for whom (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn who_waits_is_granted_as_capacity_comes_back() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=8 id:1
        reserve gpu=4 id:2 wait:30s
        reserve gpu=2 id:3 wait:30s
        reserve gpu=2 id:3 wait:30s
        book gpu
        -- nobody passes those who wait for the same node
        reserve gpu=1 id:4
        resize R1 gpu=6
        resize R1 gpu=5
        drop R1
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=8 id:1
                r3: reserved R1 T1 gpu=8 (2 left) for 1m of at most 24h
            reserve gpu=4 id:2 wait:30s
                r4: waiting at 1, 30s left
            reserve gpu=2 id:3 wait:30s
                r5: waiting at 2, 30s left
            reserve gpu=2 id:3 wait:30s
                r6 as r5: waiting at 2, 30s left
            book gpu
                0 used, 8 reserved of 10, 2 available, 2 waiting
            -- nobody passes those who wait for the same node
            reserve gpu=1 id:4
                r7: QuotaExhausted [gpu v1 waiting 10: 0 used, 8 reserved, 0 of 1 pass, 1 short], retry in 1s
            resize R1 gpu=6
                r8: reserved R1 T1 gpu=6 (4 left) for 1m of at most 24h
                ~ id:2 r8: reserved R2 T2 gpu=4 (0 left) for 1m of at most 24h
            resize R1 gpu=5
                r9: reserved R1 T1 gpu=5 (1 left) for 1m of at most 24h
            drop R1
                r10: released gpu=5
                ~ id:3 r10: reserved R3 T3 gpu=2 (4 left) for 1m of at most 24h
            book gpu
                0 used, 6 reserved of 10, 4 available
        "#]],
    );
}

#[test]
fn a_wait_ends_by_time_abandon_or_desertion_and_stays_dead() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=10 id:1 ttl:10m
        reserve gpu=1 id:2 wait:5s
        reserve gpu=2 id:3 wait:30s
        reserve gpu=3 id:4 wait:30s
        reserve gpu=4 id:5 wait:30s
        pass 5s
        reserve gpu=1 id:2 wait:5s
        abandon id:3 family:quota
        reserve gpu=2 id:3 wait:30s
        desert id:4
        abandon id:6 family:quota
        reserve gpu=4 id:6
        drop R1
        commit R5
        commit R4
        -- a grant that is abandoned is given back, a commit stays
        reserve gpu=2 id:7
        abandon id:7 family:quota
        reserve gpu=2 id:7
        abandon id:5 family:quota
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=10 id:1 ttl:10m
                r3: reserved R1 T1 gpu=10 (0 left) for 10m of at most 24h
            reserve gpu=1 id:2 wait:5s
                r4: waiting at 1, 5s left
            reserve gpu=2 id:3 wait:30s
                r5: waiting at 2, 30s left
            reserve gpu=3 id:4 wait:30s
                r6: waiting at 3, 30s left
            reserve gpu=4 id:5 wait:30s
                r7: waiting at 4, 30s left
            pass 5s
                (1 due ended)
                ~ id:2 r8: WaitTimeout timed out
            reserve gpu=1 id:2 wait:5s
                r9 as r8: WaitTimeout timed out
            abandon id:3 family:quota
                r10: abandoned, was waiting
                ~ id:3 r10: Abandoned
            reserve gpu=2 id:3 wait:30s
                r11 as r10: Abandoned
            desert id:4
                r12: ended
                ~ id:4 r12: WaitTimeout deserted
            abandon id:6 family:quota
                r13: abandoned, was unseen
            reserve gpu=4 id:6
                r14 as r13: Abandoned
            drop R1
                r15: released gpu=10
                ~ id:5 r15: reserved R5 T2 gpu=4 (6 left) for 1m of at most 24h
            commit R5
                r16: C1 took gpu=4
            commit R4
                r17: NotFound no such reservation
            -- a grant that is abandoned is given back, a commit stays
            reserve gpu=2 id:7
                r18: reserved R7 T3 gpu=2 (4 left) for 1m of at most 24h
            abandon id:7 family:quota
                r19: abandoned, was granted
            reserve gpu=2 id:7
                r20 as r19: ReservationEnded abandoned T3
            abandon id:5 family:quota
                r21: abandoned, was ended: committed
            book gpu
                4 used, 0 reserved of 10, 6 available
        "#]],
    );
}

#[test]
fn a_hand_over_that_nobody_asked_for_is_taken_back() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=10 id:1
        reserve gpu=4 id:2 wait:30s
        reserve gpu=4 id:3 wait:30s
        drop R1
        begin-work R3
        desert id:2
        desert id:3
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=10 id:1
                r3: reserved R1 T1 gpu=10 (0 left) for 1m of at most 24h
            reserve gpu=4 id:2 wait:30s
                r4: waiting at 1, 30s left
            reserve gpu=4 id:3 wait:30s
                r5: waiting at 2, 30s left
            drop R1
                r6: released gpu=10
                ~ id:2 r6: reserved R2 T2 gpu=4 (6 left) for 1m of at most 24h
                ~ id:3 r6: reserved R3 T3 gpu=4 (2 left) for 1m of at most 24h
            begin-work R3
                r7: in flight R3 T3 gpu=4 (2 left) for 1m of at most 24h
            desert id:2
                r8: ended
            desert id:3
                r9: left alone
            book gpu
                0 used, 4 reserved of 10, 6 available
        "#]],
    );
}

#[test]
fn what_could_never_fit_does_not_wait() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:4
        limit gpu/bolt 8
        reserve gpu/bolt=7 id:1 wait:30s
        reserve gpu/acme=11 id:2 wait:30s
        reserve gpu/bolt=6 id:3
        reserve gpu/bolt=6 id:4 wait:30s",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/acme 10 guaranteed:4
                r3: limit version 1
            limit gpu/bolt 8
                r4: limit version 1
            reserve gpu/bolt=7 id:1 wait:30s
                r5: QuotaExhausted [gpu v1 guarantee 10: 0 used, 0 reserved, 6 of 7 pass, 1 short]
            reserve gpu/acme=11 id:2 wait:30s
                r6: QuotaExhausted [gpu v1 limit 10: 0 used, 0 reserved, 10 of 11 pass, 1 short; gpu/acme v1 limit 10: 0 used, 0 reserved, 10 of 11 pass, 1 short]
            reserve gpu/bolt=6 id:3
                r7: reserved R3 T1 gpu/bolt=6 (0/0 left) for 1m of at most 24h
            reserve gpu/bolt=6 id:4 wait:30s
                r8: waiting at 1, 30s left
        "#]],
    );
}

#[test]
fn the_smallest_share_goes_first() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/a 10 weight:1
        limit gpu/b 10 weight:3
        limit gpu/c 10 weight:1
        reserve gpu/a=4 id:1
        reserve gpu/b=5 id:2
        reserve gpu/c=1 id:3
        reserve gpu/a=2 id:4 wait:20s
        reserve gpu/b=2 id:5 wait:20s
        reserve gpu/c=2 id:6 wait:20s
        -- use / weight: 2, 5/3, 1
        resize R1 gpu/a=2
        -- 1, 4/3, 3
        resize R1 gpu/a=1
        resize R2 gpu/b=4
        drop R1
        drop R2",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/a 10 weight:1
                r3: limit version 1
            limit gpu/b 10 weight:3
                r4: limit version 1
            limit gpu/c 10 weight:1
                r5: limit version 1
            reserve gpu/a=4 id:1
                r6: reserved R1 T1 gpu/a=4 (6/6 left) for 1m of at most 24h
            reserve gpu/b=5 id:2
                r7: reserved R2 T2 gpu/b=5 (1/1 left) for 1m of at most 24h
            reserve gpu/c=1 id:3
                r8: reserved R3 T3 gpu/c=1 (0/0 left) for 1m of at most 24h
            reserve gpu/a=2 id:4 wait:20s
                r9: waiting at 1, 20s left
            reserve gpu/b=2 id:5 wait:20s
                r10: waiting at 1, 20s left
            reserve gpu/c=2 id:6 wait:20s
                r11: waiting at 1, 20s left
            -- use / weight: 2, 5/3, 1
            resize R1 gpu/a=2
                r12: reserved R1 T1 gpu/a=2 (2/2 left) for 1m of at most 24h
                ~ id:6 r12: reserved R6 T4 gpu/c=2 (0/0 left) for 1m of at most 24h
            -- 1, 4/3, 3
            resize R1 gpu/a=1
                r13: reserved R1 T1 gpu/a=1 (1/1 left) for 1m of at most 24h
            resize R2 gpu/b=4
                r14: reserved R2 T2 gpu/b=4 (2/2 left) for 1m of at most 24h
                ~ id:4 r14: reserved R4 T5 gpu/a=2 (0/0 left) for 1m of at most 24h
            drop R1
                r15: released gpu/a=1
            drop R2
                r16: released gpu/b=4
                ~ id:5 r16: reserved R5 T6 gpu/b=2 (3/3 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn inside_a_tenant_by_priority_then_age() {
    check_quotas(
        "
        limit gpu 4
        limit gpu/a 4
        limit gpu/a/x 4
        limit gpu/a/y 4
        reserve gpu/a/x=4 id:1
        reserve gpu/a/x=1 id:2 wait:20s prio:1
        reserve gpu/a/y=1 id:3 wait:20s prio:2
        reserve gpu/a/x=1 id:4 wait:20s prio:2
        reserve gpu/a/y=1 id:5 wait:20s
        resize R1 gpu/a/x=3
        resize R1 gpu/a/x=2
        resize R1 gpu/a/x=1
        drop R1",
        expect![[r#"
            limit gpu 4
                r2: limit version 1
            limit gpu/a 4
                r3: limit version 1
            limit gpu/a/x 4
                r4: limit version 1
            limit gpu/a/y 4
                r5: limit version 1
            reserve gpu/a/x=4 id:1
                r6: reserved R1 T1 gpu/a/x=4 (0/0/0 left) for 1m of at most 24h
            reserve gpu/a/x=1 id:2 wait:20s prio:1
                r7: waiting at 1, 20s left
            reserve gpu/a/y=1 id:3 wait:20s prio:2
                r8: waiting at 1, 20s left
            reserve gpu/a/x=1 id:4 wait:20s prio:2
                r9: waiting at 2, 20s left
            reserve gpu/a/y=1 id:5 wait:20s
                r10: waiting at 2, 20s left
            resize R1 gpu/a/x=3
                r11: reserved R1 T1 gpu/a/x=3 (1/1/1 left) for 1m of at most 24h
                ~ id:3 r11: reserved R3 T2 gpu/a/y=1 (0/0/0 left) for 1m of at most 24h
            resize R1 gpu/a/x=2
                r12: reserved R1 T1 gpu/a/x=2 (1/1/1 left) for 1m of at most 24h
                ~ id:4 r12: reserved R4 T3 gpu/a/x=1 (0/0/0 left) for 1m of at most 24h
            resize R1 gpu/a/x=1
                r13: reserved R1 T1 gpu/a/x=1 (1/1/1 left) for 1m of at most 24h
                ~ id:2 r13: reserved R2 T4 gpu/a/x=1 (0/0/0 left) for 1m of at most 24h
            drop R1
                r14: released gpu/a/x=1
                ~ id:5 r14: reserved R5 T5 gpu/a/y=1 (0/0/0 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn a_guarantee_is_never_lent_and_not_delayed_by_who_waits() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/a 10
        limit gpu/b 10 guaranteed:4
        reserve gpu/a=6 id:1
        reserve gpu/a=3 id:2 wait:5m
        pass 40s
        -- the one who waits has waited too long, and all that comes free is kept for it
        reserve gpu/b=4 id:3
        drop R3
        reserve gpu/b=5 id:4
        reserve gpu/b=4 id:5
        resize R1 gpu/a=5
        resize R1 gpu/a=3",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/a 10
                r3: limit version 1
            limit gpu/b 10 guaranteed:4
                r4: limit version 1
            reserve gpu/a=6 id:1
                r5: reserved R1 T1 gpu/a=6 (0/0 left) for 1m of at most 24h
            reserve gpu/a=3 id:2 wait:5m
                r6: waiting at 1, 5m left
            pass 40s
            -- the one who waits has waited too long, and all that comes free is kept for it
            reserve gpu/b=4 id:3
                r7: reserved R3 T2 gpu/b=4 (0/0 left) for 1m of at most 24h
            drop R3
                r8: released gpu/b=4
            reserve gpu/b=5 id:4
                r9: QuotaExhausted [gpu v1 limit 10: 0 used, 6 reserved, 4 of 5 pass, 1 short], retry in 1s
            reserve gpu/b=4 id:5
                r10: reserved R5 T3 gpu/b=4 (0/0 left) for 1m of at most 24h
            resize R1 gpu/a=5
                r11: reserved R1 T1 gpu/a=5 (1/1 left) for 20s of at most 86360s
            resize R1 gpu/a=3
                r12: reserved R1 T1 gpu/a=3 (3/3 left) for 20s of at most 86360s
                ~ id:2 r12: reserved R2 T4 gpu/a=3 (0/0 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn a_large_ask_is_not_starved_by_small_ones() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/a 10
        limit gpu/b 10
        reserve gpu/a=5 id:1 ttl:10m
        reserve gpu/b=1 id:2 ttl:10m
        reserve gpu/b=4 id:3 ttl:10m
        reserve gpu/a=8 id:4 wait:5m
        -- the smaller share goes first
        reserve gpu/b=1 id:5 wait:5m
        drop R2
        pass 31s
        -- but no longer, and what comes free adds up
        drop R5
        reserve gpu/b=1 id:6 wait:5m
        drop R3
        drop R1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/a 10
                r3: limit version 1
            limit gpu/b 10
                r4: limit version 1
            reserve gpu/a=5 id:1 ttl:10m
                r5: reserved R1 T1 gpu/a=5 (5/5 left) for 10m of at most 24h
            reserve gpu/b=1 id:2 ttl:10m
                r6: reserved R2 T2 gpu/b=1 (4/4 left) for 10m of at most 24h
            reserve gpu/b=4 id:3 ttl:10m
                r7: reserved R3 T3 gpu/b=4 (0/0 left) for 10m of at most 24h
            reserve gpu/a=8 id:4 wait:5m
                r8: waiting at 1, 5m left
            -- the smaller share goes first
            reserve gpu/b=1 id:5 wait:5m
                r9: waiting at 1, 5m left
            drop R2
                r10: released gpu/b=1
                ~ id:5 r10: reserved R5 T4 gpu/b=1 (0/0 left) for 1m of at most 24h
            pass 31s
            -- but no longer, and what comes free adds up
            drop R5
                r11: released gpu/b=1
            reserve gpu/b=1 id:6 wait:5m
                r12: waiting at 1, 5m left
            drop R3
                r13: released gpu/b=4
            drop R1
                r14: released gpu/a=5
                ~ id:4 r14: reserved R4 T5 gpu/a=8 (2/2 left) for 1m of at most 24h
                ~ id:6 r14: reserved R6 T6 gpu/b=1 (1/1 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn who_waits_elsewhere_does_not_block() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/a 3
        limit gpu/b 10
        reserve gpu/a=3 id:1
        reserve gpu/a=2 id:2 wait:5m
        reserve gpu/b=1 id:3
        pass 40s
        -- also after too long: it could not use more than its own node holds
        reserve gpu/b=6 id:4
        resize R1 gpu/a=2
        book gpu
        reserve gpu/b=1 id:5
        resize R1 gpu/a=1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/a 3
                r3: limit version 1
            limit gpu/b 10
                r4: limit version 1
            reserve gpu/a=3 id:1
                r5: reserved R1 T1 gpu/a=3 (7/0 left) for 1m of at most 24h
            reserve gpu/a=2 id:2 wait:5m
                r6: waiting at 1, 5m left
            reserve gpu/b=1 id:3
                r7: reserved R3 T2 gpu/b=1 (6/6 left) for 1m of at most 24h
            pass 40s
            -- also after too long: it could not use more than its own node holds
            reserve gpu/b=6 id:4
                r8: reserved R4 T3 gpu/b=6 (0/0 left) for 1m of at most 24h
            resize R1 gpu/a=2
                r9: reserved R1 T1 gpu/a=2 (1/1 left) for 20s of at most 86360s
            book gpu
                0 used, 9 reserved of 10, 1 available
            reserve gpu/b=1 id:5
                r10: QuotaExhausted [gpu v1 waiting 10: 0 used, 9 reserved, 0 of 1 pass, 1 short], retry in 1s
            resize R1 gpu/a=1
                r11: reserved R1 T1 gpu/a=1 (2/2 left) for 20s of at most 86360s
                ~ id:2 r11: reserved R2 T4 gpu/a=2 (0/0 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn several_quotas_at_once() {
    check_quotas(
        "
        limit gpu 4
        limit bytes 10
        reserve gpu=4 id:1
        reserve bytes=6 id:2
        reserve gpu=2,bytes=6 id:3 wait:5m
        reserve bytes=4 id:4 wait:5m
        drop R2
        drop R1",
        expect![[r#"
            limit gpu 4
                r2: limit version 1
            limit bytes 10
                r3: limit version 1
            reserve gpu=4 id:1
                r4: reserved R1 T1 gpu=4 (0 left) for 1m of at most 24h
            reserve bytes=6 id:2
                r5: reserved R2 T2 bytes=6 (4 left) for 1m of at most 24h
            reserve gpu=2,bytes=6 id:3 wait:5m
                r6: waiting at 1, 5m left
            reserve bytes=4 id:4 wait:5m
                r7: waiting at 1, 5m left
            drop R2
                r8: released bytes=6
                ~ id:4 r8: reserved R4 T3 bytes=4 (6 left) for 1m of at most 24h
            drop R1
                r9: released gpu=4
                ~ id:3 r9: reserved R3 T4 gpu=2 (2 left), bytes=6 (0 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn an_owner_at_its_bound_is_passed_by() {
    check_quotas(
        "
        limit gpu 4 owner:3
        reserve gpu=2 by:w1 id:1
        reserve gpu=2 by:w2 id:2
        reserve gpu=1 by:w1 id:3 wait:5m
        reserve gpu=1 by:w1 id:4 wait:5m
        reserve gpu=1 by:w3 id:5 wait:5m
        drop R2
        book gpu
        drop R5
        drop R1",
        expect![[r#"
            limit gpu 4 owner:3
                r2: limit version 1
            reserve gpu=2 by:w1 id:1
                r3: reserved R1 T1 gpu=2 (2 left) for 1m of at most 24h
            reserve gpu=2 by:w2 id:2
                r4: reserved R2 T2 gpu=2 (0 left) for 1m of at most 24h
            reserve gpu=1 by:w1 id:3 wait:5m
                r5: waiting at 1, 5m left
            reserve gpu=1 by:w1 id:4 wait:5m
                r6: waiting at 2, 5m left
            reserve gpu=1 by:w3 id:5 wait:5m
                r7: waiting at 3, 5m left
            drop R2
                r8: released gpu=2
                ~ id:3 r8: reserved R3 T3 gpu=1 (1 left) for 1m of at most 24h
                ~ id:5 r8: reserved R5 T4 gpu=1 (0 left) for 1m of at most 24h
            book gpu
                0 used, 4 reserved of 4, 0 available, 1 waiting
            drop R5
                r9: released gpu=1
            drop R1
                r10: released gpu=2
                ~ id:4 r10: reserved R4 T5 gpu=1 (2 left) for 1m of at most 24h
        "#]],
    );
}

#[test]
fn a_raised_limit_lets_them_all_go() {
    check_quotas(
        "
        limit gpu 1
        limit gpu/a 10
        reserve gpu/a=1 id:1
        reserve gpu/a=1 id:2 wait:5m
        reserve gpu/a=1 id:3 wait:5m
        reserve gpu/a=1 id:4 wait:5m
        limit gpu 3 v:1
        snapshot
        limit gpu 4 v:2",
        expect![[r#"
            limit gpu 1
                r2: limit version 1
            limit gpu/a 10
                r3: limit version 1
            reserve gpu/a=1 id:1
                r4: reserved R1 T1 gpu/a=1 (0/0 left) for 1m of at most 24h
            reserve gpu/a=1 id:2 wait:5m
                r5: waiting at 1, 5m left
            reserve gpu/a=1 id:3 wait:5m
                r6: waiting at 2, 5m left
            reserve gpu/a=1 id:4 wait:5m
                r7: waiting at 3, 5m left
            limit gpu 3 v:1
                r8: limit version 2
                ~ id:2 r8: reserved R2 T2 gpu/a=1 (1/1 left) for 1m of at most 24h
                ~ id:3 r8: reserved R3 T3 gpu/a=1 (0/0 left) for 1m of at most 24h
            snapshot
            limit gpu 4 v:2
                r9: limit version 3
                ~ id:4 r9: reserved R4 T4 gpu/a=1 (0/0 left) for 1m of at most 24h
        "#]],
    );
}
