//! Quotas: trees of limits (section 11).

use super::check_quotas;
use expect_test::expect;

#[test]
fn limits_are_put_by_version_from_the_root_down() {
    check_quotas(
        "
        limit gpu/acme 8 v:0
        limit gpu 64 v:0 id:1
        limit gpu 64 v:0 id:1
        limit gpu 32 v:0 id:1
        limit gpu 32 v:0
        limit gpu 32 v:1
        limit gpu/acme 8 v:0
        limit gpu/acme/vision 8 guaranteed:9 v:0
        limit gpu/acme/vision 8 weight:0 v:0
        limit gpu/acme/vision 8 patience:1s v:0
        limit gpu 32 guaranteed:1 v:2
        limit gpu 4503599627370495 burst:1 v:2
        limit gpu 32 v:0 in:nowhere
        book gpu
        book gpu/acme
        book gpu/other",
        expect![[r#""#]],
    );
}

#[test]
fn an_unknown_key_is_closed() {
    check_quotas(
        "
        limit gpu 64
        limit gpu/acme 8
        reserve bytes=1 id:1
        reserve gpu/acme/vision/anna=1,gpu/acme=1,gpu/acme/vision=2 id:2 wait:5s
        reserve gpu/acme=0 id:3
        reserve gpu/acme=4503599627370496 id:4",
        expect![[r#""#]],
    );
}

#[test]
fn after_a_cut_only_what_does_not_worsen_passes() {
    check_quotas(
        "
        limit gpu 64
        limit gpu/acme 32
        reserve gpu/acme=10 id:1
        reserve gpu/acme=10 id:2
        commit R2
        limit gpu/acme 12 v:1
        book gpu/acme
        book gpu
        reserve gpu/acme=1 id:3
        resize R1 gpu/acme=11
        resize R1 gpu/acme=9
        -- what is reserved can be committed all the same
        commit R1 gpu/acme=8
        book gpu/acme
        return C1 gpu/acme=7 by:2
        book gpu/acme
        reserve gpu/acme=1 id:4
        reserve gpu/acme=2 id:5",
        expect![[r#""#]],
    );
}

#[test]
fn burst_is_on_top_of_the_limit() {
    check_quotas(
        "
        limit gpu 10 burst:2
        reserve gpu=11 id:1
        reserve gpu=2 id:2
        reserve gpu=1 id:3
        book gpu",
        expect![[r#""#]],
    );
}

#[test]
fn a_guarantee_is_kept_from_all_others() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:4
        limit gpu/bolt 10
        limit gpu/acme/vision 10 guaranteed:3
        limit gpu/acme/speech 10
        reserve gpu/bolt=7 id:1
        reserve gpu/bolt=6 id:2
        book gpu/bolt
        book gpu/acme
        -- inside the guarantee what is kept for one child is kept from the other
        reserve gpu/acme/speech=2 id:3
        reserve gpu/acme/speech=1 id:4
        reserve gpu/acme/vision=3 id:5
        book gpu",
        expect![[r#""#]],
    );
}

#[test]
fn guarantees_do_not_exceed_what_is_above_except_after_a_cut() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:6
        limit gpu/bolt 10 guaranteed:5
        limit gpu/bolt 10 guaranteed:4
        limit gpu/acme/vision 10 guaranteed:7
        limit gpu/acme/vision 10 guaranteed:5
        limit gpu 5 v:1
        book gpu/acme
        book gpu/bolt
        book gpu/acme/vision
        -- raising is refused while the guarantees are cut, lowering is not
        limit gpu/bolt 10 guaranteed:5 v:1
        limit gpu/bolt 10 guaranteed:3 v:1
        book gpu/acme
        snapshot
        limit gpu 20 v:2
        book gpu/acme
        book gpu/acme/vision",
        expect![[r#""#]],
    );
}

#[test]
fn one_owner_reserves_no_more_than_its_bound() {
    check_quotas(
        "
        limit gpu 10 owner:4
        limit gpu/acme 10
        reserve gpu/acme=3 by:w1 id:1
        reserve gpu/acme=2 by:w1 id:2 wait:5s
        reserve gpu/acme=4 by:w2 id:3
        -- committed use does not count against it
        commit R1
        reserve gpu/acme=2 by:w1 id:4
        resize R4 gpu/acme=4",
        expect![[r#""#]],
    );
}

#[test]
fn what_is_used_is_not_removed() {
    check_quotas(
        "
        limit gpu 10
        limit gpu/acme 10 guaranteed:5
        remove gpu v:1
        reserve gpu/acme=1 id:1
        remove gpu/acme v:1
        commit R1
        remove gpu/acme v:1
        return C1 gpu/acme=1 by:1
        remove gpu/acme v:2
        remove gpu/acme v:1
        remove gpu/acme v:1
        limit gpu/bolt 10 guaranteed:10
        snapshot
        limit gpu/acme 3
        book gpu/acme",
        expect![[r#""#]],
    );
}
