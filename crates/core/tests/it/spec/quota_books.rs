//! Quotas: the ledger, and the books against reality (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn every_change_is_in_the_ledger_with_amounts_before_and_after() {
    check_quotas(
        "
        events
        limit gpu 10
        limit gpu/acme 10
        reserve gpu/acme=4,gpu=1 id:1 by:w1 caller:shop
        resize R1 gpu/acme=3
        commit R1 gpu/acme=1 part
        commit R1 gpu/acme=1
        return C1 gpu/acme=1 by:w1
        reserve gpu=9 id:2 by:w2 ttl:10s
        reserve gpu=1 id:3 by:w3 wait:20s
        pass 10s
        adjust gpu +3 by:ops reason:found
        adjust gpu -1 by:ops
        adjust gpu -3 by:ops
        drop R3
        remove gpu/acme v:1",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
                * r2 quota/default/gpu: limit put, version 1, debt 0
            limit gpu/acme 10
                r3: limit version 1
                * r3 quota/default/gpu/acme: limit put, version 1, debt 0
            reserve gpu/acme=4,gpu=1 id:1 by:w1 caller:shop
                r4: reserved R1 T1 gpu/acme=4 (5/5 left), gpu=1 (5 left) for 1m of at most 24h
                * r4 quota/default w1: reserved R1 T1 [gpu/acme 0+0>4 0+0>4] [gpu 0+4>5] by shop
            resize R1 gpu/acme=3
                r5: reserved R1 T1 gpu/acme=3 (6/6 left), gpu=1 (6 left) for 1m of at most 24h
                * r5 quota/default w1: resized R1 T1 [gpu/acme 0+5>4 0+4>3]
            commit R1 gpu/acme=1 part
                r6: C1 took gpu/acme=1, left gpu/acme=2 gpu=1
                * r6 quota/default w1: committed C1 in part R1 T1 [gpu/acme 0>1+4>3 0>1+3>2]
            commit R1 gpu/acme=1
                r7: C2 took gpu/acme=1, returned gpu/acme=1 gpu=1
                * r7 quota/default w1: committed C2 R1 T1 [gpu/acme 1>2+3>1 1>2+2>0] [gpu 2+1>0]
            return C1 gpu/acme=1 by:w1
                r8: returned 1 of C1, 0 left
                * r8 quota/default/gpu/acme w1: returned of C1 [gpu/acme 2>1+0 2>1+0]
            reserve gpu=9 id:2 by:w2 ttl:10s
                r9: reserved R2 T2 gpu=9 (0 left) for 10s of at most 24h
                * r9 quota/default w2: reserved R2 T2 [gpu 1+0>9]
            reserve gpu=1 id:3 by:w3 wait:20s
                r10: waiting at 1, 20s left
                * r10 quota/default w3: queued
            pass 10s
                (1 due ended)
                ~ id:3 r11: reserved R3 T3 gpu=1 (8 left) for 1m of at most 24h
                * r11 quota/default w2: expired R2 T2 [gpu 1+9>0]
                * r11 quota/default w3: reserved after 10s R3 T3 [gpu 1+0>1]
            adjust gpu +3 by:ops reason:found
                r12: adjusted to 3 C3
                * r12 quota/default/gpu ops: adjusted: found [gpu 1>4+1]
            adjust gpu -1 by:ops
                r13: adjusted to 2
                * r13 quota/default/gpu ops: adjusted: why [gpu 4>3+1]
            adjust gpu -3 by:ops
                r14: ExceedsReservation gpu of ops has 2, 3 asked
            drop R3
                r15: released gpu=1
                * r15 quota/default w3: released R3 T3 [gpu 3+1>0]
            remove gpu/acme v:1
                r16: InvalidArgument path: is used: something is committed or reserved there
        "#]],
    );
}

#[test]
fn drift_is_what_nothing_explains() {
    check_quotas(
        "
        limit gpu 100
        limit gpu/acme 50
        reserve gpu/acme=10 id:1 by:w1
        commit R1
        reserve gpu/acme=5 id:2 by:w1
        -- what is in flight may be there already
        usage gpu 10 by:counter epoch:1
        usage gpu 15 by:counter epoch:2
        usage gpu 17 by:counter epoch:3
        usage gpu 17 by:counter epoch:3
        usage gpu 17 by:counter epoch:9 as:1000
        usage gpu 7 by:counter epoch:4
        -- committed and returned since the read
        usage gpu 12 by:counter epoch:5 then:8
        usage gpu 9 by:counter epoch:6 then:12
        usage gpu/acme/x 9 by:counter epoch:6 then:12
        pass 61m
        usage gpu 10 by:counter epoch:7 read:-1h
        usage gpu 10 by:counter epoch:8 read:-3601s",
        expect![[r#"
            limit gpu 100
                r2: limit version 1
            limit gpu/acme 50
                r3: limit version 1
            reserve gpu/acme=10 id:1 by:w1
                r4: reserved R1 T1 gpu/acme=10 (90/40 left) for 1m of at most 24h
            commit R1
                r5: C1 took gpu/acme=10
            reserve gpu/acme=5 id:2 by:w1
                r6: reserved R2 T2 gpu/acme=5 (85/35 left) for 1m of at most 24h
            -- what is in flight may be there already
            usage gpu 10 by:counter epoch:1
                r7: 10 seen, 10 committed then, 0 explained, drift 0, 0 in a row
            usage gpu 15 by:counter epoch:2
                r8: 15 seen, 10 committed then, 5 explained, drift 0, 0 in a row
            usage gpu 17 by:counter epoch:3
                r9: 17 seen, 10 committed then, 5 explained, drift 2, 1 in a row
            usage gpu 17 by:counter epoch:3
                r10: StaleReport last epoch 3, 0s old
            usage gpu 17 by:counter epoch:9 as:1000
                r11: InvalidArgument asOfRevision: lies ahead of the log: take all three from one read
            usage gpu 7 by:counter epoch:4
                r12: 7 seen, 10 committed then, 0 explained, drift -3, 1 in a row
            -- committed and returned since the read
            usage gpu 12 by:counter epoch:5 then:8
                r13: 12 seen, 8 committed then, 4 explained, drift 0, 0 in a row
            usage gpu 9 by:counter epoch:6 then:12
                r14: 9 seen, 12 committed then, 2 explained, drift -1, 1 in a row
            usage gpu/acme/x 9 by:counter epoch:6 then:12
                r15: NotFound no such node
            pass 61m
                (1 due ended)
            usage gpu 10 by:counter epoch:7 read:-1h
                r17: 10 seen, 10 committed then, 0 explained, drift 0, 0 in a row
            usage gpu 10 by:counter epoch:8 read:-3601s
                r18: StaleReport last epoch 7, 3601s old
        "#]],
    );
}

#[test]
fn compensation_waits_for_two_reports_and_acts_once() {
    check_quotas(
        "
        limit gpu 100
        reserve gpu=10 id:1 by:w1
        commit R1
        usage gpu 14 by:counter epoch:1
        reconcile gpu by:counter epoch:1
        usage gpu 13 by:counter epoch:2
        reconcile gpu by:counter epoch:1
        reconcile gpu by:counter epoch:2 dry
        events
        reconcile gpu by:counter epoch:2 id:9
        reconcile gpu by:counter epoch:2 id:9
        reconcile gpu by:counter epoch:2
        book gpu
        -- a report that rests on a read from before is explained by it
        usage gpu 13 by:other epoch:1 then:10
        usage gpu 9 by:counter epoch:3
        reconcile gpu by:counter epoch:3 at-once
        book gpu
        return C1 gpu=10 by:w1
        return C1 gpu=7 by:w1
        return C1 gpu=6 by:w1
        book gpu",
        expect![[r#"
            limit gpu 100
                r2: limit version 1
            reserve gpu=10 id:1 by:w1
                r3: reserved R1 T1 gpu=10 (90 left) for 1m of at most 24h
            commit R1
                r4: C1 took gpu=10
            usage gpu 14 by:counter epoch:1
                r5: 14 seen, 10 committed then, 0 explained, drift 4, 1 in a row
            reconcile gpu by:counter epoch:1
                r6: reconciled by 0 waits for another report
            usage gpu 13 by:counter epoch:2
                r7: 13 seen, 10 committed then, 0 explained, drift 3, 2 in a row
            reconcile gpu by:counter epoch:1
                r8: StaleReport last epoch 2, 0s old
            reconcile gpu by:counter epoch:2 dry
                r9: reconciled by 3 dry
            reconcile gpu by:counter epoch:2 id:9
                r10: reconciled by 3 C2
                * r10 quota/default/gpu counter: reconciled by report 2 of counter [gpu 10>13+0]
            reconcile gpu by:counter epoch:2 id:9
                r11 as r10: reconciled by 3 C2
            reconcile gpu by:counter epoch:2
                r12: reconciled by 0 already
            book gpu
                13 used, 0 reserved of 100, 87 available
            -- a report that rests on a read from before is explained by it
            usage gpu 13 by:other epoch:1 then:10
                r13: 13 seen, 10 committed then, 3 explained, drift 0, 0 in a row
                * r13 quota/default/gpu other: report 1, drift 0
            usage gpu 9 by:counter epoch:3
                r14: 9 seen, 13 committed then, 0 explained, drift -4, 1 in a row
                * r14 quota/default/gpu counter: report 3, drift -4
            reconcile gpu by:counter epoch:3 at-once
                r15: reconciled by -4
                * r15 quota/default/gpu counter: reconciled by report 3 of counter [gpu 13>10+0]
                * r15 quota/default/gpu w1: reconciled by report 3 of counter [gpu 10>9+0]
            book gpu
                9 used, 0 reserved of 100, 91 available
            return C1 gpu=10 by:w1
                r16: ExceedsReservation gpu of w1 has 9, 10 asked
            return C1 gpu=7 by:w1
                r17: returned 7 of C1, 2 left
                * r17 quota/default/gpu w1: returned of C1 [gpu 9>2+0]
            return C1 gpu=6 by:w1
                r18: ExceedsReservation gpu of w1 has 2, 6 asked
            book gpu
                2 used, 0 reserved of 100, 98 available
        "#]],
    );
}

#[test]
fn two_reporters_do_not_compensate_twice() {
    check_quotas(
        "
        limit gpu 100
        usage gpu 4 by:one epoch:1
        usage gpu 4 by:two epoch:1
        reconcile gpu by:one epoch:1 at-once
        reconcile gpu by:two epoch:1 at-once
        book gpu",
        expect![[r#"
            limit gpu 100
                r2: limit version 1
            usage gpu 4 by:one epoch:1
                r3: 4 seen, 0 committed then, 0 explained, drift 4, 1 in a row
            usage gpu 4 by:two epoch:1
                r4: 4 seen, 0 committed then, 0 explained, drift 4, 1 in a row
            reconcile gpu by:one epoch:1 at-once
                r5: reconciled by 4 C1
            reconcile gpu by:two epoch:1 at-once
                r6: reconciled by 0
            book gpu
                4 used, 0 reserved of 100, 96 available
        "#]],
    );
}

#[test]
fn what_is_real_may_exceed_the_limit_and_shows_as_debt() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 5
        usage gpu/acme 20 by:counter epoch:1
        reconcile gpu/acme by:counter epoch:1 at-once
        book gpu/acme
        book gpu
        reserve gpu=1 id:1
        return C1 gpu/acme=15 by:counter
        reserve gpu=1 id:2",
        expect![[r#"
            limit gpu 10
                r2: limit version 1
            limit gpu/acme 5
                r3: limit version 1
            usage gpu/acme 20 by:counter epoch:1
                r4: 20 seen, 0 committed then, 0 explained, drift 20, 1 in a row
            reconcile gpu/acme by:counter epoch:1 at-once
                r5: reconciled by 20 C1
            book gpu/acme
                20 used, 0 reserved of 5, 0 available, debt 15
            book gpu
                20 used, 0 reserved of 10, 0 available, debt 10
            reserve gpu=1 id:1
                r6: QuotaExhausted [gpu v1 limit 10: 20 used, 0 reserved, 0 of 1 pass, 11 short], retry in 1s
            return C1 gpu/acme=15 by:counter
                r7: returned 15 of C1, 5 left
            reserve gpu=1 id:2
                r8: reserved R2 T1 gpu=1 (4 left) for 1m of at most 24h
        "#]],
    );
}
