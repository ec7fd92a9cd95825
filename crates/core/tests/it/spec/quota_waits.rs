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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        -- use / weight: 4, 5/3, 1
        resize R1 gpu/a=2
        -- 2, 5/3, 3
        resize R1 gpu/a=1
        resize R2 gpu/b=4
        drop R1
        drop R2",
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}
