use super::*;
use std::collections::BTreeMap;

/// 2026-05-04 12:00:00 UTC.
const NOON: u64 = 1_777_896_000_000;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

fn every_minute() -> Schedule {
    Schedule::parse("* * * * *", "UTC").unwrap()
}

fn ledger(missed: Missed, overlap: Overlap, watermark: u64) -> Ledger {
    Ledger { version: 1, paused: false, missed, overlap, watermark, rows: BTreeMap::new() }
}

/// Nothing may overlap; nothing has happened since noon.
fn since_noon(missed: Missed) -> Ledger {
    ledger(missed, Overlap::Forbid, NOON)
}

fn row(state: RunState, attempt: u32) -> Row {
    Row { state, attempt, expires_in: 0, is_extra: false, failed_at: None }
}

fn live(expires_in: u64) -> Row {
    Row { expires_in, ..row(RunState::Claimed, 1) }
}

fn with(mut ledger: Ledger, rows: &[(u64, Row)]) -> Ledger {
    ledger.rows.extend(rows.iter().copied());
    ledger
}

fn plan(ledger: &Ledger, now: u64) -> Next {
    next(ledger, &every_minute(), now)
}

const EVERY: [Missed; 3] = [Missed::Skip, Missed::Latest, Missed::All];

#[test]
fn a_slot_is_claimed_when_its_time_has_come_and_not_before() {
    for missed in EVERY {
        let ledger = ledger(missed, Overlap::Forbid, NOON + 1);
        assert_eq!(plan(&ledger, NOON + 59_999), Next::Wait(Some(NOON + MINUTE)));
        assert_eq!(plan(&ledger, NOON + MINUTE), Next::Claim(NOON + MINUTE));
        assert_eq!(plan(&ledger, NOON + MINUTE + 500), Next::Claim(NOON + MINUTE));
    }
}

#[test]
fn a_slot_at_the_watermark_is_open_and_one_before_is_over() {
    for missed in EVERY {
        assert_eq!(plan(&since_noon(missed), NOON), Next::Claim(NOON));
        let later = ledger(missed, Overlap::Forbid, NOON + 1);
        assert_eq!(plan(&later, NOON), Next::Wait(Some(NOON + MINUTE)));
    }
}

#[test]
fn after_an_hour_away_missed_says_what_runs() {
    let now = NOON + 60 * MINUTE + 10 * SECOND;
    let first = |missed| plan(&since_noon(missed), now);
    assert_eq!(first(Missed::All), Next::Claim(NOON), "each, in order");
    assert_eq!(first(Missed::Latest), Next::Claim(NOON + 60 * MINUTE));
    assert_eq!(
        first(Missed::Skip),
        Next::Claim(NOON + 56 * MINUTE),
        "what is 5 minutes old at most"
    );
    let exactly = plan(&since_noon(Missed::Skip), NOON + 5 * MINUTE);
    assert_eq!(exactly, Next::Claim(NOON));
    let nightly = Schedule::parse("0 2 * * *", "UTC").unwrap();
    let ledger = since_noon(Missed::Skip);
    let two = NOON + 14 * 60 * MINUTE;
    assert_eq!(next(&ledger, &nightly, two + 5 * MINUTE), Next::Claim(two));
    let late = next(&ledger, &nightly, two + 5 * MINUTE + 1);
    assert_eq!(late, Next::Wait(Some(two + 24 * 60 * MINUTE)));
}

#[test]
fn what_is_finished_is_not_claimed_again() {
    for state in [RunState::Succeeded, RunState::Failed, RunState::Lost, RunState::Skipped] {
        for missed in EVERY {
            let ledger = with(since_noon(missed), &[(NOON, row(state, 1))]);
            assert_eq!(plan(&ledger, NOON + SECOND), Next::Wait(Some(NOON + MINUTE)), "{state}");
        }
    }
}

#[test]
fn all_goes_on_after_what_has_rows() {
    let done = row(RunState::Succeeded, 1);
    let ledger = with(since_noon(Missed::All), &[(NOON, done), (NOON + MINUTE, done)]);
    assert_eq!(plan(&ledger, NOON + 9 * MINUTE), Next::Claim(NOON + 2 * MINUTE));
}

#[test]
fn latest_leaves_out_what_is_older_than_the_newest_that_was_begun() {
    let newest = [(NOON + 5 * MINUTE, row(RunState::Succeeded, 1))];
    let ledger = with(since_noon(Missed::Latest), &newest);
    assert_eq!(plan(&ledger, NOON + 5 * MINUTE + 1), Next::Wait(Some(NOON + 6 * MINUTE)));
    let skipped = [(NOON + 5 * MINUTE, row(RunState::Skipped, 0))];
    let ledger = with(since_noon(Missed::Latest), &skipped);
    assert_eq!(
        plan(&ledger, NOON + 5 * MINUTE + 1),
        Next::Claim(NOON + 4 * MINUTE),
        "skipped by hand"
    );
}

#[test]
fn an_extra_run_that_is_done_leaves_no_older_slot_out() {
    let extra = Row { is_extra: true, ..row(RunState::Succeeded, 1) };
    for overlap in [Overlap::Forbid, Overlap::Allow] {
        let rows = [(NOON + 30 * SECOND, extra)];
        let ledger = with(ledger(Missed::Latest, overlap, NOON), &rows);
        assert_eq!(plan(&ledger, NOON + 40 * SECOND), Next::Claim(NOON));
    }
}

#[test]
fn retries_and_what_was_asked_for_come_first_and_the_oldest_of_them_first() {
    let extra = NOON + MINUTE + 17 * SECOND;
    let rows = [
        (NOON, row(RunState::Retry, 1)),
        (extra, row(RunState::Asked, 0)),
        (NOON + MINUTE, row(RunState::Succeeded, 1)),
    ];
    for missed in EVERY {
        let both = with(since_noon(missed), &rows);
        assert_eq!(plan(&both, NOON + 2 * MINUTE), Next::Claim(NOON), "{missed}");
        let asked = with(since_noon(missed), &rows[1..]);
        assert_eq!(plan(&asked, NOON + 2 * MINUTE), Next::Claim(extra), "{missed}");
    }
}

#[test]
fn a_retry_is_done_however_old_its_slot_is() {
    let ledger = with(since_noon(Missed::Skip), &[(NOON, row(RunState::Retry, 1))]);
    assert_eq!(plan(&ledger, NOON + 90 * MINUTE), Next::Claim(NOON));
}

#[test]
fn a_run_that_failed_is_tried_again_after_a_growing_pause_and_nothing_passes_it() {
    let failed_at = NOON + 10 * SECOND;
    for (attempt, pause) in
        [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000), (5, 10_000), (101, 10_000)]
    {
        let failed = Row { failed_at: Some(failed_at), ..row(RunState::Retry, attempt) };
        let ledger = with(since_noon(Missed::Latest), &[(NOON, failed)]);
        assert_eq!(plan(&ledger, failed_at), Next::Wait(Some(failed_at + pause)), "{attempt}");
        assert_eq!(plan(&ledger, failed_at + pause), Next::Claim(NOON));
    }
    let failed = Row { failed_at: Some(NOON + MINUTE), ..row(RunState::Retry, 1) };
    let ledger = with(since_noon(Missed::Latest), &[(NOON, failed)]);
    assert_eq!(plan(&ledger, NOON + MINUTE), Next::Wait(Some(NOON + MINUTE + SECOND)));
}

#[test]
fn while_a_run_is_under_way_nothing_is_claimed_unless_they_may_overlap() {
    for missed in EVERY {
        let rows = [(NOON, live(20_000)), (NOON + MINUTE, row(RunState::Retry, 1))];
        let forbid = with(since_noon(missed), &rows);
        let now = NOON + MINUTE + SECOND;
        assert_eq!(plan(&forbid, now), Next::Wait(Some(now + 20_000)), "until its lease may end");
        let almost = NOON + 2 * MINUTE - SECOND;
        assert_eq!(plan(&forbid, almost), Next::Wait(Some(NOON + 2 * MINUTE)), "or the next slot");
        let allow = with(ledger(missed, Overlap::Allow, NOON), &rows);
        assert_eq!(plan(&allow, now), Next::Claim(NOON + MINUTE));
    }
}

#[test]
fn with_overlap_each_slot_is_for_itself() {
    let rows = [(NOON, live(20_000))];
    let now = NOON + MINUTE;
    let all = with(ledger(Missed::All, Overlap::Allow, NOON), &rows);
    assert_eq!(plan(&all, now), Next::Claim(now));
    assert_eq!(plan(&all, now - SECOND), Next::Wait(Some(now)));
    let rows = [(NOON, live(20_000)), (now, live(30_000))];
    for missed in EVERY {
        let both = with(ledger(missed, Overlap::Allow, NOON), &rows);
        assert_eq!(plan(&both, now + SECOND), Next::Wait(Some(now + SECOND + 20_000)));
    }
}

#[test]
fn a_retry_that_has_to_wait_does_not_hold_up_slots_that_may_overlap() {
    let failed = Row { failed_at: Some(NOON + MINUTE), ..row(RunState::Retry, 3) };
    let allow = with(ledger(Missed::All, Overlap::Allow, NOON), &[(NOON, failed)]);
    assert_eq!(plan(&allow, NOON + MINUTE), Next::Claim(NOON + MINUTE));
    let done = [(NOON, failed), (NOON + MINUTE, row(RunState::Succeeded, 1))];
    let allow = with(ledger(Missed::All, Overlap::Allow, NOON), &done);
    assert_eq!(plan(&allow, NOON + MINUTE + 1), Next::Wait(Some(NOON + MINUTE + 4_000)));
}

#[test]
fn a_paused_job_is_left_alone() {
    let mut ledger = with(since_noon(Missed::All), &[(NOON, row(RunState::Asked, 0))]);
    ledger.paused = true;
    assert_eq!(plan(&ledger, NOON + MINUTE), Next::Paused);
}

#[test]
fn words_of_a_later_version_are_left_alone() {
    let unknown = ledger(Missed::Unrecognised, Overlap::Forbid, NOON);
    assert_eq!(plan(&unknown, NOON), Next::Wait(Some(NOON + MINUTE)));
    let row = row(RunState::Unrecognised, 1);
    let strange = with(since_noon(Missed::All), &[(NOON, row)]);
    assert_eq!(plan(&strange, NOON), Next::Wait(Some(NOON + MINUTE)));
    let unknown = with(ledger(Missed::All, Overlap::Unrecognised, NOON), &[(NOON, live(5_000))]);
    assert_eq!(
        plan(&unknown, NOON + MINUTE),
        Next::Wait(Some(NOON + MINUTE + 5_000)),
        "as strict as can be"
    );
}

#[test]
fn the_record_is_read_as_it_is_written() {
    let text = r#"{"job":"j","version":7,"schedule":"* * * * *","zone":"UTC","missed":"all","overlap":"forbid",
        "retries":2,"maxRun":"1h","paused":true,"watermark":"2026-05-04T12:00:00Z","revision":1,"clusterTimeMs":2,
        "ageMs":3,"runs":[
        {"slot":"2026-05-04T12:02:00Z","state":"claimed","attempt":1,"expiresInMs":900,"reason":"by hand"},
        {"slot":"2026-05-04T12:01:00Z","state":"retry","attempt":2,"endedAt":"2026-05-04T12:01:30.250Z","end":"finished"},
        {"slot":"2026-05-04T12:00:00Z","state":"retry","attempt":1,"endedAt":"2026-05-04T12:01:00Z","end":"expired"}]}"#;
    let ledger = Ledger::read(&serde_json::from_str(text).unwrap()).unwrap();
    assert_eq!((ledger.version, ledger.paused, ledger.watermark), (7, true, NOON));
    let failed = Row { failed_at: Some(NOON + 90_250), ..row(RunState::Retry, 2) };
    let rows = [
        (NOON, row(RunState::Retry, 1)),
        (NOON + MINUTE, failed),
        (NOON + 2 * MINUTE, Row { is_extra: true, ..live(900) }),
    ];
    assert_eq!(ledger.rows, BTreeMap::from(rows));
    let broken = text.replace("2026-05-04T12:02:00Z", "noon");
    let told = Ledger::read(&serde_json::from_str(&broken).unwrap()).unwrap_err();
    assert_eq!(told, "\"noon\" is no instant");
}
