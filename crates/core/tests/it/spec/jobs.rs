//! Scheduled jobs: section 9.

use super::check_faces;
use expect_test::expect;

#[test]
fn a_slot_runs_once() {
    check_faces(
        "
        job j v:0
        show j
        events
        claim j slot:60s id:1 by:w1 ttl:10s
        claim j slot:60s id:2 by:w2 ttl:10s
        -- nor may another slot meanwhile
        claim j slot:120s id:3 by:w2 ttl:10s
        pass 5s
        renew-run j #1 ttl:20s
        finish j #1 succeeded id:4
        finish j #1 succeeded id:4
        finish j #1 failed id:5
        claim j slot:60s id:6 by:w2
        claim j slot:60s id:2 by:w2 ttl:10s
        claim j slot:60s id:1 by:w1 ttl:10s
        -- what lies before the latest and was never run counts as finished
        claim j slot:59s id:7 by:w2
        show j",
        expect![[r#"
            job j v:0
                r2: job version 1
            show j
                version 1, watermark 0s
            claim j slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted j T1 for 10s of at most 1h
                * r3 job/default/j w1: granted T1
                * r3 job/default/j: attempt 1 T1
            claim j slot:60s id:2 by:w2 ttl:10s
                r4: RunClaimed w1 T1 held 0s, 10s left, retry in 10s
            -- nor may another slot meanwhile
            claim j slot:120s id:3 by:w2 ttl:10s
                r5: RunClaimed w1 T1 held 0s, 10s left, retry in 10s
            pass 5s
            renew-run j #1 ttl:20s
                r6: renewed T1 for 20s of at most 3595s
            finish j #1 succeeded id:4
                r7: finished attempt 1: Succeeded
                * r7 job/default/j w1: ended T1 finished held 5s
                * r7 job/default/j: run Succeeded after 1 attempts
            finish j #1 succeeded id:4
                r8 as r7: finished attempt 1: Succeeded
            finish j #1 failed id:5
                r9: RunFinished
            claim j slot:60s id:6 by:w2
                r10: RunFinished
            claim j slot:60s id:2 by:w2 ttl:10s
                r11 as r4: RunClaimed
            claim j slot:60s id:1 by:w1 ttl:10s
                r12 as r7: LeaseEnded finished T1
            -- what lies before the latest and was never run counts as finished
            claim j slot:59s id:7 by:w2
                r13: RunFinished
            show j
                version 1, watermark 1m
                1m succeeded, attempt 1 by w1 T1, finished
        "#]],
    );
}

#[test]
fn at_most_once_and_at_least_once() {
    check_faces(
        "
        job once v:0 retries:0
        claim once slot:60s id:1 by:w1 ttl:10s
        pass 10s
        claim once slot:60s id:2 by:w2 ttl:10s
        show once
        -- but if it was done after all, it says so
        finish once #1 succeeded id:3
        show once
        job thrice v:0 retries:2
        claim thrice slot:60s id:4 by:w1 ttl:10s
        finish thrice #4 failed id:5
        claim thrice slot:60s id:6 by:w2 ttl:10s
        pass 10s
        claim thrice slot:60s id:7 by:w3 ttl:10s
        -- the second attempt is too late: a third was claimed
        finish thrice #6 succeeded id:8
        finish thrice #7 failed id:9
        claim thrice slot:60s id:10 by:w3 ttl:10s
        show thrice",
        expect![[r#"
            job once v:0 retries:0
                r2: job version 1
            claim once slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted once T1 for 10s of at most 1h
            pass 10s
                (1 due ended)
            claim once slot:60s id:2 by:w2 ttl:10s
                r5: RetriesExhausted
            show once
                version 1, watermark 1m
                1m lost, attempt 1 by w1 T1, expired
            -- but if it was done after all, it says so
            finish once #1 succeeded id:3
                r6: finished attempt 1: Succeeded
            show once
                version 1, watermark 1m
                1m succeeded, attempt 1 by w1 T1, finished
            job thrice v:0 retries:2
                r7: job version 1
            claim thrice slot:60s id:4 by:w1 ttl:10s
                r8: attempt 1: granted thrice T2 for 10s of at most 1h
            finish thrice #4 failed id:5
                r9: finished attempt 1: Retry
            claim thrice slot:60s id:6 by:w2 ttl:10s
                r10: attempt 2: granted thrice T3 for 10s of at most 1h
            pass 10s
                (1 due ended)
            claim thrice slot:60s id:7 by:w3 ttl:10s
                r12: attempt 3: granted thrice T4 for 10s of at most 1h
            -- the second attempt is too late: a third was claimed
            finish thrice #6 succeeded id:8
                r13: LeaseEnded expired T3
            finish thrice #7 failed id:9
                r14: finished attempt 3: Failed
            claim thrice slot:60s id:10 by:w3 ttl:10s
                r15: RetriesExhausted
            show thrice
                version 1, watermark 1m
                1m failed, attempt 3 by w3 T4, finished
        "#]],
    );
}

#[test]
fn an_attempt_that_nobody_began_does_not_count() {
    check_faces(
        "
        job j v:0 retries:0
        claim j slot:60s id:1 by:w1 ttl:10s
        abandon id:1 family:job
        show j
        claim j slot:60s id:2 by:w2 ttl:10s
        show j",
        expect![[r#"
            job j v:0 retries:0
                r2: job version 1
            claim j slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted j T1 for 10s of at most 1h
            abandon id:1 family:job
                r4: abandoned, was granted
            show j
                version 1, watermark 1m
                1m retry, attempt 0 by w1 T1, abandoned
            claim j slot:60s id:2 by:w2 ttl:10s
                r5: attempt 1: granted j T2 for 10s of at most 1h
            show j
                version 1, watermark 1m
                1m claimed, attempt 1 by w2 T2
        "#]],
    );
}

#[test]
fn missed_slots_by_the_jobs_own_rule() {
    check_faces(
        "
        job latest v:0 missed:latest retries:1
        claim latest slot:60s id:1 by:w1 ttl:10s
        finish latest #1 failed id:2
        claim latest slot:120s id:3 by:w1 ttl:10s
        finish latest #3 succeeded id:4
        claim latest slot:60s id:5 by:w1
        show latest
        job all v:0 missed:all retries:1
        claim all slot:60s id:6 by:w1 ttl:10s
        finish all #6 failed id:7
        claim all slot:120s id:8 by:w1 ttl:10s
        finish all #8 succeeded id:9
        claim all slot:60s id:10 by:w1 ttl:10s
        finish all #10 succeeded id:11
        claim all slot:90s id:12 by:w1
        show all",
        expect![[r#"
            job latest v:0 missed:latest retries:1
                r2: job version 1
            claim latest slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted latest T1 for 10s of at most 1h
            finish latest #1 failed id:2
                r4: finished attempt 1: Retry
            claim latest slot:120s id:3 by:w1 ttl:10s
                r5: attempt 1: granted latest T2 for 10s of at most 1h
            finish latest #3 succeeded id:4
                r6: finished attempt 1: Succeeded
            claim latest slot:60s id:5 by:w1
                r7: RunFinished
            show latest
                version 1, watermark 2m
                2m succeeded, attempt 1 by w1 T2, finished
                1m skipped, attempt 1 by w1 T1, finished
            job all v:0 missed:all retries:1
                r8: job version 1
            claim all slot:60s id:6 by:w1 ttl:10s
                r9: attempt 1: granted all T3 for 10s of at most 1h
            finish all #6 failed id:7
                r10: finished attempt 1: Retry
            claim all slot:120s id:8 by:w1 ttl:10s
                r11: attempt 1: granted all T4 for 10s of at most 1h
            finish all #8 succeeded id:9
                r12: finished attempt 1: Succeeded
            claim all slot:60s id:10 by:w1 ttl:10s
                r13: attempt 2: granted all T5 for 10s of at most 1h
            finish all #10 succeeded id:11
                r14: finished attempt 2: Succeeded
            claim all slot:90s id:12 by:w1
                r15: attempt 1: granted all T6 for 30s of at most 1h
            show all
                version 1, watermark 0s
                2m succeeded, attempt 1 by w1 T4, finished
                90s claimed, attempt 1 by w1 T6
                1m succeeded, attempt 2 by w1 T5, finished
        "#]],
    );
}

#[test]
fn overlapping_runs_have_fence_keys_of_their_own() {
    check_faces(
        "
        job j v:0 overlap:allow missed:all
        events
        claim j slot:60s id:1 by:w1 ttl:10s
        claim j slot:120s id:2 by:w2 ttl:10s
        claim j slot:60s id:3 by:w3 ttl:10s
        renew-run j #1 ttl:20s
        force-run j T2 id:4
        finish j #1 succeeded id:6
        show j
        -- an attempt that wakes up late would not be fenced out by one with another key
        job j v:1 overlap:forbid
        job k v:0
        job k v:1 overlap:allow
        job k v:1 retries:1",
        expect![[r#"
            job j v:0 overlap:allow missed:all
                r2: job version 1
            claim j slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted j/1767225660000 T1 for 10s of at most 1h
                * r3 job/default/j/1767225660000 w1: granted T1
                * r3 job/default/j: attempt 1 T1
            claim j slot:120s id:2 by:w2 ttl:10s
                r4: attempt 1: granted j/1767225720000 T2 for 10s of at most 1h
                * r4 job/default/j/1767225720000 w2: granted T2
                * r4 job/default/j: attempt 1 T2
            claim j slot:60s id:3 by:w3 ttl:10s
                r5: RunClaimed w1 T1 held 0s, 10s left, retry in 10s
            renew-run j #1 ttl:20s
                r6: renewed T1 for 20s of at most 1h
            force-run j T2 id:4
                r7: force-released T2
                * r7 job/default/j/1767225720000 w2: ended T2 forced held 0s: why
                * r7 job/default/j: run Lost after 1 attempts
            finish j #1 succeeded id:6
                r8: finished attempt 1: Succeeded
                * r8 job/default/j/1767225660000 w1: ended T1 finished held 0s
                * r8 job/default/j: run Succeeded after 1 attempts
            show j
                version 1, watermark 0s
                2m lost, attempt 1 by w2 T2, forced
                1m succeeded, attempt 1 by w1 T1, finished
            -- an attempt that wakes up late would not be fenced out by one with another key
            job j v:1 overlap:forbid
                r9: InvalidArgument overlap: cannot be changed, for the fence key depends on it: make another job
            job k v:0
                r10: job version 1
                * r10 job/default/k: job put, version 1
            job k v:1 overlap:allow
                r11: InvalidArgument overlap: cannot be changed, for the fence key depends on it: make another job
            job k v:1 retries:1
                r12: job version 2
                * r12 job/default/k: job put, version 2
        "#]],
    );
}

#[test]
fn operators_pause_skip_and_ask_for_runs() {
    check_faces(
        "
        job j v:0 missed:all
        events
        pause j id:1
        pause j id:1
        claim j slot:60s id:2 by:w1
        resume j id:3
        skip j slot:60s id:4
        claim j slot:60s id:5 by:w1
        skip j slot:60s id:6
        run-now j slot:61s id:7
        run-now j slot:99s id:7
        run-now j slot:61s id:8
        claim j slot:61001ms id:9 by:w1 ttl:10s
        skip j slot:61001ms id:10
        force-run j T1 id:11
        show j
        pause nowhere id:12
        show nowhere",
        expect![[r#"
            job j v:0 missed:all
                r2: job version 1
            pause j id:1
                r3: paused
                * r3 job/default/j: paused: why
            pause j id:1
                r4 as r3: paused
            claim j slot:60s id:2 by:w1
                r5: RunPaused
            resume j id:3
                r6: not paused
                * r6 job/default/j: resumed: why
            skip j slot:60s id:4
                r7: not paused, slot 1m
                * r7 job/default/j: run Skipped after 0 attempts
            claim j slot:60s id:5 by:w1
                r8: RunFinished
            skip j slot:60s id:6
                r9: RunFinished
            run-now j slot:61s id:7
                r10: not paused, slot 61001ms
                * r10 job/default/j: run asked for: why
            run-now j slot:99s id:7
                r11 as r10: not paused, slot 61001ms
            run-now j slot:61s id:8
                r12: not paused, slot 61002ms
                * r12 job/default/j: run asked for: why
            claim j slot:61001ms id:9 by:w1 ttl:10s
                r13: attempt 1: granted j T1 for 10s of at most 1h
                * r13 job/default/j w1: granted T1
                * r13 job/default/j: attempt 1 T1
            skip j slot:61001ms id:10
                r14: RunClaimed w1 T1 held 0s, 10s left, retry in 10s
            force-run j T1 id:11
                r15: force-released T1
                * r15 job/default/j w1: ended T1 forced held 0s: why
                * r15 job/default/j: run Lost after 1 attempts
            show j
                version 1, watermark 0s
                61002ms asked, attempt 0
                61001ms lost, attempt 1 by w1 T1, forced
                1m skipped, attempt 0
            pause nowhere id:12
                r16: NotFound no such job
            show nowhere
                no such job
        "#]],
    );
}

#[test]
fn only_the_definition_in_force_is_claimed() {
    check_faces(
        "
        job j v:0
        job j v:0
        pass 1m
        job j v:1 every:hourly
        show j
        claim j v:1 slot:60s id:1 by:w1
        claim j v:2 slot:30s id:2 by:w1
        claim j v:2 slot:61s id:3 by:w1 ttl:10s
        -- a run under way goes on when the definition changes
        job j v:2 every:weekly retries:1
        renew-run j #3
        pass 10s
        claim j v:3 slot:61s id:4 by:w2
        job a/b/2026 v:0
        job j v:3 retries:101
        job j v:3 maxRun:25h",
        expect![[r#"
            job j v:0
                r2: job version 1
            job j v:0
                r3: VersionConflict version is 1
            pass 1m
            job j v:1 every:hourly
                r4: job version 2
            show j
                version 2, watermark 1m
            claim j v:1 slot:60s id:1 by:w1
                r5: VersionConflict version is 2
            claim j v:2 slot:30s id:2 by:w1
                r6: RunFinished
            claim j v:2 slot:61s id:3 by:w1 ttl:10s
                r7: attempt 1: granted j T1 for 10s of at most 1h
            -- a run under way goes on when the definition changes
            job j v:2 every:weekly retries:1
                r8: job version 3
            renew-run j #3
                r9: renewed T1 for 10s of at most 1h
            pass 10s
                (1 due ended)
            claim j v:3 slot:61s id:4 by:w2
                r11: attempt 2: granted j T2 for 30s of at most 1h
            job a/b/2026 v:0
                r12: InvalidArgument job: must not end with a segment of digits: that is how runs are called
            job j v:3 retries:101
                r13: InvalidArgument retries: must be 0 to 100 (durations in ms), is 101
            job j v:3 maxRun:25h
                r14: InvalidArgument maxRun: must be 1000 to 86400000 (durations in ms), is 90000000
        "#]],
    );
}

#[test]
fn an_attempt_is_bounded_by_max_run() {
    check_faces(
        "
        job j v:0 maxRun:15s retries:1
        claim j slot:60s id:1 by:w1 ttl:10s
        pass 8s
        renew-run j #1
        pass 7s
        renew-run j #1
        claim j slot:60s id:2 by:w2 ttl:10s
        snapshot
        show j
        finish j #2 succeeded id:3
        snapshot
        finish j #2 succeeded id:3
        claim j slot:60s id:4 by:w1",
        expect![[r#"
            job j v:0 maxRun:15s retries:1
                r2: job version 1
            claim j slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted j T1 for 10s of at most 15s
            pass 8s
            renew-run j #1
                r4: renewed T1 for 7s of at most 7s, clipped
            pass 7s
                (1 due ended)
            renew-run j #1
                r6: LeaseEnded maxHold T1
            claim j slot:60s id:2 by:w2 ttl:10s
                r7: attempt 2: granted j T2 for 10s of at most 15s
            snapshot
            show j
                version 1, watermark 1m
                1m claimed, attempt 2 by w2 T2
            finish j #2 succeeded id:3
                r8: finished attempt 2: Succeeded
            snapshot
            finish j #2 succeeded id:3
                r9 as r8: finished attempt 2: Succeeded
            claim j slot:60s id:4 by:w1
                r10: RunFinished
        "#]],
    );
}

#[test]
fn a_guards_report_is_on_record() {
    check_faces(
        "
        acquire a id:1
        acquire b id:2
        events
        report a by:ledger id:3
        report a by:ledger token:T1 highest:T2 id:4
        report a by:ledger token:T1 highest:T2 id:4
        report a by:ledger token:T2 highest:T2 id:4
        report a by:ledger in:nowhere id:5",
        expect![[r#"
            acquire a id:1
                r2: granted a T1 for 30s
            acquire b id:2
                r3: granted b T2 for 30s
            report a by:ledger id:3
                r4: on record
                * r4 lock/default/a ledger: guard seen
            report a by:ledger token:T1 highest:T2 id:4
                r5: on record
                * r5 lock/default/a ledger: fence refused T1
            report a by:ledger token:T1 highest:T2 id:4
                r6 as r5: on record
            report a by:ledger token:T2 highest:T2 id:4
                r7: RequestIdReused
            report a by:ledger in:nowhere id:5
                r8: NotFound
        "#]],
    );
}
