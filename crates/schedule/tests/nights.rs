//! The nights in which the clock is changed.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use sereno_schedule::{Schedule, instant};

/// The slots of a UTC stretch, as `day hour:minute` in UTC.
fn slots(cron: &str, zone: &str, after: &str, until: &str) -> Vec<String> {
    let schedule = Schedule::parse(cron, zone).unwrap();
    let [after, until] = [after, until].map(|text| instant::parse(text).unwrap());
    let slots = schedule.slots_between(after, until, 10_000);
    assert_eq!(schedule.last_between(after, until), slots.last().copied(), "{cron} {zone}");
    slots.into_iter().map(|slot| instant::format(slot)[8..16].replace('T', " ")).collect()
}

// Madrid: on 29 March 2026 02:00 becomes 03:00 (01:00 UTC); on 25 October 03:00 becomes 02:00 (01:00 UTC).
const MADRID: &str = "Europe/Madrid";
const MADRID_SPRING: [&str; 2] = ["2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"];
const MADRID_AUTUMN: [&str; 2] = ["2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"];
// New York: on 8 March 2026 02:00 becomes 03:00 (07:00 UTC); on 1 November 02:00 becomes 01:00 (06:00 UTC).
const NEW_YORK: &str = "America/New_York";
const NEW_YORK_SPRING: [&str; 2] = ["2026-03-07T18:00:00Z", "2026-03-09T18:00:00Z"];
const NEW_YORK_AUTUMN: [&str; 2] = ["2026-10-31T18:00:00Z", "2026-11-02T18:00:00Z"];
// Lord Howe changes by half an hour: on 4 October 2026 02:00 becomes 02:30 (15:30 UTC of the 3rd); on 5 April 02:00
// becomes 01:30 (15:00 UTC of the 4th).
const LORD_HOWE: &str = "Australia/Lord_Howe";
const LORD_HOWE_SPRING: [&str; 2] = ["2026-10-03T06:00:00Z", "2026-10-05T06:00:00Z"];
const LORD_HOWE_AUTUMN: [&str; 2] = ["2026-04-04T06:00:00Z", "2026-04-06T06:00:00Z"];

#[test]
fn a_fixed_time_in_the_gap_comes_right_after_it() {
    let night = |cron, zone, [after, until]: [&str; 2]| slots(cron, zone, after, until);
    assert_eq!(night("30 2 * * *", MADRID, MADRID_SPRING), ["29 01:00", "30 00:30"]);
    assert_eq!(night("0 2 * * *", MADRID, MADRID_SPRING), ["29 01:00", "30 00:00"]);
    assert_eq!(night("0 3 * * *", MADRID, MADRID_SPRING), ["29 01:00", "30 01:00"]);
    assert_eq!(night("15 0 2 * * *", MADRID, MADRID_SPRING), ["29 01:00", "30 00:00"]);
    assert_eq!(night("30 2 * * *", NEW_YORK, NEW_YORK_SPRING), ["08 07:00", "09 06:30"]);
    assert_eq!(night("15 2 * * *", LORD_HOWE, LORD_HOWE_SPRING), ["03 15:30", "04 15:15"]);
    assert_eq!(night("45 2 * * *", LORD_HOWE, LORD_HOWE_SPRING), ["03 15:45", "04 15:45"]);
}

#[test]
fn several_fixed_times_in_the_gap_are_one_slot_and_lists_lose_none() {
    let spring = |cron| slots(cron, MADRID, MADRID_SPRING[0], MADRID_SPRING[1]);
    assert_eq!(spring("10,20,50 2 * * *"), ["29 01:00", "30 00:10", "30 00:20", "30 00:50"]);
    assert_eq!(
        spring("0 2,14 * * *"),
        ["28 13:00", "29 01:00", "29 12:00", "30 00:00", "30 12:00"]
    );
    assert_eq!(spring("30 2-3 * * *"), ["29 01:00", "29 01:30", "30 00:30", "30 01:30"]);
}

#[test]
fn a_fixed_time_in_the_repeated_hour_comes_once() {
    let night = |cron, zone, [after, until]: [&str; 2]| slots(cron, zone, after, until);
    assert_eq!(night("30 2 * * *", MADRID, MADRID_AUTUMN), ["25 00:30", "26 01:30"]);
    assert_eq!(night("0 2 * * *", MADRID, MADRID_AUTUMN), ["25 00:00", "26 01:00"]);
    assert_eq!(night("0 3 * * *", MADRID, MADRID_AUTUMN), ["25 02:00", "26 02:00"]);
    assert_eq!(
        night("0 2,3 * * *", MADRID, MADRID_AUTUMN),
        ["25 00:00", "25 02:00", "26 01:00", "26 02:00"]
    );
    assert_eq!(night("30 1 * * *", NEW_YORK, NEW_YORK_AUTUMN), ["01 05:30", "02 06:30"]);
    assert_eq!(night("45 1 * * *", LORD_HOWE, LORD_HOWE_AUTUMN), ["04 14:45", "05 15:15"]);
}

#[test]
fn from_within_the_second_pass_nothing_comes_again() {
    let schedule = Schedule::parse("30 2 * * *", MADRID).unwrap();
    for minute in ["01:00", "01:29", "01:30", "01:31", "01:59"] {
        let after = instant::parse(&format!("2026-10-25T{minute}:00Z")).unwrap();
        let next = schedule.next_after(after).map(instant::format);
        assert_eq!(next.as_deref(), Some("2026-10-26T01:30:00Z"), "{minute}");
    }
}

#[test]
fn every_quarter_of_an_hour_is_every_quarter_that_passes() {
    for (zone, nights) in [
        (MADRID, [MADRID_SPRING, MADRID_AUTUMN]),
        (NEW_YORK, [NEW_YORK_SPRING, NEW_YORK_AUTUMN]),
        (LORD_HOWE, [LORD_HOWE_SPRING, LORD_HOWE_AUTUMN]),
        ("UTC", [MADRID_SPRING, MADRID_AUTUMN]),
    ] {
        for [after, until] in nights {
            let schedule = Schedule::parse("*/15 * * * *", zone).unwrap();
            let [after, until] = [after, until].map(|text| instant::parse(text).unwrap());
            let slots = schedule.slots_between(after, until, 10_000);
            let expected: Vec<u64> = (1..=48 * 4).map(|n| after + n * 900_000).collect();
            assert_eq!(slots, expected, "{zone}");
        }
    }
}

#[test]
fn by_the_clock_within_the_changed_hour() {
    // 02:00 to 02:59 is not there in spring, and there twice in autumn.
    let [after, until] = MADRID_SPRING;
    assert_eq!(slots("*/30 2 * * *", MADRID, after, until), ["30 00:00", "30 00:30"]);
    let [after, until] = MADRID_AUTUMN;
    let twice = ["25 00:00", "25 00:30", "25 01:00", "25 01:30", "26 01:00", "26 01:30"];
    assert_eq!(slots("*/30 2 * * *", MADRID, after, until), twice);
    // Every hour on the half hour: 24 h apart on the clock, one hour in time.
    let [after, until] = ["2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z"];
    assert_eq!(
        slots("30 * * * *", MADRID, after, until),
        ["24 23:30", "25 00:30", "25 01:30", "25 02:30"]
    );
    let [after, until] = LORD_HOWE_AUTUMN;
    let around = slots("45 * * * *", LORD_HOWE, after, until);
    assert!(around.windows(2).any(|two| two == ["04 14:45", "04 15:15"]), "{around:?}");
}

#[test]
fn midnight_may_be_the_skipped_hour() {
    // Santiago de Chile puts the clock forward at midnight: 5 September 2026 ends at 24:00 = 01:00 of the 6th.
    let slots =
        slots("0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-07T12:00:00Z");
    assert_eq!(slots, ["06 04:00", "07 03:00"]);
}

#[test]
fn a_day_that_was_skipped_as_a_whole_ends_in_the_next_one() {
    // Samoa had no 30 December 2011.
    let slots = slots("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-31T12:00:00Z");
    assert_eq!(slots, ["29 19:00", "30 10:00", "30 19:00"]);
}
