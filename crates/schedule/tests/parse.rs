//! What is a schedule and what is none, and what the refusal says.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use sereno_schedule::{Part, Schedule, instant};

fn slots(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(cron, zone).unwrap();
    let after = instant::parse(after).unwrap();
    schedule.slots_between(after, u64::MAX, count).into_iter().map(instant::format).collect()
}

fn refusal(cron: &str, zone: &str) -> String {
    Schedule::parse(cron, zone).unwrap_err().to_string()
}

#[test]
fn expressions_of_cron_are_taken() {
    for (cron, after, slot) in [
        ("0 2 * * *", "2026-05-04T02:00:00Z", "2026-05-05T02:00:00Z"),
        ("*/15 * * * *", "2026-05-04T02:00:00.001Z", "2026-05-04T02:15:00Z"),
        ("*/20 * * * * *", "2026-05-04T02:00:40Z", "2026-05-04T02:01:00Z"),
        ("30 5 * * MON-FRI", "2026-05-08T06:00:00Z", "2026-05-11T05:30:00Z"),
        ("0 0 1 jan,JUL *", "2026-05-04T00:00:00Z", "2026-07-01T00:00:00Z"),
        ("0 0 13 * FRI", "2026-05-02T00:00:00Z", "2026-05-08T00:00:00Z"),
        ("0 0 13 * +FRI", "2026-05-02T00:00:00Z", "2026-11-13T00:00:00Z"),
        ("0 0 L * *", "2027-02-01T00:00:00Z", "2027-02-28T00:00:00Z"),
        ("0 0 * * 5L", "2026-05-04T00:00:00Z", "2026-05-29T00:00:00Z"),
        ("0 0 * * 7", "2026-05-04T00:00:00Z", "2026-05-10T00:00:00Z"),
        ("0 0 29 2 *", "2026-05-04T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("@daily", "2026-05-04T00:00:00Z", "2026-05-05T00:00:00Z"),
        ("@hourly", "2026-05-04T00:00:00Z", "2026-05-04T01:00:00Z"),
        ("@Weekly", "2026-05-04T00:00:00Z", "2026-05-10T00:00:00Z"),
    ] {
        assert_eq!(slots(cron, "UTC", after, 1), [slot], "{cron}");
    }
}

#[test]
fn the_zone_says_what_the_clock_shows() {
    let at_two = |zone| slots("0 2 * * *", zone, "2026-05-04T12:00:00Z", 1);
    assert_eq!(at_two("UTC"), ["2026-05-05T02:00:00Z"]);
    assert_eq!(at_two("Europe/Madrid"), ["2026-05-05T00:00:00Z"]);
    assert_eq!(at_two("America/New_York"), ["2026-05-05T06:00:00Z"]);
    assert_eq!(at_two("Asia/Kathmandu"), ["2026-05-04T20:15:00Z"]);
}

#[test]
fn a_refusal_names_the_field_and_the_rule() {
    for (cron, said) in [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("0 0 0 1 1 * 2026", "has 7 fields"),
        ("60 * * * *", "minutes (field 1 of 5): \"60\" must be 0 to 59"),
        ("* 24 * * *", "hours (field 2 of 5): \"24\" must be 0 to 23"),
        ("* * 0 * *", "day of month (field 3 of 5): \"0\" must be 1 to 31"),
        ("* * * 13 *", "month (field 4 of 5): \"13\" must be 1 to 12"),
        ("* * * * 8", "day of week (field 5 of 5): \"8\" must be 0 to 7"),
        ("60 * * * * *", "seconds (field 1 of 6): \"60\" must be 0 to 59"),
        ("* 60 * * * *", "minutes (field 2 of 6): \"60\" must be 0 to 59"),
        ("30-10 * * * *", "minutes (field 1 of 5): \"30-10\" must be 0 to 59"),
        ("*/0 * * * *", "minutes (field 1 of 5): \"*/0\" must be 0 to 59"),
        ("1,,2 * * * *", "minutes (field 1 of 5): \"1,,2\" has a comma with nothing beside it"),
        ("x * * * *", "minutes (field 1 of 5): \"x\" must be 0 to 59"),
        ("MON * * * *", "\"MON\" means nothing here"),
        ("0 0 * MON *", "month (field 4 of 5)"),
        ("0 0 * * MAR", "day of week (field 5 of 5)"),
        ("0 0 * * MONDAY", "day of week (field 5 of 5)"),
        ("-1 * * * *", "minutes (field 1 of 5)"),
        ("1.5 * * * *", "minutes (field 1 of 5)"),
        ("0 0 @daily * *", "day of month (field 3 of 5)"),
        ("@reboot", "\"@reboot\" is none of @yearly"),
        ("@", "is none of"),
    ] {
        let told = refusal(cron, "UTC");
        assert!(told.starts_with("schedule: ") && told.contains(said), "{cron}: {told}");
        assert_eq!(Schedule::parse(cron, "UTC").unwrap_err().part, Part::Schedule);
    }
    let told = refusal("* * * * *", "Madrid");
    assert_eq!(
        told,
        "zone: \"Madrid\" is no time zone: give an IANA name such as Europe/Madrid, or UTC"
    );
}

#[test]
fn a_day_that_never_comes_is_refused_and_takes_no_time() {
    let begun = std::time::Instant::now();
    for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * * 31 2 *", "0 0 29 2 +SUN#1"] {
        let told = refusal(never, "Europe/Madrid");
        assert!(told.contains("never comes"), "{told}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn the_end_of_time_is_none() {
    let schedule = Schedule::parse("* * * * *", "UTC").unwrap();
    assert_eq!(schedule.next_after(u64::MAX), None);
    assert_eq!(schedule.next_after(instant::parse("5000-12-31T23:59:59Z").unwrap()), None);
    assert_eq!(schedule.last_between(0, u64::MAX).map(|_| ()), Some(()));
}
