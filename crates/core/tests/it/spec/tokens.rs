//! Tokens rise, whatever happens (S2, section 4).

use super::check;
use expect_test::expect;

#[test]
fn over_release_expiry_and_an_idle_record_that_is_gone() {
    check(
        "
        acquire a id:1 ttl:5s
        release a #1
        pass 10m
        acquire a id:2 ttl:5s
        pass 10m
        snapshot
        acquire a id:3 ttl:5s",
        expect![[r#"
            acquire a id:1 ttl:5s
                r1: granted a T1 for 5s
            release a #1
                r2: released
            pass 10m
            acquire a id:2 ttl:5s
                r3: granted a T2 for 5s
            pass 10m
                (1 due ended)
            snapshot
            acquire a id:3 ttl:5s
                r5: granted a T3 for 5s
        "#]],
    );
}

#[test]
fn over_leaders_with_older_clocks() {
    check(
        "
        acquire a id:1
        lead n2 clock:-24h
        acquire b id:2
        acquire-all c,d id:3
        release a #1
        acquire a id:4
        lead n3 clock:+48h
        acquire e id:5
        lead n4 clock:-48h
        acquire f id:6",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            lead n2 clock:-24h
            acquire b id:2
                r2: granted b T2 for 30s
            acquire-all c,d id:3
                r3: granted c T3, d T4 for 30s
            release a #1
                r4: released
            acquire a id:4
                r5: granted a T5 for 30s
            lead n3 clock:+48h
            acquire e id:5
                r6: granted e T6 for 30s
            lead n4 clock:-48h
            acquire f id:6
                r7: granted f T7 for 30s
        "#]],
    );
}

#[test]
fn over_a_snapshot_and_a_takeover() {
    check(
        "
        acquire a id:1
        snapshot
        lead n2 clock:-24h
        snapshot
        acquire b id:2",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            snapshot
            lead n2 clock:-24h
            snapshot
            acquire b id:2
                r2: granted b T2 for 30s
        "#]],
    );
}

#[test]
fn over_a_restore_and_a_floor() {
    check(
        "
        acquire a id:1
        restore floor:+5m pause:0s
        lead n2 clock:-24h
        acquire b id:2
        token-floor +1h id:8
        acquire c id:3
        token-floor +1h id:8
        token-floor +2h id:8
        -- it can only rise
        token-floor -24h id:7
        acquire d id:4",
        expect![[r#"
            acquire a id:1
                r1: granted a T1 for 30s
            restore floor:+5m pause:0s
            lead n2 clock:-24h
            acquire b id:2
                r2: granted b T2 for 30s
            token-floor +1h id:8
                r3: floor set
            acquire c id:3
                r4: granted c T3 for 30s
            token-floor +1h id:8
                r5 as r3: floor set
            token-floor +2h id:8
                r6: RequestIdReused
            -- it can only rise
            token-floor -24h id:7
                r7: floor set
            acquire d id:4
                r8: granted d T4 for 30s
        "#]],
    );
}

#[test]
fn a_floor_far_ahead_is_refused() {
    check(
        "
        events
        token-floor +10000h id:8
        token-floor +max id:7
        token-floor +max id:7
        token-floor +8784h id:6
        acquire a id:1",
        expect![[r#"
            token-floor +10000h id:8
                r1: InvalidArgument floor: must not be above 1798848000000000, a year ahead of the leader's clock
            token-floor +max id:7
                r2: InvalidArgument floor: must not be above 1798848000000000, a year ahead of the leader's clock
            token-floor +max id:7
                r3 as r2: InvalidArgument floor: must not be above 1798848000000000, a year ahead of the leader's clock
            token-floor +8784h id:6
                r4: floor set
                * r4 admin: token floor set
            acquire a id:1
                r5: granted a T1 for 30s
                * r5 lock/default/a 1: granted T1
        "#]],
    );
}
