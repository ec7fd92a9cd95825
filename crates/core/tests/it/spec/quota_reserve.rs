//! Quotas: reserve, commit, release (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn one_command_over_all_items_and_layers() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 8
        limit gpu/acme/vision 6
        limit bytes 100
        reserve gpu/acme/vision=2,bytes=60,gpu/acme=1,gpu/acme/vision=2 id:1 by:w1
        book gpu/acme/vision
        book gpu/acme
        book gpu
        book bytes
        -- every exhausted layer is named, and nothing is taken
        reserve gpu/acme/vision=3,gpu/acme=4,bytes=41 id:2 by:w1
        book gpu
        book bytes",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/acme 8
                r3: limit version 1
            limit gpu/acme/vision 6
                r4: limit version 1
            limit bytes 100
                r5: limit version 1
            reserve gpu/acme/vision=2,bytes=60,gpu/acme=1,gpu/acme/vision=2 id:1 by:w1
                r6: reserved R1 T1 gpu/acme/vision=4 (5/3/2 left), bytes=60 (40 left), gpu/acme=1 (5/3 left) for 1m of at most 24h
            book gpu/acme/vision
                0 used, 4 reserved of 6, 2 available
            book gpu/acme
                0 used, 5 reserved of 8, 3 available
            book gpu
                0 used, 5 reserved of 10, 5 available
            book bytes
                0 used, 60 reserved of 100, 40 available
            -- every exhausted layer is named, and nothing is taken
            reserve gpu/acme/vision=3,gpu/acme=4,bytes=41 id:2 by:w1
                r7: QuotaExhausted [gpu v1 limit 10: 0 used, 5 reserved, 5 of 7 pass, 2 short; gpu/acme v1 limit 8: 0 used, 5 reserved, 3 of 7 pass, 4 short; gpu/acme/vision v1 limit 6: 0 used, 4 reserved, 2 of 3 pass, 1 short; bytes v1 limit 100: 0 used, 60 reserved, 40 of 41 pass, 1 short], retry in 1s
            book gpu
                0 used, 5 reserved of 10, 5 available
            book bytes
                0 used, 60 reserved of 100, 40 available
        "#]],
    );
}

#[test]
fn the_same_request_gets_the_same_answer() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=6 id:1 ttl:10s
        reserve gpu=6 id:2
        pass 1s
        reserve gpu=6 id:1 ttl:10s
        reserve gpu=6 id:2
        reserve gpu=5 id:2
        commit R1 gpu=2 part id:3
        commit R1 gpu=2 part id:3
        commit R1 gpu=2 id:3
        extend R1 ttl:20s id:4
        pass 1s
        snapshot
        extend R1 ttl:20s id:4
        reserve gpu=6 id:1 ttl:10s
        drop R1 id:5
        drop R1 id:5
        extend R1 ttl:20s id:4
        reserve gpu=6 id:1 ttl:10s
        reserve gpu=6 id:2
        -- forgotten after five minutes, as if it had never been
        pass 5m
        commit R1 gpu=2 part id:3
        reserve gpu=6 id:1 ttl:10s",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=6 id:1 ttl:10s
                r3: reserved R1 T1 gpu=6 (4 left) for 10s of at most 24h
            reserve gpu=6 id:2
                r4: QuotaExhausted [gpu v1 limit 10: 0 used, 6 reserved, 4 of 6 pass, 2 short], retry in 1s
            pass 1s
            reserve gpu=6 id:1 ttl:10s
                r5 as r3: reserved R1 T1 gpu=6 (4 left) for 9s of at most 86399s
            reserve gpu=6 id:2
                r6 as r4: QuotaExhausted [gpu v1 limit 10: 0 used, 6 reserved, 4 of 6 pass, 2 short], retry in 1s
            reserve gpu=5 id:2
                r7: RequestIdReused
            commit R1 gpu=2 part id:3
                r8: C1 took gpu=2, left gpu=4
            commit R1 gpu=2 part id:3
                r9 as r8: C1 took gpu=2, left gpu=4
            commit R1 gpu=2 id:3
                r10: RequestIdReused
            extend R1 ttl:20s id:4
                r11: reserved R1 T1 gpu=4 (4 left) for 20s of at most 86399s
            pass 1s
            snapshot
            extend R1 ttl:20s id:4
                r12 as r11: reserved R1 T1 gpu=4 (4 left) for 19s of at most 86398s
            reserve gpu=6 id:1 ttl:10s
                r13 as r3: reserved R1 T1 gpu=4 (4 left) for 19s of at most 86398s
            drop R1 id:5
                r14: released gpu=4
            drop R1 id:5
                r15 as r14: released gpu=4
            extend R1 ttl:20s id:4
                r16 as r11: reserved R1 T1 gpu=4 (4 left) for 0s of at most 86399s
            reserve gpu=6 id:1 ttl:10s
                r17 as r14: ReservationEnded released T1
            reserve gpu=6 id:2
                r18 as r4: QuotaExhausted [], retry in 1s
            -- forgotten after five minutes, as if it had never been
            pass 5m
            commit R1 gpu=2 part id:3
                r19: NotFound no such reservation
            reserve gpu=6 id:1 ttl:10s
                r20: reserved R? T2 gpu=6 (2 left) for 10s of at most 24h
        "#]],
    );
}

#[test]
fn a_commit_takes_at_most_what_is_reserved() {
    check_quotas(
        "
        limit gpu 10
        limit bytes 10
        reserve gpu=6,bytes=4 id:1
        commit R1 gpu=7
        commit R1 gpu=3,gpu=4
        commit R1 disk=1
        commit R1 gpu=2 part
        commit R1 gpu=5
        book gpu
        commit R1 gpu=1
        book gpu
        book bytes
        commit R1
        drop R1
        reserve gpu=6 id:2
        commit R2
        reserve gpu=1 id:3
        commit R3 gpu=0 part
        commit R3 gpu=0
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit bytes 10
                r3: limit version 1
            reserve gpu=6,bytes=4 id:1
                r4: reserved R1 T1 gpu=6 (4 left), bytes=4 (6 left) for 1m of at most 24h
            commit R1 gpu=7
                r5: ExceedsReservation gpu of 1 has 6, 7 asked
            commit R1 gpu=3,gpu=4
                r6: ExceedsReservation gpu of 1 has 6, 7 asked
            commit R1 disk=1
                r7: ExceedsReservation disk of 1 has 0, 1 asked
            commit R1 gpu=2 part
                r8: C1 took gpu=2, left gpu=4 bytes=4
            commit R1 gpu=5
                r9: ExceedsReservation gpu of 1 has 4, 5 asked
            book gpu
                2 used, 4 reserved of 10, 4 available
            commit R1 gpu=1
                r10: C2 took gpu=1, returned gpu=3 bytes=4
            book gpu
                3 used, 0 reserved of 10, 7 available
            book bytes
                0 used, 0 reserved of 10, 10 available
            commit R1
                r11: ReservationEnded committed T1
            drop R1
                r12: ReservationEnded committed T1
            reserve gpu=6 id:2
                r13: reserved R2 T2 gpu=6 (1 left) for 1m of at most 24h
            commit R2
                r14: C3 took gpu=6
            reserve gpu=1 id:3
                r15: reserved R3 T3 gpu=1 (0 left) for 1m of at most 24h
            commit R3 gpu=0 part
                r16: C4 took , left gpu=1
            commit R3 gpu=0
                r17: C5 took , returned gpu=1
            book gpu
                9 used, 0 reserved of 10, 1 available
        "#]],
    );
}

#[test]
fn release_is_repeatable_and_says_what_was_before() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=6 id:1 ttl:10s
        drop R1 fence:T2 id:2
        drop R1 fence:T1 id:3
        drop R1 fence:T1 id:3
        drop R1 id:4
        reserve gpu=6 id:5 ttl:10s
        pass 10s
        drop R5 id:6
        commit R5
        drop R77 id:7
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=6 id:1 ttl:10s
                r3: reserved R1 T1 gpu=6 (4 left) for 10s of at most 24h
            drop R1 fence:T2 id:2
                r4: NotHolder
            drop R1 fence:T1 id:3
                r5: released gpu=6
            drop R1 fence:T1 id:3
                r6 as r5: released gpu=6
            drop R1 id:4
                r7: nothing to release: released
            reserve gpu=6 id:5 ttl:10s
                r8: reserved R5 T2 gpu=6 (4 left) for 10s of at most 24h
            pass 10s
                (1 due ended)
            drop R5 id:6
                r10: nothing to release: expired
            commit R5
                r11: ReservationEnded expired T2
            drop R77 id:7
                r12: NotFound no such reservation
            book gpu
                0 used, 0 reserved of 10, 10 available
        "#]],
    );
}

#[test]
fn extension_has_an_end_and_never_resurrects() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=6 id:1 ttl:10s life:25s
        pass 9s
        extend R1
        extend R1 ttl:1s
        extend R1 ttl:20s
        extend R1 ttl:20s
        pass 15s
        extend R1 ttl:20s
        pass 1s
        extend R1 ttl:20s
        extend R1 ttl:2h
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=6 id:1 ttl:10s life:25s
                r3: reserved R1 T1 gpu=6 (4 left) for 10s of at most 25s
            pass 9s
            extend R1
                r4: reserved R1 T1 gpu=6 (4 left) for 10s of at most 16s
            extend R1 ttl:1s
                r5: reserved R1 T1 gpu=6 (4 left) for 10s of at most 16s
            extend R1 ttl:20s
                r6: reserved R1 T1 gpu=6 (4 left) for 16s of at most 16s, clipped
            extend R1 ttl:20s
                r7: MaxHoldReached T1 ends in 16s
            pass 15s
            extend R1 ttl:20s
                r8: MaxHoldReached T1 ends in 1s
            pass 1s
                (1 due ended)
            extend R1 ttl:20s
                r10: ReservationEnded expired T1
            extend R1 ttl:2h
                r11: ReservationEnded expired T1
            book gpu
                0 used, 0 reserved of 10, 10 available
        "#]],
    );
}

#[test]
fn resize_names_new_amounts() {
    check_quotas(
        "
        limit gpu 10
        limit bytes 10
        reserve gpu=6,bytes=4 id:1
        resize R1 gpu=8
        resize R1 gpu=11
        resize R1 gpu=2,bytes=9
        resize R1 gpu=11,bytes=1
        book bytes
        resize R1 gpu=2,gpu=2
        resize R1 disk=1
        resize R1 gpu=0,bytes=0
        resize R1 gpu=0
        resize R1 gpu=1
        book gpu
        snapshot
        commit R1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit bytes 10
                r3: limit version 1
            reserve gpu=6,bytes=4 id:1
                r4: reserved R1 T1 gpu=6 (4 left), bytes=4 (6 left) for 1m of at most 24h
            resize R1 gpu=8
                r5: reserved R1 T1 gpu=8 (2 left), bytes=4 (6 left) for 1m of at most 24h
            resize R1 gpu=11
                r6: QuotaExhausted [gpu v1 limit 10: 0 used, 8 reserved, 2 of 3 pass, 1 short], retry in 1s
            resize R1 gpu=2,bytes=9
                r7: reserved R1 T1 gpu=2 (8 left), bytes=9 (1 left) for 1m of at most 24h
            resize R1 gpu=11,bytes=1
                r8: QuotaExhausted [gpu v1 limit 10: 0 used, 2 reserved, 8 of 9 pass, 1 short], retry in 1s
            book bytes
                0 used, 9 reserved of 10, 1 available
            resize R1 gpu=2,gpu=2
                r9: InvalidArgument items: names "" twice
            resize R1 disk=1
                r10: InvalidArgument items: "" is not part of the reservation
            resize R1 gpu=0,bytes=0
                r11: InvalidArgument items: leave nothing: release it instead
            resize R1 gpu=0
                r12: reserved R1 T1 bytes=9 (1 left) for 1m of at most 24h
            resize R1 gpu=1
                r13: InvalidArgument items: "" is not part of the reservation
            book gpu
                0 used, 0 reserved of 10, 10 available
            snapshot
            commit R1
                r14: C1 took bytes=9
        "#]],
    );
}

#[test]
fn use_is_returned_no_more_than_once() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=3 id:1 by:w1
        reserve gpu=3 id:2 by:w1
        commit R1
        commit R2
        return C1 gpu=4 by:w1
        return C1 gpu=2 by:w2
        return C1 gpu=2 by:w1 id:9
        return C1 gpu=2 by:w1 id:9
        return C1 gpu=1 by:w1
        return C1 gpu=1 by:w1
        return C7 gpu=1 by:w1
        book gpu
        snapshot
        return C2 gpu=3 by:w1
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=3 id:1 by:w1
                r3: reserved R1 T1 gpu=3 (7 left) for 1m of at most 24h
            reserve gpu=3 id:2 by:w1
                r4: reserved R2 T2 gpu=3 (4 left) for 1m of at most 24h
            commit R1
                r5: C1 took gpu=3
            commit R2
                r6: C2 took gpu=3
            return C1 gpu=4 by:w1
                r7: ExceedsReservation gpu of w1 has 3, 4 asked
            return C1 gpu=2 by:w2
                r8: ExceedsReservation gpu of w2 has 0, 2 asked
            return C1 gpu=2 by:w1 id:9
                r9: returned 2 of C1, 1 left
            return C1 gpu=2 by:w1 id:9
                r10 as r9: returned 2 of C1, 1 left
            return C1 gpu=1 by:w1
                r11: returned 1 of C1, 0 left
            return C1 gpu=1 by:w1
                r12: ExceedsReservation gpu of w1 has 0, 1 asked
            return C7 gpu=1 by:w1
                r13: ExceedsReservation gpu of w1 has 0, 1 asked
            book gpu
                3 used, 0 reserved of 10, 7 available
            snapshot
            return C2 gpu=3 by:w1
                r14: returned 3 of C2, 0 left
            book gpu
                0 used, 0 reserved of 10, 10 available
        "#]],
    );
}
