//! Elections: section 9.

use super::{check, check_faces};
use expect_test::expect;

#[test]
fn candidates_lead_in_order() {
    check_faces(
        "
        events
        campaign e id:1 by:c1 value:one ttl:10s
        campaign e id:2 by:c2 value:two ttl:10s
        campaign e id:2b by:c2 value:two ttl:10s wait:1m
        campaign e id:3 by:c3 value:three ttl:10s wait:1m
        get e family:election
        -- another family does not see it
        get e
        resign-term e #1
        get e family:election
        -- the answer to the first is what became of it
        campaign e id:1 by:c1 value:one ttl:10s
        pass 10s
        get e family:election",
        expect![[r#"
            campaign e id:1 by:c1 value:one ttl:10s
                r2: leads: granted e T1 for 10s, says "one" in version 2
                * r2 election/default/e c1: granted T1
            campaign e id:2 by:c2 value:two ttl:10s
                r3: Locked [e: c1 T1 held 0s, 10s left, 0 waiting], retry in 10s
            campaign e id:2b by:c2 value:two ttl:10s wait:1m
                r4: waiting at 1, 1m left
                * r4 election/default/e c2: queued
            campaign e id:3 by:c3 value:three ttl:10s wait:1m
                r5: waiting at 2, 1m left
                * r5 election/default/e c3: queued
            get e family:election
                c1 T1 held 0s, 10s left, says "one" in version 2; queue ["c2", "c3"]
            -- another family does not see it
            get e
                free; queue []
            resign-term e #1
                r6: released
                ~ id:2b r6: leads: granted e T2 for 10s, says "two" in version 6
                * r6 election/default/e c1: ended T1 released held 0s
                * r6 election/default/e c2: granted T2 waited 0s
            get e family:election
                c2 T2 held 0s, 10s left, says "two" in version 6; queue ["c3"]
            -- the answer to the first is what became of it
            campaign e id:1 by:c1 value:one ttl:10s
                r7 as r6: LeaseEnded released T1
            pass 10s
                (1 due ended)
                ~ id:3 r8: leads: granted e T3 for 10s, says "three" in version 8
                * r8 election/default/e c2: ended T2 expired held 10s
                * r8 election/default/e c3: granted T3 waited 10s
            get e family:election
                c3 T3 held 0s, 10s left, says "three" in version 8; queue []
        "#]],
    );
}

#[test]
fn a_leader_says_something_and_says_it_once() {
    check_faces(
        "
        campaign e id:1 by:c1 value:one ttl:10s
        events
        proclaim e #1 value:two id:2
        proclaim e #1 value:two id:2
        proclaim e #1 value:else id:2
        proclaim e #1 value:three v:2 id:3
        get e family:election
        proclaim e #1 value:four v:5 id:4
        proclaim e #1 value:four v:2 id:5
        proclaim e #77 value:mine id:6
        pass 10s
        proclaim e #1 value:late id:7
        proclaim e #1 value:late id:7",
        expect![[r#"
            campaign e id:1 by:c1 value:one ttl:10s
                r2: leads: granted e T1 for 10s, says "one" in version 2
            proclaim e #1 value:two id:2
                r3: proclaimed as version 3
                * r3 election/default/e c1: T1 proclaimed version 3
            proclaim e #1 value:two id:2
                r4 as r3: proclaimed as version 3
            proclaim e #1 value:else id:2
                r5: RequestIdReused
            proclaim e #1 value:three v:2 id:3
                r6: VersionConflict version is 3
            get e family:election
                c1 T1 held 0s, 10s left, says "two" in version 3; queue []
            proclaim e #1 value:four v:5 id:4
                r7: VersionConflict version is 3
            proclaim e #1 value:four v:2 id:5
                r8: VersionConflict version is 3
            proclaim e #77 value:mine id:6
                r9: NotHolder
            pass 10s
                (1 due ended)
                * r10 election/default/e c1: ended T1 expired held 10s
            proclaim e #1 value:late id:7
                r11: LeaseEnded expired T1
            proclaim e #1 value:late id:7
                r12 as r11: LeaseEnded expired T1
        "#]],
    );
}

#[test]
fn a_hand_off_names_its_heir() {
    check_faces(
        "
        campaign e id:1 by:c1 ttl:10s
        campaign e id:2 by:c2 ttl:10s wait:1m
        campaign e id:3 by:c3 ttl:10s wait:1m
        handoff e #1 to:c9 id:4
        events
        handoff e #1 to:c3 id:5
        handoff e #1 to:c3 id:5
        get e family:election
        renew-term e #1
        campaign e id:1 by:c1 ttl:10s
        -- who has let go cannot do it again
        handoff e #1 to:c2 id:6",
        expect![[r#"
            campaign e id:1 by:c1 ttl:10s
                r2: leads: granted e T1 for 10s, says "" in version 2
            campaign e id:2 by:c2 ttl:10s wait:1m
                r3: waiting at 1, 1m left
            campaign e id:3 by:c3 ttl:10s wait:1m
                r4: waiting at 2, 1m left
            handoff e #1 to:c9 id:4
                r5: NotFound no such candidate
            handoff e #1 to:c3 id:5
                r6: handed off to T2
                ~ id:3 r6: leads: granted e T2 for 10s, says "" in version 6
                * r6 election/default/e c1: ended T1 handedOff held 0s
                * r6 election/default/e c3: granted T2 waited 0s
            handoff e #1 to:c3 id:5
                r7 as r6: handed off to T2
            get e family:election
                c3 T2 held 0s, 10s left, says "" in version 6; queue ["c2"]
            renew-term e #1
                r8: LeaseEnded handedOff T1
            campaign e id:1 by:c1 ttl:10s
                r9 as r6: LeaseEnded handedOff T1
            -- who has let go cannot do it again
            handoff e #1 to:c2 id:6
                r10: LeaseEnded handedOff T1
        "#]],
    );
}

#[test]
fn a_candidate_waits_once() {
    check_faces(
        "
        campaign e id:1 by:c1 ttl:10s
        campaign e id:2 by:c2 ttl:10s wait:1m
        campaign e id:3 by:c3 ttl:10s wait:1m
        -- the process of c2 has begun again
        campaign e id:4 by:c2 value:again ttl:10s wait:1m
        campaign e id:2 by:c2 ttl:10s wait:1m
        get e family:election
        -- the leader itself may queue for the time after
        campaign e id:5 by:c1 ttl:10s wait:1m
        get e family:election",
        expect![[r#"
            campaign e id:1 by:c1 ttl:10s
                r2: leads: granted e T1 for 10s, says "" in version 2
            campaign e id:2 by:c2 ttl:10s wait:1m
                r3: waiting at 1, 1m left
            campaign e id:3 by:c3 ttl:10s wait:1m
                r4: waiting at 2, 1m left
            -- the process of c2 has begun again
            campaign e id:4 by:c2 value:again ttl:10s wait:1m
                r5: waiting at 2, 1m left
                ~ id:2 r5: WaitTimeout replaced
            campaign e id:2 by:c2 ttl:10s wait:1m
                r6 as r5: WaitTimeout replaced
            get e family:election
                c1 T1 held 0s, 10s left, says "" in version 2; queue ["c3", "c2"]
            -- the leader itself may queue for the time after
            campaign e id:5 by:c1 ttl:10s wait:1m
                r7: waiting at 3, 1m left
            get e family:election
                c1 T1 held 0s, 10s left, says "" in version 2; queue ["c3", "c2", "c1"]
        "#]],
    );
}

#[test]
fn terms_end_like_leases() {
    check_faces(
        "
        campaign e id:1 by:c1 ttl:10s hold:15s
        pass 8s
        renew-term e #1
        pass 7s
        renew-term e #1
        campaign e id:2 by:c2 ttl:10s
        force-resign e T1 id:9
        force-resign e T2 id:10
        get e family:election
        -- locks and elections do not see each other's leases
        campaign e id:3 by:c3 ttl:10s
        renew e #3
        release e #3
        acquire e id:4
        renew-term e #4
        resign-term e #4
        abandon id:3 family:election
        abandon id:3 family:election
        get e family:election
        get e",
        expect![[r#"
            campaign e id:1 by:c1 ttl:10s hold:15s
                r2: leads: granted e T1 for 10s of at most 15s, says "" in version 2
            pass 8s
            renew-term e #1
                r3: renewed T1 for 7s of at most 7s, clipped
            pass 7s
                (1 due ended)
            renew-term e #1
                r5: LeaseEnded maxHold T1
            campaign e id:2 by:c2 ttl:10s
                r6: leads: granted e T2 for 10s, says "" in version 6
            force-resign e T1 id:9
                r7: NotHolder
            force-resign e T2 id:10
                r8: force-released T2
            get e family:election
                free; queue []
            -- locks and elections do not see each other's leases
            campaign e id:3 by:c3 ttl:10s
                r9: leads: granted e T3 for 10s, says "" in version 9
            renew e #3
                r10: NotHolder
            release e #3
                r11: not released: unknown
            acquire e id:4
                r12: granted e T4 for 30s
            renew-term e #4
                r13: NotHolder
            resign-term e #4
                r14: not released: unknown
            abandon id:3 family:election
                r15: abandoned, was granted
            abandon id:3 family:election
                r16: abandoned, was ended: abandoned
            get e family:election
                free; queue []
            get e
                4 T4 held 0s, 30s left; queue []
        "#]],
    );
}

#[test]
fn below_their_level_nothing_of_this_is_done() {
    check(
        "
        campaign e id:1 by:c1
        hold a id:2 by:o
        job j v:0
        report a by:g id:3
        abandon id:1 family:election
        raise-level 3
        campaign e id:1 by:c1",
        expect![[r#"
            campaign e id:1 by:c1
                r1: Unavailable needs level 3
            hold a id:2 by:o
                r2: Unavailable needs level 3
            job j v:0
                r3: Unavailable needs level 3
            report a by:g id:3
                r4: Unavailable needs level 3
            abandon id:1 family:election
                r5: Unavailable needs level 3
            raise-level 3
                r6: level 3
            campaign e id:1 by:c1
                r7: leads: granted e T1 for 30s, says "" in version 7
        "#]],
    );
}

#[test]
fn elections_survive_a_snapshot() {
    check_faces(
        "
        campaign e id:1 by:c1 value:one ttl:10s
        campaign e id:2 by:c2 value:two ttl:10s wait:1m
        proclaim e #1 value:more id:3
        snapshot
        get e family:election
        proclaim e #1 value:more id:3
        resign-term e #1
        get e family:election",
        expect![[r#"
            campaign e id:1 by:c1 value:one ttl:10s
                r2: leads: granted e T1 for 10s, says "one" in version 2
            campaign e id:2 by:c2 value:two ttl:10s wait:1m
                r3: waiting at 1, 1m left
            proclaim e #1 value:more id:3
                r4: proclaimed as version 4
            snapshot
            get e family:election
                c1 T1 held 0s, 10s left, says "more" in version 4; queue ["c2"]
            proclaim e #1 value:more id:3
                r5 as r4: proclaimed as version 4
            resign-term e #1
                r6: released
                ~ id:2 r6: leads: granted e T2 for 10s, says "two" in version 6
            get e family:election
                c2 T2 held 0s, 10s left, says "two" in version 6; queue []
        "#]],
    );
}

#[test]
fn a_refused_campaign_leaves_the_earlier_one_its_place() {
    check_faces(
        "
        campaign e id:1 by:c1 ttl:10s
        campaign e id:2 by:c2 ttl:10s wait:1m
        campaign e id:3 by:c3 ttl:10s wait:1m
        namespace default v:1 maxWaiters:1
        campaign e id:4 by:c2 ttl:10s wait:1m
        get e family:election
        -- one for one is not one more
        namespace default v:2 maxWaiters:2
        campaign e id:5 by:c2 ttl:10s wait:1m
        get e family:election",
        expect![[r#"
            campaign e id:1 by:c1 ttl:10s
                r2: leads: granted e T1 for 10s, says "" in version 2
            campaign e id:2 by:c2 ttl:10s wait:1m
                r3: waiting at 1, 1m left
            campaign e id:3 by:c3 ttl:10s wait:1m
                r4: waiting at 2, 1m left
            namespace default v:1 maxWaiters:1
                r5: version 2
            campaign e id:4 by:c2 ttl:10s wait:1m
                r6: LimitReached maxWaiters is 1, retry in 1s
            get e family:election
                c1 T1 held 0s, 10s left, says "" in version 2; queue ["c2", "c3"]
            -- one for one is not one more
            namespace default v:2 maxWaiters:2
                r7: version 3
            campaign e id:5 by:c2 ttl:10s wait:1m
                r8: waiting at 2, 1m left
                ~ id:2 r8: WaitTimeout replaced
            get e family:election
                c1 T1 held 0s, 10s left, says "" in version 2; queue ["c3", "c2"]
        "#]],
    );
}
