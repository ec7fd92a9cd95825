//! The bounds of the reply memory: full, and how late a copy may come (sections 6 and 13).

use super::check;
use expect_test::expect;

#[test]
fn full_memory_refuses_and_never_forgets_early() {
    check(
        "
        namespace default v:1 records:2
        acquire a id:1
        acquire a id:2
        acquire b id:3
        acquire-all b id:4
        abandon id:5
        force-release a T1 id:9
        -- what is known goes on
        acquire a id:1
        acquire a id:2
        renew a #1
        release a #1
        -- neither refusal was remembered: with room they may be granted
        pass 90s
        acquire b id:3",
        expect![[r#"
            namespace default v:1 records:2
                r1: version 2
            acquire a id:1
                r2: granted a T1 for 30s
            acquire a id:2
                r3: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
            acquire b id:3
                r4: Overloaded replyMemory.records is 2, retry in 1s
            acquire-all b id:4
                r5: Overloaded replyMemory.records is 2, retry in 1s
            abandon id:5
                r6: Overloaded replyMemory.records is 2, retry in 1s
            force-release a T1 id:9
                r7: Overloaded replyMemory.records is 2, retry in 1s
            -- what is known goes on
            acquire a id:1
                r8 as r2: granted a T1 for 30s
            acquire a id:2
                r9 as r3: Locked [a: 1 T1 held 0s, 30s left, 0 waiting], retry in 30s
            renew a #1
                r10: renewed T1 for 30s
            release a #1
                r11: released
            -- neither refusal was remembered: with room they may be granted
            pass 90s
            acquire b id:3
                r12: granted b T2 for 30s
        "#]],
    );
}

#[test]
fn abandon_works_with_full_memory_on_what_is_known() {
    check(
        "
        namespace default v:1 records:1
        acquire a id:1
        abandon id:1",
        expect![[r#"
            namespace default v:1 records:1
                r1: version 2
            acquire a id:1
                r2: granted a T1 for 30s
            abandon id:1
                r3: abandoned, was granted
        "#]],
    );
}

#[test]
fn born_at_bounds_how_late_a_copy_arrives() {
    check(
        "
        pass 40s
        acquire a id:1 born:-30s
        acquire b id:2 born:-30001ms
        -- not remembered: born later it may come
        acquire b id:2
        renew a #1 born:-31s
        release a #1 born:-31s
        abandon id:1 born:-31s
        force-release a T1 id:9 born:-31s
        get a
        -- a birth ahead of the log is no birth
        acquire c id:3 born:+1ms
        acquire c id:3 born:+max",
        expect![[r#"
            pass 40s
            acquire a id:1 born:-30s
                r1: granted a T1 for 30s
            acquire b id:2 born:-30001ms
                r2: Unavailable bornAt
            -- not remembered: born later it may come
            acquire b id:2
                r3: granted b T2 for 30s
            renew a #1 born:-31s
                r4: Unavailable bornAt
            release a #1 born:-31s
                r5: Unavailable bornAt
            abandon id:1 born:-31s
                r6: Unavailable bornAt
            force-release a T1 id:9 born:-31s
                r7: Unavailable bornAt
            get a
                1 T1 held 0s, 30s left; queue []
            -- a birth ahead of the log is no birth
            acquire c id:3 born:+1ms
                r8: Unavailable bornAt
            acquire c id:3 born:+max
                r9: Unavailable bornAt
        "#]],
    );
}

#[test]
fn unknown_namespaces_are_remembered_too() {
    check(
        "
        acquire a id:1 in:shop
        namespace shop v:0
        acquire a id:1 in:shop
        acquire a id:2 in:shop",
        expect![[r#"
            acquire a id:1 in:shop
                r1: NotFound
            namespace shop v:0
                r2: version 1
            acquire a id:1 in:shop
                r3 as r1: NotFound
            acquire a id:2 in:shop
                r4: granted a T1 for 30s
        "#]],
    );
}
