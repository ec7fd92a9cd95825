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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}
