//! Quotas: deadlines and what becomes of a reservation at them (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn expiry_against_commit_the_log_decides() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=6 id:1 ttl:10s
        reserve gpu=2 id:2 ttl:10s
        pass 9s
        { 999ms
        commit R1
        }
        { 1ms
        commit R2
        reserve gpu=4 id:3
        }
        book gpu",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=6 id:1 ttl:10s
                r3: reserved R1 T1 gpu=6 (4 left) for 10s of at most 24h
            reserve gpu=2 id:2 ttl:10s
                r4: reserved R2 T2 gpu=2 (2 left) for 10s of at most 24h
            pass 9s
            { 999ms
            commit R1
                r5: C1 took gpu=6
            { 1ms
            commit R2
                r7: ReservationEnded expired T2
            reserve gpu=4 id:3
                r8: reserved R3 T3 gpu=4 (0 left) for 1m of at most 24h
                (1 due ended)
            book gpu
                6 used, 4 reserved of 10, 0 available
        "#]],
    );
}

#[test]
fn a_late_commit_is_refused_or_readmitted_once() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=6 id:1 by:w1 ttl:10s
        pass 10s
        commit R1
        reserve gpu=5 id:2 ttl:10m
        commit R1 late:readmit as:9
        drop R2
        commit R1 gpu=7 late:readmit as:9
        commit R1 gpu=4 part late:readmit as:9
        events
        commit R1 gpu=4 late:readmit as:8 id:3
        commit R1 gpu=4 late:readmit as:8 id:3
        commit R1 gpu=2 late:readmit as:7
        book gpu
        return C1 gpu=4 by:w1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=6 id:1 by:w1 ttl:10s
                r3: reserved R1 T1 gpu=6 (4 left) for 10s of at most 24h
            pass 10s
                (1 due ended)
            commit R1
                r5: ReservationEnded expired T1
            reserve gpu=5 id:2 ttl:10m
                r6: reserved R2 T2 gpu=5 (5 left) for 10m of at most 24h
            commit R1 late:readmit as:9
                r7: ExpiredNoCapacity [gpu v1 limit 10: 0 used, 5 reserved, 5 of 6 pass, 1 short]
            drop R2
                r8: released gpu=5
            commit R1 gpu=7 late:readmit as:9
                r9: ExceedsReservation gpu of w1 has 6, 7 asked
            commit R1 gpu=4 part late:readmit as:9
                r10: InvalidArgument final: must be true of a late commit
            commit R1 gpu=4 late:readmit as:8 id:3
                r11: C1 took gpu=4, R8 for R1
                * r11 quota/default w1: committed C1 late for R1 R8 T3 [gpu 0>4+0]
            commit R1 gpu=4 late:readmit as:8 id:3
                r12 as r11: C1 took gpu=4, R8 for R1
            commit R1 gpu=2 late:readmit as:7
                r13: ReservationEnded expired T1
            book gpu
                4 used, 0 reserved of 10, 6 available
            return C1 gpu=4 by:w1
                r14: returned 4 of C1, 0 left
                * r14 quota/default/gpu w1: returned of C1 [gpu 4>0+0]
        "#]],
    );
}

#[test]
fn what_expired_is_kept_for_an_hour() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=6 id:1 ttl:10s
        reserve gpu=1 id:2 ttl:10s
        pass 1h
        snapshot
        commit R1 late:readmit as:9
        pass 10s
        commit R2 late:readmit as:8
        drop R2",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=6 id:1 ttl:10s
                r3: reserved R1 T1 gpu=6 (4 left) for 10s of at most 24h
            reserve gpu=1 id:2 ttl:10s
                r4: reserved R2 T2 gpu=1 (3 left) for 10s of at most 24h
            pass 1h
                (2 due ended)
            snapshot
            commit R1 late:readmit as:9
                r7: C1 took gpu=6, R9 for R1
            pass 10s
            commit R2 late:readmit as:8
                r8: NotFound no such reservation
            drop R2
                r9: NotFound no such reservation
        "#]],
    );
}

#[test]
fn work_in_flight_has_its_own_deadline_and_fate() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=2 id:1 ttl:10s
        reserve gpu=3 id:2 ttl:10s
        reserve gpu=4 id:3 ttl:10s expiry:commit
        events
        begin-work R1 ttl:30s expiry:commit id:4
        begin-work R1 ttl:30s expiry:commit id:4
        begin-work R2 ttl:5s expiry:quarantine
        begin-work R2 ttl:50s expiry:release
        begin-work R3 ttl:2h
        pass 10s
        book gpu
        extend R1 ttl:40s
        pass 40s
        book gpu
        begin-work R1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=2 id:1 ttl:10s
                r3: reserved R1 T1 gpu=2 (8 left) for 10s of at most 24h
            reserve gpu=3 id:2 ttl:10s
                r4: reserved R2 T2 gpu=3 (5 left) for 10s of at most 24h
            reserve gpu=4 id:3 ttl:10s expiry:commit
                r5: reserved R3 T3 gpu=4 (1 left) for 10s of at most 24h
            begin-work R1 ttl:30s expiry:commit id:4
                r6: in flight R1 T1 gpu=2 (1 left) for 30s of at most 24h
                * r6 quota/default 1: begun, at expiry Commit R1 T1
            begin-work R1 ttl:30s expiry:commit id:4
                r7 as r6: in flight R1 T1 gpu=2 (1 left) for 30s of at most 24h
            begin-work R2 ttl:5s expiry:quarantine
                r8: in flight R2 T2 gpu=3 (1 left) for 10s of at most 24h
                * r8 quota/default 2: begun, at expiry Quarantine R2 T2
            begin-work R2 ttl:50s expiry:release
                r9: in flight R2 T2 gpu=3 (1 left) for 10s of at most 24h
            begin-work R3 ttl:2h
                r10: InvalidArgument inFlightTtl: must be 1000 to 3600000 (durations in ms), is 7200000
            pass 10s
                (2 due ended)
                * r11 quota/default 2: quarantined R2 T2
                * r12 quota/default 3: committed C1 by expiry R3 T3 [gpu 0>4+9>5]
            book gpu
                4 used, 5 reserved of 10, 1 available
            extend R1 ttl:40s
                r13: in flight R1 T1 gpu=2 (1 left) for 40s of at most 86390s
            pass 40s
                (1 due ended)
                * r14 quota/default 1: committed C2 by expiry R1 T1 [gpu 4>6+5>3]
            book gpu
                6 used, 3 reserved of 10, 1 available
            begin-work R1
                r15: ReservationEnded committed T1
        "#]],
    );
}

/// It undoes a reserve whose answer was lost, and nobody begins such a one; that the owner does not know how its work
/// ended is what quarantine is for.
#[test]
fn an_abandon_does_not_end_a_quarantine() {
    check_quotas(
        "
        limit gpu 4
        reserve gpu=4 id:1 by:w1 ttl:10s expiry:quarantine
        pass 1h
        abandon id:1 by:w1 family:quota
        who gpu",
        expect![[r#"
            limit gpu 4
                r2: limit version 1
            reserve gpu=4 id:1 by:w1 ttl:10s expiry:quarantine
                r3: reserved R1 T1 gpu=4 (0 left) for 10s of at most 24h
            pass 1h
                (1 due ended)
            abandon id:1 by:w1 family:quota
                r5: ReservationEnded quarantined T1
            who gpu
                1 layers
                w1 quarantined gpu=4 held 1h, 0s left
        "#]],
    );
}

#[test]
fn quarantine_keeps_capacity_until_an_operator_settles_it() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=4 id:1 by:w1 ttl:10s expiry:quarantine
        reserve gpu=3 id:2 by:w2 ttl:10s expiry:quarantine
        settle R1 commit
        pass 1h
        reserve gpu=4 id:3
        commit R1
        extend R1
        drop R1
        who gpu
        snapshot
        events
        settle R1 commit reason:seen id:7
        settle R1 commit reason:seen id:7
        settle R2 release reason:gone
        settle R2 release
        book gpu
        return C1 gpu=4 by:w1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=4 id:1 by:w1 ttl:10s expiry:quarantine
                r3: reserved R1 T1 gpu=4 (6 left) for 10s of at most 24h
            reserve gpu=3 id:2 by:w2 ttl:10s expiry:quarantine
                r4: reserved R2 T2 gpu=3 (3 left) for 10s of at most 24h
            settle R1 commit
                r5: InvalidArgument reservationId: is not in quarantine: its owner commits or releases it
            pass 1h
                (2 due ended)
            reserve gpu=4 id:3
                r8: QuotaExhausted [gpu v1 limit 10: 0 used, 7 reserved, 3 of 4 pass, 1 short], retry in 1s
            commit R1
                r9: ReservationEnded quarantined T1
            extend R1
                r10: ReservationEnded quarantined T1
            drop R1
                r11: ReservationEnded quarantined T1
            who gpu
                1 layers
                w1 quarantined gpu=4 held 1h, 0s left
                w2 quarantined gpu=3 held 1h, 0s left
                refused 3 4, 0s ago: gpu v1 limit 10: 0 used, 7 reserved, 3 of 4 pass, 1 short
            snapshot
            settle R1 commit reason:seen id:7
                r12: settled: Commit C1
                * r12 quota/default w1: committed C1 R1 T1: seen [gpu 0>4+7>3]
            settle R1 commit reason:seen id:7
                r13 as r12: settled: Commit C1
            settle R2 release reason:gone
                r14: settled: Release
                * r14 quota/default w2: released R2 T2: gone [gpu 4+3>0]
            settle R2 release
                r15: ReservationEnded released T2
            book gpu
                4 used, 0 reserved of 10, 6 available
            return C1 gpu=4 by:w1
                r16: returned 4 of C1, 0 left
                * r16 quota/default/gpu w1: returned of C1 [gpu 4>0+0]
        "#]],
    );
}

#[test]
fn a_restored_service_grants_no_quota_during_its_pause() {
    check_quotas(
        "
        limit gpu 10
        reserve gpu=4 id:1 ttl:1m
        reserve gpu=8 id:2 wait:5m
        restore pause:30s floor:+5m
        lead n2
        reserve gpu=1 id:3
        commit R1
        book gpu
        pass 30s
        reserve gpu=1 id:3",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            reserve gpu=4 id:1 ttl:1m
                r3: reserved R1 T1 gpu=4 (6 left) for 1m of at most 24h
            reserve gpu=8 id:2 wait:5m
                r4: waiting at 1, 5m left
            restore pause:30s floor:+5m
            lead n2
            reserve gpu=1 id:3
                r6: Unavailable paused, retry in 30s
            commit R1
                r7: C1 took gpu=4
            book gpu
                4 used, 0 reserved of 10, 6 available
            pass 30s
            reserve gpu=1 id:3
                r8: reserved R? T2 gpu=1 (5 left) for 1m of at most 24h
        "#]],
    );
}
