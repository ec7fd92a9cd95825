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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}
