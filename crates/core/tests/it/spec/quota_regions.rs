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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}
