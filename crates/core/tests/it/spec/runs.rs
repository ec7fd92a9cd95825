//! What becomes of a job's slots in the less common ways: section 9.

use super::check_faces;
use expect_test::expect;
use sereno_core::{
    command::{ClaimRun, JobCommand, JobDefinition, Missed, Operation, PutJob, SlotOfJob},
    ids::Slot,
    limits,
    names::{Labels, Owner, Reason, RequestId, ScheduleText, ZoneName},
    outcome::{Code, Done},
    testing::{Scribe, TOKEN_CLOCK_US, default_namespace, lease_id, resource_name},
};

#[test]
fn what_is_over_is_not_opened_by_a_late_failure() {
    check_faces(
        "
        job j v:0 retries:1 missed:all
        claim j slot:60s id:1 by:w1 ttl:10s
        pass 10s
        skip j slot:60s id:2
        events
        finish j #1 failed id:3
        claim j slot:60s id:4 by:w2
        show j
        -- nor one whose place a later one has taken
        job k v:0 retries:1
        claim k slot:60s id:5 by:w1 ttl:10s
        pass 10s
        claim k slot:120s id:6 by:w2 ttl:10s
        finish k #5 failed id:7
        finish k #6 succeeded id:8
        claim k slot:60s id:9 by:w1
        -- nor one whose retries were used up when it died, though there are more by now
        job l v:0
        claim l slot:60s id:10 by:w1 ttl:10s
        pass 10s
        job l v:1 retries:3
        finish l #10 failed id:11
        claim l v:2 slot:60s id:12 by:w1
        show l",
        expect![[r#"
            job j v:0 retries:1 missed:all
                r2: job version 1
            claim j slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted j T1 for 10s of at most 1h
            pass 10s
                (1 due ended)
            skip j slot:60s id:2
                r5: not paused, slot 1m
            finish j #1 failed id:3
                r6: finished attempt 1: Skipped
                * r6 job/default/j: run Skipped after 1 attempts
            claim j slot:60s id:4 by:w2
                r7: RunFinished
            show j
                version 1, watermark 0s
                1m skipped, attempt 1 by w1 T1, finished
            -- nor one whose place a later one has taken
            job k v:0 retries:1
                r8: job version 1
                * r8 job/default/k: job put, version 1
            claim k slot:60s id:5 by:w1 ttl:10s
                r9: attempt 1: granted k T2 for 10s of at most 1h
                * r9 job/default/k w1: granted T2
                * r9 job/default/k: attempt 1 T2
            pass 10s
                (1 due ended)
                * r10 job/default/k w1: ended T2 expired held 10s
                * r10 job/default/k: run Retry after 1 attempts
            claim k slot:120s id:6 by:w2 ttl:10s
                r11: attempt 1: granted k T3 for 10s of at most 1h
                * r11 job/default/k w2: granted T3
                * r11 job/default/k: attempt 1 T3
                * r11 job/default/k: run Skipped after 1 attempts
            finish k #5 failed id:7
                r12: finished attempt 1: Skipped
                * r12 job/default/k: run Skipped after 1 attempts
            finish k #6 succeeded id:8
                r13: finished attempt 1: Succeeded
                * r13 job/default/k w2: ended T3 finished held 0s
                * r13 job/default/k: run Succeeded after 1 attempts
            claim k slot:60s id:9 by:w1
                r14: RunFinished
            -- nor one whose retries were used up when it died, though there are more by now
            job l v:0
                r15: job version 1
                * r15 job/default/l: job put, version 1
            claim l slot:60s id:10 by:w1 ttl:10s
                r16: attempt 1: granted l T4 for 10s of at most 1h
                * r16 job/default/l w1: granted T4
                * r16 job/default/l: attempt 1 T4
            pass 10s
                (1 due ended)
                * r17 job/default/l w1: ended T4 expired held 10s
                * r17 job/default/l: run Lost after 1 attempts
            job l v:1 retries:3
                r18: job version 2
                * r18 job/default/l: job put, version 2
            finish l #10 failed id:11
                r19: finished attempt 1: Failed
                * r19 job/default/l: run Failed after 1 attempts
            claim l v:2 slot:60s id:12 by:w1
                r20: RetriesExhausted
            show l
                version 2, watermark 1m
                1m failed, attempt 1 by w1 T4, finished
        "#]],
    );
}

#[test]
fn an_extra_run_is_none_of_those_that_count_as_finished() {
    check_faces(
        "
        job j v:0
        claim j slot:60s id:1 by:w1 ttl:10s
        finish j #1 succeeded id:2
        run-now j slot:30s id:3
        claim j slot:30s id:4 by:w1
        claim j slot:60001ms id:5 by:w1
        show j",
        expect![[r#"
            job j v:0
                r2: job version 1
            claim j slot:60s id:1 by:w1 ttl:10s
                r3: attempt 1: granted j T1 for 10s of at most 1h
            finish j #1 succeeded id:2
                r4: finished attempt 1: Succeeded
            run-now j slot:30s id:3
                r5: not paused, slot 60001ms
            claim j slot:30s id:4 by:w1
                r6: RunFinished
            claim j slot:60001ms id:5 by:w1
                r7: attempt 1: granted j T2 for 30s of at most 1h
            show j
                version 1, watermark 1m
                60001ms claimed, attempt 1 by w1 T2
                1m succeeded, attempt 1 by w1 T1, finished
        "#]],
    );
}

#[test]
fn a_finish_names_an_attempt_of_its_own_namespace() {
    check_faces(
        "
        namespace shop v:0
        job j v:0
        job j v:0 in:shop
        claim j slot:60s id:1 by:w1 ttl:10s
        abandon id:1 family:job
        claim j slot:60s id:2 by:w2 ttl:10s
        finish j #1 succeeded id:3
        finish j #1 succeeded id:4 in:shop",
        expect![[r#"
            namespace shop v:0
                r2: version 1
            job j v:0
                r3: job version 1
            job j v:0 in:shop
                r4: job version 1
            claim j slot:60s id:1 by:w1 ttl:10s
                r5: attempt 1: granted j T1 for 10s of at most 1h
            abandon id:1 family:job
                r6: abandoned, was granted
            claim j slot:60s id:2 by:w2 ttl:10s
                r7: attempt 1: granted j T2 for 10s of at most 1h
            finish j #1 succeeded id:3
                r8: LeaseEnded abandoned T1
            finish j #1 succeeded id:4 in:shop
                r9: NotHolder
        "#]],
    );
}

fn operation(command: JobCommand) -> Operation {
    Operation::Job(command)
}

/// As many as may be open, are: one of them can be run all the same.
#[test]
fn a_full_ledger_can_be_run() {
    let mut scribe = Scribe::new();
    scribe.run(Operation::RaiseLevel { level: 3 });
    let (namespace, job) = (default_namespace(), resource_name("j"));
    let definition = JobDefinition {
        schedule: ScheduleText::new("daily").expect("a schedule"),
        zone: ZoneName::new("UTC").expect("a zone"),
        missed: Missed::All,
        overlap: false,
        retries: 0,
        max_run_ms: 60_000,
    };
    let put = PutJob { namespace, job: job.clone(), expected_version: 0, definition };
    scribe.run(operation(JobCommand::Put(put)));
    let first = Slot(TOKEN_CLOCK_US / 1_000);
    let run_now = |number: usize| {
        operation(JobCommand::RunNow(SlotOfJob {
            namespace: default_namespace(),
            job: job.clone(),
            slot: first,
            request_id: RequestId::new(&format!("run-now-{number}")).expect("an id"),
            reason: Reason::new("why").expect("a reason"),
        }))
    };
    let all = scribe.batch(0, (0..=limits::RUNS_OPEN_MAX).map(run_now).collect()).outcomes;
    let refused: Vec<_> = all.iter().filter_map(|outcome| outcome.result.as_ref().err()).collect();
    assert_eq!(refused.iter().map(|it| it.code).collect::<Vec<_>>(), [Code::LimitReached]);
    let claim = |slot: Slot, number: u64| {
        operation(JobCommand::ClaimRun(ClaimRun {
            namespace: default_namespace(),
            job: job.clone(),
            job_version: 1,
            slot,
            request_id: RequestId::new(&format!("claim-{number:03}")).expect("an id"),
            owner: Owner::new("worker").expect("an owner"),
            lease_id: lease_id(number),
            lease_ttl_ms: Some(10_000),
            labels: Labels::default(),
        }))
    };
    let another = Slot(first.0 + 1_000_000);
    let refused = scribe.run(claim(another, 1)).result.expect_err("it would be one too many");
    assert_eq!(refused.code, Code::LimitReached);
    let asked = Slot(first.0 + 1);
    let claimed = scribe.run(claim(asked, 2)).result.expect("it was asked for");
    assert!(matches!(claimed, Done::RunClaimed(_)), "{claimed:?}");
}

#[test]
fn an_extra_run_takes_no_slots_place() {
    check_faces(
        "
        job j v:0 retries:1
        run-now j slot:90s id:1
        claim j slot:90001ms id:2 by:w1 ttl:10s
        finish j #2 succeeded id:3
        -- the schedule's slot before it was missed, and may still be done
        claim j slot:60s id:4 by:w1 ttl:10s
        pass 10s
        run-now j slot:100s id:5
        claim j slot:100001ms id:6 by:w2 ttl:10s
        finish j #6 succeeded id:7
        -- or tried again
        claim j slot:60s id:8 by:w2 ttl:10s
        finish j #8 succeeded id:9
        show j",
        expect![[r#"
            job j v:0 retries:1
                r2: job version 1
            run-now j slot:90s id:1
                r3: not paused, slot 90001ms
            claim j slot:90001ms id:2 by:w1 ttl:10s
                r4: attempt 1: granted j T1 for 10s of at most 1h
            finish j #2 succeeded id:3
                r5: finished attempt 1: Succeeded
            -- the schedule's slot before it was missed, and may still be done
            claim j slot:60s id:4 by:w1 ttl:10s
                r6: attempt 1: granted j T2 for 10s of at most 1h
            pass 10s
                (1 due ended)
            run-now j slot:100s id:5
                r8: not paused, slot 100001ms
            claim j slot:100001ms id:6 by:w2 ttl:10s
                r9: attempt 1: granted j T3 for 10s of at most 1h
            finish j #6 succeeded id:7
                r10: finished attempt 1: Succeeded
            -- or tried again
            claim j slot:60s id:8 by:w2 ttl:10s
                r11: attempt 2: granted j T4 for 10s of at most 1h
            finish j #8 succeeded id:9
                r12: finished attempt 2: Succeeded
            show j
                version 1, watermark 1m
                100001ms succeeded, attempt 1 by w2 T3, finished
                90001ms succeeded, attempt 1 by w1 T1, finished
                1m succeeded, attempt 2 by w2 T4, finished
        "#]],
    );
}
