//! Holds: section 10.

use super::check_faces;
use expect_test::expect;

#[test]
fn a_hold_is_the_owners_whoever_asks() {
    check_faces(
        "
        events
        hold shoe id:1 by:anna ttl:10m
        -- another tab, another instance
        hold shoe id:2 by:anna ttl:10m
        hold shoe id:3 by:bert ttl:10m
        pass 1m
        hold shoe id:2 by:anna ttl:10m
        hold shoe id:3 by:bert ttl:10m
        renew-hold shoe by:anna fence:T1 ttl:10m id:4
        renew-hold shoe by:anna fence:T1 ttl:10m id:4
        renew-hold shoe by:bert ttl:10m id:5
        release-hold shoe by:bert id:6
        release-hold shoe by:anna id:7
        release-hold shoe by:anna id:7
        release-hold shoe by:anna id:8
        -- all requests that were answered with it have ended with it
        hold shoe id:1 by:anna ttl:10m
        hold shoe id:2 by:anna ttl:10m
        get shoe family:hold",
        expect![[r#"
            hold shoe id:1 by:anna ttl:10m
                r2: granted shoe T1 for 10m to anna
                * r2 hold/default/shoe anna: granted T1
            -- another tab, another instance
            hold shoe id:2 by:anna ttl:10m
                r3: yours already: granted shoe T1 for 10m to anna
            hold shoe id:3 by:bert ttl:10m
                r4: Taken [shoe: anna T1 held 0s, 10m left, 0 waiting], retry in 10m
            pass 1m
            hold shoe id:2 by:anna ttl:10m
                r5 as r3: yours already: granted shoe T1 for 9m to anna
            hold shoe id:3 by:bert ttl:10m
                r6 as r4: Taken [shoe: anna T1 held 1m, 9m left, 0 waiting], retry in 9m
            renew-hold shoe by:anna fence:T1 ttl:10m id:4
                r7: renewed T1 for 10m
            renew-hold shoe by:anna fence:T1 ttl:10m id:4
                r8 as r7: renewed T1 for 10m
            renew-hold shoe by:bert ttl:10m id:5
                r9: NotHolder
            release-hold shoe by:bert id:6
                r10: no such hold
            release-hold shoe by:anna id:7
                r11: hold released
                * r11 hold/default/shoe anna: ended T1 released held 1m
            release-hold shoe by:anna id:7
                r12 as r11: hold released
            release-hold shoe by:anna id:8
                r13: no such hold
            -- all requests that were answered with it have ended with it
            hold shoe id:1 by:anna ttl:10m
                r14 as r11: LeaseEnded released T1
            hold shoe id:2 by:anna ttl:10m
                r15 as r11: LeaseEnded released T1
            get shoe family:hold
                free; queue []
        "#]],
    );
}

#[test]
fn another_fence_is_another_hold() {
    check_faces(
        "
        hold shoe id:1 by:anna ttl:10s
        pass 10s
        hold shoe id:2 by:anna ttl:10s
        -- late copies that name the first one
        release-hold shoe by:anna fence:T1 id:3
        renew-hold shoe by:anna fence:T1 id:4
        begin shoe by:anna fence:T1 id:5
        get shoe family:hold
        release-hold shoe by:anna fence:T2 id:6
        force-drop shoe T2 id:9
        hold shoe id:7 by:bert
        force-drop shoe T3 id:10
        get shoe family:hold",
        expect![[r#"
            hold shoe id:1 by:anna ttl:10s
                r2: granted shoe T1 for 10s to anna
            pass 10s
                (1 due ended)
            hold shoe id:2 by:anna ttl:10s
                r4: granted shoe T2 for 10s to anna
            -- late copies that name the first one
            release-hold shoe by:anna fence:T1 id:3
                r5: NotHolder
            renew-hold shoe by:anna fence:T1 id:4
                r6: NotHolder
            begin shoe by:anna fence:T1 id:5
                r7: NotHolder
            get shoe family:hold
                anna T2 held 0s, 10s left; queue []
            release-hold shoe by:anna fence:T2 id:6
                r8: hold released
            force-drop shoe T2 id:9
                r9: NotHolder
            hold shoe id:7 by:bert
                r10: granted shoe T3 for 10m to bert
            force-drop shoe T3 id:10
                r11: force-released T3
            get shoe family:hold
                free; queue []
        "#]],
    );
}

#[test]
fn payment_has_a_deadline_of_its_own() {
    check_faces(
        "
        hold shoe id:1 by:anna ttl:10m hold:30m
        events
        begin shoe by:anna fence:T1 ttl:1h id:2
        begin shoe by:anna fence:T1 ttl:1h id:2
        pass 1s
        begin shoe by:anna ttl:1h id:3
        renew-hold shoe by:anna fence:T1 id:4
        -- only by its fence
        release-hold shoe by:anna id:5
        hold boot id:6 by:anna replaces:shoe
        hold boot id:7 by:anna replaces:shoe=T1
        get shoe family:hold
        hold shoe id:8 by:anna
        begin shoe by:anna ttl:1m id:9
        begin shoe by:anna ttl:2h id:10
        get shoe family:hold
        pass 10m
        get shoe family:hold",
        expect![[r#"
            hold shoe id:1 by:anna ttl:10m hold:30m
                r2: granted shoe T1 for 10m of at most 30m to anna
            begin shoe by:anna fence:T1 ttl:1h id:2
                r3: renewed T1 for 1h of at most 1h, begun
                * r3 hold/default/shoe anna: begun T1
            begin shoe by:anna fence:T1 ttl:1h id:2
                r4 as r3: renewed T1 for 1h of at most 1h, begun
            pass 1s
            begin shoe by:anna ttl:1h id:3
                r5: renewed T1 for 3599s of at most 3599s, begun
            renew-hold shoe by:anna fence:T1 id:4
                r6: MaxHoldReached T1 ends in 3599s
                * r6 hold/default/shoe anna: refused MaxHoldReached
            -- only by its fence
            release-hold shoe by:anna id:5
                r7: NotHolder
            hold boot id:6 by:anna replaces:shoe
                r8: NotHolder
            hold boot id:7 by:anna replaces:shoe=T1
                r9: granted boot T2 for 10m to anna
                * r9 hold/default/shoe anna: ended T1 replaced held 1s
                * r9 hold/default/boot anna: granted T2
            get shoe family:hold
                free; queue []
            hold shoe id:8 by:anna
                r10: granted shoe T3 for 10m to anna
                * r10 hold/default/shoe anna: granted T3
            begin shoe by:anna ttl:1m id:9
                r11: renewed T3 for 10m of at most 10m, begun
                * r11 hold/default/shoe anna: begun T3
            begin shoe by:anna ttl:2h id:10
                r12: InvalidArgument ttl: must be 1000 to 3600000 (durations in ms), is 7200000
            get shoe family:hold
                anna T3 held 0s, 10m left, begun; queue []
            pass 10m
                (2 due ended)
                * r13 hold/default/boot anna: ended T2 expired held 10m
                * r14 hold/default/shoe anna: ended T3 expired held 10m
            get shoe family:hold
                free; queue []
        "#]],
    );
}

#[test]
fn all_or_none_and_one_for_another() {
    check_faces(
        "
        hold a id:1 by:bert
        hold b,c id:2 by:anna
        hold b,c id:3 by:anna
        hold b id:4 by:anna
        hold a,d id:5 by:anna replaces:b=T2
        -- refused, it has left the old one
        get b family:hold
        get d family:hold
        hold d,e id:6 by:anna replaces:b=T2,c=T3
        get b family:hold
        get d family:hold
        -- what is gone is not missed; another fence of the same owner is
        hold f id:7 by:anna replaces:b=T2
        hold g id:8 by:anna replaces:f=T1
        hold g id:9 by:anna replaces:g
        hold g,g id:10 by:anna
        -- one of several may end by itself
        release-hold d by:anna id:11
        get e family:hold
        hold d id:12 by:anna",
        expect![[r#"
            hold a id:1 by:bert
                r2: granted a T1 for 10m to bert
            hold b,c id:2 by:anna
                r3: granted b T2, c T3 for 10m to anna
            hold b,c id:3 by:anna
                r4: yours already: granted b T2, c T3 for 10m to anna
            hold b id:4 by:anna
                r5: Taken [b: anna T2 held 0s, 10m left, 0 waiting], retry in 10m
            hold a,d id:5 by:anna replaces:b=T2
                r6: Taken [a: bert T1 held 0s, 10m left, 0 waiting], retry in 10m
            -- refused, it has left the old one
            get b family:hold
                anna T2 held 0s, 10m left; queue []
            get d family:hold
                free; queue []
            hold d,e id:6 by:anna replaces:b=T2,c=T3
                r7: granted d T4, e T5 for 10m to anna
            get b family:hold
                free; queue []
            get d family:hold
                anna T4 held 0s, 10m left; queue []
            -- what is gone is not missed; another fence of the same owner is
            hold f id:7 by:anna replaces:b=T2
                r8: granted f T6 for 10m to anna
            hold g id:8 by:anna replaces:f=T1
                r9: NotHolder
            hold g id:9 by:anna replaces:g
                r10: InvalidArgument replaces: names "g", which is to be held: renew it instead
            hold g,g id:10 by:anna
                r11: InvalidArgument resources: names "g" twice
            -- one of several may end by itself
            release-hold d by:anna id:11
                r12: hold released
            get e family:hold
                anna T5 held 0s, 10m left; queue []
            hold d id:12 by:anna
                r13: granted d T7 for 10m to anna
        "#]],
    );
}

#[test]
fn nobody_hoards() {
    check_faces(
        "
        hold-policy shop v:0 perOwner:2 cooldown:1m maxHold:15m
        hold a,b id:1 by:anna ttl:10m in:shop
        hold c id:2 by:anna in:shop
        -- one for another keeps the count
        hold c id:3 by:anna replaces:a=T1 in:shop
        -- and the one that went cools down for anna alone
        release-hold b by:anna in:shop id:4
        hold a id:5 by:anna in:shop
        hold a id:5 by:anna in:shop
        hold a id:6 by:bert in:shop
        release-hold a by:bert in:shop id:7
        pass 59s
        hold a id:8 by:anna in:shop
        pass 1s
        hold a id:9 by:anna in:shop
        -- what was paid for does not cool down
        begin a by:anna ttl:1m in:shop id:10
        release-hold a by:anna fence:T5 in:shop id:11
        hold a id:12 by:anna ttl:10m in:shop
        pass 9m
        renew-hold a by:anna ttl:10m in:shop id:13
        snapshot
        pass 6m
        get a family:hold in:shop
        hold a id:14 by:anna in:shop",
        expect![[r#"
            hold-policy shop v:0 perOwner:2 cooldown:1m maxHold:15m
                r2: version 1
            hold a,b id:1 by:anna ttl:10m in:shop
                r3: granted a T1, b T2 for 10m of at most 15m to anna
            hold c id:2 by:anna in:shop
                r4: LimitReached holdsPerOwner is 2, retry in 1s
            -- one for another keeps the count
            hold c id:3 by:anna replaces:a=T1 in:shop
                r5: granted c T3 for 10m of at most 15m to anna
            -- and the one that went cools down for anna alone
            release-hold b by:anna in:shop id:4
                r6: hold released
            hold a id:5 by:anna in:shop
                r7: LimitReached holdCooldown is 60000, retry in 1m
            hold a id:5 by:anna in:shop
                r8 as r7: LimitReached holdCooldown is 60000, retry in 1m
            hold a id:6 by:bert in:shop
                r9: granted a T4 for 10m of at most 15m to bert
            release-hold a by:bert in:shop id:7
                r10: hold released
            pass 59s
            hold a id:8 by:anna in:shop
                r11: LimitReached holdCooldown is 60000, retry in 1s
            pass 1s
                (3 due ended)
            hold a id:9 by:anna in:shop
                r15: granted a T5 for 10m of at most 15m to anna
            -- what was paid for does not cool down
            begin a by:anna ttl:1m in:shop id:10
                r16: renewed T5 for 10m of at most 10m, begun
            release-hold a by:anna fence:T5 in:shop id:11
                r17: hold released
            hold a id:12 by:anna ttl:10m in:shop
                r18: granted a T6 for 10m of at most 15m to anna
            pass 9m
                (1 due ended)
            renew-hold a by:anna ttl:10m in:shop id:13
                r20: renewed T6 for 6m of at most 6m, clipped
            snapshot
            pass 6m
                (2 due ended)
            get a family:hold in:shop
                free; queue []
            hold a id:14 by:anna in:shop
                r23: LimitReached holdCooldown is 60000, retry in 1m
        "#]],
    );
}

#[test]
fn a_hold_survives_a_snapshot_with_all_that_it_answers() {
    check_faces(
        "
        hold a id:1 by:anna ttl:10s
        hold a id:2 by:anna ttl:10s
        begin a by:anna id:3 ttl:20s
        snapshot
        hold a id:2 by:anna ttl:10s
        begin a by:anna id:3 ttl:20s
        pass 20s
        hold a id:2 by:anna ttl:10s
        abandon id:2 family:hold
        hold a id:4 by:anna ttl:10s
        hold a id:5 by:anna ttl:10s
        -- who abandons an answer that was no grant ends nothing
        abandon id:5 family:hold
        get a family:hold
        abandon id:4 family:hold
        get a family:hold",
        expect![[r#"
            hold a id:1 by:anna ttl:10s
                r2: granted a T1 for 10s to anna
            hold a id:2 by:anna ttl:10s
                r3: yours already: granted a T1 for 10s to anna
            begin a by:anna id:3 ttl:20s
                r4: renewed T1 for 20s of at most 20s, begun
            snapshot
            hold a id:2 by:anna ttl:10s
                r5 as r3: yours already: granted a T1 for 20s of at most 20s to anna, begun
            begin a by:anna id:3 ttl:20s
                r6 as r4: renewed T1 for 20s of at most 20s, begun
            pass 20s
                (1 due ended)
            hold a id:2 by:anna ttl:10s
                r8 as r7: LeaseEnded expired T1
            abandon id:2 family:hold
                r9: abandoned, was ended: expired
            hold a id:4 by:anna ttl:10s
                r10: granted a T2 for 10s to anna
            hold a id:5 by:anna ttl:10s
                r11: yours already: granted a T2 for 10s to anna
            -- who abandons an answer that was no grant ends nothing
            abandon id:5 family:hold
                r12: abandoned, was done
            get a family:hold
                anna T2 held 0s, 10s left; queue []
            abandon id:4 family:hold
                r13: abandoned, was granted
            get a family:hold
                free; queue []
        "#]],
    );
}

#[test]
fn what_is_left_of_a_hold_is_its_owners_too() {
    check_faces(
        "
        hold a,b id:1 by:anna ttl:10m
        hold a,b id:2 by:anna ttl:10m
        release-hold a by:anna fence:T1 id:3
        -- what was answered with both has ended with the first
        hold a,b id:2 by:anna ttl:10m
        hold b id:4 by:anna ttl:10m
        hold b id:4 by:anna ttl:10m
        snapshot
        hold b id:4 by:anna ttl:10m
        release-hold b by:anna id:5
        hold b id:4 by:anna ttl:10m",
        expect![[r#"
            hold a,b id:1 by:anna ttl:10m
                r2: granted a T1, b T2 for 10m to anna
            hold a,b id:2 by:anna ttl:10m
                r3: yours already: granted a T1, b T2 for 10m to anna
            release-hold a by:anna fence:T1 id:3
                r4: hold released
            -- what was answered with both has ended with the first
            hold a,b id:2 by:anna ttl:10m
                r5 as r4: LeaseEnded released T1
            hold b id:4 by:anna ttl:10m
                r6: yours already: granted b T2 for 10m to anna
            hold b id:4 by:anna ttl:10m
                r7 as r6: yours already: granted b T2 for 10m to anna
            snapshot
            hold b id:4 by:anna ttl:10m
                r8 as r6: yours already: granted b T2 for 10m to anna
            release-hold b by:anna id:5
                r9: hold released
            hold b id:4 by:anna ttl:10m
                r10 as r9: LeaseEnded released T2
        "#]],
    );
}

/// Whoever watches one of them is told, whichever the shop has named.
#[test]
fn a_payment_begins_for_all_that_is_still_held() {
    check_faces(
        "
        hold a,b,c id:1 by:anna ttl:10m
        events
        release-hold b by:anna id:2
        begin c by:anna ttl:1h id:3
        begin a by:anna ttl:1h id:4",
        expect![[r#"
            hold a,b,c id:1 by:anna ttl:10m
                r2: granted a T1, b T2, c T3 for 10m to anna
            release-hold b by:anna id:2
                r3: hold released
                * r3 hold/default/b anna: ended T2 released held 0s
            begin c by:anna ttl:1h id:3
                r4: renewed T3 for 1h of at most 1h, begun
                * r4 hold/default/a anna: begun T1
                * r4 hold/default/c anna: begun T3
            begin a by:anna ttl:1h id:4
                r5: renewed T1 for 1h of at most 1h, begun
        "#]],
    );
}
