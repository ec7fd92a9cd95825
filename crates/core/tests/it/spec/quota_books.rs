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
        expect![[r#""#]],
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
        pass 1h
        usage gpu 10 by:counter epoch:7 read:-1h
        usage gpu 10 by:counter epoch:8 read:-3601s",
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}
